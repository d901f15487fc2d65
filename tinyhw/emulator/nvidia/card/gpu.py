"""A virtual NVIDIA GPU: its properties and its clock. All processes share it."""
from __future__ import annotations
import hashlib
import time
from enum import IntEnum

from tinyhw.emulator.nvidia.chips import ChipParameters

class ComputeMode(IntEnum):
  """The clients that may compute on a GPU, as its administrator has set it.

  Source: open-gpu-kernel-modules, ctrl2080gpu.h, COMPUTE_MODE_RULES.
  """
  NONE, EXCLUSIVE_COMPUTE, COMPUTE_PROHIBITED, EXCLUSIVE_COMPUTE_PROCESS = range(4)

XID_MMU = 31  # the driver's number of an access that the page table does not allow

FIRST_BUS = 0x17   # of PCI

class GpuHardware:
  """One card. computer: its name. vram_used: bytes that all processes hold together. workgroups: number of blocks
  started on it.

  bus: its PCI bus. reserved: the client that computes on it, where the mode allows only one.
  """
  def __init__(self, computer: str, chip: ChipParameters, index: int):
    self.chip, self.index, self.minor = chip, index, index
    self.name = f"GPU {index} ({chip.name})"
    self.bus = FIRST_BUS + index
    self.gpu_id = 0x4100 + 0x100 * index
    self.uuid = hashlib.sha256(f"{computer} {index}".encode()).digest()[:16]
    self.vram_used = self.workgroups = 0
    self.mode = ComputeMode.NONE
    self.reserved: object = None

  def information(self) -> str:
    """Return its text in procfs. Source: open-gpu-kernel-modules, kernel-open/nvidia/nv-procfs.c."""
    digits = self.uuid.hex()
    uuid = "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    return f"Model: \t\t {self.chip.marketing}\nGPU UUID: \t GPU-{uuid}\nBus Location: \t 0000:{self.bus:02x}:00.0\n"

  def clock(self) -> int:
    """Return the time of timestamps, in nanoseconds."""
    return time.monotonic_ns()
