"""Kernels and Programs in the interpreter, against NumPy and against their definitions."""
import pytest
from generators.program_builder import (Builder, RandomProgram, add, broadcast, convert, gather, i32, lane, matmul, pad,
                                        same_memory, softmax, vectorize,
                                        workgroups)

from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import Matrix, MatrixRows
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program

np = pytest.importorskip("numpy")
f32 = dtypes.float32
rng = np.random.default_rng(0)

def random(*shape: int) -> object: return rng.standard_normal(shape).astype(np.float32)

# ***** kernels *****

def ranges(*sizes: object) -> list[UOp]: return [UOp.range(n, k) for k, n in enumerate(sizes)]

def run(value: UOp, at: UOp, loops: list[UOp], size: int, *inputs: object, gate: UOp | None = None,
        **variables: int) -> object:
  out = bytearray(size * 4)
  kernel = UOp.sink(UOp.param(0, f32, size).index(at).store(value, *loops, gate=gate), arg=KernelInfo())
  evaluate(kernel, {0: out, **{k + 1: x for k, x in enumerate(inputs)}}, variables)
  return np.frombuffer(out, np.float32)

def test_matmul_kernel() -> None:
  a, b = random(3, 4), random(4, 5)
  i, j, k = ranges(3, 5, 4)
  value = (UOp.param(1, f32, 12).index(i * 4 + k).load() * UOp.param(2, f32,
                                                                     20).index(k * 5 + j).load()).reduce(Ops.ADD, k)
  assert np.allclose(run(value, i * 5 + j, [i, j], 15, a, b).reshape(3, 5), a @ b, atol=1e-6)

@pytest.mark.parametrize("swapped", (False, True))
def test_softmax_kernel_whose_reductions_share_a_range_with_the_store(swapped: bool) -> None:
  a = random(3, 4)
  r, c = ranges(3, 4)
  x = UOp.param(1, f32, 12).index(r * 4 + c).load()
  e = (x - x.reduce(Ops.MAX, c)).exp2()
  got = run(e / e.reduce(Ops.ADD, c), r * 4 + c, [c, r] if swapped else [r, c], 12, a).reshape(3, 4)
  want = np.exp2(a - a.max(1, keepdims=True))
  assert np.allclose(got, want / want.sum(1, keepdims=True), rtol=1e-6)

def test_stage_is_computed_for_each_point_of_the_free_ranges() -> None:
  a = random(3, 4)
  r, c, k = ranges(3, 4, 4)
  stage = UOp(Ops.STAGE, f32, (UOp.param(1, f32, 12).index(r * 4 + k).load() * 2.0, k), (0,))
  got = run(stage.index(c * -1 + 3).load(), r * 4 + c, [r, c], 12, a)
  assert (got.reshape(3, 4) == a[:, ::-1] * 2).all()

def test_a_local_array_after_its_store() -> None:
  a = random(6)
  i, k = ranges(6, 6)
  local = UOp(Ops.DEFINE_LOCAL, f32, (), (0, 6))
  after = UOp(Ops.AFTER, f32, (local, local.index(k).store(UOp.param(1, f32, 6).index(k).load() + 1.0, k)))
  assert (run(after.index(i * -1 + 5).load(), i, [i], 6, a) == a[::-1] + 1).all()

def test_gated_convolution_kernel() -> None:
  a, w = random(5, 5), random(3, 3)
  h, v, k, l = ranges(5, 5, 3, 3)
  y, x = h + k - 1, v + l - 1
  gate = (y >= 0) & (y < 5) & (x >= 0) & (x < 5)
  value = (UOp.param(1, f32, 25).index(y * 5 + x).load(gate, 0.0)
           * UOp.param(2, f32, 9).index(k * 3 + l).load()).reduce(Ops.ADD, k, l)
  padded = np.pad(a, 1)
  want = sum(padded[p:p + 5, q:q + 5] * w[p, q] for p in range(3) for q in range(3))
  assert np.allclose(run(value, h * 5 + v, [h, v], 25, a, w).reshape(5, 5), want, atol=1e-5)

def test_gated_store_and_symbolic_ends() -> None:
  n = UOp.variable("n", 1, 8)
  i, = ranges(n)
  assert run(i.cast(f32) + 1.0, i, [i], 8, gate=i >= 2, n=5).tolist() == [0, 0, 3, 4, 5, 0, 0, 0]
  assert run(i.cast(f32).reduce(Ops.MAX, i), UOp.const(dtypes.weakint, 0), [], 1, n=6).tolist() == [5]
  with pytest.raises(VerifyError, match="variable n is 9, outside of 1..8"): run(i.cast(f32), i, [i], 8, n=9)
  with pytest.raises(VerifyError, match="variable n has no value"): run(i.cast(f32), i, [i], 8)

