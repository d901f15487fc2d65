"""`Code`: the only thing that crosses from the compilers to the drivers.

Bytes, and what a driver must know to load and launch them. It has no pointers into the compiler, and can be stored on
disk and read back.
"""
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Code:
  """A compiled kernel.

  text: the machine code (CPU, GPU) or source (CLANG, METAL, PYTHON), entry at `entry`.
  arguments: one entry per argument in order: "buffer" or "int64"; the driver lays them out as 8-byte slots.
  local_bytes: scratch memory that each worker (CPU) or workgroup (GPU) needs. lanes: of a workgroup; 1 on a CPU.
  wave: lanes that execute one instruction, where the hardware lets code choose; 0: it does not. private_bytes: memory
  of each lane, for what it
  spills. registers: registers used by bank (AMD: "sgpr", "vgpr", "agpr"): what the hardware is told, or for occupancy.
  descriptors: what a unit of the card reads of buffers (docs/design.md, section 8): the number of the buffer, and bytes
  whose first eight are an offset, to which the buffer's address is added. A launch has them one behind the other, at an
  address that is one argument more, the last. Instruction origins for DEBUG=7 are kept apart, in trace.
  """
  name: str
  arch: str
  text: bytes
  arguments: tuple[str, ...]
  entry: int = 0
  local_bytes: int = 0
  registers: tuple[tuple[str, int], ...] = ()
  lanes: int = 1
  wave: int = 0
  private_bytes: int = 0
  descriptors: tuple[tuple[int, bytes], ...] = ()
