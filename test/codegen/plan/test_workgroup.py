"""The ranges that become lanes. Workgroups compute the same as the kernel, for sizes that nothing divides."""
import math
from dataclasses import replace

import pytest

from test.codegen.kernels import EVERYTHING, axis, compare, data_for, softmax
from tinyhw.codegen.kernel.grid import flatten_grid
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.plan.tile_shape import MOST_PERIOD
from tinyhw.codegen.plan.workgroup import (
  computed_operand, copied_along, copied_operand, lanes_along, period_along)
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

F32 = dtypes.float32
LANES = replace(EVERYTHING, lanes=8, threads=2, local_bytes=16384, vector_bytes=16,
                matrix=(by_columns(4, 8, 4, F32, F32, 8),),
                vector_operations=frozenset({(Ops.MMA, F32)}))

def run(sink: UOp, capabilities: Capabilities = LANES, tolerance: float = 0.0) -> Program:
  """Optimise and lower a kernel, and compare its Program with the kernel."""
  expected, found = data_for(sink), data_for(sink)
  evaluate(sink, expected)
  optimized = optimize(sink, capabilities)
  verify(optimized, 1)
  program = lower(optimized, capabilities, "test")
  verify(program, 1)
  evaluate(program, found)
  compare("program", expected, found, tolerance)
  return program

def opts(sink: UOp) -> tuple[Opt, ...]: return optimize(sink, LANES).arg.opts  # type: ignore[no-any-return]

def elementwise(rows: int, columns: int, in_place: bool = False) -> UOp:
  """Return out[i, j] = a[i, j] + b[j, i]."""
  out, a, b = (UOp.param(k, F32, rows * columns) for k in range(3))
  if in_place: a = out
  i, j = axis(rows, 0), axis(columns, 1)
  return UOp.sink(out.index(i * columns + j).store(a.index(i * columns + j).load() + b.index(j * rows + i).load(), i,
                                                   j))

def row_sums(rows: int, n: int) -> UOp:
  """Return out[i, j] = (x - max) * sum(x - max), for x = a[i, j]."""
  out, a, i = UOp.param(0, F32, rows * n), UOp.param(1, F32, rows * n), axis(rows, 0)
  def x(r: UOp) -> UOp: return a.index(i * n + r).load()
  j, k, l = axis(n, 1), axis(n, 2, "REDUCE"), axis(n, 3, "REDUCE")
  top = x(k).reduce(Ops.MAX, k)
  return UOp.sink(out.index(i * n + j).store((x(j) - top) * (x(l) - top).reduce(Ops.ADD, l), i, j))

def loops(program: Program) -> int: return sum(u.op is Ops.RANGE and u.arg[1] is AxisType.REDUCE for u in program.uops)

@pytest.mark.parametrize("rows, n", [(3, 32), (3, 48), (2, 64), (5, 128), (1, 250)])
def test_rows_that_are_read_again_stay_in_registers(rows: int, n: int) -> None:
  """Each element is loaded once, and no loop is left."""
  program = run(row_sums(rows, n), tolerance=1e-4)
  loaded = sum(u.dtype.count for u in program.uops if u.op is Ops.LOAD and u.src[0].src[0].op is Ops.PARAM)
  assert loaded * program.lanes == n and not loops(program)

def test_rows_that_lanes_cannot_hold_are_read_again() -> None: assert loops(run(row_sums(1, 4096), tolerance=1e-2)) == 2

def running(rows: int, n: int) -> UOp:
  """Return out[i, j] = sum of a[i, k] for k <= j."""
  out, a = UOp.param(0, F32, rows * n), UOp.param(1, F32, rows * n)
  i, j, k = axis(rows, 0), axis(n, 1), axis(n, 2, "REDUCE")
  inside = k.cast(dtypes.int32) < j.cast(dtypes.int32) + 1
  value = UOp(Ops.WHERE, F32, (inside, a.index(i * n + k).load(), UOp.const(F32, 0)))
  return UOp.sink(out.index(i * n + j).store(value.reduce(Ops.ADD, k), i, j))

