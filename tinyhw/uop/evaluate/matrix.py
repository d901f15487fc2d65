"""Matrix units in the interpreter: products, also of matrices that lanes share (uop/matrix.py), blocks that lanes load
together, boxes that are copied for all lanes, and values that lanes exchange."""
from __future__ import annotations
import functools
from typing import Any

from tinyhw.arithmetic import Function, Scalar, bfloat16_product, cast, dot4, operation
from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import BLOCK_BYTES, BLOCK_ROWS, FRAGMENT_LANES, WORD_BYTES, Matrix, blocks_of
from tinyhw.uop.ops import UOp

def matrix_product(u: UOp) -> Function:
  """MMA: c + a @ b, all row-major, folded over k with fused multiply-adds in c's type, or in words (_word_product)."""
  m, n, k = u.arg.m, u.arg.n, u.arg.k
  if u.arg.words is not None: return _word_product(u.arg)
  scalar = u.dtype.scalar()
  fused, widen = operation("MULACC", scalar), cast(u.src[0].dtype.scalar(), scalar)
  def multiply(a: Any, b: Any, c: Any) -> tuple[Scalar, ...]:
    out = list(c)
    for i in range(m):
      for j in range(n):
        for x in range(k): out[i * n + j] = fused(widen(a[i * k + x]), widen(b[x * n + j]), out[i * n + j])
    return tuple(out)
  return multiply

def _word_product(matrix: Matrix) -> Function:
  """A product of words. Those of bytes are exact. Of bfloat16, the products of the lower elements have a sum of their
  own and those of the upper ones another, each from 0, by fused multiply-adds; both are added, and then to c.

  That is how AMX adds: Intel SDM volume 2, TDPBF16PS.
  """
  m, n, k = matrix.m, matrix.n, matrix.k
  first, second = matrix.words or (dtypes.int8, dtypes.int8)
  one = dot4(*[dtypes.uint32 if dtypes.is_unsigned(s) else dtypes.int32 for s in (first, second)])
  def of_bytes(xs: Any, ys: Any, c: Any) -> Any: return functools.reduce(lambda z, pair: one(*pair, z), zip(xs, ys), c)
  of_row: Function = bfloat16_product if first is dtypes.bfloat16 else of_bytes
  def multiply(a: Any, b: Any, c: Any) -> tuple[Scalar, ...]:
    return tuple([of_row(a[i * k:i * k + k], b[j::n], c[i * n + j]) for i in range(m) for j in range(n)])
  return multiply

def exchanged_lane(u: UOp, lane: int, count: int) -> int:
  """The lane whose value an EXCHANGE gives to `lane`, out of `count` lanes. Raises VerifyError if there is none."""
  other = lane ^ int(u.arg)
  if other >= count: raise VerifyError(f"lane {lane} exchanges with lane {other}, and the workgroup has {count}: {u!r}")
  return other

