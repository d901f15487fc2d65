"""Shapes of matrix units and the distribution of a matrix over lanes: the argument of MMA.

Each lane holds some elements of each matrix. Digits define which ones. The number of the lane and the number of the
element are written in mixed radix, fastest digit first. Each digit adds digit * stride to the row, the column or the
step (along the sum) of the element. A digit with axis "" adds nothing, so lanes that differ in it hold copies. A lane's
number and an element's number give one position, and all of them together give the whole matrix.
"""
from __future__ import annotations
import functools
from collections.abc import Iterator

from tinyhw.data_class import dataclass
from tinyhw.dtype import DType
from tinyhw.uop.text import register

Digit = tuple[str, int, int]  # axis ("row", "column", "step" or ""), radix, stride

@register
@dataclass(frozen=True)
class Layout:
  """Digits of a lane's number and of an element's number, fastest first."""
  lanes: tuple[Digit, ...]
  elements: tuple[Digit, ...]

  @functools.cached_property
  def count(self) -> int:
    """Elements of a lane."""
    return _product(self.elements)

  def coordinate(self, axis: str, lane: int, element: int) -> int:
    """The row, column or step of an element of a lane."""
    return _along(self.lanes, axis, lane) + _along(self.elements, axis, element)

  def contiguous(self, axis: str) -> int:
    """The number of contiguous elements that a lane has along an axis."""
    return next((radix for name, radix, stride in self.elements if name == axis and stride == 1), 1)

  def digits(self, axis: str) -> tuple[tuple[int, int], ...]:
    """Radix and stride of an axis's digits: first those of the lane's number, then those of the element's number."""
    return tuple((radix, stride) for name, radix, stride in (*self.lanes, *self.elements) if name == axis)

  def packed(self, axis: str) -> Layout:
    """Return the layout with the positions along an axis renumbered in the order of lanes, then of elements."""
    span = 1
    def pack(digits: tuple[Digit, ...]) -> Iterator[Digit]:
      nonlocal span
      for name, radix, stride in digits:
        yield (name, radix, span if name == axis else stride)
        if name == axis: span *= radix
    return Layout(tuple(pack(self.lanes)), tuple(pack(self.elements)))

def _product(digits: tuple[Digit, ...]) -> int:
  found = 1
  for _, radix, _ in digits: found *= radix
  return found

def _along(digits: tuple[Digit, ...], axis: str, number: int) -> int:
  total = 0
  for name, radix, stride in digits:
    number, digit = divmod(number, radix)
    if name == axis: total += digit * stride
  return total

@register
@dataclass(frozen=True)
class Matrix:
  """A shape of the matrix unit: (m, k) x (k, n) + (m, n), and the element types of its operands and of its result.

  - lanes: the number of lanes of a workgroup that hold a matrix together. With 1, an operand is a whole matrix, row by
    row, and there are no layouts. With more, a, b and c define the elements of each lane.
  - words: the element types of a and of b, if these hold words of 32 bits with several elements. A product of two words
    is the sum of the products of their elements, as in DOT4 and DOT2.
  - fragments: lanes load a and b from shared memory together (FRAGMENT).
  - shared_operands: the unit itself reads a and b from shared memory (SHARED_OPERAND), so lanes hold none of their
    elements. The steps of one MMA fill a row of a swizzle atom.
  """
  m: int
  n: int
  k: int
  operand: DType
  result: DType
  lanes: int = 1
  a: Layout | None = None
  b: Layout | None = None
  c: Layout | None = None
  fragments: bool = False
  shared_operands: bool = False
  words: tuple[DType, DType] | None = None

  @property
  def transposes(self) -> bool:
    """Whether fragments or shared operands may be transposed: the hardware transposes only elements of two bytes on
    their way to the unit."""
    return self.operand.itemsize == 2

  @functools.cached_property
  def _hash(self) -> int:
    return hash((self.m, self.n, self.k, self.operand, self.result, self.lanes, self.a, self.b, self.c, self.fragments,
                 self.shared_operands, self.words))

  def __hash__(self) -> int:
    """The cached hash: each pass looks up each of its products by it."""
    return self._hash

