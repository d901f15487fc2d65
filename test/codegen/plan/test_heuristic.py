"""The model's choices for random loops and for well-known kernels: possible, within the target's limits, and
profitable."""
from __future__ import annotations
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings, strategies as st

from test.codegen.kernels import ALL_TARGETS, AVX2, agree, axis
from test.codegen.random_kernels import Nest
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.plan.heuristic import choose, lanes_of, nest_of
from tinyhw.codegen.transform.tiling import OF_BUFFERS, Opt, OptOps, size_of, width_along, NO_FACTORS
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
TARGETS = {**ALL_TARGETS, "avx512": capabilities("x86_64:avx512"), "many threads": replace(AVX2, threads=64),
           "no shared memory": replace(AVX2, local_bytes=0), "lanes": replace(AVX2, lanes=8, local_bytes=4096)}

def product(m: int, n: int, k: int, dtype: DType = F32) -> UOp:
  """Return the store of a matrix product."""
  out, a, b = UOp.param(0, dtype, m * n), UOp.param(1, dtype, m * k), UOp.param(2, dtype, k * n)
  i, j, r = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  return out.index(i * n + j).store((a.index(i * k + r).load() * b.index(r * n + j).load()).reduce(Ops.ADD, r), i, j)

def amounts(opts: tuple[Opt, ...], *ops: OptOps) -> dict[int, int]:
  """Return, by axis, the product of the amounts of these opts."""
  found: dict[int, int] = {}
  for o in opts:
    if o.op in ops: found[o.axis] = found.get(o.axis, 1) * o.amount
  return found

def check_limits(store: UOp, opts: tuple[Opt, ...], target: Capabilities) -> None:
  """Check that opts name existing ranges, in amounts that fit into ranges, registers and shared memory."""
  ranges = {u.arg[0]: u for u in store.toposort() if u.op is Ops.RANGE}
  slots = {u.arg[0] for u in store.toposort() if u.op is Ops.PARAM}
  outputs = {r.arg[0] for r in ranges_of(store)}
  for o in opts:
    assert o.axis in (slots if o.op in OF_BUFFERS else ranges), f"{o}: there is no such axis"
    assert o.op in NO_FACTORS or 1 < o.amount <= size_of(ranges[o.axis]), f"{o}: out of range"
    assert o.op is not OptOps.GRID or o.axis in outputs, f"{o}: a grid of a reduction"
  vectors = amounts(opts, OptOps.VECTOR)
  for at, n in amounts(opts, OptOps.VECTOR, OptOps.UPCAST, OptOps.BLOCK, OptOps.LOCAL, OptOps.MATRIX).items():
    assert n <= size_of(ranges[at]) + vectors.get(at, 1) - 1, f"{opts}: more than one vector overlaps"
  assert len(set(opts)) == len(opts), "a choice is made twice"
  assert all(n == width_along(ranges[at], lanes_of(nest_of(store), target))
             for at, n in vectors.items()), "a register, or what the range fills of it"
  assert sum(at in outputs for at in vectors) <= 1
  if target.vector_bytes == 0: assert not vectors
  copies = prod(n for at, n in amounts(opts, OptOps.UPCAST).items() if at in outputs)
  under_all = [u for u in store.toposort() if u.op is Ops.REDUCE and len(u.ranges) == len(outputs)]
  if under_all: assert copies <= max(target.vector_registers, 1), f"{copies} accumulators"
  tiled = with_opts(UOp.sink(store), opts)
  for u in tiled.toposort():
    if u.op is Ops.STAGE:
      assert prod(size_of(r) for r in ranges_of(u)) * u.dtype.itemsize <= target.local_bytes, "a panel is too big"

@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 30), in_place=st.booleans())
def test_choices_for_random_loops(name: str, seed: int, in_place: bool) -> None:
  nest, target = Nest(seed, in_place), TARGETS[name]
  opts = choose(nest.store, target)
  check_limits(nest.store, opts, target)
  agree(nest.sink, with_opts(nest.sink, opts))
  assert choose(nest.store, target) == opts

@pytest.mark.parametrize("name", ["avx2", "avx512", "many threads", "no shared memory"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (512, 512, 512), (1000, 1000, 1000), (4096, 4096, 4096),
                                   (7, 4096, 4096), (4096, 4096, 7),
                                   (4096, 7, 4096), (1, 4096, 4096), (4096, 1, 4096), (3, 5, 100_000), (1, 1, 4096)])
