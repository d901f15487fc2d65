"""Strides of loads and stores, checked by counting, and merged loops."""
from __future__ import annotations
import random

import pytest
from hypothesis import given, settings, strategies as st

from test.codegen.kernels import agree, axis
from test.codegen.random_kernels import Nest
from tinyhw.codegen.kernel.access import access_of, accesses, gate_of, merge_ranges, split_ranges
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def place(index: UOp, point: dict[UOp, int]) -> int:
  """Return an index with ranges replaced by numbers."""
  return int(substitute(index, {r: UOp.const(dtypes.weakint, k) for r, k in point.items()}).simplify().arg)

@settings(max_examples=100)
@given(st.integers(0, 1 << 30))
def test_strides_are_what_one_iteration_adds(seed: int) -> None:
  nest, rng = Nest(seed), random.Random(seed)
  for access in accesses(nest.sink):
    index = access.node.src[0].src[1]
    ranges = [u for u in index.toposort() if u.op is Ops.RANGE]
    point = {r: rng.randrange(size_of(r)) for r in ranges}
    for r in ranges:
      if r in access.opaque or size_of(r) < 2: continue
      low = rng.randrange(size_of(r) - 1)
      step = place(index, {**point, r: low + 1}) - place(index, {**point, r: low})
      assert access.stride(r) == step and access.depends(r) == (step != 0)
    for r in nest.outputs + nest.inner:
      if r not in access.node.src[0].ranges and r not in access.opaque:
        assert access.stride(r) == 0 and not access.depends(r)