def test_a_lane_computes_all_of_a_running_sum() -> None:
  assert opts(running(24, 16))[:3] == (Opt(OptOps.LOCAL, 0, 24), Opt(OptOps.UPCAST, 1, 16), Opt(OptOps.UPCAST, 2, 16))
  assert Opt(OptOps.UPCAST, 1, 64) not in opts(running(8, 64))   # too many registers
  program = run(running(24, 16))
  assert sum(u.op is Ops.ADD and u.dtype is F32 for u in program.uops) <= 16
  for size in ((1, 8), (7, 5), (100, 3)): run(running(*size))

def columns(n: int, *terms: int) -> UOp:
  """Return out[i] = the sum of a[x, y, i] * b[x, i]."""
  (blocks, each), i = terms, axis(n, 0)
  out, a, b = (UOp.param(k, F32, n * size) for k, size in enumerate((1, blocks * each, blocks)))
  x, y = axis(blocks, 1, "REDUCE"), axis(each, 2, "REDUCE")
  value = a.index((x * each + y) * n + i).load() * b.index(x * n + i).load()
  return UOp.sink(out.index(i).store(value.reduce(Ops.ADD, x, y), i))

def test_lanes_share_the_longest_range_of_a_sum() -> None:
  """Quantized weights have a range for blocks, and a short one in each. Eight columns fill a segment of memory."""
  few = replace(LANES, threads=64)
  found = optimize(columns(8, 128, 2), few).arg.opts
  assert found[:2] == (Opt(OptOps.LOCAL, 0, 8), Opt(OptOps.LOCAL, 1, 16)), found
  run(columns(8, 128, 2), few, 1e-5)
  run(columns(8, 96, 3), few, 1e-5)

def test_lanes_fill_waves() -> None:
  assert [lanes_along(n, 8) for n in (1, 5, 32, 33, 40, 100, 37, 4096)] == [1, 5, 32, 11, 20, 25, 32, 32]

@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (2, 37), (9, 64), (40, 3)])
def test_elementwise_kernels(size: tuple[int, int], in_place: bool) -> None:
  program = run(elementwise(*size, in_place))
  assert size == (1, 1) or 1 < program.lanes <= 32

def test_lanes_run_along_memory() -> None:
  assert opts(elementwise(8, 16))[0] == Opt(OptOps.LOCAL, 1, 16)
  assert run(elementwise(9, 16)).grid == 9

@pytest.mark.parametrize("sizes, lanes", [((6, 4, 3), [(2, 3), (1, 4)]), ((6, 1, 3), [(2, 3), (0, 6)]),
                                          ((5, 7, 3), [(2, 3), (1, 7)]),
                                          ((3, 11, 2), [(2, 2), (1, 11)]), ((64, 11, 2), [(2, 2), (1, 11)])])
def test_short_ranges_are_lanes_together(sizes: tuple[int, int, int], lanes: list[tuple[int, int]]) -> None:
  """One of them leaves most lanes of a wave without work. The rows in memory are longer than the range, so that ranges
  are not merged."""
  out, a = UOp.param(0, F32, math.prod(sizes)), UOp.param(1, F32, math.prod(n + 1 for n in sizes))
  i, j, k = (axis(n, position) for position, n in enumerate(sizes))
  kernel = UOp.sink(out.index((i * sizes[1] + j) * sizes[2] + k).store(a.index((i * (sizes[1] + 1) + j) * (sizes[2] + 1)
                                                                               + k).load() * 3, i, j, k))
  assert [o for o in opts(kernel) if o.op is OptOps.LOCAL] == [Opt(OptOps.LOCAL, *lane) for lane in lanes]
  assert run(kernel).lanes == math.prod(n for _, n in lanes)

@pytest.mark.parametrize("channels, shared", [(8, True), (32, False)])
def test_few_results_share_the_sum_where_memory_lies_alike(channels: int, shared: bool) -> None:
  """A sum for each channel of images. Neither channels nor images are adjacent in memory, so only the number of running
  lanes counts."""
  out, a = UOp.param(0, F32, channels), UOp.param(1, F32, 16 * channels * 3)
  c, n, x = axis(channels, 0), axis(16, 1, "REDUCE"), axis(3, 2, "REDUCE")
  kernel = UOp.sink(out.index(c).store(a.index((n * channels + c) * 3 + x).load().reduce(Ops.ADD, n, x), c))
  assert (opts(kernel)[0].axis == 1) == shared
  assert run(kernel, tolerance=1e-5).lanes == (16 if shared else 32)

