"""Maxima of floats on targets whose instructions ignore NaN: equal to the definition, for a NaN in any operand, and
cheap."""
from dataclasses import replace
import math

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, EVERYTHING, axis, check, data_for, wild
from tinyhw.codegen.math.maximum import Maxima, ignores_nan, never_nan
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
KEEPS = replace(AVX2, maxima=frozenset({F32}))
FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3)

def rows(dtype: DType, kind: str) -> UOp:
  """Return out[g] = the largest of 8 elements of a row. kind: the order of the eight."""
  out, a = UOp.param(0, dtype, 12), UOp.param(1, dtype, 96)
  g = axis(12, 0)
  ranges = {"loop": [axis(8, 1, "REDUCE")], "unrolled": [axis(8, 1, "UNROLL")],
            "both": [axis(2, 1, "REDUCE"), axis(4, 2, "UNROLL")],
            "lanes": [axis(2, 1, "REDUCE"), axis(4, 2, "VECTOR")]}[kind]
  at = g * 8 + (ranges[0] if len(ranges) == 1 else ranges[0] * 4 + ranges[1])
  return UOp.sink(out.index(g).store(a.index(at).load().reduce(Ops.MAX, *ranges), g))

def with_nan(sink: UOp, row_of: int = 8) -> dict[int, list[float]]:
  """Return rows of which row k has a NaN as element k. The remaining rows have none."""
  data = data_for(sink, 3, wild)
  a = [x if x == x else 0.5 for x in data[1]]
  for k in range(row_of): a[k * row_of + k] = math.nan
  return {**data, 1: a}

@pytest.mark.parametrize("kind", ("loop", "unrolled", "both", "lanes"))
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_a_nan_at_any_place_is_the_result(target: str, kind: str) -> None:
  for dtype in FLOATS:
    kernel = rows(dtype, kind)
    check(kernel, ALL_TARGETS[target], data=with_nan(kernel))
    check(kernel, ALL_TARGETS[target], data=data_for(kernel, 4, wild))

@pytest.mark.parametrize("kind", ("loop", "unrolled", "both", "lanes"))
def test_an_instruction_that_keeps_nan(kind: str) -> None:
  """It folds, with one variable. MAX of two operands uses other instructions."""
  for dtype in FLOATS:
    kernel = rows(dtype, kind)
    check(kernel, KEEPS, data=with_nan(kernel))
    uops = lower(kernel, KEEPS, "x").uops
    assert (any(u.op is Ops.MAX for u in uops) == (dtype is not dtypes.float64)
            and not any(u.op is Ops.MULACC for u in uops if dtype is F32))
  r = axis(32, 0)
  two = UOp.param(1, F32, 32).index(r).load().maximum(UOp.param(2, F32, 32).index(r).load())
  assert not any(u.op is Ops.MAX for u in lower(UOp.sink(UOp.param(0, F32, 32).index(r).store(two, r)), KEEPS,
                                                "x").uops)

def test_chains_and_trees() -> None:
  out, inputs = UOp.param(0, F32, 32), [UOp.param(k, F32, 32) for k in range(1, 6)]
  for lanes in (1, 8):
    r, v = axis(32 // lanes, 0), axis(lanes, 1, "VECTOR")
    i = r * lanes + v
    a, b, c, d, e = (p.index(i).load() for p in inputs)
    for value in (a.maximum(b), a.maximum(b).maximum(c), a.maximum(b.maximum(c)),
                  a.maximum(b).maximum(c.maximum(d)).maximum(e),
                  a.maximum(0.0), a.maximum(0.0).maximum(b), a.maximum(b).maximum(-1.0),
                  a.maximum(b).maximum(a.maximum(b) * 2.0),
                  UOp.const(F32, 0.0).maximum(a), UOp.const(F32, math.nan).maximum(a),
                  a.maximum(b).maximum(UOp.const(F32, math.nan))):
      kernel = UOp.sink(out.index(i).store(value, r, v))
      for target in (*ALL_TARGETS.values(), KEEPS): check(kernel, target, data=data_for(kernel, 5, wild))

def count(sink: UOp, op: Ops) -> int: return sum(u.op is op for u in lower(sink, AVX2, "x").uops)

def test_what_it_costs() -> None:
  """One instruction for an operand that is a number; two for each folded operand, and one comparison at the end."""
  out, a = UOp.param(0, F32, 32), UOp.param(1, F32, 32)
  r, v = axis(4, 0), axis(8, 1, "VECTOR")
  x = a.index(r * 8 + v).load()
  def kernel(value: UOp) -> UOp: return UOp.sink(out.index(r * 8 + v).store(value, r, v))
  relu = kernel(x.maximum(0.0))
  assert [count(relu, op) for op in (Ops.WHERE, Ops.CMPLT, Ops.CMPNE, Ops.MULACC)] == [1, 1, 0, 0]
  many = rows(F32, "unrolled")
  assert [count(many, op) for op in (Ops.CMPLT, Ops.CMPNE, Ops.MULACC)] == [7, 1, 8]
  assert not any(u.op is Ops.MULACC for u in lower(many, EVERYTHING, "x").uops), "it has such an instruction"

def test_whole_numbers_are_left_alone() -> None:
  for dtype in (dtypes.int32, dtypes.uint8, dtypes.bool): assert not ignores_nan(AVX2, dtype)
  assert ignores_nan(AVX2, F32.vec(8)) and not ignores_nan(EVERYTHING, F32)
  assert not Maxima(AVX2).wants(UOp.const(dtypes.int32, 1).maximum(2))

def test_what_cannot_be_nan() -> None:
  x, n = UOp(Ops.NOOP, F32, (), 0), UOp(Ops.NOOP, dtypes.int32, (), 1)
  assert (never_nan(UOp.const(F32, -math.inf)) and never_nan(n.cast(F32))
          and never_nan(UOp(Ops.BROADCAST, F32.vec(4), (n.cast(F32),))))
  assert not any(map(never_nan,
                     (x, x.cast(dtypes.float16), UOp.const(F32, math.nan), UOp(Ops.VECTORIZE, F32.vec(2), (x, x)))))
