"""Coalescing: the accesses that become one, the proof of alignment, and equal results."""
from __future__ import annotations

from dataclasses import replace

import pytest

from test.codegen.kernels import axis, compare, count, data_for
from test.codegen.plan.test_workgroup import F32, LANES, run
from tinyhw.codegen.lower.coalesce import CoalescedRun, fits, meaning_of, coalesced_runs
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def copied(step: int, copies: int, dtype: DType = F32, in_place: bool = False, gated: bool = False) -> UOp:
  """Return out[lane*step + k] = a[lane*step + k] + 1 for k below `copies`."""
  out = UOp.param(0, dtype, 8 * step)
  a = out if in_place else UOp.param(1, dtype, 8 * step)
  lane, k = axis(8, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  i = lane * step + k
  value = a.index(i).load(lane < 5) if gated else a.index(i).load()
  return UOp.sink(out.index(i).store(value + 1, lane, k))

def lowered(kernel: UOp) -> Program:
  """Return the unchanged kernel, lowered and compared."""
  expected, found = data_for(kernel), data_for(kernel)
  evaluate(kernel, expected)
  program = lower(kernel, LANES, "test")
  evaluate(program, found)
  compare("program", expected, found, 0.0)
  return program

def widths(program: Program) -> tuple[list[int], list[int]]:
  """Return the lanes of loads and of stored values."""
  return [u.dtype.count for u in program.uops if u.op is Ops.LOAD], [u.src[1].dtype.count for u in program.uops
                                                                     if u.op is Ops.STORE]

def test_runs_are_powers_of_two_and_do_not_overlap() -> None:
  assert coalesced_runs(list(range(7)), 4, None, 16) == [CoalescedRun(0, 4), CoalescedRun(4, 2)]
  assert coalesced_runs([5, 6, 7, 9, 11, 12], 2, None, 16) == [CoalescedRun(5, 2), CoalescedRun(11, 2)]
  assert coalesced_runs([0, 1, 2, 3], 8, None, 16) == [CoalescedRun(0, 2), CoalescedRun(2, 2)]
  assert coalesced_runs([0, 2, 4], 4, None, 16) == [] and coalesced_runs([0, 1], 8, None, 8) == []

def test_local_memory_wants_what_is_a_multiple_for_certain() -> None:
  assert coalesced_runs(list(range(8)), 2, 16, 16) == [CoalescedRun(0, 8)] and coalesced_runs(list(range(8)), 2, 8,
      16) == [CoalescedRun(0, 4), CoalescedRun(4, 4)]
  assert coalesced_runs(list(range(1, 8)), 2, 16, 16) == [CoalescedRun(2, 2), CoalescedRun(4, 4)]
  assert coalesced_runs(list(range(8)), 2, 2, 16) == []
  assert fits(8, 24, 8) and not fits(8, 24, 16) and not fits(4, 24, 8) and fits(2, None, 16)
  assert fits(32, 0, 16) and not fits(2, 0, 16), "an index without terms is as aligned as its constant"
  assert coalesced_runs([1, 2, 3, 4, 5], 4, 0, 16) == [CoalescedRun(2, 2), CoalescedRun(4, 2)]

@pytest.mark.parametrize("dtype, most", [(dtypes.float64, 2), (F32, 4), (dtypes.float16, 8), (dtypes.int8, 16)])
def test_neighbours_are_one_access_of_16_bytes_at_most(dtype: DType, most: int) -> None:
  assert widths(lowered(copied(2 * most, 2 * most, dtype))) == ([most] * 2, [most] * 2)
  assert widths(lowered(copied(most, most, dtype, in_place=True))) == ([most], [most])

@pytest.mark.parametrize("copies, loads", [(3, [2, 1]), (7, [4, 2, 1]), (1, [1])])
def test_what_is_left_of_a_run_is_narrower(copies: int, loads: list[int]) -> None:
  assert widths(lowered(copied(8, copies))) == (loads, loads)

def test_one_gate_for_all() -> None: assert widths(lowered(copied(4, 4, gated=True))) == ([4], [4])

def test_gates_of_their_own_keep_accesses_apart() -> None:
  out, a, lane, k = UOp.param(0, F32, 32), UOp.param(1, F32, 32), axis(8, 0, "LOCAL"), axis(4, 1, "UPCAST")
  i = lane * 4 + k
  assert (widths(lowered(UOp.sink(out.index(i).store(a.index(i).load(i < 29), lane, k))))
          == ([1, 2, 1], [4])), "0 and 28; 1 and 2; 3"
  assert widths(lowered(UOp.sink(out.index(i).store(a.index(i).load((i < 28) & (7 < i)), lane, k)))) == ([4], [4])

def test_gates_are_compared_by_what_they_mean() -> None:
  i, four = axis(8, 0), UOp.const(dtypes.weakint, 4)
  first, second = (i * four + 1) < 12, (i * four + 3) < 12
  assert first is not second and meaning_of(first) == meaning_of(second) != meaning_of((i * four) < 12 + 1)
  assert meaning_of(first & (i < 7)) == meaning_of((i < 7) & second)
  other = UOp.param(0, dtypes.bool, 1).index(0).load()
  assert meaning_of(other) is other

def test_what_lies_apart_stays_apart() -> None:
  out, a, lane, k = UOp.param(0, F32, 32), UOp.param(1, F32, 64), axis(8, 0, "LOCAL"), axis(4, 1, "UPCAST")
  program = lowered(UOp.sink(out.index(k * 8 + lane).store(a.index(lane * 8 + k * 2).load(), lane, k)))
  assert widths(program) == ([1] * 4, [1] * 4)

def test_a_copy_moves_vectors_whole() -> None:
  out, a, lane, k = UOp.param(0, F32, 32), UOp.param(1, F32, 32), axis(8, 0, "LOCAL"), axis(4, 1, "UPCAST")
  program = lowered(UOp.sink(out.index(lane * 4 + k).store(a.index(lane * 4 + k).load(), lane, k)))
  assert widths(program) == ([4], [4]) and count(program, Ops.GEP) == count(program, Ops.VECTORIZE) == 0

@pytest.mark.parametrize("step, found", [(4, [4]), (6, [2, 2]), (5, [1] * 4)])
def test_local_memory(step: int, found: list[int]) -> None:
  """Four elements of a row can be one access only if the row's start is aligned. It depends on the length of rows."""
  out, a = UOp.param(0, F32, 32), UOp.param(1, F32, 8 * step)
  lane, turn, k, at = axis(8, 0, "LOCAL"), axis(step, 1, "STAGE"), axis(4, 2, "UPCAST"), axis(8, 3, "LOOP")
  stage = UOp(Ops.STAGE, F32, (a.index(turn * 8 + lane).load(), turn, lane), (0,))
  value = UOp(Ops.LOAD, F32, (UOp(Ops.INDEX, F32, (stage, at * step + k)),))
  program = lowered(UOp.sink(out.index(at * 4 + k).store(value, lane, at, k)))
  assert widths(program)[0] == [1, *found]

def test_a_cpu_keeps_its_scalars() -> None:
  program = lower(copied(4, 4), replace(LANES, lanes=0), "cpu")
  assert widths(program) == ([1] * 4, [1] * 4)

def test_lanes_have_neighbours_where_there_is_work_enough() -> None:
  def plain(n: int) -> UOp:
    out, a, i = UOp.param(0, F32, n), UOp.param(1, F32, n), axis(n, 0)
    return UOp.sink(out.index(i).store(a.index(i).load() * 2, i))
  assert widths(run(plain(256))) == ([4], [4]) and widths(run(plain(16))) == ([1], [1])
  assert widths(run(plain(258))) == ([2], [2]) and widths(run(plain(257))) == ([1], [1])

def test_a_shared_sum_reads_neighbours() -> None:
  out, a, r = UOp.param(0, F32, 1), UOp.param(1, F32, 256), axis(256, 0, "REDUCE")
  program = run(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.ADD, r))))
  assert widths(program)[0][0] == 4 and AxisType.LOCAL in [u.arg[1] for u in program.uops if u.op is Ops.RANGE]

@pytest.mark.parametrize("stride, wide", [(4, [4, 4]), (6, [2, 2, 2, 2]), (5, [1] * 8)])
def test_memory_that_wants_multiples(stride: int, wide: list[int]) -> None:
  """A lane accesses neighbours, and lanes are a stride apart. The access is as wide as both allow."""
  n = 32 * stride
  out, a, lane, k = UOp.param(0, F32, n), UOp.param(1, F32, n), axis(32, 0, "LOCAL"), axis(4, 1, "UPCAST")
  program = lower(UOp.sink(out.index(lane * stride + k).store(a.index(lane * stride + k).load(), lane, k)),
                  replace(LANES, aligned=True), "test")
  loads, stores = widths(program)
  assert loads + stores == wide
