"""Splitting, peeling and staging change no result: random kernels on small integers against the interpreter."""
from __future__ import annotations
import pytest
from hypothesis import given, settings, strategies as st

from test.codegen.kernels import AVX2, agree, axis, check
from test.codegen.random_kernels import INNER, Nest
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import (Opt, OptOps, apply, apply_pieces, at_most, cuts_of, factor_of,
                                             peel_reductions, peel_store,
                                             size_of, split, stage_loads, substitute)
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
SEEDS = st.integers(0, 1 << 30)

@pytest.mark.slow
@settings(max_examples=150)
@given(SEEDS)
def test_any_tile_of_the_outputs_changes_no_result(seed: int) -> None:
  nest = Nest(seed)
  opts = nest.opts(nest.outputs) + nest.opts(nest.inner, whole=True)
  agree(nest.sink, apply(nest.sink, opts))
  agree(nest.sink, apply(nest.sink, opts, tuple(nest.rng.sample(range(5), 5))))

@pytest.mark.slow
@settings(max_examples=150)
@given(SEEDS)
def test_reductions_are_peeled_to_any_factor(seed: int) -> None:
  nest = Nest(seed)
  opts = nest.opts(nest.inner)
  peeled, more = peel_reductions(nest.sink, opts, 100)
  agree(nest.sink, peeled)
  for r in (u for u in peeled.toposort() if u.op is Ops.RANGE and u.arg[0] < 100):
    if r.arg[1] is AxisType.REDUCE: assert size_of(r) % factor_of(r, opts) == 0
  agree(nest.sink, apply(peeled, opts + more))

@pytest.mark.parametrize("left, lanes, cuts", [(40, 16, [(2, 16), (1, 8)]), (63, 16, [(3, 16), (1, 8), (1, 4), (3, 1)]),
                                               (3, 16, [(3, 1)]),
                                               (3, 1, [(3, 1)]), (3, 2, [(1, 2), (1, 1)]), (5, 4, [(1, 4), (1, 1)])])
def test_what_is_left_of_a_reduction_is_done_by_fewer_and_fewer_lanes(left: int, lanes: int,
                                                                      cuts: list[tuple[int, int]]) -> None:
  assert cuts_of(left, lanes) == cuts

@pytest.mark.slow
@settings(max_examples=150)
@given(SEEDS)
def test_peeled_stores_visit_each_element_once(seed: int) -> None:
  """A kernel that reads the buffer that it overwrites would show an element that is done twice."""
  nest = Nest(seed, in_place=True)
  r = nest.rng.choice(nest.outputs)
  parts = peel_store(nest.store, r, nest.rng.randint(0, size_of(r) - 1), 100)
  agree(nest.sink, UOp.sink(*parts))
  assert sum(size_of(next(s for s in ranges_of(part) if s.arg[0] in (r.arg[0], 100))) for part in parts) == size_of(r)

@pytest.mark.slow
@settings(max_examples=150)
@given(SEEDS)
def test_staged_loads_change_no_result(seed: int) -> None:
  nest = Nest(seed)
  slots = frozenset(nest.rng.sample(range(1, nest.slots), nest.rng.randint(1, nest.slots - 1)))
  staged = stage_loads(nest.sink, slots)
  agree(nest.sink, staged)
  opts = nest.opts(nest.outputs) + nest.opts(nest.inner, whole=True)
  agree(nest.sink, stage_loads(apply(nest.sink, opts), slots))
  under = {u.src[0].src[0].arg[0] for reduce in nest.sink.toposort() if reduce.op is Ops.REDUCE
           for u in reduce.toposort() if u.op is Ops.LOAD}
  read = {u.src[0].src[0].arg[0] for reduce in staged.toposort() if reduce.op is Ops.REDUCE
          for u in _outside_of_stages(reduce) if u.op is Ops.LOAD}
  assert read == under - slots, ("a staged buffer is read while its array is filled, and nowhere else under the "
                                 "reduction")

def _outside_of_stages(reduce: UOp) -> list[UOp]:
  """Return the nodes below a REDUCE that read buffers of the kernel, except those that fill shared arrays."""
  found, stack = [], [reduce]
  while stack:
    u = stack.pop()
    if u.op is Ops.STAGE: continue
    if u.op is not Ops.LOAD or u.src[0].src[0].op is Ops.PARAM: found.append(u)
    stack.extend(u.src)
  return found

@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 300))
def test_at_most_is_the_minimum_and_knows_its_bounds(end: int, factor: int, limit: int) -> None:
  r = axis(end, 0)
  x = at_most(r * factor, limit)
  assert (x.vmin, x.vmax) == (min(0, limit), min((end - 1) * factor, limit))
  for k in range(end): assert substitute(x, {r: UOp.const(dtypes.weakint, k)}).simplify().arg == min(k * factor, limit)

