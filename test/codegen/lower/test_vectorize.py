"""Lanes: loads and stores as vectors, gathers, masks or scalars."""
from dataclasses import replace

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, axis, check, masked
from tinyhw.codegen.kernel.affine import number
from tinyhw.codegen.lower.vectorize import fold_lanes, lane_of, near, run_of, vectorize, widen
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import OF_ONE, substitute
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32 = dtypes.float32
PLAIN = replace(AVX2, masked_bytes=(), gathers=False, scatters=False)
AVX512 = capabilities("x86_64:avx512")
V = axis(8, 9, "VECTOR")

def copy(index: UOp, size: int = 128, gate: UOp | None = None, target: UOp | None = None) -> UOp:
  """Return out[r*8 + lane] = a[index], r in 0..3."""
  r = axis(4, 0)
  at = r * 8 + V if target is None else target
  return UOp.sink(UOp.param(0, F32, 64).index(at).store(UOp.param(1, F32, size).index(index).load(gate), r, V))

def loads(program: Program) -> list[UOp]: return [u for u in program.uops if u.op is Ops.LOAD]

R = axis(4, 0)

def test_adjacent_lanes_are_one_load() -> None:
  for index in (R * 8 + V, V + 3, (R * 8 + V) % 32 + 1, (R * 8 + V) // 16 * 16 + (R * 8 + V) % 16):
    program = check(copy(index), AVX2, passes=True)
    assert [u.dtype.count for u in loads(program)] == [8] and loads(program)[0].src[0].src[1].dtype.count == 1

def test_what_no_lane_changes_is_broadcast() -> None:
  program = check(copy(R * 3 + V // 8), AVX2, passes=True)
  assert [u.dtype.count for u in loads(program)] == [1] and any(u.op is Ops.BROADCAST for u in program.uops)

def test_strides_are_gathers_or_scalars() -> None:
  for index in (V * 5 + R, 50 - V * 5, V * V + R):
    assert [u.src[0].src[1].dtype.count for u in loads(check(copy(index), AVX2, passes=True))] == [8]
    assert [u.dtype.count for u in loads(check(copy(index), PLAIN, passes=True))] == [1] * 8

def test_scalars_of_a_stride_share_their_base() -> None:
  places = [u.src[0].src[1] for u in loads(lower(copy(V * 6 + R * 5), PLAIN, "x"))]
  assert (all(p.op is Ops.ADD and p.src[1].arg == 6 * k for k, p in enumerate(places) if k)
          and len({p.src[0] for p in places[1:]}) == 1)

def test_gates_that_lanes_change_are_masks() -> None:
  program = check(masked(13, 8), AVX2, passes=True)
  assert [u.src[1].dtype for u in loads(program)] == [dtypes.bool.vec(8)]
  compare = [u for u in program.uops if u.op is Ops.CMPLT]
  assert len(compare) == 1 and {s.op for s in compare[0].src} == {Ops.VECTORIZE, Ops.BROADCAST}
  assert len(loads(check(masked(13, 8), PLAIN, passes=True))) == 8
  assert len(loads(check(masked(13, 8, dtypes.int16), AVX2, passes=True))) == 8  # no masked loads of 16 bits
  for dtype in (dtypes.int16, dtypes.uint8):
    assert [u.dtype.count for u in loads(check(masked(61, 16, dtype), AVX512, passes=True))] == [16]

@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("gate", (V < 3, R * 8 + V < 29, 20 - V > R, (V + R).ne(4), (V * 3) % 5 < 2, (R < 2),
                                  (V < 6) & (R > 0)))
def test_gates(gate: UOp, target: str) -> None:
  check(copy(V + R, gate=gate), ALL_TARGETS[target], passes=True)
  check(copy(R * 2, gate=gate), ALL_TARGETS[target], passes=True)
  store = UOp.param(0, F32, 64).index(R * 8 + V).store(UOp.param(1, F32, 64).index(V + R).load(), R, V, gate=gate)
  check(UOp.sink(store), ALL_TARGETS[target], passes=True)

@pytest.mark.parametrize("at", (V * 4 + R, 31 - (R * 8 + V), R, V))
def test_stores_that_are_not_adjacent(at: UOp) -> None:
  for target in ALL_TARGETS.values(): check(copy(R * 8 + V, target=at), target, passes=True)

def test_strides_are_scatters_or_scalars() -> None:
  r, value = axis(4, 0), UOp.param(1, F32, 64).index(R * 8 + V).load()
  for at in (V * 4 + R, 31 - (R * 8 + V)):
    kernel = UOp.sink(UOp.param(0, F32, 64).index(at).store(value * value, r, V))
    for target, lanes in ((AVX2, [8]), (PLAIN, [1] * 8)):
      assert [u.src[0].src[1].dtype.count for u in check(kernel, target, passes=True).uops
              if u.op is Ops.STORE] == lanes

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MAX, Ops.MUL))
def test_lanes_are_folded_once_after_the_loop(op: Ops) -> None:
  out, a = UOp.param(0, F32, 3), UOp.param(1, F32, 96)
  g, r, v = axis(3, 0), axis(4, 1, "REDUCE"), axis(8, 2, "VECTOR")
  kernel = UOp.sink(out.index(g).store(a.index(g * 32 + r * 8 + v).load().reduce(op, r, v), g))
  for target in ALL_TARGETS.values(): check(kernel, target, passes=True)
  program = lower(kernel, AVX2, "fold")
  assert [u.dtype for u in program.uops if u.op is Ops.ACC] == [F32.vec(8)] * (2 if op is Ops.MAX else 1)
  ends = [k for k, u in enumerate(program.uops) if u.op is Ops.END]
  assert all(ends[0] < k < ends[1] for k, u in enumerate(program.uops) if u.op is Ops.GEP)

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MAX, Ops.MUL))
def test_parts_of_a_range_are_folded_as_vectors(op: Ops) -> None:
  """Folding each part lane by lane took three times as many scalar operations for 16, 8 and 4 lanes."""
  out, a = UOp.param(0, dtypes.int32, 1), UOp.param(1, dtypes.int32, 28)
  parts = []
  for at, lanes in ((0, 16), (16, 8), (24, 4)):
    v = axis(lanes, lanes, "VECTOR")
    parts.append(a.index(v + at).load().reduce(op, v))
  def both(a: UOp, b: UOp) -> UOp: return UOp(op, dtypes.int32, (a, b), None, OF_ONE)
  kernel = UOp.sink(out.index(0).store(both(both(parts[0], parts[1]), parts[2])))
  for target in ALL_TARGETS.values(): check(kernel, target, passes=True)
  folded = [u.dtype.count for u in vectorize(kernel, AVX2).toposort() if u.op is op
            and u.dtype.scalar() is dtypes.int32]
  assert sorted(folded) == [1, 1, 1, 4, 4, 8, 8]