def test_products(shape: tuple[int, int, int], name: str) -> None:
  """Lanes, enough accumulators to hide the latency of their additions, and work for most threads."""
  store, target = product(*shape), TARGETS[name]
  opts = choose(store, target)
  check_limits(store, opts, target)
  m, n, k = shape
  lanes, copies = amounts(opts, OptOps.VECTOR), amounts(opts, OptOps.UPCAST)
  assert len(lanes) == 1, "the product has lanes"
  if m * n >= 64 * 64: assert prod(copies.values()) >= 8, f"{opts}: each addition waits for the one before it"
  items = work_items(with_opts(UOp.sink(store), opts))
  if m * n * k >= 1 << 24 and m * n >= 64 * 64:
    assert 2 * items > target.threads, f"{items} work items for {target.threads} threads"

def work_items(kernel: UOp) -> int:
  """Return the size of the grid."""
  return max((prod(size_of(r) for r in ranges_of(s) if r.arg[1] is AxisType.GLOBAL) for s in kernel.src), default=1)

@pytest.mark.parametrize("dtype, lanes", [(dtypes.float32, 8), (dtypes.float64, 4), (dtypes.int8, 32),
                                          (dtypes.int16, 16)], ids=str)
def test_lanes_fill_a_register_and_run_along_memory(dtype: DType, lanes: int) -> None:
  out, a = UOp.param(0, dtype, 1 << 16), UOp.param(1, dtype, 1 << 16)
  i, j = axis(256, 0), axis(256, 1)
  for at, adjacent in ((i * 256 + j, 1), (j * 256 + i, 0)):
    opts = choose(out.index(at).store(a.index(at).load() + 1, i, j), AVX2)
    assert amounts(opts, OptOps.VECTOR) == {adjacent: lanes}

@pytest.mark.parametrize("rows, columns, copies", [
  (1024, 1024, {0: 16}), (1000, 1000, {0: 16}), (5, 1000, {0: 5}),
  (1000, 64, {1: 4}),     # 64 cache lines are still there when the next row needs them
  (1024, 64, {0: 16})])   # of lines that are a page apart, eight are
def test_a_transpose_uses_up_lines_of_the_cache(rows: int, columns: int, copies: dict[int, int]) -> None:
  out, a = UOp.param(0, F32, rows * columns), UOp.param(1, F32, rows * columns)
  i, j = axis(rows, 0), axis(columns, 1)
  store = out.index(i * columns + j).store(a.index(j * rows + i).load(), i, j)
  opts = choose(store, replace(AVX2, transposed_bytes=()))
  assert amounts(opts, OptOps.VECTOR) == {1: 8} and amounts(opts, OptOps.UPCAST) == copies
  transposed = choose(store, AVX2)   # in registers
  assert amounts(transposed, OptOps.VECTOR) == {1: 8} and amounts(transposed, OptOps.UPCAST) == {0: min(rows, 16)}

def test_loads_from_all_over_leave_the_lanes_to_what_is_computed_of_them() -> None:
  out, a, at = UOp.param(0, F32, 4096), UOp.param(1, F32, 4096), UOp.param(2, dtypes.int32, 4096)
  i = axis(4096, 0)
  value = sum((a.index(at.index((i + k) % 4096).load().cast(dtypes.weakint)).load() * (k + 1) for k in range(4)),
              UOp.const(F32, 0.0))
  assert amounts(choose(out.index(i).store(value, i), AVX2), OptOps.VECTOR) == {0: 8}

def test_short_rows_whose_elements_lie_apart_have_no_lanes() -> None:
  out, a = UOp.param(0, F32, 64 * 6), UOp.param(1, F32, 64 * 12)
  i, j = axis(64, 0), axis(6, 1)
  opts = choose(out.index(i * 6 + j).store(a.index(i * 12 + j * 2).load(), i, j), AVX2)
  assert 1 not in amounts(opts, OptOps.VECTOR)

