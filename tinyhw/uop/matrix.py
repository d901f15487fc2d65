"""Shapes of matrix units, and how lanes share the matrices: the argument of MMA.

A lane has some elements of each matrix. Which ones is told by digits: the number of the lane and that of the element
are written in mixed radix, fastest digit first, and each digit adds digit * stride to the row, the column or the step
(along the sum) of the place that is meant; "" adds nothing, so that lanes that differ there have copies. So a lane's
number and an element's number give one place, and all of them the whole matrix.
"""
from __future__ import annotations
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from tinyhw.dtype import DType
from tinyhw.uop.text import register

Digit = tuple[str, int, int]  # axis ("row", "column", "step" or ""), radix, stride

@register
@dataclass(frozen=True)
class Layout:
  """Digits of a lane's number and of an element's number, fastest first."""
  lanes: tuple[Digit, ...]
  elements: tuple[Digit, ...]

  @property
  def count(self) -> int:
    """Elements of a lane."""
    return _product(self.elements)

  def place(self, axis: str, lane: int, element: int) -> int:
    """The row, column or step of an element of a lane."""
    return _along(self.lanes, axis, lane) + _along(self.elements, axis, element)

  def beside(self, axis: str) -> int:
    """How many places that lie beside each other along an axis a lane has."""
    return next((radix for name, radix, stride in self.elements if name == axis and stride == 1), 1)

  def digits(self, axis: str) -> tuple[tuple[int, int], ...]:
    """Radix and stride of what an axis has in the numbers of lanes and, behind them, of elements."""
    return tuple((radix, stride) for name, radix, stride in (*self.lanes, *self.elements) if name == axis)

  def packed(self, axis: str) -> Layout:
    """The same with the places along an axis numbered in the order in which lanes, then their elements, have them."""
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

  lanes: how many lanes of a workgroup hold a matrix together. 1: an operand is a whole matrix, row by row, and there
  are no layouts. More: a, b, c tell which elements a lane has. fragments: lanes load a and b from local memory together
  (FRAGMENT). panels: the unit reads them from there itself (PANEL), so no lane has any of them; the steps of one MMA
  fill a row of a panel.
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
  panels: bool = False

  @property
  def turns(self) -> bool:
    """Whether fragments or panels may lie across the steps: only elements of two bytes are turned on their way to the
    unit."""
    return self.operand.itemsize == 2

  @functools.cached_property
  def _hash(self) -> int:
    return hash((self.m, self.n, self.k, self.operand, self.result, self.lanes, self.a, self.b, self.c, self.fragments,
                 self.panels))

  def __hash__(self) -> int:
    """Kept, as each pass looks up each of its products by it."""
    return self._hash

@register
@dataclass(frozen=True)
class Panels:
  """How a factor lies in local memory for a unit that reads it itself: the argument of PANEL.

  A panel is so many lines of 128 bytes, which are rows (or columns) of the factor and have its steps; turned: lines are
  steps, and have its rows (or columns). What does not fit into a line is in the next panel. A line's pieces of 16 bytes
  change places: where p would be, is p ^ line % 8. Panels begin at multiples of eight lines.
  """
  lines: int
  turned: bool

  def place(self, line: int, along: int, itemsize: int) -> int:
    """Where an element is, in elements from the beginning of a panel, its line and its place along the line given."""
    length, piece = LINE_BYTES // itemsize, PIECE_BYTES // itemsize
    panel, at = divmod(along, length)
    return (panel * self.lines + line) * length + (at // piece ^ line % LINES) * piece + at % piece

@register
@dataclass(frozen=True)
class Scattered:
  """How a STORE of a lane's share of a matrix is done: the argument of STORE in a kernel, until legalize.py of codegen
  makes one STORE of each piece.

  A piece is `length` elements of the value, side by side there and in memory, cast to the type of memory. places: for
  each its first element, and how many elements it lies behind INDEX, the least distance first.
  """
  length: int
  places: tuple[tuple[int, int], ...]

  @property
  def reach(self) -> int:
    """Elements of memory from INDEX to the last one."""
    return self.places[-1][1] + self.length

LINE_BYTES, PIECE_BYTES, LINES = 128, 16, 8  # of panels: a line, its pieces, and how many lines change them each in its
                                             # own way

# What a FRAGMENT loads: blocks of 8 rows of 16 bytes, by 32 lanes. Lane 8b + r says where row r of block b is; of each
# block it gets the word number lane % 4 of row lane // 4, or, with transposition, of elements of two bytes, the
# elements lane // 4 of rows 2 * (lane % 4) and the next one
FRAGMENT_LANES, BLOCK_ROWS, BLOCK_BYTES, WORD_BYTES = 32, 8, 16, 4

def blocks_of(dtype: DType) -> int:
  """Blocks of the result of a FRAGMENT: 1, 2 or 4."""
  return dtype.itemsize // WORD_BYTES

def by_columns(m: int, n: int, k: int, operand: DType, result: DType, lanes: int) -> Matrix:
  """The plainest way to share: lane l has row l % m of the first operand, column l % n of the second, and every so
  many-th row of that column."""
  again = lanes // n
  return Matrix(m, n, k, operand, result, lanes,
                Layout((("row", m, 1), ("", lanes // m, 0)), (("step", k, 1),)),
                Layout((("column", n, 1), ("", again, 0)), (("step", k, 1),)),
                Layout((("column", n, 1), ("row", again, 1)), (("row", m // again, again),)))
