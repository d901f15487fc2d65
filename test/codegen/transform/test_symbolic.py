"""Loops whose size depends on Variables get tiles and lanes, and no result changes."""
from __future__ import annotations
import random

import pytest

from test.codegen.kernels import AVX2, axis, data_for
from tinyhw import Tensor, Variable
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import choose_all, with_opts
from tinyhw.codegen.transform.symbolic import cut_symbolic, largest
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
MOST = 20
N = UOp.variable("n", 0, MOST)

def rows(fold: Ops = Ops.ADD) -> UOp:
  """Return a kernel that divides the elements of 3 rows by the fold of their squares, in place of a second buffer."""
  out, x = UOp.param(0, F32, 3 * MOST), UOp.param(1, F32, 3 * MOST)
  i, j, k = axis(3, 0), axis(N, 1), axis(N, 2, "REDUCE")
  read = x.index(i * MOST + k).load()
  return UOp.sink(out.index(i * N + j).store(x.index(i * MOST + j).load() + (read * read).reduce(fold, k), i, j))

def product() -> UOp:
  """Return a product of a matrix with n rows, which are the grid, with one of 5 columns."""
  out, a, b = UOp.param(0, F32, MOST * 5), UOp.param(1, F32, MOST * 4), UOp.param(2, F32, 20)
  i, j, k = axis(N, 0), axis(5, 1), axis(4, 2, "REDUCE")
  value = (a.index(i * 4 + k).load() * b.index(k * 5 + j).load()).reduce(Ops.ADD, k)
  return UOp.sink(out.index(i * 5 + j).store(value, i, j))

def in_place() -> UOp:
  x = UOp.param(0, F32, 3 * MOST)
  i, j = axis(3, 0), axis(N, 1)
  at = i * MOST + j
  return UOp.sink(x.index(at).store(x.index(at).load() * 2 + 1, i, j))

KERNELS = {"sum": rows(), "maximum": rows(Ops.MAX), "product of terms": rows(Ops.MUL), "product": product(),
           "in place": in_place()}

def results(kernel: UOp, n: int) -> dict[int, list[float]]:
  data = data_for(kernel)
  evaluate(kernel, data, {"n": n})
  return data

@pytest.mark.parametrize("name", KERNELS)
def test_results_stay_for_every_size_and_tile(name: str) -> None:
  rng, kernel = random.Random(name), KERNELS[name]
  ids = sorted({u.arg[0] for u in kernel.toposort() if u.op is Ops.RANGE})
  for _ in range(12):
    opts = [Opt(OptOps.VECTOR, a, rng.choice((2, 4))) for a in ids if rng.random() < 0.5]
    factors = [(op, a) for a in ids for op in (OptOps.UPCAST, OptOps.BLOCK) if rng.random() < 0.3]
    opts += [Opt(op, a, rng.choice((2, 3, 4))) for op, a in factors]
    opts += [Opt(OptOps.GRID, r.arg[0]) for r in ranges_of(kernel.src[0]) if rng.random() < 0.5]
    made = with_opts(kernel, tuple(opts))
    for n in (0, 1, 2, 3, 7, 8, 12, 15, 19, MOST): assert results(made, n) == results(kernel, n), (opts, n)

def test_lanes_outside_of_a_size_touch_no_memory() -> None:
  """The evaluator refuses an index outside of a buffer."""
  out, x = UOp.param(0, F32, 5), UOp.param(1, F32, 5)
  n = UOp.variable("n", 1, 5)
  j, k = axis(n, 0), axis(n, 1, "REDUCE")
  kernel = UOp.sink(out.index(j).store(x.index(j).load() * x.index(k).load().reduce(Ops.ADD, k), j))
  made = with_opts(kernel, (Opt(OptOps.VECTOR, 0, 4), Opt(OptOps.VECTOR, 1, 4)))
  for size in range(1, 6): assert results(made, size) == results(kernel, size)

def test_a_size_whose_bounds_are_below_zero_has_no_remainder_there() -> None:
  out, x = UOp.param(0, F32, 8), UOp.param(1, F32, 8)
  n = UOp.variable("n", -3, 8)
  j = axis(n, 0)
  kernel = UOp.sink(out.index(j).store(x.index(j).load() + 1, j))
  made = with_opts(kernel, (Opt(OptOps.VECTOR, 0, 4),))
  for size in range(-3, 9): assert results(made, size) == results(kernel, size)

def test_whole_steps_have_no_gates_and_the_rest_has_one() -> None:
  cut, opts = cut_symbolic(rows(), (Opt(OptOps.VECTOR, 2, 4), Opt(OptOps.UPCAST, 2, 2)))
  loads = [u for u in cut.toposort() if u.op is Ops.LOAD]
  assert sorted(len(u.src) for u in loads) == [1, 1, 3], "of the sum in whole steps, of the element, of the rest"
  fresh = next(u for u in cut.toposort() if u.op is Ops.RANGE and u.arg[0] == 3)
  assert opts[-1] == Opt(OptOps.VECTOR, 3, 4) and fresh.vmax == 7, "less than a step of 8: two vectors"

def test_a_range_of_the_grid_is_cut_into_work_items() -> None:
  cut, opts = cut_symbolic(product(), (Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.GRID, 0)))
  items = next(u for u in cut.toposort() if u.op is Ops.RANGE and u.arg[0] == 0)
  assert items.src[0].vmax == MOST // 4 and Opt(OptOps.GRID, 0) in opts and Opt(OptOps.UPCAST, 3, 4) in opts

def test_tiles_are_those_of_the_largest_size() -> None:
  kernel = rows()
  whole = largest(kernel)
  assert all(size_of(u) for u in whole.toposort() if u.op is Ops.RANGE)
  opts = choose_all(kernel, AVX2)
  assert {o.axis for o in opts if o.op is OptOps.VECTOR} == {1, 2}

@pytest.mark.parametrize("n", (1, 7, 8, 33, 64, 100))
def test_a_softmax_of_n_elements_is_that_of_numbers(n: int) -> None:
  x = Tensor.arange(300).reshape(3, 100).sin().contiguous().realize()
  bound = Variable("n", 1, 100).bind(n)
  found = x.shrink((None, (0, bound))).softmax(-1).pad(((0, 0), (0, 100 - bound)))[:, :n].flatten().tolist()
  assert found == pytest.approx(x[:, :n].softmax(-1).flatten().tolist(), rel=1e-6)