@pytest.mark.parametrize("sizes, copies",
                         [((3, 3, 3), [(3, 3), (2, 3)]), ((4, 5, 6), [(3, 6)]), ((40, 1, 1), [(1, 10)]),
                          ((7, 2, 8), [(3, 8), (2, 2)])])
def test_short_reductions_are_unrolled(sizes: tuple[int, int, int], copies: list[tuple[int, int]]) -> None:
  """A lane then has several loads in flight; the order of additions stays."""
  n = math.prod(size + 1 for size in sizes)
  out, a = UOp.param(0, F32, 16), UOp.param(1, F32, 16 * n)
  i, (x, y, z) = axis(16, 0), [axis(size, k, "REDUCE") for k, size in enumerate(sizes, 1)]
  place = (x * (sizes[1] + 1) + y) * (sizes[2] + 1) + z
  kernel = UOp.sink(out.index(i).store(a.index(place * 16 + i).load().reduce(Ops.ADD, x, y, z), i))
  assert [o for o in opts(kernel) if o.op is OptOps.UPCAST] == [Opt(OptOps.UPCAST, *copy) for copy in copies]
  run(kernel)

def columns_of(n: int, m: int, rows: int = 1) -> UOp:
  """Return out[j, i] = sum of b[j, x] * a[x, i] over x: a vector, or a few of them, by a matrix."""
  out, a, b = UOp.param(0, F32, rows * n), UOp.param(1, F32, m * n), UOp.param(2, F32, rows * m)
  j, i, x = axis(rows, 0), axis(n, 1), axis(m, 2, "REDUCE")
  return UOp.sink(out.index(j * n + i).store((b.index(j * m + x).load() * a.index(x * n + i).load()).reduce(Ops.ADD, x),
                                             j, i))

@pytest.mark.slow
@pytest.mark.parametrize("n, m, rows, lanes", [(16, 64, 1, [(1, 8), (2, 4)]), (24, 480, 1, [(1, 8), (2, 30)]),
                                               (8, 1024, 2, [(1, 8), (2, 64)]),
                                               (64, 64, 16, [(1, 32)]), (16, 48, 1, [(1, 16)]),
                                               (37, 512, 1, [(1, 32)])])
def test_columns_that_are_few_share_their_sums_too(n: int, m: int, rows: int, lanes: list[tuple[int, int]]) -> None:
  """Adjacent lanes have adjacent columns, other lanes have further terms. Not so where results or terms are enough, or
  where nothing divides."""
  card = replace(LANES, threads=64, matrix=())
  kernel = columns_of(n, m, rows)
  assert [(o.axis, o.amount) for o in optimize(kernel, card).arg.opts if o.op is OptOps.LOCAL][:2] == lanes
  assert run(kernel, card, 1e-5).lanes == math.prod(n for _, n in lanes)

@pytest.mark.parametrize("sizes, copies", [((64, 32), 8), ((60, 32), 4), ((3, 5), 1), ((37, 32), 1)])
def test_what_lanes_read_apart_is_used_up(sizes: tuple[int, int], copies: int) -> None:
  """A transpose: a lane reads 32 contiguous bytes, and stores them to rows that lanes fill."""
  rows, columns = sizes
  out, a = UOp.param(0, F32, rows * columns), UOp.param(1, F32, rows * columns)
  i, j = axis(rows, 0), axis(columns, 1)
  kernel = UOp.sink(out.index(i * columns + j).store(a.index(j * rows + i).load(), i, j))
  assert [o for o in opts(kernel) if o.op is OptOps.UPCAST] == [Opt(OptOps.UPCAST, 0, copies)] * (copies > 1)
  run(kernel)