def test_a_loop_inside_of_a_loop_depends_on_it() -> None:
  i, = ranges(4)
  k = UOp.range(i + 1, 1)
  assert run(k.cast(f32).reduce(Ops.ADD, k), i, [i], 4).tolist() == [0, 1, 3, 6]

def test_reduce_of_a_group_and_of_lanes() -> None:
  k, = ranges(3)
  zero = UOp.const(dtypes.weakint, 0)
  group = UOp(Ops.REDUCE, f32, (UOp(Ops.GROUP, f32, (k.cast(f32), k.cast(f32) * 10.0)), k), Ops.ADD)
  assert run(group, zero, [], 1).tolist() == [33]
  lanes = broadcast(k.cast(f32), 4).reduce(Ops.ADD, k)
  assert run(lane(lanes, 2), zero, [], 1).tolist() == [3]

def test_kernels_that_are_wrong() -> None:
  i, = ranges(4)
  with pytest.raises(VerifyError, match="index 4 is outside of slot 0"): run(i.cast(f32), i + 1, [i], 4)
  with pytest.raises(VerifyError, match="closed by nothing"): run(i.cast(f32), i, [], 4)
  with pytest.raises(VerifyError, match="no storage was given for slot 1"):
    run(UOp.param(1, f32, 4).index(i).load(), i, [i], 4)
  with pytest.raises(VerifyError, match="storage of 2 elements for slot 1"):
    run(UOp.param(1, f32, 4).index(i).load(), i, [i], 4, [1.0, 2.0])

# ***** Programs *****

def floats(memory: bytearray) -> object: return np.frombuffer(memory, np.float32)

@pytest.mark.parametrize("lanes", (1, 4))
def test_addition_of_a_part_of_the_grid(lanes: int) -> None:
  a, b, out = random(16), random(16), bytearray(64)
  evaluate(add(16, lanes), {0: out, 1: a, 2: b}, first=1, last=3)
  want = np.zeros(16, np.float32)
  want[lanes:3 * lanes] = (a + b)[lanes:3 * lanes]
  assert (floats(out) == want).all()

@pytest.mark.parametrize("fused", (False, True))
def test_matmul_program(fused: bool) -> None:
  a, b, out = random(6, 6), random(6, 6), bytearray(144)
  evaluate(matmul(6, fused), {0: out, 1: a, 2: b})
  assert np.allclose(floats(out).reshape(6, 6), a @ b, atol=1e-5)

def test_pad_gather_softmax_programs() -> None:
  out, a = bytearray(48), random(6)
  evaluate(pad(), {0: out, 1: a})
  assert (floats(out) == np.pad(a, 3, constant_values=-1)).all()
  out, a, at = bytearray(32), random(20), np.array([3, 19, 20, -1, 0, 5, 99, 7], np.int32)
  evaluate(gather(), {0: out, 1: a, 2: at})
  assert (floats(out) == [a[i] if 0 <= i < 20 else 0 for i in at]).all()
  out, a = bytearray(96), random(3, 8)
  evaluate(softmax(), {0: out, 1: a})
  want = np.exp2(a - a.max(1, keepdims=True))
  assert np.allclose(floats(out).reshape(3, 8), want / want.sum(1, keepdims=True), rtol=1e-5)

def test_lanes_of_a_workgroup_meet_at_barriers() -> None:
  out, a = bytearray(32), np.arange(8, dtype=np.int32)
  evaluate(workgroups(), {0: out, 1: a})
  assert np.frombuffer(out, np.int32).tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
  program = workgroups()
  early = Program("early", tuple(u for u in program.uops if u.op is not Ops.BARRIER), program.grid)
  with pytest.raises(VerifyError, match="element 3 of shared array 0 is read before it was written"):
    evaluate(early, {0: out, 1: a})

def test_lanes_that_miss_a_barrier() -> None:
  b = Builder("diverge")
  with b.loop(4, AxisType.LOCAL) as l, b.when(b.add(l < 2)): b.barrier()
  with pytest.raises(VerifyError, match="reach a BARRIER that others do not"): evaluate(b.program())

def test_nested_lanes_are_one_workgroup() -> None:
  b = Builder("nested")
  out, shared = b.param(0, i32, 6), b.local(i32, 6)
  with b.loop(2, AxisType.LOCAL) as x, b.loop(3, AxisType.LOCAL) as y:
    b.store(shared, x * 3 + y, x * 3 + y)
    b.barrier()
    b.store(out, x * 3 + y, b.load(shared, (x * -1 + 1) * 3 + y))
  memory = bytearray(24)
  evaluate(b.program(), {0: memory})
  assert np.frombuffer(memory, np.int32).tolist() == [3, 4, 5, 0, 1, 2]

