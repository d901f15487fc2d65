"""The width of one access of a lane, for an operand with unaligned rows or with gates."""
import pytest

from test.codegen.kernels import axis
from tinyhw.codegen.kernel.vector_width import gate_width, width_along
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

HALF = dtypes.float16
I, X = axis(64, 0), axis(64, 1, "REDUCE")

def factor(pitch: int, first: int = 0, gate: UOp | None = None) -> UOp:
  """Return a[first + i * pitch + x], where a gate is open."""
  place = UOp.param(0, HALF, 1 << 20).index(I * pitch + X + first)
  return place.load() if gate is None else UOp(Ops.LOAD, HALF, (place, gate, UOp.const(HALF, 0)))

@pytest.mark.parametrize("pitch, first, width", [(64, 0, 8), (1001, 0, 1), (1002, 0, 2), (1004, 0, 4), (1004, 6, 2),
                                                 (8, 3, 1), (1000, 0, 8)])
def test_rows_begin_where_their_pitch_says(pitch: int, first: int, width: int) -> None:
  assert width_along(factor(pitch, first), X, 8, True) == width
  assert width_along(factor(pitch, first), X, 8, False) == 8, "where accesses may be anywhere"

@pytest.mark.parametrize("end, width", [(1000, 8), (1001, 1), (1002, 2), (1004, 4)])
def test_a_gate_closes_between_accesses(end: int, width: int) -> None:
  inside, other = (I * 16 + X) < end, I < 7
  assert width_along(factor(64, 0, inside), X, 8, False) == width
  assert gate_width(UOp(Ops.AND, dtypes.bool, (other, inside)), X, 8) == width and gate_width(other, X, 8) == 8
  assert gate_width((I * 3 + X) < 1000, X, 8) == 1 and gate_width((X * 2) < 8, X, 8) == 1

def test_the_last_tile_begins_early() -> None:
  """The first row is unknown, but a multiple of whole pieces."""
  last = UOp(Ops.MAX, dtypes.weakint, (I * -16, UOp.const(dtypes.weakint, -40)))
  place = UOp.param(0, HALF, 1 << 20).index(last * -1 + X)
  assert width_along(place.load(), X, 8, True) == 8

def test_places_that_are_computed_are_left_alone() -> None:
  place = UOp.param(0, HALF, 1 << 20).index(I // 3 * 5 + X)
  assert width_along(place.load(), X, 8, True) == 8 == width_along(factor(1001), I, 8, True)
