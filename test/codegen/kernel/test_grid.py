"""The flat grid: several GLOBAL ranges, stores that lack one, ranges of one iteration."""
from test.codegen.kernels import AVX2, axis, check
from tinyhw.codegen.kernel.grid import FLAT, flatten_grid, grid_size, ranges_of, values_of
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

def test_global_ranges_become_one() -> None:
  out, a = UOp.param(0, dtypes.int32, 60), UOp.param(1, dtypes.int32, 60)
  x, y, z = axis(3, 0, "GLOBAL"), axis(4, 1, "GLOBAL"), axis(5, 2, "GLOBAL")
  kernel = UOp.sink(out.index((z * 3 + x) * 4 + y).store(a.index((x * 4 + y) * 5 + z).load(), x, y, z))
  program = check(kernel, AVX2, passes=True)
  assert program.grid == 60 and [u.arg for u in program.uops if u.op is Ops.RANGE] == [(0, AxisType.GLOBAL)]

def test_a_store_that_lacks_a_global_range_is_done_once() -> None:
  out, total = UOp.param(0, dtypes.int32, 12), UOp.param(1, dtypes.int32, 3)
  x, y = axis(3, 0, "GLOBAL"), axis(4, 1, "GLOBAL")
  kernel = UOp.sink(out.index(x * 4 + y).store(y.cast(dtypes.int32), x, y),
                    total.index(x).store(x.cast(dtypes.int32) + 1, x))
  program = lower(kernel, AVX2, "both")
  for item in range(12):  # each element is written by one work item only
    data = {0: [-1] * 12, 1: [-1] * 3}
    evaluate(program, data, first=item, last=item + 1)
    assert sum(v != -1 for v in data[0]) == 1 and sum(v != -1 for v in data[1]) == (item % 4 == 0)

def test_memory_that_one_work_item_writes_is_read_by_no_other() -> None:
  """Also in another store's value; memory that nothing writes is read by all."""
  out, total, a = (UOp.param(k, dtypes.int32, n) for k, n in enumerate((12, 3, 3)))
  x, y = axis(3, 0), axis(4, 1, "LOCAL")
  value = total.index(x).load() + a.index(x).load()
  kernel = UOp.sink(out.index(x * 4 + y).store(y.cast(dtypes.int32), x, y), total.index(x).store(value, x))
  loads = [u for u in flatten_grid(kernel).toposort() if u.op is Ops.LOAD]
  assert {(u.src[0].src[0].arg[0], len(u.src)) for u in loads} == {(1, 3), (2, 1)}
  check(kernel, AVX2, passes=True)

def test_ranges_of_one_iteration_vanish() -> None:
  out, a = UOp.param(0, dtypes.int32, 4), UOp.param(1, dtypes.int32, 4)
  g, r, k, v = axis(1, 0, "GLOBAL"), axis(4, 1), axis(1, 2, "REDUCE"), axis(1, 3, "VECTOR")
  kernel = UOp.sink(out.index(g * 4 + r + v).store(a.index(r + k).load().reduce(Ops.ADD, k), g, r, v))
  flat = flatten_grid(kernel)
  assert [u.arg[0] for u in flat.toposort() if u.op is Ops.RANGE] == [1] and not any(u.op is Ops.REDUCE
                                                                                     for u in flat.toposort())
  assert grid_size(flat) == 1
  check(kernel, AVX2, passes=True)

def test_a_symbolic_grid() -> None:
  n = UOp.variable("n", 1, 8)
  out = UOp.param(0, dtypes.int32, 24)
  g, h = axis(n, 0, "GLOBAL"), axis(3, 1, "GLOBAL")
  flat = flatten_grid(UOp.sink(out.index(g * 3 + h).store(h.cast(dtypes.int32), g, h)))
  size = grid_size(flat)
  assert isinstance(size, UOp) and size.vmax == 24 and ranges_of(flat.src[0])[0].arg == (FLAT, AxisType.GLOBAL)

def test_values_and_ranges() -> None:
  r = axis(4, 0)
  place = UOp.param(0, dtypes.bool, 4).index(r)
  gate, value = r < 2, UOp.const(dtypes.bool, True)
  assert values_of(place.store(value, r, gate=gate)) == (place, value,
                                                         gate) and ranges_of(place.store(value, r, gate=gate)) == (r,)
  assert values_of(place.store(value, r)) == (place, value) and ranges_of(value.reduce(Ops.ADD, r)) == (r,)
