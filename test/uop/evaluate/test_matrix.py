"""Products whose operands the unit itself reads from shared memory (SHARED_OPERAND): the layout of the elements there,
and the results of the interpreter."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import compare, data_for
from test.codegen.products import product
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import SwizzledLayout
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

HALF = dtypes.float16
UNIT = product_of_group(64, HALF)
CAPABLE = replace(capabilities("sm_90"), matrix=(UNIT,))

def test_lines_follow_each_other_and_their_pieces_change_places() -> None:
  """The 128-byte swizzle: piece p of line r at p ^ r % 8."""
  layout = SwizzledLayout(16, False)
  assert [layout.offset(line, 0, 2) for line in range(9)] == [0, 64 + 8, 128 + 16, 192 + 24, 256 + 32, 320 + 40,
                                                              384 + 48, 448 + 56, 512]
  assert layout.offset(3, 8 * 5 + 7, 2) == 3 * 64 + 8 * (5 ^ 3) + 7 and layout.offset(3, 64 + 1,
                                                                                      2) == 16 * 64 + 3 * 64 + 8 * 3 + 1
  assert sorted(layout.offset(line, at, 2) for line in range(16) for at in range(128)) == list(range(16 * 128))
  assert sorted(layout.offset(line, at, 1) for line in range(16) for at in range(256)) == list(range(16 * 256))

@pytest.mark.parametrize("transposed", (False, True))
def test_a_program_computes_what_the_kernel_says(transposed: bool) -> None:
  """Both operands along the sum, or one of them transposed; copied asynchronously."""
  kernel = product(64, 64, 256, HALF, dtypes.float32, transposed)
  program = lower(optimize(kernel, CAPABLE), CAPABLE, "product")
  verify(program, 2)
  transposes = {u.arg.transposed for u in program.uops if u.op is Ops.SHARED_OPERAND}
  assert program.lanes == 128 and transposes == {False, not transposed}
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  evaluate(program, found)
  compare("shared operands", expected, found, 0.0)

def test_lanes_name_one_place() -> None:
  local, zero = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 64 * 64)), UOp(Ops.CONST, dtypes.float32.vec(32), (), 0.0)
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 128),), (0, AxisType.LOCAL))
  operand = UOp(Ops.SHARED_OPERAND, HALF, (UOp(Ops.INDEX, HALF, (local, lane)),), SwizzledLayout(64, False))
  product, end = UOp(Ops.MMA, zero.dtype, (operand, operand, zero), UNIT), UOp(Ops.END, dtypes.void, (lane,))
  uops = local, zero, lane.src[0], lane, operand.src[0], operand, product, end
  with pytest.raises(VerifyError, match="lanes of one product name different places"):
    evaluate(Program("k", uops, 1, frozenset()), {})

def test_what_is_no_shared_operand_is_refused() -> None:
  local, at = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 64)), UOp.const(dtypes.int32, 0)
  place = UOp(Ops.INDEX, HALF, (local, at))
  wrong = UOp(Ops.SHARED_OPERAND, HALF, (place,), 3), UOp(Ops.SHARED_OPERAND, HALF, (at,), SwizzledLayout(8, False))
  for operand, reason in zip(wrong, ("lies as 3, not as SwizzledLayout", "not of .INDEX.")):
    with pytest.raises(VerifyError, match=reason): verify(Program("k", (local, at, place, operand), 1, frozenset()), 1)
  value, zero = UOp(Ops.LOAD, HALF, (place,)), UOp(Ops.CONST, dtypes.float32.vec(32), (), 0.0)
  product = UOp(Ops.MMA, zero.dtype, (value, value, zero), UNIT)
  with pytest.raises(VerifyError, match="takes SHARED_OPERAND nodes"):
    verify(Program("k", (local, at, place, value, zero, product), 1, frozenset()), 1)

def exchanging(distance: int, lanes: int) -> Program:
  """out[lane] = 10 + the number of the partner lane."""
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, lanes),), (0, AxisType.LOCAL))
  out, value = UOp.param(0, dtypes.int32, lanes), lane + 10
  other = UOp(Ops.EXCHANGE, dtypes.int32, (value,), distance)
  index = UOp(Ops.INDEX, dtypes.int32, (out, lane))
  uops = (out, lane.src[0], lane, value.src[1], value, other, index, UOp(Ops.STORE, dtypes.void, (index, other)),
          UOp(Ops.END, dtypes.void, (lane,)))
  return Program("exchange", uops, 1, frozenset({0}), 0)

@pytest.mark.parametrize("distance, lanes", [(1, 2), (4, 8), (16, 64)])
def test_lanes_exchange_values(distance: int, lanes: int) -> None:
  program, memory = exchanging(distance, lanes), {0: [0] * lanes}
  verify(program, 2)
  evaluate(program, memory)
  assert memory[0] == [10 + (lane ^ distance) for lane in range(lanes)]

def test_what_lanes_cannot_exchange() -> None:
  with pytest.raises(VerifyError, match="lane 0 exchanges with lane 4, and the workgroup has 3"):
    evaluate(exchanging(4, 3), {0: [0] * 3})
  with pytest.raises(VerifyError, match="a distance of 3, not a power of two"): verify(exchanging(3, 4), 1)

def test_kernels_with_exchanges() -> None:
  """The value of another iteration of the LOCAL range. There must be exactly one such range."""
  out, a, lane, other = UOp.param(0, dtypes.int32, 8), UOp.param(1, dtypes.int32,
                                                                 8), UOp.range(8, 0,
                                                                               AxisType.LOCAL), UOp.range(
    2, 1, AxisType.LOCAL)
  def kernel(value: UOp, *ranges: UOp) -> UOp:
    return UOp.sink(out.index(lane).store(UOp(Ops.EXCHANGE, dtypes.int32, (value,), 2), lane, *ranges))
  memory = {0: [0] * 8, 1: [k * k for k in range(8)]}
  value = a.index(lane).load()
  evaluate(kernel(value + UOp(Ops.EXCHANGE, dtypes.int32, (value,), 1)), memory)
  assert memory[0] == [(k ^ 2) ** 2 + (k ^ 3) ** 2 for k in range(8)]
  with pytest.raises(VerifyError, match="an EXCHANGE under 2 LOCAL ranges"):
    evaluate(kernel(value + a.index(other).load(), other), memory)
