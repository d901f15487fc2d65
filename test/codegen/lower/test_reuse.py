"""An array has the memory of another one that is not read any more, and no result changes."""
from __future__ import annotations

import pytest

from test.codegen.kernels import AVX2, axis, check, count
from tinyhw.codegen.lower.reuse import overlaps, reuse_arrays
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def staged(value: UOp, r: UOp, number: int) -> UOp: return UOp(Ops.STAGE, value.dtype, (value, r), (number,))

def read(stage: UOp, at: UOp) -> UOp: return stage.index(at).load()

def softmax(rows: int, n: int, dtype: DType = F32, shift: int = 0, again: bool = False, outside: bool = False) -> UOp:
  """Return out[i, j] = f(x[i, j]) / sum of f(x[i, k]), where f is exp(x - largest), with an array for x and one for f.

  shift: each power is made of an element this much later. again: results need the first array, too. outside: it is the
  same for all rows.
  """
  out, x = UOp.param(0, dtype, rows * n), UOp.param(1, F32, rows * n)
  i, j = axis(rows, 0), axis(n, 1)
  s, m, e, k = axis(n, 5, "STAGE"), axis(n, 2, "REDUCE"), axis(n, 4, "STAGE"), axis(n, 3, "REDUCE")
  first = staged(x.index(s if outside else i * n + s).load(), s, 0)
  power = read(first, (e + shift) % n if shift else e) * 0.1 - read(first, m).reduce(Ops.MAX, m) * 0.1
  if outside: power = power * x.index(i * n).load()
  second = staged(power.cast(dtype).alu(Ops.EXP), e, 1)
  result = read(second, j) / read(second, k).reduce(Ops.ADD, k)
  if again: result = result + read(first, j)
  return UOp.sink(out.index(i * n + j).store(result, i, j))

def arrays(kernel: UOp, *opts: Opt) -> int:
  """Return the number of arrays in the Program of a kernel, whose results are the kernel's."""
  return count(check(with_opts(kernel, opts), AVX2, tolerance=1e-5), Ops.DEFINE_LOCAL)

def test_powers_take_the_memory_of_elements() -> None: assert arrays(softmax(3, 20)) == 1

@pytest.mark.parametrize("opts", (
  (Opt(OptOps.UPCAST, 0, 3),),
  (Opt(OptOps.VECTOR, 0, 4), Opt(OptOps.UPCAST, 4, 5), Opt(OptOps.UPCAST, 2, 2)),
  (Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.VECTOR, 2, 4)),
  (Opt(OptOps.VECTOR, 0, 8), Opt(OptOps.UPCAST, 3, 4), Opt(OptOps.GRID, 0))), ids=str)
def test_tiles_share_it_too(opts: tuple[Opt, ...]) -> None: assert arrays(softmax(12, 20), *opts) == 1

@pytest.mark.parametrize("kernel, opts", (
  (softmax(3, 20, dtypes.float64), ()), (softmax(3, 20, shift=1), ()), (softmax(3, 20, again=True), ()),
  (softmax(3, 20, outside=True), ()), (softmax(3, 20), (Opt(OptOps.UPCAST, 4, 3),))),
  ids=("another type", "another element", "read later", "read by the next row", "a tile that overlaps"))
def test_arrays_that_are_still_needed_stay(kernel: UOp, opts: tuple[Opt, ...]) -> None:
  assert arrays(kernel, *opts) == 2

def test_an_array_that_all_loops_have_read_is_free() -> None:
  """Nothing of the first array is read in the loop that fills the third one."""
  n = 12
  out, x, y = UOp.param(0, F32, 4), UOp.param(1, F32, 4 * n), UOp.param(2, F32, 4 * n)
  i = axis(4, 0)
  s, t, k, m = axis(n, 1, "STAGE"), axis(n, 2, "STAGE"), axis(n, 3, "REDUCE"), axis(n, 4, "REDUCE")
  total = read(staged(x.index(i * n + s).load(), s, 0), k).reduce(Ops.ADD, k)
  second = staged(y.index(i * n + t).load() * total, t, 1)
  assert arrays(UOp.sink(out.index(i).store(read(second, m).reduce(Ops.MAX, m), i))) == 1

def test_an_array_that_outlives_the_iteration_of_another_stays() -> None:
  """The second array is read after the loop in which each iteration fills the first one."""
  first, second = (UOp(Ops.DEFINE_LOCAL, F32, (), (k, 8)) for k in range(2))
  def loop(k: int) -> tuple[UOp, UOp]:
    r = UOp(Ops.RANGE, dtypes.int32, (UOp.const(dtypes.int32, 8),), (k, AxisType.LOOP))
    return r, UOp(Ops.END, dtypes.void, (r,))
  (i, end), (s, s_end), (t, t_end), (k, k_end) = map(loop, range(4))
  load = first.index(s).load()
  uops = [first, second, i, s, first.index(s).store(UOp.const(F32, 1.0)), s_end, t, load, t_end,
          k, second.index(k).store(load), k_end, end, second.index(UOp.const(dtypes.int32, 0)).load()]
  assert reuse_arrays(uops) is uops
  inside = [*uops[:-2], uops[-1], end]
  assert reuse_arrays(inside) is not inside

def test_lists_with_few_arrays_stay() -> None:
  uops = [UOp(Ops.DEFINE_LOCAL, F32, (), (0, 8))]
  assert reuse_arrays(uops) is uops

def test_elements_that_a_loop_may_name_twice() -> None:
  r = axis(4, 0)
  assert not overlaps(r * 3 + 1) and overlaps((r * -3).alu(Ops.MAX, r.const_like(-7)))
