"""Shared arrays: filled once for each point of the outer loops, with gates applied, for every kind of range."""
import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, agree, axis, check, count, staged_matmul
from tinyhw.codegen.kernel.grid import flatten_grid
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.stage import position_of, size_of_stage, stage_values
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

F32 = dtypes.float32

def test_a_panel_is_filled_outside_of_the_loop_that_reads_it() -> None:
  program = check(staged_matmul(4, 16, 5), AVX2, passes=True)
  assert program.local_bytes == (5 * 8 * 4 + 63) // 64 * 64
  kinds = [u.op for u in program.uops if u.op in (Ops.RANGE, Ops.END, Ops.STORE)]
  assert kinds[:4] == [Ops.RANGE, Ops.RANGE, Ops.STORE, Ops.END] and count(program, Ops.STORE) == 3

def test_padding_is_applied_while_staging() -> None:
  out, a = UOp.param(0, F32, 8), UOp.param(1, F32, 8)
  r, k, s = axis(8, 0), axis(3, 1, "REDUCE"), axis(10, 2, "STAGE")
  at = s - 1
  padded = UOp(Ops.STAGE, F32, (a.index(at).load((at > -1) & (at < 8)), s), (0,))
  program = check(UOp.sink(out.index(r).store(padded.index(r + k).load().reduce(Ops.ADD, k), r)), AVX2, passes=True)
  assert sum(u.op is Ops.LOAD and len(u.src) == 3 for u in program.uops) == 1

@pytest.mark.parametrize("kind", ("UPCAST", "VECTOR", "LOOP"))
def test_tiles_outside_of_a_stage_become_axes_of_the_array(kind: str) -> None:
  out, a = UOp.param(0, F32, 12), UOp.param(1, F32, 12)
  g, t, s = axis(3, 0), axis(4, 1, kind), axis(4, 2, "STAGE")
  local = UOp(Ops.STAGE, F32, (a.index((g * 4 + t + s) % 12).load() * 2, s), (0,))
  kernel = UOp.sink(out.index(g * 4 + t).store(local.index(3 - t).load(), g, t))
  staged = stage_values(flatten_grid(kernel))
  assert [u.arg[1] for u in staged.toposort() if u.op is Ops.DEFINE_LOCAL] == [4 if kind == "LOOP" else 16]
  for target in ALL_TARGETS.values(): check(kernel, target, passes=True)

@pytest.mark.parametrize("kind", ("UPCAST", "VECTOR", "STAGE"))
def test_a_stage_may_have_tiles_of_its_own(kind: str) -> None:
  out, a = UOp.param(0, F32, 8), UOp.param(1, F32, 8)
  r, s, t = axis(8, 0), axis(2, 1, "STAGE"), axis(4, 2, kind)
  local = UOp(Ops.STAGE, F32, (a.index(s * 4 + t).load() + 1, s, t), (0,))
  for target in ALL_TARGETS.values():
    check(UOp.sink(out.index(r).store(local.index(7 - r).load(), r)), target, passes=True)

def test_a_stage_of_a_stage() -> None:
  out, a = UOp.param(0, F32, 6), UOp.param(1, F32, 6)
  r, s, t = axis(6, 0), axis(6, 1, "STAGE"), axis(6, 2, "STAGE")
  inner = UOp(Ops.STAGE, F32, (a.index(t).load() * 3, t), (0,))
  outer = UOp(Ops.STAGE, F32, (inner.index(5 - s).load() + 1, s), (1,))
  program = check(UOp.sink(out.index(r).store(outer.index(r).load() + inner.index(r).load(), r)), AVX2)
  assert count(program, Ops.DEFINE_LOCAL) == 2 and count(program, Ops.RANGE) == 3

def test_a_stage_of_one_element_is_its_value() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 4)
  r, s = axis(4, 0), axis(1, 1, "STAGE")
  local = UOp(Ops.STAGE, F32, (a.index(r).load(), s), (0,))
  assert count(check(UOp.sink(out.index(r).store(local.index(0).load(), r)), AVX2), Ops.DEFINE_LOCAL) == 0

def test_positions_are_row_major() -> None:
  r, s = axis(3, 0), axis(5, 1)
  assert position_of([r, s]).render(simplify=False) == (r * 5 + s).render(simplify=False)

def test_an_array_that_no_memory_holds_is_refused() -> None:
  s = axis(UOp.variable("n", 1, 1 << 41), 0, "STAGE")
  local = UOp(Ops.STAGE, F32, (UOp.const(F32, 1.0), s), (0,))
  with pytest.raises(CompileError, match="give its ranges ends that are bounded"):
    stage_values(UOp.sink(UOp.param(0, F32, 1).index(0).store(local.index(0).load())))

@pytest.mark.parametrize("amount", (2, 3, 4, 5))
def test_the_last_step_of_a_tile_overlaps_others_in_the_array(amount: int) -> None:
  """An element has the position of its index, not that of its iteration."""
  out, a = UOp.param(0, F32, 14), UOp.param(1, F32, 14)
  i, r, s = axis(2, 0), axis(7, 1), axis(7, 2, "STAGE")
  local = UOp(Ops.STAGE, F32, (a.index(i * 7 + s).load() * 2, s), (0,))
  kernel = UOp.sink(out.index(i * 7 + r).store(local.index(6 - r).load(), i, r))
  for opts in ((Opt(OptOps.UPCAST, 2, amount),), (Opt(OptOps.UPCAST, 2, amount), Opt(OptOps.UPCAST, 0, 2))):
    tiled = with_opts(kernel, opts)
    assert size_of_stage(next(u for u in tiled.toposort() if u.op is Ops.STAGE)) == 7
    verify(tiled, 2)
    agree(kernel, tiled)
    for target in ALL_TARGETS.values(): check(tiled, target, passes=True)
