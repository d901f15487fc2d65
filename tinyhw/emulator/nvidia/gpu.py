"""A virtual NVIDIA GPU: what it is, its clock, and what happens when it faults."""
from __future__ import annotations
import hashlib
import time
from typing import TYPE_CHECKING

from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.nvidia.chips import Chip

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.computer import Computer
  from tinyhw.emulator.nvidia.objects import ChannelItem

XID_EXCEPTION, XID_MMU, XID_PUSHBUFFER = 13, 31, 32

class Gpu:
  """One card. fault: the access that stopped it. workgroups: that have been started on it. exclusive: another process has it
  for itself (compute mode); for tests."""
  def __init__(self, computer: Computer, chip: Chip, index: int):
    self.computer, self.chip, self.index, self.minor = computer, chip, index, index
    self.name = f"GPU {index} ({chip.name})"
    self.gpu_id = 0x4100 + 0x100 * index
    self.uuid = hashlib.sha256(f"{computer.name} {index}".encode()).digest()[:16]
    self.vram_used = self.workgroups = 0
    self.fault: PageFault | None = None
    self.exclusive = False

  def clock(self) -> int:
    """The time that timestamps show, in nanoseconds."""
    return time.monotonic_ns()

  def stop(self, channel: ChannelItem, xid: int, fault: PageFault | None = None) -> None:
    """An error of a channel: the driver stops its whole group, and writes into the notifiers which error it was."""
    self.fault = fault
    for item in channel.group.children:
      notifier = getattr(item, "notifier", None)
      if notifier is None: continue
      notifier.frames.view[:16] = self.clock().to_bytes(8, "little") + xid.to_bytes(4, "little") + b"\0\0\xff\xff"
    self.computer.engines.stop(channel.group)
