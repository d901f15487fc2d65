"""Matrices in shared memory for asynchronous products: a 64-bit descriptor, and the addresses of a matrix's 16-byte
pieces.

Bits of a descriptor: 0-13 the address, 16-29 the leading offset, 32-45 the stride offset, each in units of 16 bytes,
49-51 the base offset, 62-63 the swizzle. A matrix is K-major if elements are adjacent along the steps of the sum. It is
MN-major if they are adjacent along its rows or columns.

Offsets count 16-byte pieces. A swizzled line has s pieces: 2, 4, 8 for 32, 64, 128 bytes. Without swizzle, K-major
lines are one piece apart.

    K-major, swizzle    row r, piece j     (r % 8) * s + (r / 8) * stride + j
    K-major, none       row r, piece j     (r % 8) + (r / 8) * stride + j * leading
    MN-major, swizzle   step k, piece i    i % s + (i / s) * leading + (k % 8) * s + (k / 8) * stride
    MN-major, none      step k, piece i    i * stride + k % 8 + (k / 8) * leading

A swizzle of 128 bytes XORs bits 4 to 6 of the address with bits 7 to 9; one of 64 bytes bits 4, 5 with 7, 8; one of 32
bytes bit 4 with 7. Sources: PTX ISA, "Shared Memory Matrix Layout"; CUTLASS, include/cute/atom/mma_traits_sm90_gmma.hpp
(canonical layouts).
"""
from __future__ import annotations

from tinyhw.emulator.errors import OutOfBounds, UnknownInstruction
from tinyhw.named_tuple import NamedTuple

PIECE, LINES, DEPTH = 16, 8, 32       # bytes; lines of a pattern; bytes of a product's steps in a K-major line
LINE_BYTES = {0: PIECE, 1: 128, 2: 64, 3: 32}  # of a swizzle, by its number
FIELD = (1 << 14) - 1
RESERVED = sum(1 << bit for bit in (14, 15, 30, 31, 46, 47, 48, *range(52, 62)))

class Descriptor(NamedTuple):
  """A decoded descriptor. address, leading, stride: bytes. line: bytes of a swizzled line, 16 without swizzle."""
  address: int
  leading: int
  stride: int
  line: int

def descriptor(word: int) -> Descriptor:
  """Decode the 64 bits. Raises UnknownInstruction, OutOfBounds."""
  if word & RESERVED:
    raise UnknownInstruction(f"matrix descriptor {word:#x}: bits {word & RESERVED:#x} have no meaning")
  if word >> 49 & 7:
    raise UnknownInstruction(f"matrix descriptor {word:#x}: a base offset is not supported yet; begin at a whole "
                             f"pattern")
  address, leading, stride = ((word >> at & FIELD) * PIECE for at in (0, 16, 32))
  line = LINE_BYTES[word >> 62]
  if line > PIECE and address % (LINES * line) >= line:
    raise OutOfBounds(f"matrix descriptor {word:#x}: {address:#x} is not in the first line of a pattern; align tiles "
                      f"to {LINES * line} bytes")
  return Descriptor(address, leading, stride, line)

def swizzled(address: int, line: int) -> int:
  """Return the swizzled address."""
  return address ^ (address >> 7 & line // PIECE - 1) << 4

def k_major(matrix: Descriptor, rows: int) -> list[list[int]]:
  """Return for each row the addresses of its two pieces. Raises OutOfBounds."""
  plain = matrix.line == PIECE
  if not plain and matrix.address % matrix.line + DEPTH > matrix.line:
    raise OutOfBounds(f"a product begins at byte {matrix.address % matrix.line} of a line of {matrix.line}: its "
                      f"{DEPTH} bytes end after it")
  step = matrix.leading if plain else PIECE
  return [[swizzled(matrix.address + r % LINES * matrix.line + r // LINES * matrix.stride + j * step, matrix.line)
           for j in range(DEPTH // PIECE)]
          for r in range(rows)]

def mn_major(matrix: Descriptor, pieces: int, steps: int) -> list[list[int]]:
  """Return for each step the addresses of its pieces. A piece has elements of as many rows or columns."""
  span = matrix.line // PIECE
  along, across = (matrix.stride, matrix.leading) if span == 1 else (matrix.leading, matrix.stride)
  return [[swizzled(matrix.address + i % span * PIECE + i // span * along + k % LINES * matrix.line + k // LINES
                    * across, matrix.line)
           for i in range(pieces)] for k in range(steps)]