def test_sums_that_a_program_adds_are_folded_each_by_itself() -> None:
  """1e8 and its opposite cancel inside of one sum. In joined sums they rounded away the ones of the other sum."""
  a, b = Tensor([1e8, -1e8] * 8).realize(), Tensor([1.0] * 16).realize()
  assert (a.sum() + b.sum()).item() == 16.0
  a, b = Tensor([3e38, -3e38] + [0.0] * 14).realize(), Tensor([3e38] + [0.0] * 15).realize()
  assert (a.sum() + b.sum()).item() < 3.1e38

def test_parts_that_fold_differently_stay_apart() -> None:
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 16)
  v, w = axis(8, 0, "VECTOR"), axis(8, 1, "VECTOR")
  kernel = UOp.sink(out.index(0).store(a.index(v).load().reduce(Ops.ADD, v) + a.index(w + 8).load().reduce(Ops.MAX, w)))
  for target in ALL_TARGETS.values(): check(kernel, target, passes=True)

def test_the_lane_as_a_value() -> None:
  out = UOp.param(0, dtypes.int32, 32)
  r = axis(4, 0)
  for value in (r * 8 + V, V * 3 + 1, (r + V) // 3, (V + r).maximum(5)):
    for target in ALL_TARGETS.values():
      check(UOp.sink(out.index(r * 8 + V).store(value.cast(dtypes.int32), r, V)), target, passes=True)

def test_small_functions() -> None:
  x = UOp.variable("x", 0, 9, F32)
  wide = widen(x, 4)
  assert lane_of(wide, 2) is x and widen(wide, 4) is wide and lane_of(UOp.const(F32.vec(4), 2.0),
                                                                      1) is UOp.const(F32, 2.0)
  vector = UOp(Ops.LOAD, F32.vec(8), (UOp.param(0, F32, 8).index(0),))
  assert fold_lanes(Ops.ADD, vector).dtype is F32

def test_runs_of_lanes() -> None:
  x, v8 = UOp.variable("x", 0, 9, F32), F32.vec(8)
  vector = UOp(Ops.LOAD, v8, (UOp.param(0, F32, 8).index(0),))
  assert run_of(vector, 0, 8) is vector and run_of(vector, 4, 4) is UOp(Ops.GEP, F32.vec(4), (vector,), 4)
  assert run_of(widen(x, 8), 4, 2) is widen(x, 2) and run_of(UOp.const(v8, 2.0), 0, 4) is UOp.const(F32.vec(4), 2.0)
  assert run_of(UOp(Ops.VECTORIZE, v8, (x,) * 7 + (x * 2,)), 6, 2).src == (x, x * 2)
  truths = UOp(Ops.CMPLT, dtypes.bool.vec(8), (vector, vector))
  for u, start, lanes in ((vector, 2, 4), (vector, 3, 3), (truths, 4, 4)):   # not at a multiple, no power of two, bools
    assert run_of(u, start, lanes).src == tuple(lane_of(u, k) for k in range(start, start + lanes))

def test_refusals() -> None:
  v = axis(UOp.variable("n", 1, 4), 5, "VECTOR")
  with pytest.raises(CompileError, match="range 5 is VECTOR and its end is not a constant"):
    vectorize(UOp.sink(UOp.param(0, F32, 4).index(v).store(UOp.const(F32, 1.0), v)), AVX2)
  with pytest.raises(CompileError, match="does not run over it; add it to its ranges"):
    vectorize(UOp.sink(UOp.param(0, F32, 8).index(0).store(UOp.param(1, F32, 8).index(V).load())), AVX2)

def test_masked_vectors_outside_of_their_buffer_begin_at_its_first_element() -> None:
  """A closed access to a page that is not there is slow. Vectors with a lane inside keep their place."""
  buffer, r = UOp.param(0, F32, 20), UOp.range(10, 0)
  at = near(r * 16 - 48, buffer, 16)
  found = [int(substitute(at, {r: number(k)}).arg) for k in range(10)]
  assert found == [0, 0, 0, 0, 16, 0, 0, 0, 0, 0]
  assert [int(substitute(near(r - 17, buffer, 16), {r: number(k)}).arg) for k in range(4)] == [0, 0, -15, -14]
  assert near(r, buffer, 16) is r and near(r - 15, buffer, 16) is r - 15