@given(st.integers(1, 200), st.lists(st.tuples(st.sampled_from(INNER), st.integers(1, 9)), max_size=4), st.booleans())
def test_parts_cover_a_range_in_as_few_steps_as_can_be(size: int, amounts: list[tuple[OptOps, int]],
                                                       grid: bool) -> None:
  r = axis(size, 0)
  opts = [Opt(op, 0, n) for op, n in amounts] + [Opt(OptOps.GRID, 0)] * grid
  parts = split(r, opts)
  strides = [p.stride for p in parts] + [1]
  for outer, inner in zip(parts, parts[1:]): assert outer.stride == inner.stride * inner.size.arg
  assert not parts or parts[-1].stride == 1
  steps, factor = 1, factor_of(r, tuple(opts))
  for p in parts: steps *= p.size.arg
  assert size <= steps < size + factor and strides == sorted(strides, reverse=True)
  left = [p for p in parts if p.stride == factor and p.kind in (AxisType.GLOBAL, AxisType.LOOP)]
  if grid and size > factor: assert left and left[0].kind is AxisType.GLOBAL

def test_kinds_of_parts() -> None:
  opts = [Opt(OptOps.VECTOR, 0, 4), Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.BLOCK, 0, 3), Opt(OptOps.GRID, 0)]
  def kinds(r: UOp, chosen: list[Opt]) -> list[tuple[str, int, int]]:
    return [(p.kind.name, p.size.arg, p.stride) for p in split(r, chosen)]
  assert kinds(axis(50, 0), opts) == [("GLOBAL", 3, 24), ("LOOP", 3, 8), ("UPCAST", 2, 4), ("VECTOR", 4, 1)]
  assert kinds(axis(48, 0, "REDUCE"), opts[:2]) == [("REDUCE", 6, 8), ("UNROLL", 2, 4), ("VECTOR", 4, 1)]
  assert split(axis(1, 0), []) == [], "a loop of one iteration is none"

def test_a_symbolic_range_stays_whole() -> None:
  r = axis(UOp.variable("n", 1, 9), 0)
  assert size_of(r) == 0 and [(p.kind, p.size)
                              for p in split(r, [Opt(OptOps.GRID, 0)])] == [(AxisType.GLOBAL, r.src[0])]

def test_a_stage_of_one_loop_has_no_position_beside_it() -> None:
  """The position in a stage whose other range has one iteration is its loop, and that is closed once."""
  out, a, g = UOp.param(0, dtypes.float32, 3), UOp.param(1, dtypes.float32, 12), axis(3, 1)
  for ends in ((1, 4), (4, 1), (1, 1), (2, 2)):
    s, t = axis(ends[0], 2, "STAGE"), axis(ends[1], 3, "STAGE")
    stage = UOp(Ops.STAGE, dtypes.float32, (a.index(g * 4 + s * ends[1] + t).load() * 2, s, t), (1,))
    at = ends[0] * ends[1] - 1
    kernel = UOp.sink(out.index(g).store(stage.index(UOp.const(dtypes.weakint, at)).load(), g))
    for opts in ((), (Opt(OptOps.UPCAST, 3, ends[1]),), (Opt(OptOps.UPCAST, 2, ends[0]), Opt(OptOps.VECTOR, 1, 2))):
      done = apply(kernel, opts)
      for u in done.toposort():
        if u.op is Ops.STAGE: assert len(set(u.src)) == len(u.src)
      agree(kernel, done)
      check(done, AVX2)

def test_pieces_tell_what_became_of_each_range() -> None:
  out, a = UOp.param(0, F32, 30), UOp.param(1, F32, 30)
  r, s = axis(6, 0), axis(5, 1)
  kernel = UOp.sink(out.index(r * 5 + s).store(a.index(s * 6 + r).load(), r, s))
  tiled, pieces, _ = apply_pieces(kernel, (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.GRID, 1)))
  assert [(p.arg[1].name, size_of(p)) for p in pieces[r]] == [("LOOP", 3), ("UPCAST", 2)]
  assert [(p.arg[1].name, size_of(p)) for p in pieces[s]] == [("GLOBAL", 2), ("VECTOR", 4)]
  assert [p.arg[1].name for p in sorted(pieces[r] + pieces[s], key=lambda p: p.arg)] == ["GLOBAL", "LOOP", "UPCAST",
                                                                                         "VECTOR"]
  agree(kernel, tiled)

def test_the_grid_is_in_the_order_of_its_opts() -> None:
  out, (i, j) = UOp.param(0, F32, 24), (axis(4, 0), axis(6, 1))
  kernel = UOp.sink(out.index(i * 6 + j).store(UOp.const(F32, 1.0), i, j))
  for opts, sizes in (((0, 1), [4, 6]), ((1, 0), [6, 4])):
    applied = apply(kernel, tuple(Opt(OptOps.GRID, k) for k in opts))
    assert [size_of(r) for r in sorted(ranges_of(applied.src[0]), key=lambda r: r.arg)] == sizes
    agree(kernel, applied)

@pytest.mark.parametrize("opt, text", [(Opt(OptOps.VECTOR, 1, 8), "VECTOR(1, 8)"), (Opt(OptOps.GRID, 0), "GRID(0)")])
def test_opts_print_as_they_are_written(opt: Opt, text: str) -> None: assert repr(opt) == text
