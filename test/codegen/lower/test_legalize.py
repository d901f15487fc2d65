"""Vectors that are too wide for the target or for an operation become narrower ones or scalars."""
from dataclasses import replace

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, POOR, axis, check, elementwise, lower_text, masked
from tinyhw.codegen.lower.legalize import legalize
from tinyhw.codegen.passes import PASSES, lower
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32, F64 = dtypes.float32, dtypes.float64

def convert(source: DType, target: DType, lanes: int) -> UOp:
  """Return a kernel of out = cast(a) + 1, lanes at a time."""
  r, v = axis(2, 0), axis(lanes, 1, "VECTOR")
  i = r * lanes + v
  return UOp.sink(UOp.param(0, target,
                            2 * lanes).index(i).store(UOp.param(1, source, 2 * lanes).index(i).load().cast(target) + 1,
                                                      r, v))

def test_what_fits_is_returned_as_it_is() -> None:
  kernel = elementwise(64, 8, 2)
  for step in PASSES[:-1]: kernel = step.run(kernel, AVX2)
  assert legalize(kernel, AVX2) is kernel

def test_too_wide_vectors_are_halved() -> None:
  program = check(elementwise(64, 8, 1, F64), AVX2)
  assert [u.dtype for u in program.uops if u.op is Ops.LOAD] == [F64.vec(4)] * 4
  offsets = [u.src[0].src[1] for u in program.uops if u.op is Ops.STORE]
  assert offsets[1].src[0] is offsets[0] and offsets[1].src[1].arg == 4

@pytest.mark.parametrize("lanes", (2, 4, 8, 16))
@pytest.mark.parametrize("types", ((F32, F64), (F64, F32), (dtypes.int8, dtypes.int64), (dtypes.int64, F32),
                                   (dtypes.uint8, F64),
                                   (dtypes.float16, F32)))
def test_widths_that_meet(types: tuple[DType, DType], lanes: int) -> None:
  for target in ALL_TARGETS.values(): check(convert(*types, lanes), target)

def test_masks_are_split_with_what_they_select() -> None:
  n = 30
  out, a, b = UOp.param(0, F64, n), UOp.param(1, F32, n), UOp.param(2, F64, n)
  r, v = axis(4, 0), axis(8, 1, "VECTOR")
  i = r * 8 + v
  gate = i < n
  x, y = a.index(i).load(gate), b.index(i).load(gate)
  for target in ALL_TARGETS.values():
    check(UOp.sink(out.index(i).store((x < 1).where(y, x.cast(F64)), r, v, gate=gate)), target)

def test_operations_that_only_scalars_have() -> None:
  program = check(UOp.sink(*_divisions()), AVX2)
  assert sum(u.op is Ops.IDIV and u.dtype.count == 1 for u in program.uops) == 8 and any(u.op is Ops.VECTORIZE
                                                                                         for u in program.uops)

def _divisions() -> list[UOp]:
  v = axis(8, 0, "VECTOR")
  out, a, b = [UOp.param(k, dtypes.uint32, 8) for k in range(3)]
  return [out.index(v).store(a.index(v).load() // b.index(v).load(), v)]

def test_reductions_and_accumulators_are_split() -> None:
  out, a = UOp.param(0, F64, 4), UOp.param(1, F64, 128)
  g, r, v = axis(4, 0), axis(2, 1, "REDUCE"), axis(16, 2, "VECTOR")
  for op in (Ops.ADD, Ops.MAX):
    kernel = UOp.sink(out.index(g).store(a.index(g * 32 + r * 16 + v).load().reduce(op, r, v), g))
    for target in ALL_TARGETS.values(): check(kernel, target)
    variables = 2 if op is Ops.MAX else 1  # maximum.py
    assert sum(u.op is Ops.ACC for u in lower(kernel, AVX2, "x").uops) == 4 * variables

def test_runs_of_lanes_come_out_of_parts() -> None:
  """The vectors are wider than a register of AVX2, as wide, and narrower. Those of POOR have half as many lanes."""
  out, a = UOp.param(0, F32, 32), UOp.param(1, F32, 32)
  wide = UOp(Ops.LOAD, F32.vec(32), (a.index(0),))
  for lanes in (16, 8, 4, 2):
    for start in range(0, 32, lanes):
      kernel = UOp.sink(out.index(0).store(UOp(Ops.GEP, F32.vec(lanes), (wide * wide,), start)))
      assert sum(u.op is Ops.STORE for u in legalize(kernel, AVX2).toposort()) == max(1, lanes // 8)
      for target in (AVX2, POOR):
        memory = {0: [0.0] * 32, 1: [float(k) for k in range(32)]}
        evaluate(legalize(kernel, target), memory)
        assert memory[0][:lanes] == [float(k * k) for k in range(start, start + lanes)]

def test_gathers_are_as_narrow_as_their_indices() -> None:
  out, a, at = UOp.param(0, F32, 8), UOp.param(1, F32, 9), UOp.param(2, dtypes.int64, 8)
  v = axis(8, 0, "VECTOR")
  i = at.index(v).load().cast(dtypes.weakint)
  program = check(UOp.sink(out.index(v).store(a.index(i).load((i < 9) & (i > -1)), v)), AVX2)
  assert [u.dtype.count for u in program.uops if u.op is Ops.LOAD and u.src[0].src[1].dtype.count > 1] == [4, 4]

def test_without_vectors_all_is_scalar() -> None:
  scalar = replace(AVX2, vector_bytes=0)
  for kernel in (elementwise(64, 8, 2), masked(13, 8)): assert "vec" not in lower_text(kernel, scalar)
  check(elementwise(64, 8, 2), scalar)
  check(elementwise(32, 4, 2, F64), POOR)
