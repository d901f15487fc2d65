"""Loops end before what a mask makes neutral, and no result changes."""
from __future__ import annotations
import math
import random

import pytest

from test.codegen.kernels import agree, axis
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.shorten import LoopLimit, last_seen, limits_of, skip
from tinyhw.codegen.transform.tiling import Opt, OptOps, apply
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import STATED, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def staged(value: UOp, r: UOp, number: int) -> UOp: return UOp(Ops.STAGE, value.dtype, (value, r), (number,))

def read(stage: UOp, at: UOp) -> UOp: return stage.index(at).load()

def causal(rows: int, n: int, width: int, before: int = 0, mask: float = -math.inf, swapped: bool = False) -> UOp:
  """Return the kernel of a causal attention: row i sees elements up to i + before.

  mask: the score of the others. swapped: the condition is the opposite one.
  """
  out, x, v = UOp.param(0, F32, rows * width), UOp.param(1, F32, rows * n), UOp.param(2, F32, n * width)
  i, d, j, k = axis(rows, 0), axis(width, 1), axis(n, 2, "REDUCE"), axis(n, 3, "REDUCE")
  e, m, s = axis(n, 4, "STAGE"), axis(n, 5, "REDUCE"), axis(n, 6, "STAGE")
  loaded, hidden = x.index(i * n + s).load(), UOp.const(F32, mask)
  last = i + before if before else i
  score = ((s < last + 1).where(loaded, hidden) if swapped else
           (last.cast(dtypes.int32) < s.cast(dtypes.int32)).where(hidden, loaded))
  scores = staged(score, s, 0)
  powers = staged((read(scores, e) - read(scores, m).reduce(Ops.MAX, m)).alu(Ops.EXP), e, 1)
  total = read(powers, k).reduce(Ops.ADD, k)
  product = (read(powers, j) * v.index(j * width + d).load()).reduce(Ops.ADD, j)
  return UOp.sink(out.index(i * width + d).store(product / total, i, d))

def shortened(kernel: UOp) -> set[int]:
  """Return the ids of loops whose end depends on another loop."""
  return {u.arg[0] for u in kernel.toposort() if u.op is Ops.RANGE and u.src[0].ranges}

@pytest.mark.parametrize("swapped", (False, True))
def test_all_loops_along_the_row_end_after_the_last_element_that_is_seen(swapped: bool) -> None:
  kernel = causal(6, 8, 3, swapped=swapped)
  limits = limits_of(kernel, ())
  i = next(u for u in kernel.toposort() if u.op is Ops.RANGE and u.arg[0] == 0)
  assert {r.arg[0] for r in limits} == {2, 3, 4, 5, 6} and set(limits.values()) == {LoopLimit(i)}
  done = with_opts(kernel, ())
  assert len(shortened(done)) == 5
  agree(kernel, done)

def test_results_stay_whatever_the_tile_is() -> None:
  rng = random.Random(5)
  for _ in range(60):
    rows, n, width = rng.choice((8, 12, 13)), rng.choice((8, 12, 17)), rng.choice((2, 4))
    kernel = causal(rows, n, width, rng.choice((0, 0, 2)), swapped=rng.random() < 0.3)
    opts = [Opt(OptOps.VECTOR, 0, rng.choice((2, 4)))] * rng.randint(0, 1)
    opts += [Opt(OptOps.UPCAST, axis, rng.choice((2, 3, 4))) for axis in range(7) if rng.random() < 0.4]
    opts += [Opt(OptOps.GRID, 0)] * rng.randint(0, 1)
    agree(kernel, with_opts(kernel, tuple(opts)), tolerance=1e-6)

def test_a_fold_that_does_not_end_keeps_what_it_reads() -> None:
  def limited(*opts: Opt) -> set[int]: return {r.arg[0] for r in limits_of(causal(6, 8, 3), opts)}
  assert limited(Opt(OptOps.UPCAST, 2, 8)) == {3, 5}, "the product reads all powers, which need all scores"
  assert limited(Opt(OptOps.UPCAST, 5, 3)) == {2, 3, 4}, "the maximum is folded in two parts, from all scores"
  assert limited(Opt(OptOps.UPCAST, 6, 3)) == {2, 3, 4, 5, 6}, "a filling may overlap"

def test_masks_that_are_not_neutral_stay() -> None:
  assert not limits_of(causal(6, 8, 3, mask=-1e9), ())
  assert not limits_of(causal(6, 8, 3, before=-1), ()), "the first row sees nothing"
  out, x, i, j = UOp.param(0, F32, 4), UOp.param(1, F32, 4), axis(4, 0), axis(4, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store((j < i).where(x.index(j).load(), UOp.const(F32, 0)).reduce(Ops.ADD, j), i))
  assert not limits_of(kernel, ()), "kernels without arrays"

