"""Products of a warpgroup for tests: matrices in shared memory as descriptors say, written out from the drawings of
the PTX ISA, and programs."""
from __future__ import annotations
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nvidia.warps import MEMORY, block_of, scheduled
from tinyhw.emulator.nvidia.block import ThreadBlock

BYTES = 16384      # of shared memory, which global memory at MEMORY is copied to
SECOND = 8192      # where the second factor begins
THREADS = 128
SWIZZLES = {16: 0, 128: 1, 64: 2, 32: 3}   # bytes of a line -> the number in a descriptor

class Tile(NamedTuple):
  """A factor's place. turned: elements of rows (or columns) beside each other, not those of steps. line: bytes of a
  swizzled line, 16 for none."""
  at: int
  line: int
  turned: bool
  leading: int
  stride: int

  def offset(self, row: int, step: int, size: int = 2) -> int:
    """The address of an element: a tile of 8 lines, drawn line by line, of which each piece of 16 bytes goes where the
    swizzle says."""
    along, across = (row, step) if self.turned else (step, row)
    line, byte = across % 8, along * size
    if self.line == 16:
      first, second = (self.stride, self.leading) if self.turned else (self.leading, self.stride)
      return self.at + line * 16 + byte // 16 * first + across // 8 * second + byte % 16
    chunk, period = byte % self.line // 16, {128: 1, 64: 2, 32: 4}[self.line]
    chunk ^= line // period % (self.line // 16)
    return (self.at + line * self.line + chunk * 16 + byte % 16 + byte // self.line * self.leading + across // 8
            * self.stride)

  @property
  def words(self) -> tuple[int, int]:
    """The descriptor."""
    word = self.at >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | SWIZZLES[self.line] << 62
    return word & 0xffffffff, word >> 32

def tile(at: int, line: int, turned: bool, extent: int) -> Tile:
  """The densest tile of a factor of `extent` rows or columns, with steps of 32 bytes."""
  if line == 16: return Tile(at, line, turned, 16 * extent if turned else 128, 128 if turned else 256)
  if turned: return Tile(at, line, True, 16 * line, 8 * line)
  return Tile(at, line, False, 16, 8 * line)

Numbers = list[list[float]]

def numbers(rows: int, columns: int, seed: int, low: int = -6, high: int = 6) -> Numbers:
  rng = random.Random(seed)
  return [[float(rng.randint(low, high)) for _ in range(columns)] for _ in range(rows)]

def fill(memory: bytearray, where: Tile, values: Numbers, encode: Callable[[float], int], size: int = 2) -> None:
  """Put a factor there: its rows, or the columns of the second one."""
  for row, line in enumerate(values):
    for step, x in enumerate(line):
      at = where.offset(row, step, size)
      memory[at:at + size] = encode(x).to_bytes(size, "little")

# Each lane copies BYTES / THREADS bytes from global memory to the same place of shared memory
COPY = ["S2R R0, SR_TID.X", f"IMAD.WIDE.U32 R2, R0, {BYTES // THREADS:#x}, R4",
        f"IMAD R1, R0, {BYTES // THREADS:#x}, RZ",
        *(line for k in range(0, BYTES // THREADS, 16)
          for line in (f"LDG.E.128 R8, [R2+{k:#x}]", f"STS.128 [R1+{k:#x}], R8"))]
FENCE, MEET = "FENCE.VIEW.ASYNC.S", "BAR.SYNC.DEFER_BLOCKING 0x0"
ARRIVE, DONE = "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR.LE gsb0, 0x0"

def tiles(first: Tile, second: Tile) -> list[str]:
  """Have the descriptors in UR8 to UR11."""
  return [f"UMOV UR{8 + k}, {word:#x}" for k, word in enumerate((*first.words, *second.words))]

def program(lines: Sequence[str], memory: bytes, threads: int = THREADS, seed: int = 0, **given: object) -> ThreadBlock:
  """A block that is about to execute scheduled lines. memory: global memory at MEMORY, whose address is in R4 and
  R5."""
  registers = {4: [MEMORY & 0xffffffff], 5: [MEMORY >> 32]}
  return block_of(scheduled(lines), registers=registers, content=bytearray(memory), threads=threads, shared=BYTES,
                  count=128, seed=seed,
                  **given)  # type: ignore[arg-type]  # named as there