@pytest.mark.parametrize("sizes, shared", [((1, 3), True), ((4, 10), False)])
def test_a_short_reduction_beside_a_long_one_is_each_lane_s_own(sizes: tuple[int, int], shared: bool) -> None:
  """Rows of 64, minus the largest of a few other elements. 40 others, along no range that lanes divide, would be
  reduced again too often."""
  short = math.prod(sizes)
  out, a, b = UOp.param(0, F32, 4), UOp.param(1, F32, 4 * 64), UOp.param(2, F32, 4 * short)
  i, x, y, z = axis(4, 0), axis(64, 1, "REDUCE"), axis(sizes[0], 2, "REDUCE"), axis(sizes[1], 3, "REDUCE")
  largest = b.index(i * short + z * sizes[0] + y).load().reduce(Ops.MAX, y, z)
  kernel = UOp.sink(out.index(i).store(a.index(i * 64 + x).load().reduce(Ops.ADD, x) - largest, i))
  assert any(o.op is OptOps.LOCAL and o.axis == 1 for o in opts(kernel)) == shared
  run(kernel, tolerance=1e-5)

def test_outer_sums_are_copied_where_inner_ones_are_lanes() -> None:
  """A sum for each channel of images: several images are in flight at once."""
  out, a = UOp.param(0, F32, 2), UOp.param(1, F32, 6 * 2 * 64)
  c, n, x = axis(2, 0), axis(6, 1, "REDUCE"), axis(64, 2, "REDUCE")
  kernel = UOp.sink(out.index(c).store(a.index((n * 2 + c) * 64 + x).load().reduce(Ops.ADD, n, x), c))
  found = [o for o in opts(kernel) if o.op is not OptOps.GRID]
  assert [o.axis for o in found if o.op is OptOps.LOCAL] == [2] and Opt(OptOps.UPCAST, 1, 3) in found, found
  run(kernel, tolerance=1e-5)

def test_a_lane_loads_as_much_as_one_access_has_whatever_is_stored() -> None:
  out, a = UOp.param(0, F32, 2), UOp.param(1, dtypes.float16, 2 * 512)
  i, x = axis(2, 0), axis(512, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(i * 512 + x).load().cast(F32).reduce(Ops.ADD, x), i))
  assert Opt(OptOps.UPCAST, 1, 8) in opts(kernel)
  run(kernel, tolerance=1e-5)

def test_lanes_are_neighbours_where_gates_hold_too() -> None:
  """The halves of a row are rotated. Loads are adjacent along the row, although each has a gate."""
  out, a, b = UOp.param(0, F32, 12 * 16), UOp.param(1, F32, 12 * 16), UOp.param(2, F32, 16)
  i, j = axis(12, 0), axis(16, 1)
  first = j < 8
  value = a.index(i * 16 + j + 8).load(first,
                                       UOp.const(F32, 0)) - a.index(i * 16 + j - 8).load(j >= 8, UOp.const(F32, 0))
  kernel = UOp.sink(out.index(i * 16 + j).store(value * b.index((j < 8).where(j, j - 8)).load(), i, j))
  assert opts(kernel)[0] == Opt(OptOps.LOCAL, 1, 16)
  run(kernel)

def test_reductions_are_not_repeated_by_lanes() -> None:
  """Rows are lanes where a row is reduced. Each lane reduces where nothing is left outside of the reduction."""
  assert opts(softmax(16, 5))[0] == Opt(OptOps.LOCAL, 0, 16)
  run(softmax(16, 5), tolerance=1e-6)
  out, a = UOp.param(0, F32, 12), UOp.param(1, F32, 12)
  i, r = axis(12, 0), axis(12, 1, "REDUCE")
  total = a.index(r).load().reduce(Ops.ADD, r)
  program = run(UOp.sink(out.index(i).store(a.index(i).load() - total * 2, i)))
  assert program.lanes == 12

@pytest.mark.parametrize("n, lanes", [(15, 1), (50, 10), (53, 16), (64, 16)])
def test_a_sum_of_everything_is_shared_if_it_is_long(n: int, lanes: int) -> None:
  out, a, r = UOp.param(0, F32, 1), UOp.param(1, F32, n), axis(n, 0, "REDUCE")
  assert run(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.ADD, r)))).lanes == lanes