def test_a_loop_that_also_folds_other_values_does_not_end() -> None:
  n = 8
  out, x, i, e = UOp.param(0, F32, n), UOp.param(1, F32, n), axis(n, 0), axis(n, 2, "STAGE")
  j = axis(n, 1, "REDUCE")
  scores = staged((i < e).where(UOp.const(F32, -math.inf), x.index(e).load()), e, 0)
  largest, total = read(scores, j).reduce(Ops.MAX, j), x.index(j).load().reduce(Ops.ADD, j)
  assert {r.arg[0] for r in limits_of(UOp.sink(out.index(i).store(largest, i)), ())} == {1, 2}
  kernel = UOp.sink(out.index(i).store(largest + total, i))
  assert not limits_of(kernel, ())
  agree(kernel, with_opts(kernel, ()))

def test_loops_with_one_limit_end_together() -> None:
  """A fold by two would read a power that a filling by one had not stored."""
  kernel = causal(8, 12, 2)
  done = with_opts(kernel, (Opt(OptOps.UPCAST, 3, 3), Opt(OptOps.UPCAST, 5, 2)))
  assert len(shortened(done)) == 5
  agree(kernel, done, tolerance=1e-6)

def test_what_is_hidden_is_not_read() -> None:
  """inf behind the mask would make 0 * inf, which is NaN."""
  rows = n = 8
  found = [0.0] * rows
  evaluate(with_opts(causal(rows, n, 1), ()), {0: found, 1: [0.5] * (rows * n), 2: [1.0] * (n - 1) + [math.inf]})
  assert found[:n - 1] == [1.0] * (n - 1) and found[n - 1] == math.inf

def stated(rows: int, n: int, columns: int, begins: bool, swapped: bool = False, offset: int = 0) -> UOp:
  """Return the product of weights that are known to be 0 where i + offset < j with a matrix.

  begins: the sum is over i. swapped: the condition is the opposite one.
  """
  out, w, x = UOp.param(0, F32, (n if begins else rows) * columns), UOp.param(1, F32, rows * n), UOp.param(
    2, F32, (rows if begins else n) * columns)
  i, j = (axis(rows, 2, "REDUCE"), axis(n, 0)) if begins else (axis(rows, 0), axis(n, 2, "REDUCE"))
  d = axis(columns, 1)
  load, zero = w.index(i * n + j).load(), UOp.const(F32, 0)
  values = (j < i + offset + 1, load, zero) if swapped else (i + offset < j if offset else i < j, zero, load)
  known = UOp(Ops.WHERE, F32, values, None, STATED)
  of, by = (j, i) if begins else (i, j)
  product = (known * x.index(by * columns + d).load()).reduce(Ops.ADD, by)
  return UOp.sink(out.index(of * columns + d).store(product, of, d))

def results(kernel: UOp, rows: int, n: int, offset: int = 0, hidden: float = 0.0) -> list[float]:
  """Return what a kernel computes from weights that are `hidden` where the condition of `stated` says 0."""
  sizes = {u.arg[0]: u.arg[1] for u in kernel.toposort() if u.op is Ops.PARAM}
  weights = [hidden if i + offset < j else float(1 + i + 2 * j) for i in range(rows) for j in range(n)]
  out = [0.0] * sizes[0]
  evaluate(kernel, {0: out, 1: weights, 2: [float(k % 7) for k in range(sizes[2])]})
  return out

@pytest.mark.parametrize("swapped", (False, True))
@pytest.mark.parametrize("begins", (False, True))
def test_loops_over_buffers_leave_out_what_is_stated(begins: bool, swapped: bool) -> None:
  kernel = stated(8, 8, 4, begins, swapped)
  assert [limit.begins for limit in limits_of(kernel, ()).values()] == [begins]
  done = with_opts(kernel, (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.VECTOR, 1, 4)))
  assert shortened(done) and not any(u.tag == STATED for u in done.toposort())
  assert results(done, 8, 8) == results(kernel, 8, 8)

def test_statements_hold_for_each_tile() -> None:
  rng = random.Random(7)
  for _ in range(150):
    rows, n, columns = rng.choice((8, 12, 13)), rng.choice((8, 12, 13)), rng.choice((4, 6))
    begins, offset = rng.random() < 0.5, rng.choice((0, 0, 0, 2, -1))
    kernel = stated(rows, n, columns, begins, rng.random() < 0.3, offset)
    opts = [Opt(OptOps.VECTOR, axis, rng.choice((2, 4))) for axis in rng.sample((0, 1, 2), 1)]
    opts += [Opt(OptOps.UPCAST, axis, rng.choice((2, 3, 4))) for axis in range(3) if rng.random() < 0.5]
    opts += [Opt(OptOps.BLOCK, 2, 4)] * (rng.random() < 0.2)
    opts += [Opt(OptOps.STAGE, slot) for slot in (1, 2) if rng.random() < 0.4]
    opts += [Opt(OptOps.GRID, axis) for axis in (0, 1) if rng.random() < 0.4]
    assert results(with_opts(kernel, tuple(opts)), rows, n, offset) == results(kernel, rows, n, offset), opts

