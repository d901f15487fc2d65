"""`Code`: the only thing that the compilers hand to the drivers.

It holds bytes, and the data that a driver needs to load and launch them. It has no pointers into the compiler. It can
be stored on disk and read back.
"""
from __future__ import annotations

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class Code:
  """A compiled kernel.

  - text: the machine code (CPU, GPU) or source (CLANG, METAL, PYTHON), with the entry at `entry`.
  - arguments: one entry per argument in order: "buffer" or "int64". The driver lays them out as 8-byte slots.
  - local_bytes: scratch memory that each worker (CPU) or workgroup (GPU) needs.
  - registers: registers used by bank (AMD: "sgpr", "vgpr", "agpr"), for the launch or for occupancy.
  - lanes: of a workgroup; 1 on a CPU.
  - wave: lanes that execute one instruction, if the hardware lets the code choose, else 0.
  - private_bytes: memory of each lane, for its spills.
  - descriptors: the number of a buffer, and bytes that a unit of the card reads (docs/design/program.md). The first
    eight bytes are an offset, to which the buffer's address is added. A launch stores all descriptors contiguously.
    Their address is one more argument, the last.

  Origins of instructions for DEBUG=7 are stored separately, in trace.
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
