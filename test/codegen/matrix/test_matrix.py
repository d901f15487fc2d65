"""Products on the matrix unit: the Program computes the same as the kernel, its operands staged by all lanes."""
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, count
from test.codegen.plan.test_workgroup import F32, LANES, opts, run
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import Layout, Matrix, Scattered, by_columns
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program

def matmul(m: int, k: int, n: int, dtype: DType = F32, batch: int = 1, swapped: bool = False) -> UOp:
  """Return out[b, i, j] = max(sum over x of a[b, i, x] * w[b, x, j], 0) + 1."""
  out, a, w = UOp.param(0, dtype, batch * m * n), UOp.param(1, dtype, batch * m * k), UOp.param(2, dtype, batch * k * n)
  b, i, j, x = axis(batch, 0), axis(m, 1), axis(n, 2), axis(k, 3, "REDUCE")
  left, right = a.index((b * m + i) * k + x).load(), w.index((b * k + x) * n + j).load()
  total = (right * left if swapped else left * right).reduce(Ops.ADD, x)
  zero, one = UOp.const(dtype, 0), UOp.const(dtype, 1)
  return UOp.sink(out.index((b * m + i) * n + j).store(UOp(Ops.MAX, dtype, (total, zero)) + one, b, i, j))

@pytest.mark.parametrize("size", [(4, 4, 8), (8, 16, 16), (16, 8, 32), (5, 4, 8), (8, 6, 8), (9, 13, 19), (12, 32, 8)])
def test_products(size: tuple[int, int, int]) -> None:
  program = run(matmul(*size))
  assert count(program, Ops.MMA) >= 1 and count(program, Ops.DEFINE_LOCAL) == 2 and count(program, Ops.BARRIER) >= 1
  assert program.lanes % 8 == 0

@pytest.mark.parametrize("swapped", [False, True])
def test_either_factor_may_have_the_rows(swapped: bool) -> None:
  assert count(run(matmul(8, 8, 8, swapped=swapped)), Ops.MMA) >= 1

def test_batches_are_the_grid() -> None:
  program = run(matmul(4, 8, 8, batch=3))
  assert count(program, Ops.MMA) >= 1 and program.grid == 3

def test_four_waves_share_what_they_stage() -> None:
  kernel = matmul(16, 16, 32)
  units = [o for o in opts(kernel) if o.op is OptOps.MATRIX]
  assert [o.amount for o in units] == [4, 8, 4]
  waves = tuple(Opt(OptOps.LOCAL, o.axis, 2) for o in units[:2])
  chosen = (*units, Opt(OptOps.UPCAST, units[2].axis, 4), *waves)
  assert run(kernel.replace(arg=KernelInfo(opts=chosen))).lanes == 32

def test_other_shapes_and_types_of_the_unit() -> None:
  half = by_columns(2, 4, 2, dtypes.float16, F32, 4)
  assert count(run(matmul(6, 6, 12), replace(LANES, lanes=4, matrix=(half, by_columns(2, 4, 2, F32, F32, 4)))),
               Ops.MMA) >= 1
  assert count(run(matmul(8, 8, 8, dtypes.float64)), Ops.MMA) == 0

@pytest.mark.parametrize("left, right, fits", [
  (dtypes.fp8e4m3, dtypes.fp8e5m2, True), (dtypes.int8, dtypes.float16, True), (dtypes.bool, dtypes.fp8e4m3, True),
  (dtypes.int16, dtypes.float16, False), (dtypes.bfloat16, dtypes.float16, False)])
@pytest.mark.parametrize("steps", (8, 7))
def test_factors_of_narrower_types(left: DType, right: DType, fits: bool, steps: int) -> None:
  """They are converted where the unit's type has all of their numbers, whatever they are padded with."""
  out, a, w = UOp.param(0, F32, 16 * 16), UOp.param(1, left, 16 * steps), UOp.param(2, right, steps * 16)
  i, j, x = axis(16, 0), axis(16, 1), axis(steps, 2, "REDUCE")
  terms = a.index(i * steps + x).load().cast(F32) * w.index(x * 16 + j).load().cast(F32)
  unit = replace(LANES, matrix=(by_columns(4, 8, 4, dtypes.float16, F32, 8),))
  program = run(UOp.sink(out.index(i * 16 + j).store(terms.reduce(Ops.ADD, x), i, j)), unit)
  assert (count(program, Ops.MMA) >= 1) == fits

