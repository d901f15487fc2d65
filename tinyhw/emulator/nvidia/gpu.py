"""A virtual NVIDIA GPU: what it is, and its clock. All processes share it."""
from __future__ import annotations
import hashlib
import time

from tinyhw.emulator.nvidia.chips import Chip

XID_MMU = 31  # the driver's number of an access that the page table does not allow

class Gpu:
  """One card. computer: its name. vram_used: bytes that all processes hold together. workgroups: that have been started on it.

  exclusive: another process has it for itself (compute mode); for tests.
  """
  def __init__(self, computer: str, chip: Chip, index: int):
    self.chip, self.index, self.minor = chip, index, index
    self.name = f"GPU {index} ({chip.name})"
    self.gpu_id = 0x4100 + 0x100 * index
    self.uuid = hashlib.sha256(f"{computer} {index}".encode()).digest()[:16]
    self.vram_used = self.workgroups = 0
    self.exclusive = False

  def clock(self) -> int:
    """The time that timestamps show, in nanoseconds."""
    return time.monotonic_ns()