def test_local_ranges_become_one_whose_last_is_the_fastest() -> None:
  out = UOp.param(0, dtypes.int32, 24)
  x, y, g = axis(3, 0, "LOCAL"), axis(4, 1, "LOCAL"), axis(2, 2, "GLOBAL")
  store = out.index(g * 12 + x * 4 + y).store((x * 10 + y).cast(dtypes.int32), x, y, g)
  flat = flatten_grid(UOp.sink(store))
  assert [r.arg[1] for r in flat.src[0].src[2:] if r.op is Ops.RANGE] == [AxisType.GLOBAL, AxisType.LOCAL]
  memory = {0: [0] * 24}
  evaluate(lower(UOp.sink(store), LANES, "flat"), memory)
  assert memory[0] == [x * 10 + y for _ in range(2) for x in range(3) for y in range(4)]

def test_a_store_without_lanes_is_done_by_the_first() -> None:
  out, once = UOp.param(0, dtypes.int32, 8), UOp.param(1, dtypes.int32, 1)
  lane = axis(8, 0, "LOCAL")
  one = UOp.const(dtypes.int32, 1)
  kernel = UOp.sink(out.index(lane).store(one, lane), once.index(0).store(once.index(0).load() + 1))
  memory = {0: [0] * 8, 1: [5]}
  evaluate(lower(kernel, LANES, "once"), memory)
  assert memory == {0: [1] * 8, 1: [6]}

def test_only_a_stage_closes_lanes() -> None:
  out, a, lane = UOp.param(0, F32, 1), UOp.param(1, F32, 8), axis(8, 0, "LOCAL")
  with pytest.raises(CompileError, match=r"REDUCE over lanes \[0\]: only a STAGE is, over all lanes"):
    lower(UOp.sink(out.index(0).store(a.index(lane).load().reduce(Ops.ADD, lane))), LANES, "fold")

def test_what_can_be_copied_in_whole_pieces() -> None:
  """Memory is contiguous along one range, and all else is at multiples of 16 bytes. There are no gates or computed
  values."""
  a, i, j = UOp.param(0, dtypes.float16, 1 << 16), axis(64, 0), axis(64, 1)
  assert ([copied_along(a.index(at).load()) for at in (i * 64 + j, j * 64 + i, i * 72 + j + 8, i + j * 8)]
          == [j, i, j, i])
  assert ({copied_along(a.index(at).load()) for at in (i * 65 + j, i * 64 + j + 1, i * 64 + j * 2, i + j, i * 64)}
          == {None})
  gated = UOp(Ops.LOAD, dtypes.float16, (a.index(i), i < 60, UOp.const(dtypes.float16, 0)))
  assert copied_along(gated) is None and copied_along(a.index(i).load() + UOp.const(dtypes.float16, 1)) is None
  assert copied_along(a.index(axis(60, 2)).load()) is None, "the last tile would begin where no piece does"