# Layouts of real units: all have 8 lanes here, and the digits of a real one.
SHARED = {
  "lanes have copies of the factors, rows go back and forth": by_columns(4, 4, 4, F32, F32, 8),
  "steps are split among lanes, rows in halves": Matrix(
    4, 4, 4, F32, F32, 8, Layout((("row", 4, 1), ("step", 2, 2)), (("step", 2, 1),)),
    Layout((("column", 4, 1), ("step", 2, 2)), (("step", 2, 1),)),
    Layout((("column", 4, 1), ("row", 2, 2)), (("row", 2, 1),))),
  "rows in groups": Matrix(
    8, 4, 4, F32, F32, 8, Layout((("row", 8, 1),), (("step", 4, 1),)),
    Layout((("column", 4, 1), ("step", 2, 2)), (("step", 2, 1),)),
    Layout((("column", 4, 1), ("row", 2, 2)), (("row", 2, 1), ("row", 2, 4)))),
}

@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("size", [(8, 8, 8), (16, 12, 16), (9, 8, 13)])
def test_any_layout(size: tuple[int, int, int], name: str) -> None:
  program = run(matmul(*size), replace(LANES, matrix=(SHARED[name],)))
  assert count(program, Ops.MMA) >= 1 and program.lanes % 8 == 0

# A lane has adjacent columns of a row of the result, so adjacent lanes do not have adjacent columns.
APART = Matrix(16, 16, 4, F32, F32, 32, Layout((("row", 16, 1), ("", 2, 0)), (("step", 4, 1),)),
               Layout((("column", 2, 8), ("column", 8, 1), ("", 2, 0)), (("step", 4, 1),)),
               Layout((("row", 16, 1), ("column", 2, 8)), (("column", 8, 1),)))

def plain(m: int, k: int, n: int, result: DType = F32, pitch: int = 0) -> UOp:
  """Return out[i, j] = sum over x of a[i, x] * w[x, j], rows of the result `pitch` apart."""
  out, a, w = UOp.param(0, result, m * (pitch or n)), UOp.param(1, F32, m * k), UOp.param(2, F32, k * n)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  total = (a.index(i * k + x).load() * w.index(x * n + j).load()).reduce(Ops.ADD, x)
  return UOp.sink(out.index(i * (pitch or n) + j).store(total.cast(result), i, j))

@pytest.mark.parametrize("result, pitch, lanes", [(F32, 0, 4), (dtypes.float16, 0, 8), (dtypes.float16, 20, 1),
                                                  (dtypes.int32, 0, 1), (F32, 18, 1)])
def test_neighbours_are_stored_at_once_where_that_is_certain(result: DType, pitch: int, lanes: int) -> None:
  kernel = plain(16, 8, 16, result, pitch)
  units = replace(LANES, lanes=32, matrix=(APART,))
  assert count(run(kernel, units), Ops.MMA) >= 1
  optimized = optimize(kernel, units)
  assert {s.arg.length if isinstance(s.arg, Scattered) else s.src[1].dtype.count for s in optimized.src} == {lanes}

def test_factors_that_are_widened_for_the_sum() -> None:
  """The unit computes products of float16 that are summed in float32, since they are exact."""
  unit = by_columns(2, 4, 2, dtypes.float16, F32, 4)
  out, a, w = UOp.param(0, F32, 16), UOp.param(1, dtypes.float16, 16), UOp.param(2, dtypes.float16, 16)
  i, j, x = axis(4, 1), axis(4, 2), axis(4, 3, "REDUCE")
  total = (a.index(i * 4 + x).load().cast(F32) * w.index(x * 4 + j).load().cast(F32)).reduce(Ops.ADD, x)
  program = run(UOp.sink(out.index(i * 4 + j).store(total, i, j)), replace(LANES, lanes=4, matrix=(unit,)))
  assert count(program, Ops.MMA) >= 1

