"""Parts of kernels that loop over the steps of an algorithm, for devices whose workers run long loops fast
(graph/places.py).

A step needs what earlier steps have stored, so the loop over steps is ORDERED: docs/design/uop.md, Guarantees of a
STORE. Loops along memory inside of it become lanes (codegen/optimize.py). Matrices of a batch are the grid. Launches of
a kernel for each step would take longer than the steps. A kernel runs when the call is made.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.engine.thread import this_thread
from tinyhw.methods.graph.places import runs_in_order
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

LANE_BYTES = 64    # of the widest register, on every device: results are the same

def in_order(x: Tensor) -> bool:
  """Can such kernels work on x's device, and fast? Inside of a `function`, nothing runs."""
  return isinstance(x.device, str) and this_thread.traced is None and runs_in_order(x.uop)

def run(sink: UOp, written: tuple[Tensor, ...], read: tuple[Tensor, ...] = ()) -> None:
  """Run a kernel. Its parameters are the tensors that it writes, which have storage of their own, and those that it
  reads."""
  from tinyhw.engine.run.custom import launch  # few programs factor matrices
  from tinyhw.methods.kernels import memory_of
  device = written[0].device
  assert isinstance(device, str), "in_order says so"
  launch(sink, device, [*[memory_of(x, True) for x in written], *[memory_of(x, False) for x in read]], False)

class Loops:
  """The parts of which kernels here are made: ranges, and matrices of a batch as parameters."""
  def __init__(self, lead: int, dtype: DType) -> None:
    self.dtype, self.count = dtype, 0
    self.each = (self.loop(lead),) if lead > 1 else ()
    self.item: UOp | int = self.each[0] if self.each else 0

  def range(self, end: UOp | int, kind: AxisType) -> UOp:
    self.count += 1
    return UOp.range(end, self.count - 1, kind)

  def loop(self, end: UOp | int) -> UOp: return self.range(end, AxisType.LOOP)
  def steps(self, end: UOp | int) -> UOp: return self.range(end, AxisType.ORDERED)
  def terms(self, end: UOp | int) -> UOp: return self.range(end, AxisType.REDUCE)

  def number(self, x: float) -> UOp: return UOp.const(self.dtype, x)

class MatrixParam:
  """A parameter of the kernel: a matrix (or row) of each item of a batch. `at` is the place of an element."""
  def __init__(self, loops: Loops, slot: int, lead: int, rows: int, columns: int, dtype: DType | None = None) -> None:
    self.memory = UOp.param(slot, dtype or loops.dtype, lead * rows * columns)
    self.first, self.rows, self.columns = loops.item * (rows * columns), rows, columns

  def at(self, row: UOp | int, column: UOp | int) -> UOp:
    return self.memory.index(row * self.columns + column + self.first)

  def __call__(self, row: UOp | int, column: UOp | int) -> UOp: return self.at(row, column).load()

def equal(a: UOp, b: UOp) -> UOp: return UOp(Ops.CMPEQ, dtypes.bool, (a, b))

def quotient(a: UOp, b: UOp) -> UOp: return UOp(Ops.FDIV, a.dtype, (a, b))

def root(x: UOp) -> UOp: return UOp(Ops.SQRT, x.dtype, (x,))

def sum_of(terms: list[UOp]) -> UOp:
  found = terms[0]
  for term in terms[1:]: found = found + term
  return found

def magnitude(x: UOp) -> UOp: return UOp(Ops.MAX, x.dtype, (x, -x))

def width_of(n: int, dtype: DType) -> tuple[int, int]:
  """Return the columns of rows with room for whole vectors, and those of a step along a row."""
  lanes = LANE_BYTES // dtype.itemsize
  if n < lanes: return n, n
  room = n + -n % lanes
  return room, next(c for c in (4 * lanes, 2 * lanes, lanes) if room % c == 0)

def count_of(lead: list[int]) -> int:
  count = 1
  for d in lead: count *= d
  return count