class Shared:
  """One lane's values at an operation that several lanes execute together. That is an MMA whose matrices are shared by
  lanes (uop/matrix.py), a FRAGMENT, an EXCHANGE, or an ASYNC_COPY of a TENSOR_BOX."""
  def __init__(self, u: UOp, values: list[Any] | None = None, places: tuple[int, ...] = (), at: int = 0):
    self.u, self.values, self.places, self.at = u, values, places, at

  @property
  def lanes(self) -> int:
    """The number of lanes that execute it together. 0: all lanes of the workgroup."""
    if self.u.op in (Ops.ASYNC_COPY, Ops.EXCHANGE): return 0
    return FRAGMENT_LANES if self.u.op is Ops.FRAGMENT else int(self.u.arg.lanes)

  def execute(self, lanes: list[Shared]) -> None:
    """Give each of the lanes its share."""
    if self.u.op is Ops.ASYNC_COPY: self.copy(lanes)
    elif self.u.op is Ops.FRAGMENT: self.load(lanes)
    elif self.u.op is Ops.EXCHANGE: self.exchange(lanes)
    else: self.multiply(lanes)

  def exchange(self, lanes: list[Shared]) -> None:
    """Give each lane the value of its partner."""
    found = [lane.values[lane.places[0]] for lane in lanes]  # type: ignore[index]  # all of them have values now
    for number, lane in enumerate(lanes):
      lane.values[lane.at] = found[exchanged_lane(self.u, number, len(lanes))]  # type: ignore[index]

  def copy(self, lanes: list[Shared]) -> None:
    """Copy a box to shared memory, at once and once: all lanes name the same box."""
    # all of them have values now
    named = [[lane.values[at] for at in lane.places] for lane in lanes]  # type: ignore[index]
    if any(own != named[0] for own in named):
      raise VerifyError(f"lanes of a workgroup name different boxes of {self.u!r}")
    (goal, begin), (memory, first), *gate = named[0]
    if gate and not gate[0]: return
    zero = cast(dtypes.int32, self.u.src[0].dtype)(0)
    for to, place in self.u.src[1].arg.places(first, self.u.src[0].dtype.itemsize):
      goal.write(begin + to, zero if place is None else memory.read(place))

  def load(self, lanes: list[Shared]) -> None:
    """Load blocks of shared memory. Each lane gives the address of one row of them."""
    if len(lanes) != FRAGMENT_LANES: raise VerifyError(f"{len(lanes)} lanes load a FRAGMENT, not {FRAGMENT_LANES}")
    size, transposed, rows = self.u.dtype.scalar().itemsize, self.u.arg, list[list[Any]]()
    for lane in lanes[:BLOCK_ROWS * blocks_of(self.u.dtype)]:
      assert lane.values is not None
      memory, at = lane.values[lane.places[0]]
      rows.append([memory.read(at + k) for k in range(BLOCK_BYTES // size)])
    each = WORD_BYTES // size
    for number, lane in enumerate(lanes):
      row, first = number // 4, number % 4 * each
      blocks = [rows[k:k + BLOCK_ROWS] for k in range(0, len(rows), BLOCK_ROWS)]
      assert lane.values is not None
      lane.values[lane.at] = tuple([block[first + k][row] if transposed else block[row][first + k] for block in blocks
                                    for k in range(each)])

  def multiply(self, lanes: list[Shared]) -> None:
    """Give each of the lanes that hold one matrix its share of the result."""
    matrix: Matrix = self.u.arg
    operands = ((matrix.a, "row", "step", matrix.m * matrix.k, matrix.k),
                (matrix.b, "step", "column", matrix.k * matrix.n, matrix.n),
                (matrix.c, "row", "column", matrix.m * matrix.n, matrix.n))
    whole: list[list[Any]] = []
    for i, (layout, down, across, size, width) in enumerate(operands):
      if layout is None:
        whole.append(self.operand(lanes, i))
        continue
      content: list[Any] = [None] * size
      for number, lane in enumerate(lanes):
        for e, x in enumerate(lane.values[lane.places[i]]):  # type: ignore[index]  # all of them have values now
          content[layout.coordinate(down, number, e) * width + layout.coordinate(across, number, e)] = x
      whole.append(content)
    result = matrix_product(self.u)(*whole)
    c = matrix.c
    assert c is not None
    for number, lane in enumerate(lanes):
      assert lane.values is not None
      places = [c.coordinate("row", number, e) * matrix.n + c.coordinate("column", number, e) for e in range(c.count)]
      lane.values[lane.at] = tuple([result[at] for at in places])

  def operand(self, lanes: list[Shared], number: int) -> list[Any]:
    """The first or the second operand, which the unit itself reads from shared memory, row by row."""
    matrix, operand = self.u.arg, self.u.src[number]
    places = [lane.values[lane.places[number]] for lane in lanes]  # type: ignore[index]  # all of them have values now
    if any(place != places[0] for place in places):
      raise VerifyError(f"lanes of one product name different places of {operand!r}")
    (memory, at), size = places[0], operand.dtype.itemsize
    def element(row: int, step: int) -> Any:
      line, along = (step, row) if operand.arg.transposed else (row, step)
      return memory.read(at + operand.arg.offset(line, along, size))
    if number == 0: return [element(row, step) for row in range(matrix.m) for step in range(matrix.k)]
    return [element(column, step) for step in range(matrix.k) for column in range(matrix.n)]
