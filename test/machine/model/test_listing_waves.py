"""Bounds in the listing of a GPU's kernels, with the instructions of test_waves.py."""
from __future__ import annotations
from collections.abc import Sequence

import pytest

from test.machine.model.test_waves import MODEL, add, jump, meet, one_loop, store, v
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.inst import Effect, Function, MInst
from tinyhw.machine.model.listing import InstructionInfo, find_loops
from tinyhw.machine.model.listing_waves import CardModel, bounds_of, executions, time, wave_lines
from tinyhw.machine.model.occupancy import KernelResources
from tinyhw.uop.ops import UOp

def operations(inst: MInst) -> int: return 4 if inst.row.name == "add" else 0
def touched(inst: MInst) -> int: return 16 if inst.row.effects & Effect.STORE else 0
def peak(insts: Sequence[MInst]) -> tuple[float, str]: return 2.0, "f32"

CARD = CardModel("A card", "made up", MODEL, 10, 1.0, 8.0, operations, touched, peak)

def nest() -> Function:
  """5 iterations: an addition, 20 iterations of another one, a store to a buffer of 400 bytes."""
  function = Function("nest")
  outer, inner, last = function.new_block(1), function.new_block(2), function.new_block(1)
  outer.insts.append(add(0, 0))
  inner.insts += [add(1, 1), jump(inner, 0, 20)]
  last.insts += [store(1), jump(outer, 1, 5)]
  last.insts[0].origin = UOp.param(0, dtypes.float32,
                                   100).index(UOp.const(dtypes.int32, 0)).store(UOp.const(dtypes.float32, 1.0))
  return function

def test_executions() -> None: assert executions(nest(), find_loops(nest())) == [5, 100, 5]

def test_bounds() -> None:
  found = bounds_of(nest(), KernelResources({"v": 16}, 0, 8, 40), CARD)
  assert (found.held.groups, found.held.waves, found.held.limit) == (4, 8, "the grid")
  outer, inner = found.parts
  assert (outer.operations, outer.times, inner.operations, inner.times) == (21 * 4, 5, 4, 20) and found.hottest is outer
  assert found.operations == 105 * 4 * 2 * 40 and found.memory == 400  # 5 * 16 * 80 bytes are stored: each element is
                                                                       # counted once
  assert found.rounds == 1 and found.seconds == pytest.approx(840e-9)
  assert inner.cost.resources == {"a": 8} and inner.rate == 4 * 8 / 8 and inner.share == 1 and inner.binding == "a"

def test_a_last_round_takes_what_its_workgroups_take() -> None:
  """A card of 10 units, which hold 8 workgroups each: 80 are one round, 90 another eighth of it, but no less than one
  workgroup alone."""
  one, more, two = (bounds_of(nest(), KernelResources({"v": 16}, 0, 8, grid), CARD) for grid in (80, 90, 160))
  assert one.held.groups == more.held.groups == 8 and (one.rounds, more.rounds, two.rounds) == (1, 2, 2)
  assert one.seconds is not None and more.seconds is not None and two.seconds == pytest.approx(2 * one.seconds)
  last = max(one.whole.cost.alone, one.whole.cost.cycles / 8)
  assert more.seconds == pytest.approx(one.seconds + last * 1e-9)

def test_what_depends_on_the_launch_is_not_told() -> None:
  found = bounds_of(nest(), KernelResources({"v": 16}, 0, 8), CARD)
  assert (found.operations, found.memory, found.rounds, found.seconds) == (None,) * 4

def test_code_without_loops_is_its_own_hottest_part() -> None:
  function = Function("line")
  function.new_block().insts += [add(0, 0), meet()]
  found = bounds_of(function, KernelResources({"v": 16}, 0, 8, 1), CARD)
  assert found.parts == () and found.hottest is found.whole

def test_lines() -> None:
  kernel = KernelResources({"v": 24}, 100, 8, 40)
  function = nest()
  reader = InstructionInfo(repr, touched, operations, lambda *_: [], copies=2)
  lines = wave_lines(kernel, CARD, function, find_loops(function), reader)
  assert lines[:2] == ["occupancy: 24 vs: 5 waves a SIMD (the next at 16); 100 bytes of shared memory: 8 workgroups a "
                       "unit",
                       "  workgroups of 8 lanes, 2 waves: 4 a unit, 4 waves a SIMD of 8, limited by the grid"]
  assert lines[5:8] == ["bound of .b1 (r0 in LOOP 20): 8 cycles for an iteration of 8 waves of a unit, by adders",
                        "  adders 8; a workgroup alone 5",
                        "  at most 4 flop a cycle of 4 (f32), 100.0 %"]
  assert lines[-2:] == ["roofline: 33.6 k flop 840 ns, 400 bytes of memory 50 ns, the bound 840 ns in 1 round",
                        "bounds: A card; table: made up"]
  assert lines[2].startswith("bound of .b0 (r1 in LOOP 5) (the hottest): ")

def test_one_loop_is_hot() -> None:
  function = one_loop(add(0, 1), times=3)
  assert bounds_of(function, KernelResources({}, 0, 4, 1), CARD).hottest.loop is not None and v(0).index == 0

@pytest.mark.parametrize("seconds, text", [(2.0, "2 s"), (0.00123, "1.23 ms"), (1e-6, "1 us"), (5e-9, "5 ns")])
def test_times(seconds: float, text: str) -> None: assert time(seconds) == text