@pytest.mark.parametrize("operations, lanes", [(0, {}), (1, {}), (6, {1: 4})])
def test_short_rows_whose_elements_lie_apart_have_lanes_where_much_is_computed(operations: int,
                                                                               lanes: dict[int, int]) -> None:
  """The activation of an image of 8x8 pixels, with a gathered image as the other input, was computed one element at a
  time."""
  out, a = UOp.param(0, F32, 64 * 6), UOp.param(1, F32, 64 * 12)
  i, j = axis(64, 0), axis(6, 1)
  value = a.index(i * 12 + j * 2).load()
  for _ in range(operations): value = value * value + value
  assert amounts(choose(out.index(i * 6 + j).store(value, i, j), AVX2), OptOps.VECTOR) == lanes

def test_a_sum_has_lanes_along_its_terms_and_several_accumulators() -> None:
  out, a = UOp.param(0, F32, 16), UOp.param(1, F32, 1 << 16)
  i, r = axis(16, 0), axis(4096, 1, "REDUCE")
  opts = choose(out.index(i).store(a.index(i * 4096 + r).load().reduce(Ops.ADD, r), i), AVX2)
  assert amounts(opts, OptOps.VECTOR) == {1: 8} and prod(amounts(opts, OptOps.UPCAST).values()) >= 4

def test_a_sum_over_a_symbolic_size_and_another_is_not_split_along_the_first() -> None:
  out, a = UOp.param(0, F32, 24), UOp.param(1, F32, 64)
  k, r = UOp.range(UOp.variable("n", 1, 8), 2, AxisType.REDUCE), axis(8, 1, "REDUCE")
  i = axis(24, 0)
  opts = choose(out.index(i).store(a.index(k * 8 + r).load().reduce(Ops.ADD, k, r), i), AVX2)
  assert amounts(opts, OptOps.VECTOR)[1] == 8 and all(o.axis != 2 for o in opts)

def test_what_is_read_once_is_read_at_few_places_in_turn() -> None:
  """A matrix-vector product has rows that are far apart. From memory it reads one at a time, and several vectors of
  it."""
  out, a, x = UOp.param(0, F32, 4096), UOp.param(1, F32, 1 << 24), UOp.param(2, F32, 4096)
  i, r = axis(4096, 0), axis(4096, 1, "REDUCE")
  opts = choose(out.index(i).store((a.index(i * 4096 + r).load() * x.index(r).load()).reduce(Ops.ADD, r), i), AVX2)
  copies = amounts(opts, OptOps.UPCAST)
  assert amounts(opts, OptOps.VECTOR) == {1: 8} and copies.get(0, 1) == 1 and prod(copies.values()) >= 8

def test_a_row_is_reduced_where_it_is_read_again() -> None:
  """The form of a softmax: the loop of the reduction is inside of the row's loop, which alone is the grid."""
  out, a = UOp.param(0, F32, 64 * 1024), UOp.param(1, F32, 64 * 1024)
  i, j, r = axis(64, 0), axis(1024, 1), axis(1024, 2, "REDUCE")
  total = a.index(i * 1024 + r).load().reduce(Ops.ADD, r)
  opts = choose(out.index(i * 1024 + j).store(a.index(i * 1024 + j).load() * total, i, j), AVX2)
  assert amounts(opts, OptOps.VECTOR) == {1: 8, 2: 8} and [o.axis for o in opts if o.op is OptOps.GRID] == [0]

def test_reductions_that_need_each_other_have_lanes_each() -> None:
  """The form of a variance: the mean is subtracted from each term of the second sum."""
  out, a = UOp.param(0, F32, 64), UOp.param(1, F32, 64 * 1024)
  i, r, s = axis(64, 0), axis(1024, 1, "REDUCE"), axis(1024, 2, "REDUCE")
  mean = a.index(i * 1024 + r).load().reduce(Ops.ADD, r)
  opts = choose(out.index(i).store((a.index(i * 1024 + s).load() + mean * -1).reduce(Ops.ADD, s), i), AVX2)
  assert amounts(opts, OptOps.VECTOR) == {1: 8, 2: 8}