def test_operands_whose_addresses_are_computed() -> None:
  """A lane loads pieces where memory certainly has them, and single elements elsewhere."""
  a, i, k = UOp.param(1, dtypes.float16, 1 << 14), axis(64, 0), axis(64, 2)
  digits = k // 16 * 1000 + i * 64
  def accesses(factor: UOp, aligned: bool = True) -> int: return computed_operand(factor, i, k, aligned).accesses
  assert [accesses(a.index(digits + k % 16 + shift).load()) for shift in (0, 1)] == [1, 8]
  assert accesses(a.index(digits + k % 16 + 1).load(), False) == 1, "accesses need not be aligned"
  gated = computed_operand(a.index(digits + k % 16).load(i + k % 16 < 60), i, k, True)
  assert gated.accesses == 8 and gated.gated and gated.along_sum and gated.computed and gated.alignment == 2
  assert gated.bytes == 2 << 14
  rows = computed_operand(a.index(k * 64 + i // 12 * 196 + i % 12).load(), i, k, True)
  assert not rows.along_sum and rows.accesses == 2 and rows.period == MOST_PERIOD, "along the sum nothing is computed"

def test_periods_of_computed_addresses() -> None:
  i, j = axis(64, 0), axis(96, 1)
  def period(index: UOp, gate: UOp | None = None) -> int:
    place = UOp.param(1, dtypes.float16, 1 << 14).index(index)
    return period_along(place.load() if gate is None else place.load(gate), i)
  assert period(i * 96 + j) == period(i * 96 + j % 7) == period(i // 1024 + j) == MOST_PERIOD
  assert period(i // 16 * 5 + i % 16) == 16 and period(i * 2 // 16) == 8 and period(i // 3 % 5 + i % 3) == 1
  assert period((i * 16 + j) // 32) == 1, "the other range shifts blocks"
  assert period((i + 8) // 16) == 1 and period((i + 32) // 16) == 16
  assert period(i, i // 16 + j < 50) == 16 and period(i, i + j < 50) == 1, "a condition of each"

@pytest.mark.parametrize("columns, exchanges, lanes", [(32, True, 8), (32, False, 32), (24, True, 8), (64, True, 32)])
def test_lanes_that_exchange_share_a_short_row_in_one_wave(columns: int, exchanges: bool, lanes: int) -> None:
  """A wave of 8 loads 32 elements at once."""
  out, a = UOp.param(0, F32, 2), UOp.param(1, F32, 2 * columns)
  i, x = axis(2, 0), axis(columns, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(Ops.ADD, x), i))
  assert run(kernel, replace(LANES, threads=64, exchanges=exchanges)).lanes == lanes

@pytest.mark.parametrize("count, columns, lanes", [(1, 200, 25), (40, 200, 10), (1, 96, 24), (1, 48, 24)])
def test_few_rows_are_loaded_by_as_many_lanes_as_have_neighbours(count: int, columns: int, lanes: int) -> None:
  """8 lanes would be a whole wave, but not load 4 elements at once each. With many rows other waves have work
  meanwhile."""
  out, a = UOp.param(0, F32, count), UOp.param(1, F32, count * columns)
  i, x = axis(count, 0), axis(columns, 1, "REDUCE")
  kernel = UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(Ops.ADD, x), i))
  assert run(kernel, replace(LANES, threads=16)).lanes == lanes

def test_sums_of_columns_for_a_number_of_rows_that_is_not_known() -> None:
  """The number of results is unknown, so lanes are along the columns only."""
  out, a = UOp.param(0, F32, 16 * 64), UOp.param(1, F32, 16 * 512 * 64)
  i, j, x = axis(UOp.variable("n", 1, 16), 0), axis(64, 1), axis(512, 2, "REDUCE")
  kernel = UOp.sink(out.index(i * 64 + j).store(a.index((i * 512 + x) * 64 + j).load().reduce(Ops.ADD, x), i, j))
  assert [o.axis for o in opts(kernel) if o.op is OptOps.LOCAL] == [1]

def test_by_how_many_accesses_pieces_are_copied() -> None:
  half = dtypes.float16
  def accesses(index: UOp, end: int = 0, transposes: bool = True) -> int | None:
    place = UOp.param(1, half, 1 << 20).index(index)
    factor = UOp(Ops.LOAD, half, (place, k < end, UOp.const(half, 0))) if end else place.load()
    found = copied_operand(factor, r, k, transposes, True)
    return None if found is None else found.accesses
  r, k = axis(64, 0), axis(128, 1, "REDUCE")
  assert [accesses(r * pitch + k) for pitch in (1024, 1004, 1002, 1001)] == [1, 2, 4, 8]
  assert [accesses(r * 1024 + k, end) for end in (120, 124, 121)] == [1, 2, 8] and accesses(k * 1024 + r, 121) == 1
  assert accesses(k * 1001 + r) == 8
  assert accesses(k * 1001 + r, transposes=False) is None, "across the sum, only where the unit transposes"
  shifted = copied_operand(UOp.param(1, half, 1 << 20).index(r * 1024 + k + 4).load(), r, k, True, True)
  assert shifted is not None and shifted.alignment == 8, "a line begins 8 bytes after a multiple of 16"
  assert accesses(r // 3 * 8 + k) is None and accesses(r * 2 + k * 128) is None
