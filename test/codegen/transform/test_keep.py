"""Values that a reduction and the rest of a kernel share are computed once, and no result changes."""
from __future__ import annotations
import math
import random

import pytest

from test.codegen.kernels import agree, axis
from tinyhw.codegen.optimize import optimize, with_opts
from tinyhw.codegen.plan.heuristic import choose
from tinyhw.codegen.transform.keep import keep_terms, kept_terms
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
AVX2 = capabilities("x86_64:avx2")

def softmax(rows: int, n: int, in_place: bool = False) -> UOp:
  """Return out[i, j] = exp(x[i, j] - max of row i) / sum over k of exp(x[i, k] - max of row i)."""
  out = UOp.param(0, F32, rows * n)
  x = out if in_place else UOp.param(1, F32, rows * n)
  i, j, k, m = axis(rows, 0), axis(n, 1), axis(n, 2, "REDUCE"), axis(n, 3, "REDUCE")
  largest = x.index(i * n + m).load().reduce(Ops.MAX, m)
  def term(r: UOp) -> UOp: return (x.index(i * n + r).load() - largest).alu(Ops.EXP)
  return UOp.sink(out.index(i * n + j).store(term(j) / term(k).reduce(Ops.ADD, k), i, j))

def counted(kernel: UOp, op: Ops) -> int: return sum(u.op is op for u in kernel.toposort())

def test_exponentials_of_a_softmax_are_computed_once() -> None:
  kernel = softmax(3, 21)
  k = next(u for u in kernel.toposort() if u.op is Ops.RANGE and u.arg[0] == 2)
  (term,) = kept_terms(kernel.toposort(), k)
  assert term.value.op is Ops.EXP and [p.arg[0] for p, _ in term.uses] == [2, 1] and term.bytes == 84
  changed, filling = keep_terms(kernel, (Opt(OptOps.VECTOR, 2, 8), Opt(OptOps.KEEP, 2, 2)))
  assert counted(kernel, Ops.EXP) == 2 and counted(changed, Ops.EXP) == 1 and counted(changed, Ops.DEFINE_LOCAL) == 1
  assert [(o.op, o.amount) for o in filling] == [(OptOps.VECTOR, 8), (OptOps.UPCAST, 2)]
  agree(kernel, changed)

@pytest.mark.parametrize("n", (5, 8, 16, 21, 33, 40, 67))
def test_results_stay_whatever_the_tile_is(n: int) -> None:
  kernel = softmax(2, n)
  rng = random.Random(n)
  for _ in range(6):
    opts = [Opt(OptOps.KEEP, 2, rng.choice((1, 2, 4))),
            *[Opt(OptOps.VECTOR, r, rng.choice((2, 4))) for r in (1, 2, 3) if rng.random() < 0.7],
            *[Opt(OptOps.UPCAST, r, rng.choice((1, 2, 3))) for r in (1, 2) if rng.random() < 0.7],
            *[Opt(OptOps.GRID, 0)] * rng.randint(0, 1)]
    done = with_opts(kernel, tuple(opts))
    assert counted(done, Ops.DEFINE_LOCAL) == 1, opts
    agree(kernel, done, tolerance=1e-6)   # sums are in another order

def test_what_has_nothing_in_common_keeps_nothing() -> None:
  out, x, y = UOp.param(0, F32, 30), UOp.param(1, F32, 30), UOp.param(2, F32, 30)
  j, k = axis(30, 0), axis(30, 1, "REDUCE")
  other = UOp.sink(out.index(j).store(y.index(j).load().alu(Ops.EXP)
                                      + x.index(k).load().alu(Ops.EXP).reduce(Ops.ADD, k), j))
  cheap = UOp.sink(out.index(j).store(x.index(j).load() * 2 + (x.index(k).load() * 2).reduce(Ops.ADD, k), j))
  for kernel in (other, cheap): assert keep_terms(kernel, (Opt(OptOps.KEEP, 1, 1),)) == (kernel, ())

def test_rows_of_a_tile_and_rows_that_are_overwritten_keep_nothing() -> None:
  kernel = softmax(4, 12)
  done = with_opts(kernel, (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.KEEP, 2, 1)))
  assert counted(done, Ops.DEFINE_LOCAL) == 0
  agree(kernel, done)
  kernel = softmax(4, 13, in_place=True)
  done = with_opts(kernel, (Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.KEEP, 2, 1)))
  assert counted(done, Ops.DEFINE_LOCAL) == 0