def test_what_is_not_linear_has_no_stride() -> None:
  a, r, s = UOp.param(0, F32, 100), axis(10, 0), axis(9, 1)
  found = access_of(a.index(r // 2 + s * 3).load())
  assert found.stride(r) is None and found.stride(s) == 3 and found.depends(r) and not found.is_store
  gated = access_of(a.index(s).load(r < 4))
  assert gated.stride(r) is None and gated.stride(s) == 1, "a gate depends on its ranges, too"

def test_gates() -> None:
  a, r = UOp.param(0, F32, 10), axis(10, 0)
  gate = r < 4
  assert gate_of(a.index(r).load()) is None and gate_of(a.index(r).load(gate)) is gate
  store = a.index(r).store(UOp.const(F32, 1.0), r)
  assert (gate_of(store) is None and gate_of(a.index(r).store(UOp.const(F32, 1.0), r, gate=gate)) is gate
          and access_of(store).is_store)

def loops(sink: UOp) -> list[int]:
  """Return the sizes of the loops of the first store."""
  return [size_of(r) for r in ranges_of(sink.src[0])]

def copied(at: UOp, source: UOp, *ranges: UOp) -> UOp:
  return UOp.sink(UOp.param(0, F32, 120).index(at).store(UOp.param(1, F32, 240).index(source).load() + 1, *ranges))

def test_loops_that_memory_walks_as_one_become_one() -> None:
  r, s, t = axis(4, 0), axis(5, 1), axis(6, 2)
  flat = (r * 5 + s) * 6 + t
  assert loops(merge_ranges(copied(flat, flat, r, s, t))) == [120]
  assert loops(merge_ranges(copied(flat, flat * 2, r, s, t))) == [120], "a stride of two is walked as one, too"
  assert loops(merge_ranges(copied(flat, (s * 4 + r) * 6 + t, r, s, t))) == [4, 5, 6]
  assert loops(merge_ranges(copied(flat, s * 6 + t, r, s, t))) == [4, 30], "broadcast along the first axis"

@pytest.mark.parametrize("seed", range(60))
def test_merging_changes_no_result(seed: int) -> None:
  nest = Nest(seed, in_place=seed % 3 == 0)
  agree(nest.sink, merge_ranges(nest.sink))

def test_reductions_are_merged_where_all_their_loads_allow_it() -> None:
  out, a, b = UOp.param(0, F32, 3), UOp.param(1, F32, 60), UOp.param(2, F32, 60)
  g, r, s = axis(3, 0), axis(4, 1, "REDUCE"), axis(5, 2, "REDUCE")
  straight, turned = (g * 4 + r) * 5 + s, (g * 5 + s) * 4 + r
  for index, count in ((straight, 1), (turned, 2)):
    kernel = UOp.sink(out.index(g).store((a.index(straight).load() * b.index(index).load()).reduce(Ops.ADD, r, s), g))
    merged = merge_ranges(kernel)
    assert [len(ranges_of(u)) for u in merged.toposort() if u.op is Ops.REDUCE] == [count]
    agree(kernel, merged)

def test_loops_whose_counters_are_data_in_another_order_or_that_differ_in_kind_stay() -> None:
  out, r, s = UOp.param(0, F32, 20), axis(4, 0), axis(5, 1)
  flat = r * 5 + s
  for data, left in ((r, [4, 5]), (s, [4, 5]), (s * 4 + r, [4, 5]), (flat // 3, [4, 5]), (flat, [20]),
                     (flat * 3 + 7, [20])):
    kernel = UOp.sink(out.index(flat).store(data.cast(F32), r, s))
    assert loops(merge_ranges(kernel)) == left
    agree(kernel, merge_ranges(kernel))
  g = axis(4, 0, "GLOBAL")
  assert loops(merge_ranges(copied(g * 5 + s, g * 5 + s, g, s))) == [4, 5]
  kernel = UOp.sink(out.index(flat).store(UOp.param(1, F32, 20).index(flat).load(r < 2), r, s))
  assert loops(merge_ranges(kernel)) == [4, 5], "a gate looks at one of them"

def test_loops_stay_whose_counters_are_data_of_an_array() -> None:
  """The rows of all heads are walked as one, but a causal mask compares the row of a head."""
  out, r, s, j, e = UOp.param(0, F32, 20), axis(4, 0), axis(5, 1), axis(6, 2, "REDUCE"), axis(6, 3, "STAGE")
  flat = r * 5 + s
  for limit, left in ((s, [4, 5]), (flat, [20])):
    value = (limit < e).where(UOp.const(F32, 0), UOp.param(1, F32, 20).index(flat).load())
    array = UOp(Ops.STAGE, F32, (value, e), (0,))
    kernel = UOp.sink(out.index(flat).store(array.index(j).load().reduce(Ops.ADD, j), r, s))
    merged = merge_ranges(kernel)
    assert loops(merged) == left
    agree(kernel, merged)

def test_loops_that_an_access_knows_parts_of_become_several() -> None:
  r, s = axis(4, 0), axis(24, 1)
  at = r * 24 + s
  assert loops(split_ranges(copied(at, r * 6 + s // 4, r, s), 4)) == [4, 6, 4]
  assert loops(split_ranges(copied(at, s % 8, r, s), 4)) == [4, 3, 8]
  assert loops(split_ranges(copied(at, r * 6 + s // 12 * 3 + s % 4, r, s), 4)) == [4, 6,
                                                                                   4], ("the inner one of two would "
                                                                                        "be too short")
  long = axis(96, 1)
  assert loops(split_ranges(copied(long, long // 48 * 4 + long % 4, long), 4)) == [2, 12,
                                                                                   4], ("as often as there are parts")
  assert loops(split_ranges(copied(at, s // 2, r, s), 4)) == [4, 24], "inner loops would be too short"
  assert loops(split_ranges(copied(at, s // 5, r, s), 4)) == [4, 24], "parts would be of different sizes"
  one, two = ranges_of(split_ranges(copied(at, s // 4, r, s), 4).src[0])[1:]
  assert (one.arg[0], two.arg[0]) == (1, 2), "later ones are further inside"

@pytest.mark.parametrize("c, d", ((4, 8), (6, 4), (12, 6), (8, 5), (24, 3)))
def test_splitting_changes_no_result(c: int, d: int) -> None:
  """A loop of the output and a loop of a reduction are each divided. One of them has a gate that uses parts, too."""
  out, a, b = UOp.param(0, F32, 48), UOp.param(1, F32, 240), UOp.param(2, F32, 48)
  r, k = axis(24, 0), axis(48, 1, "REDUCE")
  total = (a.index(r * 10 + k % 4).load(k // d < 3) * b.index(r // c * 4 + k // 12).load()).reduce(Ops.ADD, k)
  kernel = UOp.sink(out.index(r).store(total + b.index(r % c).load(), r))
  split = split_ranges(kernel, 4)
  assert len({u for u in split.toposort() if u.op is Ops.RANGE}) > 2
  agree(kernel, split)

def test_flattened_groups_have_strides_in_all_loops() -> None:
  out, a, b, k = UOp.param(0, F32, 2), UOp.param(1, F32, 2 * 8 * 64), UOp.param(2, F32, 16), axis(512, 1, "REDUCE")
  g = axis(2, 0)
  kernel = UOp.sink(
    out.index(g).store((a.index(g * 512 + k).load() * b.index(g * 8 + k // 64).load()).reduce(Ops.ADD, k), g))
  assert any(x.opaque for x in accesses(kernel)) and not any(x.opaque for x in accesses(split_ranges(kernel, 4)))