@pytest.mark.parametrize("size", [(1, 8, 8), (8, 2, 8), (8, 8, 7)])
def test_small_products_are_done_without_it(size: tuple[int, int, int]) -> None:
  assert count(run(matmul(*size)), Ops.MMA) == 0

def test_sums_of_other_things_are_done_without_it() -> None:
  out, a = UOp.param(0, F32, 64), UOp.param(1, F32, 64)
  i, j, x = axis(8, 0), axis(8, 1), axis(8, 2, "REDUCE")
  square = a.index(i * 8 + x).load() * a.index(i * 8 + x).load()
  assert count(run(UOp.sink(out.index(i * 8 + j).store(square.reduce(Ops.ADD, x), i, j))), Ops.MMA) == 0
  largest = (a.index(i * 8 + x).load() * a.index(j * 8 + x).load()).reduce(Ops.MAX, x)
  assert count(run(UOp.sink(out.index(i * 8 + j).store(largest, i, j))), Ops.MMA) == 0

def test_a_convolution_is_a_product_too() -> None:
  """out[c, y] = sum over d, t of w[c, d, t] * a[d, y + t], with a gate at the border."""
  out, w, a = UOp.param(0, F32, 4 * 16), UOp.param(1, F32, 4 * 8 * 3), UOp.param(2, F32, 8 * 16)
  c, y, t, d = axis(4, 0), axis(16, 1), axis(3, 2, "REDUCE"), axis(8, 3, "REDUCE")
  near = y + t - 1
  value = a.index(d * 16 + near).load((near >= 0) & (near < 16))
  total = (w.index((c * 8 + d) * 3 + t).load() * value).reduce(Ops.ADD, t, d)
  assert count(run(UOp.sink(out.index(c * 16 + y).store(total, c, y))), Ops.MMA) >= 1

def test_lanes_must_meet_at_the_same_operation() -> None:
  """Half of the lanes are at one MMA, half at another."""
  lane = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 2),), (0, AxisType.LOCAL))
  zero = UOp.const(F32, 0.0)
  vector = UOp(Ops.VECTORIZE, F32.vec(2), (zero, zero))
  first = UOp(Ops.IF, dtypes.void, (lane < 1,))
  second = UOp(Ops.IF, dtypes.void, ((lane < 1).ne(True),))
  def body(condition: UOp, tag: int) -> list[UOp]:
    product = UOp(Ops.MMA, F32.vec(2), (vector, vector, vector), by_columns(2, 2, 2, F32, F32, 2), tag)
    return [condition, product, UOp(Ops.ENDIF, dtypes.void, (condition,))]
  inside = [*lane.src, lane, *[u for u in (*first.src[0].toposort(), *second.src[0].toposort(), zero, vector)
                               if u not in (lane, *lane.src)]]
  uops = list(dict.fromkeys([*inside, *body(first, 1), *body(second, 2), UOp(Ops.END, dtypes.void, (lane,))]))
  with pytest.raises(VerifyError, match="reach different operations that lanes do together"):
    evaluate(Program("apart", tuple(uops)), {})

@pytest.mark.parametrize("size, products", [((8, 8, 16), True), ((12, 8, 16), True), ((9, 8, 16), False),
                                            ((8, 8, 11), False)])
def test_what_is_added_to_in_place(size: tuple[int, int, int], products: bool) -> None:
  """No element may be computed twice: shapes divide the sizes, or lanes compute alone.

  This also holds if only another store is in place.
  """
  m, k, n = size
  for other in (False, True):
    out, a, w, more = UOp.param(0, F32, m * n), UOp.param(1, F32, m * k), UOp.param(2, F32,
                                                                                    k * n), UOp.param(3, F32, m * n)
    i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
    total = (a.index(i * k + x).load() * w.index(x * n + j).load()).reduce(Ops.ADD, x)
    at, beside = out.index(i * n + j), more.index(i * n + j)
    second = [beside.store(beside.load() + total, i, j)] if other else []
    program = run(UOp.sink(at.store(total if other else at.load() + total, i, j), *second))
    assert (count(program, Ops.MMA) > 0) is products
