"""Unrolling: copied nodes, the distribution of accumulators, the order of copies."""
import pytest

from test.codegen.kernels import AVX2, axis, check, convolution, matmul
from tinyhw.codegen.kernel.grid import flatten_grid
from tinyhw.codegen.lower.expand import deal, unroll, vectors_as_copies
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def nodes(u: UOp, op: Ops) -> list[UOp]: return [n for n in u.toposort() if n.op is op]

def test_a_node_is_copied_only_for_what_it_depends_on() -> None:
  kernel = unroll(flatten_grid(matmul(12, 32, 8)))
  assert (len(nodes(kernel, Ops.LOAD)) == 6 + 2 and len(nodes(kernel, Ops.REDUCE)) == 12
          and len(nodes(kernel, Ops.STORE)) == 12)
  assert len({r.src[1:] for r in nodes(kernel, Ops.REDUCE)}) == 1  # one loop

def test_the_longer_side_of_a_tile_varies_slowest() -> None:
  kernel = unroll(flatten_grid(matmul(12, 32, 8)))
  rows = [store.src[1].src[0].src[0] for store in kernel.src]  # the load of a
  assert all(rows[k] is rows[k + 1] for k in range(0, 12, 2))

def test_a_tile_of_many_accumulators_chains_what_is_unrolled() -> None:
  kernel = unroll(flatten_grid(matmul(12, 32, 8, unroll=4)))
  reductions = nodes(kernel, Ops.REDUCE)
  assert len(reductions) == 12 and all(r.src[0].op is Ops.GROUP and len(r.src[0].src) == 4 for r in reductions)

def test_a_lonely_accumulator_becomes_several() -> None:
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 64)
  r, u = axis(4, 0, "REDUCE"), axis(16, 1, "UNROLL")
  kernel = UOp.sink(out.index(0).store(a.index(r * 16 + u).load().reduce(Ops.ADD, r, u)))
  reductions = nodes(unroll(flatten_grid(kernel)), Ops.REDUCE)
  assert len(reductions) == 8 and all(len(r.src[0].src) == 2 for r in reductions)
  check(kernel, AVX2, passes=True)

def test_deal() -> None:
  terms = [UOp.const(F32, float(k)) for k in range(6)]
  assert ([len(chain) for chain in deal(terms, 1)] == [2, 2, 1, 1] and deal(terms, 8) == [terms]
          and deal(terms[:1], 1) == [terms[:1]])
  assert deal(terms, 4) == [terms[::2], terms[1::2]]

def test_a_reduction_without_a_loop_left_is_a_sum() -> None:
  kernel = unroll(flatten_grid(convolution(8)))
  assert not nodes(kernel, Ops.REDUCE) and nodes(kernel, Ops.MULACC)
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 8)
  u = axis(3, 0, "UNROLL")
  for op in (Ops.ADD, Ops.MUL, Ops.MAX):
    check(UOp.sink(out.index(0).store(a.index(u + 1).load().reduce(op, u))), AVX2, passes=True)
    check(UOp.sink(out.index(0).store(a.index(1).load().reduce(op, u))), AVX2, passes=True)

def test_gates_that_a_copy_decides_vanish() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 3)
  u = axis(4, 0, "UPCAST")
  kernel = unroll(flatten_grid(UOp.sink(out.index(u).store(a.index(u).load(u < 3), u, gate=(u < 4) & (u > 0)))))
  assert (len(kernel.src) == 3 and all(len(n.src) == 1 for n in nodes(kernel, Ops.LOAD))
          and all(len(s.src) == 2 for s in kernel.src))

def running(n: int, kind: str = "UPCAST", op: Ops = Ops.ADD, dtype: DType = F32) -> UOp:
  """Return out[j] = op of a[k] for k <= j, with positions in int32 as an arange has them."""
  out, a, j, k = UOp.param(0, dtype, n), UOp.param(1, dtype, n), axis(n, 0, kind), axis(n, 1, "UNROLL")
  inside = k.cast(dtypes.int32) < j.cast(dtypes.int32) + 1
  hidden = UOp.const(dtype, {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: dtype.min}[op])
  return UOp.sink(out.index(j).store(UOp(Ops.WHERE, dtype, (inside, a.index(k).load(), hidden)).reduce(op, k), j))

@pytest.mark.parametrize("op", (Ops.ADD, Ops.MUL, Ops.MAX))
@pytest.mark.parametrize("dtype", (F32, dtypes.int32), ids=str)
def test_results_of_a_running_sum_share_its_beginning(op: Ops, dtype: DType) -> None:
  """A mask of positions is known in each copy, and its hidden terms vanish: an operation for each result is left."""
  kernel = unroll(flatten_grid(running(16, op=op, dtype=dtype)))
  assert not nodes(kernel, Ops.WHERE) and not nodes(kernel, Ops.CMPLT) and len(nodes(kernel, Ops.LOAD)) == 16
  assert 15 <= len(nodes(kernel, op)) - len([u for u in nodes(kernel, op) if u.dtype is dtypes.weakint]) <= 16
  check(running(16, op=op, dtype=dtype), AVX2, passes=True)

def test_a_sum_whose_terms_are_all_hidden() -> None:
  out, a, k = UOp.param(0, F32, 1), UOp.param(1, F32, 4), axis(4, 0, "UNROLL")
  hidden = UOp(Ops.WHERE, F32, (k.cast(dtypes.int32) < -1, a.index(k).load(), UOp.const(F32, 0)))
  kernel = UOp.sink(out.index(0).store(hidden.reduce(Ops.ADD, k)))
  check(kernel, AVX2, passes=True)

def test_only_constants_can_be_unrolled() -> None:
  u = axis(UOp.variable("n", 1, 4), 7, "UPCAST")
  with pytest.raises(CompileError, match="range 7 is UPCAST and its end is not a constant"):
    unroll(UOp.sink(UOp.param(0, F32, 4).index(u).store(UOp.const(F32, 1.0), u)))

def test_vectors_as_copies() -> None:
  """Where lanes are threads, VECTOR ranges are copies. For a sum they are unrolled iterations."""
  out, a, i, x = UOp.param(0, dtypes.float32, 8), UOp.param(1, dtypes.float32,
                                                            64), axis(8, 0, "VECTOR"), axis(8, 1, "VECTOR")
  kernel = UOp.sink(out.index(i).store(a.index(i * 8 + x).load().reduce(Ops.ADD, x), i))
  found = {r.arg for r in vectors_as_copies(kernel).toposort() if r.op is Ops.RANGE}
  assert found == {(0, AxisType.UPCAST), (1, AxisType.UNROLL)}
