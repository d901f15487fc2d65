"""Loads one iteration early: the loops, the loads, and equal results of the Program."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis, compare, count, data_for
from test.codegen.matrix.test_matrix import matmul
from test.codegen.plan.test_workgroup import F32, LANES
from tinyhw.codegen.lower.linearize import linearize
from tinyhw.codegen.lower.pipeline import bodies_of, loads_of, pipeline, simple, without_unused
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import PASSES, lower
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

INT = dtypes.int32

def staged(n: int = 4, in_place: bool = False, gated: bool = False, gathered: bool = False) -> UOp:
  """Return out[lane] = sum over r of the element that lane 7 - lane has read of row r. Each row fills shared memory
  once."""
  out, a, index = UOp.param(0, F32, 8), UOp.param(1, F32, 8 * n), UOp.param(2, INT, n)
  lane, r = axis(8, 0, "LOCAL"), axis(n, 1, "REDUCE")
  row = index.index(r).load().cast(dtypes.weakint) % n if gathered else r
  place = a.index(row * 8 + lane)
  value = place.load((r + lane) < n) if gated else place.load()
  if in_place: value = out.index(lane).load() + value
  local = UOp(Ops.DEFINE_LOCAL, F32, (), (0, 8))
  filled = UOp(Ops.AFTER, F32, (local, UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, F32, (local, lane)), value, lane))))
  total = UOp(Ops.LOAD, F32, (UOp(Ops.INDEX, F32, (filled, lane * -1 + 7)),)).reduce(Ops.ADD, r)
  return UOp.sink(out.index(lane).store(total, lane))

def lowered(kernel: UOp, optimized: UOp | None = None) -> Program:
  """Return the kernel lowered, verified and compared."""
  expected, found = data_for(kernel), data_for(kernel)
  program = lower(kernel if optimized is None else optimized, LANES, "test")
  verify(program, 1)
  evaluate(kernel, expected)
  evaluate(program, found)
  compare("program", expected, found, 0.0)
  return program

def loads_behind(program: Program) -> list[int]:
  """Return, for each loop with barriers, the number of loads of buffers before and after its last barrier."""
  found: list[int] = []
  uops = program.uops
  start = next(k for k, u in enumerate(uops) if u.op is Ops.RANGE and u.arg[1] is AxisType.REDUCE)
  end = next(k for k, u in enumerate(uops) if u.op is Ops.END and u.src[0] is uops[start])
  last = max(k for k in range(start, end) if uops[k].op is Ops.BARRIER)
  for part in (uops[start:last], uops[last:end]):
    found.append(sum(u.op is Ops.LOAD and u.src[0].src[0].op is Ops.PARAM for u in part))
  return found

@pytest.mark.parametrize("gated", (False, True))
@pytest.mark.parametrize("n", (2, 3, 8))
def test_loads_move_behind_the_barrier(n: int, gated: bool) -> None:
  program = lowered(staged(n, gated=gated))
  assert loads_behind(program) == [0, 1] and count(program, Ops.LOAD) == 3 and count(program, Ops.ACC) == 2

def test_what_an_address_needs_moves_along() -> None:
  program = lowered(staged(5, gathered=True))
  assert loads_behind(program) == [0, 2] and count(program, Ops.ACC) == 2

def test_what_the_kernel_writes_stays() -> None:
  """A load of the buffer that the kernel writes does not move; others move."""
  kernel = staged(4, in_place=True)
  uops = linearize(kernel_before(kernel), True)
  body = bodies_of(uops)
  assert len(body) == 1 and [u.src[0].src[0].arg[0] for u in loads_of(uops, body[0], frozenset({0}))] == [1]
  assert loads_of(uops, body[0], frozenset({0, 1})) == []

def kernel_before(kernel: UOp) -> UOp:
  """Return a kernel through all passes before linearize."""
  for step in PASSES: kernel = step.run(kernel, LANES)
  return kernel

def test_one_iteration_or_perhaps_none_is_left_alone() -> None:
  for end in (1, UOp.variable("n", 0, 4)):
    lane, r = axis(8, 0, "LOCAL"), UOp.range(end, 1, AxisType.REDUCE)
    out, a = UOp.param(0, F32, 8), UOp.param(1, F32, 32)
    local = UOp(Ops.DEFINE_LOCAL, F32, (), (0, 8))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, F32, (local, lane)), a.index(r * 8 + lane).load(), lane))
    total = UOp(Ops.LOAD, F32, (UOp(Ops.INDEX, F32, (UOp(Ops.AFTER, F32, (local, store)), lane)),)).reduce(Ops.ADD, r)
    uops = linearize(kernel_before(UOp.sink(out.index(lane).store(total, lane))), True)
    assert bodies_of(uops) == [] and pipeline(uops, frozenset({0})) is uops

@pytest.mark.parametrize("size", [(8, 96, 16), (16, 160, 32), (9, 77, 19)])
def test_products(size: tuple[int, int, int]) -> None:
  """The operands of the next staging are loaded while this one's products are computed."""
  program = lowered(matmul(*size), optimize(matmul(*size), LANES))
  assert loads_behind(program)[0] == 0 and loads_behind(program)[1] > 0
  values = [u for u in program.uops if u.op in (Ops.ADD, Ops.MUL, Ops.INDEX)]
  assert all(any(u in v.src for v in program.uops) for u in values), "no address is left that nothing wants"

def test_sums_and_products_with_zero() -> None:
  x, zero = UOp.variable("x", 0, 9), UOp.const(dtypes.weakint, 0)
  for op, want in ((Ops.ADD, x), (Ops.MUL, zero), (Ops.AND, zero)):
    assert simple(UOp(op, dtypes.weakint, (x, zero))) is want
  assert simple(UOp(Ops.IDIV, dtypes.weakint, (zero, x))) is zero
  plain = UOp(Ops.SUB, dtypes.weakint, (x, zero))
  assert simple(plain) is plain

def test_values_that_nothing_wants_go() -> None:
  a, one = UOp.param(0, INT, 4), UOp.const(INT, 1)
  unused = one + one
  place = a.index(one)
  store = place.store(one)
  assert without_unused([a, one, unused, place, store]) == [a, one, place, store]