def scaled_blocks(place: str, n: int = 64, count: int = 24, size: int = 32) -> UOp:
  """Return the form of a product with quantized weights: a sum of sums of blocks, each with a scale."""
  w, x, scale = UOp.param(1, F32, n * count * size), UOp.param(2, F32, count * size), UOp.param(3, F32, n * count)
  k, r, ranges = axis(count, 1, "REDUCE"), axis(size, 2, "REDUCE"), (axis(n, 0),)
  if place == "rows side by side": ranges = (axis(n // 16, 0), axis(16, 3))
  i = ranges[0] if len(ranges) == 1 else ranges[0] * 16 + ranges[1]
  at, own = (i * count + k) * size + r, i * count + k
  if place == "columns": at, own = (k * size + r) * n + i, k * n + i
  if place == "rows side by side":
    own = (ranges[0] * count + k) * 16 + ranges[1]
    at = ((ranges[0] * count + k) * size + r) * 16 + ranges[1]
  block = (w.index(at).load() * x.index(k * size + r).load()).reduce(Ops.ADD, r)
  return UOp.param(0, F32, n).index(i).store((block * scale.index(own).load()).reduce(Ops.ADD, k), *ranges)

@pytest.mark.parametrize("name", ["avx2", "avx512"])
@pytest.mark.parametrize("place, along", [("rows", 2), ("columns", 0), ("rows side by side", 3)])
def test_sums_of_blocks_have_lanes_along_memory(name: str, place: str, along: int) -> None:
  """Lanes are along the terms of a block where rows are contiguous, else along the output."""
  store = scaled_blocks(place)
  opts = choose(store, TARGETS[name])
  assert amounts(opts, OptOps.VECTOR) == {along: TARGETS[name].vector_bytes // 4}
  agree(UOp.sink(store), with_opts(UOp.sink(store), opts))

@pytest.mark.parametrize("size, lanes", [(3, {}), (4, {1: 4}), (6, {1: 4}), (10, {1: 8})])
def test_short_rows_fill_a_part_of_a_register(size: int, lanes: dict[int, int]) -> None:
  out, a, b = UOp.param(0, F32, 64 * size), UOp.param(1, F32, 64 * size), UOp.param(2, F32, size)
  i, j, r = axis(64, 0), axis(size, 1), axis(size, 2, "REDUCE")
  whole, place = a.index(i * size + j).load(), out.index(i * size + j)
  alone = amounts(choose(place.store(whole + b.index(j).load(), i, j), AVX2), OptOps.VECTOR)
  assert {at: n for at, n in alone.items() if at} == lanes
  total = a.index(i * size + r).load().reduce(Ops.ADD, r)
  assert amounts(choose(place.store(whole * total, i, j), AVX2),
                 OptOps.VECTOR) == {**lanes, **{at + 1: n for at, n in lanes.items()}}

def test_no_lanes_where_nothing_is_adjacent_and_nothing_for_one_element() -> None:
  out, a = UOp.param(0, F32, 1 << 12), UOp.param(1, F32, 1 << 12)
  i = axis(64, 0)
  assert not amounts(choose(out.index(i * 64).store(a.index(i * 64).load(), i), AVX2), OptOps.VECTOR)
  assert choose(out.index(0).store(a.index(5).load()), AVX2) == ()

@given(st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint16]), st.sampled_from(sorted(TARGETS)))
def test_vectors_never_exceed_a_register(dtype: DType, name: str) -> None:
  """A conversion to a wider type counts: all vectors of a kernel have the same number of lanes."""
  target = TARGETS[name]
  out, a = UOp.param(0, dtypes.float64, 512), UOp.param(1, dtype, 512)
  i = axis(512, 0)
  store = out.index(i).store(a.index(i).load().cast(dtypes.float64), i)
  tiled = with_opts(UOp.sink(store), choose(store, target))
  lanes = [size_of(r) for r in tiled.toposort() if r.op is Ops.RANGE and r.arg[1] is AxisType.VECTOR]
  assert all(n * dtypes.float64.itemsize <= target.vector_bytes for n in lanes) and (lanes or not target.vector_bytes
                                                                                     or target.lanes)

@pytest.mark.parametrize("n", (9, 17, 33))
def test_a_tile_is_larger_than_its_range_unless_the_kernel_reads_what_it_overwrites(n: int) -> None:
  """Stores of such a kernel are peeled. A tile that fits nowhere would leave only the remainder, without lanes."""
  store = product(24, n, 24)
  free, tied = (amounts(choose(store, AVX2, in_place), OptOps.VECTOR, OptOps.UPCAST).get(1, 1)
                for in_place in (False, True))
  assert free > n >= tied