def test_conditions_lanes_and_variables() -> None:
  b = Builder("mixed")
  out, n = b.param(0, i32, 8), b.add(UOp.variable("n", 0, 9, i32))
  acc = b.accumulator(b.const(i32.vec(2), 0))
  with b.loop(n) as r:
    with b.when(b.add((r % 2).eq(1))): b.assign(acc, acc + broadcast(r, 2))
  old = b.add(lane(acc, 1))
  b.assign(acc, vectorize(lane(acc, 0) * 10, old))
  b.store(out, 0, acc)
  b.store(out, vectorize(UOp.const(i32, 6), UOp.const(i32, 4)), acc,
          gate=vectorize(UOp.const(dtypes.bool, True), b.add(n < 3)))
  memory = bytearray(32)
  evaluate(b.program(), {0: memory}, {"n": 6})
  assert np.frombuffer(memory, np.int32).tolist() == [90, 9, 0, 0, 0, 0, 90, 0]

def test_matrix_unit_and_lane_bitcasts() -> None:
  b = Builder("mma")
  p = [b.param(k, f32, n) for k, n in enumerate((4, 6, 6))]
  c = b.add(UOp(Ops.MMA, f32.vec(4), (b.load(p[1], 0, 6), b.load(p[2], 0, 6), b.load(p[0], 0, 4)),
                Matrix(2, 2, 3, f32, f32)))
  b.store(p[0], 0, c)
  out, x, y = bytearray(16), random(2, 3), random(3, 2)
  evaluate(b.program(), {0: out, 1: x, 2: y})
  assert np.allclose(floats(out).reshape(2, 2), x @ y, atol=1e-6)
  b = Builder("bits")
  q, r = b.param(0, dtypes.uint8, 4), b.param(1, i32, 1)
  b.store(q, 0, UOp(Ops.BITCAST, dtypes.uint8.vec(4), (b.load(r, 0),)))
  memory = bytearray(4)
  evaluate(b.program(), {0: memory, 1: np.array([0x04030201], np.int32)})
  assert list(memory) == [1, 2, 3, 4]

def test_rows_of_a_matrix() -> None:
  b = Builder("rows")
  out, x = b.param(0, f32, 6), b.param(1, f32, 24)
  rows = b.add(UOp(Ops.LOAD, f32.vec(6), (b.add(x.index(UOp.const(i32, 1))),), MatrixRows(3, 8)))
  b.store(out, 0, rows)
  memory = bytearray(24)
  evaluate(b.program(), {0: memory, 1: np.arange(24, dtype=np.float32)})
  assert floats(memory).tolist() == [1, 2, 9, 10, 17, 18]

def test_rows_that_are_prefetched_change_nothing() -> None:
  b = Builder("rows")
  out, x = b.param(0, f32, 4), b.param(1, f32, 16)
  places = [b.add(x.index(UOp.const(i32, k))) for k in (1, 15)]
  b.store(out, 0, b.add(UOp(Ops.LOAD, f32.vec(4), tuple(places), MatrixRows(2, 8, 2))))
  memory = bytearray(16)
  evaluate(b.program(), {0: memory, 1: np.arange(16, dtype=np.float32)})
  assert floats(memory).tolist() == [1, 2, 9, 10]

def test_conversion_programs() -> None:
  out = bytearray(8)
  evaluate(convert(f32, dtypes.float16, 4, 4), {0: out, 1: np.array([1.5, 70000, 1e-9, -2], np.float32)})
  assert np.frombuffer(out, np.float16).tolist() == [1.5, np.inf, 0, -2]

def test_programs_that_are_wrong() -> None:
  program = add()
  memory = {0: bytearray(64), 1: bytearray(64), 2: bytearray(64)}
  with pytest.raises(VerifyError, match="is never closed"): evaluate(Program("p", program.uops[:-1]), memory)
  with pytest.raises(VerifyError, match="stands before its source"): evaluate(Program("p", program.uops[3:]))
  with pytest.raises(VerifyError, match="closes what is not open"): evaluate(Program("p", program.uops[-1:]))
  b = Builder("beyond")
  b.store(b.param(0, i32, 16), 16, UOp.const(i32, 1))
  with pytest.raises(VerifyError, match="index 16 is outside of slot 0"): evaluate(b.program(), {0: bytearray(128)})

def test_vectors_compute_what_scalars_do() -> None:
  for seed in range(5):
    wide, memory = RandomProgram(seed, lanes=3), RandomProgram(seed, lanes=3).memory(seed)
    again = {k: bytearray(v) for k, v in memory.items()}
    evaluate(wide.program, memory, first=0, last=2)
    evaluate(wide.program, memory, first=2)
    evaluate(wide.program, again)
    same_memory(wide.program, memory, again)