def test_terms_are_kept_with_windows_and_panels() -> None:
  """Shared arrays have different numbers."""
  kernel = softmax(3, 24)
  done = with_opts(kernel, (Opt(OptOps.KEEP, 2, 1), Opt(OptOps.STAGE, 1)))
  assert counted(done, Ops.DEFINE_LOCAL) == 1 and counted(done, Ops.STAGE) >= 1
  agree(kernel, done)

@pytest.mark.parametrize("n, kept", ((15, False), (16, False), (17, True), (32, False), (33, True), (1000, True),
                                     (65000, True), (66000, False)))
def test_the_default_keeps_what_registers_do_not_hold_and_local_memory_does(n: int, kept: bool) -> None:
  assert any(o.op is OptOps.KEEP for o in choose(softmax(8, n).src[0], AVX2)) == kept

@pytest.mark.parametrize("n", (7, 16, 17, 40, 65, 100, 257, 1000))
def test_softmax_and_its_gradient(n: int) -> None:
  x = Tensor.randn(5, n).realize()
  rows = x.tolist()
  powers = [[math.exp(v - largest) for v in row] for row, largest in zip(rows, map(max, rows))]
  expected = [[v / total for v in row] for row, total in zip(powers, map(sum, powers))]
  assert all(abs(a - b) < 1e-6 for r, e in zip(x.softmax().tolist(), expected) for a, b in zip(r, e))
  g = Tensor.randn(5, n).realize()
  found, weights = (x.softmax() * g).sum().gradient(x)[0].tolist(), g.tolist()
  for row, e, w in zip(found, expected, weights):
    mean = sum(a * b for a, b in zip(e, w))
    assert all(abs(v - a * (b - mean)) < 1e-5 for v, a, b in zip(row, e, w))

@pytest.mark.slow
def test_long_bodies_take_time_by_their_length() -> None:
  """The search recursed once for each node, and looked below each: RecursionError at 600 nodes, and minutes before
  that."""
  x = Tensor.randn(4, 70).realize()
  first = total = x.sin()
  for k in range(1500): total = (total * 0.999).abs() if k % 2 else total + 0.001 * (k % 7)
  assert (first * total.sum(1, keepdim=True)).realize().shape == (4, 70)

def test_a_value_inside_of_another_is_kept_first_and_read_there() -> None:
  x = Tensor.randn(4, 70).realize()
  s = x.sin()
  e = (s * 0.5).exp()
  out = s * s.sum(1, keepdim=True) + e * e.sum(1, keepdim=True)
  (kernel,) = [k.sink for k in schedule(canonicalize([out.uop])).kernels]
  done = optimize(kernel, AVX2)
  assert ([(o.op, o.axis) for o in done.arg.opts if o.op is OptOps.KEEP]
          and counted(done, Ops.SIN) == counted(done, Ops.EXP) == 1)
  rows = [[math.sin(v) for v in row] for row in x.tolist()]
  for found, row in zip(out.tolist(), rows):
    sums = sum(row), sum(math.exp(v / 2) for v in row)
    assert all(abs(a - (v * sums[0] + math.exp(v / 2) * sums[1])) < 1e-3 for a, v in zip(found, row))

def test_a_reduction_over_the_other_range_catches_nothing() -> None:
  """sum over k of sin(sum over j of exp(y[k] * x[j])), and sin(sum over j of exp(y[j] * x[j])), which is not its term
  for k = j."""
  n = 12
  out, x, y = UOp.param(0, F32, 1), UOp.param(1, F32, n), UOp.param(2, F32, n)
  j, k = axis(n, 0, "REDUCE"), axis(n, 1, "REDUCE")
  def load(p: UOp, r: UOp) -> UOp: return p.index(r).load()
  inner = (load(y, k) * load(x, j)).alu(Ops.EXP).reduce(Ops.ADD, j)
  diagonal = (load(y, j) * load(x, j)).alu(Ops.EXP).reduce(Ops.ADD, j)
  kernel = UOp.sink(out.index(0).store(inner.alu(Ops.SIN).reduce(Ops.ADD, k) + diagonal.alu(Ops.SIN)))
  assert keep_terms(kernel, (Opt(OptOps.KEEP, 1, 1),)) == (kernel, ())
