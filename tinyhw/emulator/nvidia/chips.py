"""The virtual NVIDIA cards, as rows. Numbers are those of the real cards, except for the size of memory.

gpcs: TPCs of each graphics processing cluster. Real cards have some disabled.
"""
from __future__ import annotations

from tinyhw.autogen.nvidia import rm
from tinyhw.data_class import dataclass

VRAM_BYTES = 4 << 30  # of every virtual card: real ones have more than most computers that emulate them
COMMON = (rm.MEMORY_SYSTEM, rm.MEMORY_LOCAL, rm.MEMORY_OF_PROGRAM, rm.VA_SPACE, rm.CHANNEL_GROUP, rm.CONTEXT_SHARE,
          rm.DEBUGGER, rm.SUBDEVICE)

@dataclass(frozen=True)
class ChipParameters:
  """A card. generation: of autogen/nvidia/methods.py and qmd.py. compute, copies, channels: classes of engine objects
  and of channels."""
  name: str
  marketing: str
  generation: int
  device_id: int
  compute: int
  copies: tuple[int, ...]
  channels: tuple[int, ...]
  usermode: tuple[int, ...]
  gpcs: tuple[int, ...]
  warps: int                # of a multiprocessor
  shared_kib: int           # the most that a multiprocessor's cache gives to shared memory
  l2_kib: int
  versions: tuple[int, ...]  # SASS_VERSION of code that it runs
  architecture: tuple[int, int]  # and implementation: ctrl2080mc.h
  vram: int = VRAM_BYTES

  @property
  def classes(self) -> tuple[int, ...]: return (*COMMON, self.compute, *self.copies, *self.channels, *self.usermode)

CHIPS = {chip.name: chip for chip in (
  ChipParameters("sm_80", "NVIDIA A100-SXM4-80GB", 8, 0x20B2, 0xC6C0, (0xC6B5,), (0xC56F,), (0xC361, 0xC461, 0xC561),
                 (7, 8, 8, 8, 8, 8, 7), 64, 164, 40960,
                 (0x80,), (0x170, 0)),
  ChipParameters("sm_89", "NVIDIA GeForce RTX 4090", 8, 0x2684, 0xC9C0, (0xC6B5, 0xC7B5), (0xC46F, 0xC56F),
                 (0xC361, 0xC461, 0xC561),
                 (6, 6, 5, 6, 6, 6, 6, 6, 6, 6, 5), 48, 100, 73728, (0x80, 0x86, 0x89), (0x190, 2)),
  ChipParameters("sm_90", "NVIDIA H200", 9, 0x2335, 0xCBC0, (0xC8B5,), (0xC86F,), (0xC361, 0xC461, 0xC561, 0xC661),
                 (9, 8, 8, 8, 8, 9, 8, 8), 64, 228, 51200,
                 (0x90,), (0x180, 0)),
)}