@register
@dataclass(frozen=True)
class SwizzledLayout:
  """The swizzled layout of an operand in shared memory that the unit reads by itself: the argument of SHARED_OPERAND.

  Lines have 128 bytes; eight of them are a swizzle atom. A line is a row (or column) of the operand and contains its
  steps. If the layout is transposed, a line is a step and contains its rows (or columns). Steps that do not fit into a
  line are in the next column of atoms.

  Pieces of 16 bytes in a line are permuted: piece p is at p ^ line % 8. lines: of a column, a multiple of eight.
  """
  lines: int
  transposed: bool

  def offset(self, line: int, along: int, itemsize: int) -> int:
    """The offset of an element from the start of the first atom, in elements. line: its line; along: its position
    along the line."""
    length, piece = LINE_BYTES // itemsize, PIECE_BYTES // itemsize
    column, at = divmod(along, length)
    return (column * self.lines + line) * length + (at // piece ^ line % LINES) * piece + at % piece

@register
@dataclass(frozen=True)
class Scattered:
  """How a STORE writes a lane's share of a matrix: the argument of STORE in a kernel, until legalize.py of codegen
  makes one STORE of each piece.

  A piece is `length` elements, contiguous in the value and in memory, cast to the type of memory. places: for each
  piece its first element and its offset in elements from INDEX, the smallest offset first.
  """
  length: int
  places: tuple[tuple[int, int], ...]

  @property
  def reach(self) -> int:
    """Elements of memory from INDEX to the last one."""
    return self.places[-1][1] + self.length

@register
@dataclass(frozen=True)
class MatrixRows:
  """How a LOAD reads a whole matrix: the argument of a LOAD whose value is an operand of an MMA with one lane.

  rows: their number. stride: elements of memory from the start of a row to the start of the next one. prefetched: rows
  that will be needed later, from the LOAD's second INDEX on. They are brought near, which changes no value.
  """
  rows: int
  stride: int
  prefetched: int = 0

  def places(self, count: int) -> list[int]:
    """The offsets in elements from INDEX of a matrix of `count` elements."""
    return [row * self.stride + k for row in range(self.rows) for k in range(count // self.rows)]

  def reach(self, count: int) -> int:
    """Elements of memory from INDEX to the last one."""
    return (self.rows - 1) * self.stride + count // self.rows

# of swizzle atoms: bytes of a line, bytes of its pieces, and the number of lines with different permutations of them
LINE_BYTES, PIECE_BYTES, LINES = 128, 16, 8

# A FRAGMENT loads blocks of 8 rows of 16 bytes, by 32 lanes. Lane 8b + r gives the address of row r of block b. Of each
# block, a lane gets the word lane % 4 of row lane // 4. With transposition, of elements of two bytes, it gets the
# elements lane // 4 of rows 2 * (lane % 4) and 2 * (lane % 4) + 1.
FRAGMENT_LANES, BLOCK_ROWS, BLOCK_BYTES, WORD_BYTES = 32, 8, 16, 4

def blocks_of(dtype: DType) -> int:
  """Blocks of the result of a FRAGMENT: 1, 2 or 4."""
  return dtype.itemsize // WORD_BYTES

def by_columns(m: int, n: int, k: int, operand: DType, result: DType, lanes: int) -> Matrix:
  """The simplest layout. Lane l has row l % m of the first operand and column l % n of the second. Of the result it has
  every (lanes // n)-th row of that column."""
  again = lanes // n
  return Matrix(m, n, k, operand, result, lanes,
                Layout((("row", m, 1), ("", lanes // m, 0)), (("step", k, 1),)),
                Layout((("column", n, 1), ("", again, 0)), (("step", k, 1),)),
                Layout((("column", n, 1), ("row", again, 1)), (("row", m // again, again),)))