def test_what_is_stated_is_left_out_where_it_can_be() -> None:
  """Weights that break the statement show which elements are read: the rest of a tile alone."""
  for begins in (False, True):
    kernel = stated(8, 8, 4, begins)
    assert results(with_opts(kernel, ()), 8, 8, hidden=100.0) == results(kernel, 8, 8)
    tiled = with_opts(kernel, (Opt(OptOps.UPCAST, 0, 2),))
    assert results(tiled, 8, 8, hidden=100.0) != results(kernel, 8, 8)

def test_a_panel_that_tiles_share_is_filled_as_a_whole() -> None:
  """Its loop would be inside of the loop over tiles otherwise."""
  done = with_opts(stated(8, 8, 4, begins=False), (Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.STAGE, 2)))
  fill = next(u for u in done.toposort() if u.op is Ops.STAGE)
  assert not fill.src[1].src[0].ranges
  done = with_opts(stated(8, 8, 4, begins=False), (Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.STAGE, 2), Opt(OptOps.GRID, 0)))
  fill = next(u for u in done.toposort() if u.op is Ops.STAGE)
  assert fill.src[1].src[0].ranges, "each of the grid's items fills its own panel"

def test_lanes_of_a_workgroup_have_the_same_loops() -> None:
  assert not shortened(with_opts(stated(8, 8, 4, False), (Opt(OptOps.LOCAL, 0, 4),)))

def scores(n: int, width: int, swapped: bool = False, extra: bool = False) -> UOp:
  """Return the kernel of masked scores. extra: a sum of the row alone is added."""
  out, q, k = (UOp.param(slot, F32, size) for slot, size in enumerate((n * n, n * width, n * width)))
  i, j, d, e = axis(n, 0), axis(n, 1), axis(width, 2, "REDUCE"), axis(width, 3, "REDUCE")
  score = (q.index(i * width + d).load() * k.index(j * width + d).load()).reduce(Ops.ADD, d)
  if extra: score = score + q.index(i * width + e).load().reduce(Ops.ADD, e)
  hidden = UOp.const(F32, -math.inf)
  value = (j < i + 1).where(score, hidden) if swapped else (i < j).where(hidden, score)
  return UOp.sink(out.index(i * n + j).store(value, i, j))

@pytest.mark.parametrize("swapped", (False, True))
def test_a_tile_that_is_hidden_throughout_has_no_sum(swapped: bool) -> None:
  kernel = scores(8, 3, swapped)
  for opts in ((), (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.VECTOR, 1, 4)),
               (Opt(OptOps.UPCAST, 0, 3), Opt(OptOps.STAGE, 2))):
    done = with_opts(kernel, opts)
    assert shortened(done)
    agree(kernel, done)

def test_a_sum_that_other_tiles_need_stays() -> None:
  """The sum of a row is outside of the loop over columns."""
  kernel = scores(8, 3, extra=True)
  done = with_opts(kernel, ())
  assert len(shortened(done)) == 1
  agree(kernel, done)

def test_a_comparison_of_numbers_that_were_converted_is_no_mask() -> None:
  """As a position between pixels: a float is no index, whatever it is converted to."""
  out, x, i, d = UOp.param(0, F32, 8), UOp.param(1, F32, 24), axis(8, 0), axis(3, 1, "REDUCE")
  total = x.index(i * 3 + d).load().reduce(Ops.ADD, d)
  place = (i.cast(F32) * UOp.const(F32, math.inf)).maximum(x.index(i).load()).cast(dtypes.int32)
  kernel = UOp.sink(out.index(i).store((place < 4).where(total, UOp.const(F32, 0)), i))
  assert skip(apply(kernel, ())) is apply(kernel, ())

def test_tiles_that_are_all_seen_keep_their_sums() -> None:
  out, x, i, d = UOp.param(0, F32, 8), UOp.param(1, F32, 24), axis(8, 0), axis(3, 1, "REDUCE")
  total = x.index(i * 3 + d).load().reduce(Ops.ADD, d)
  kernel = UOp.sink(out.index(i).store((i < 100).where(total, UOp.const(F32, 0)), i))
  assert skip(apply(kernel, ())) is apply(kernel, ())

def test_the_last_element_that_a_row_sees() -> None:
  i, j, hidden = axis(8, 0), axis(8, 1, "REDUCE"), UOp.const(F32, -math.inf)
  x = UOp.param(0, F32, 64).index(i * 8 + j).load()
  assert last_seen((i < j).where(hidden, x), j) is i
  assert last_seen(x, j) is None and last_seen((i < j).where(hidden, x), i) is None
  assert last_seen((i < j).where(x, hidden), j) is None, "the first elements are hidden"
  assert last_seen((i < j).where(UOp.const(F32, -1e9), x), j) is None
