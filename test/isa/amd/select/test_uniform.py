"""Values that are equal in all lanes of a wave, and values that differ."""
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.select.uniform import varying_values
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

int32, float32 = dtypes.int32, dtypes.float32

def number(value: int) -> UOp: return UOp.const(int32, value)

def load(buffer: UOp, i: UOp) -> UOp: return UOp(Ops.LOAD, buffer.dtype, (UOp(Ops.INDEX, buffer.dtype, (buffer, i)),))

def spread() -> tuple[UOp, UOp]:
  return UOp(Ops.RANGE, int32, (number(8),), (0, AxisType.GLOBAL)), UOp(Ops.RANGE, int32, (number(32),),
                                                                        (1, AxisType.LOCAL))

def test_lanes_differ_and_what_is_made_of_them() -> None:
  group, lane = spread()
  scaled = UOp(Ops.MUL, int32, (group, number(32)))
  place = UOp(Ops.ADD, int32, (scaled, lane))
  assert varying_values(Program("k", (group, lane, scaled, place))) == {lane, place}

def test_a_scalar_load_is_of_memory_that_nobody_writes() -> None:
  group, _ = spread()
  a, b = UOp.param(0, int32, 8), UOp.param(1, int32, 8)
  x, y = load(a, group), load(b, group)
  assert varying_values(Program("k", (a, b, group, x, y), written=frozenset({1}))) == {y}
  half = load(UOp.param(2, dtypes.int16, 8), group)
  assert half in varying_values(Program("k", (group, half))), "the scalar unit loads whole dwords"

def test_arithmetic_of_floats_and_order_of_64_bits_is_the_vector_unit_s() -> None:
  group, _ = spread()
  x = load(UOp.param(0, float32, 8), group)
  total = UOp(Ops.ADD, float32, (x, x))
  wide = UOp(Ops.CAST, dtypes.int64, (group,))
  less, same = UOp(Ops.CMPLT, dtypes.bool, (wide, wide)), UOp(Ops.CMPEQ, dtypes.bool, (wide, wide))
  assert varying_values(Program("k", (group, x, total, wide, less, same))) == {total, less}

def test_variables_spread_what_they_are_assigned_around_loops() -> None:
  _, lane = spread()
  first, second = UOp(Ops.ACC, int32, (number(0),), 0), UOp(Ops.ACC, int32, (number(1),), 1)
  loop = UOp(Ops.RANGE, int32, (number(4),), (2, AxisType.REDUCE))
  late = UOp(Ops.ASSIGN_ACC, int32, (first, second))   # `second` differs only from the next line on
  cause = UOp(Ops.ASSIGN_ACC, int32, (second, lane))
  found = varying_values(Program("k", (lane, first, second, loop, late, cause, UOp(Ops.END, dtypes.void, (loop,)))))
  assert {first, second} <= found and loop not in found
