"""Addresses of lanes: strides, swizzles, alignment that depends on a loop, and addresses that workgroups share."""
from __future__ import annotations
import pytest

from tinyhw.dtype import dtypes
from tinyhw.machine.model.access import Accesses, Pattern, bank_cycles, compiled, distinct_bytes, sectors
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

I32 = dtypes.int32

def counted(number: int, size: int, kind: AxisType) -> UOp:
  return UOp(Ops.RANGE, I32, (UOp.const(I32, size),), (number, kind))

GRID, LANE, LOOP = counted(0, 64, AxisType.GLOBAL), counted(1, 64, AxisType.LOCAL), counted(2, 8, AxisType.LOOP)
BUFFER = UOp.param(0, dtypes.float32, 1 << 20)

def pattern(index: UOp, groups: int = 16, caches: int = 1) -> Pattern:
  found = Accesses([GRID, LANE, LOOP], 32, groups, caches).pattern(BUFFER.index(index))
  assert found is not None
  return found

def test_addresses_are_those_of_the_first_wave_in_bytes() -> None:
  assert pattern(LANE * 2 + 3).lanes == (tuple(range(12, 12 + 8 * 32, 8)),) * 2

def test_samples_differ_where_loops_count() -> None:
  first, second = pattern(LANE + LOOP * 5).lanes
  assert first[:3] == (0, 4, 8) and second[:3] == (20, 24, 28)

@pytest.mark.parametrize("index, fresh", [
  (GRID * 64 + LANE, 1.0),       # each wave has its own
  (LANE, 2 / 32),                # two waves of each of 16 workgroups: two addresses
  ((GRID // 4) * 64 + LANE, 8 / 32),
  (LOOP, 1 / 32),
])
def test_what_waves_have_in_common(index: UOp, fresh: float) -> None: assert pattern(index).fresh == fresh

def test_a_gate_leaves_lanes_out() -> None:
  """The share of all lanes of a workgroup, on average over loops. If a gate depends on memory, no lane is left out."""
  accesses = Accesses([GRID, LANE, LOOP], 32, 4)
  def done(gate: UOp) -> float:
    found = accesses.pattern(BUFFER.index(LANE), gate)
    assert found is not None
    return found.done
  less = UOp(Ops.CMPLT, dtypes.bool, (LANE, UOp.const(I32, 48)))
  early = UOp(Ops.CMPLT, dtypes.bool, (LOOP, UOp.const(I32, 6)))   # of 8 iterations
  assert done(less) == 0.75 and done(UOp(Ops.AND, dtypes.bool, (less, early))) == 0.75 * 6 / 8
  assert done(UOp.param(1, dtypes.bool, 64).index(LANE).load()) == 1.0 == pattern(LANE).done

def test_boxes_are_asked_for_once_by_a_workgroup() -> None:
  box = UOp(Ops.TENSOR_BOX, dtypes.float32, (BUFFER, LOOP * 32, (GRID // 4) * 8),
            TensorBox((512, 128), (1, 512), (32, 8)))
  accesses = Accesses([GRID, LANE, LOOP], 32, 16)
  found = accesses.pattern(box)
  assert found is not None and found.fresh == 4 / 16 and found.lanes == ((0,) * 32, (128,) * 32)
  one = UOp(Ops.CMPLT, dtypes.bool, (LOOP * 64 + LANE, UOp.const(I32, 64 * 6)))   # 6 of 8 iterations
  gated = accesses.pattern(box, one)
  assert gated is not None and gated.done == 6 / 8

def test_caches_get_what_their_workgroups_want() -> None:
  """Workgroups 0 to 15 over 4 caches. Columns are those of number % 4, so each cache serves one. All caches serve the
  rows."""
  column, row = pattern((GRID % 4) * 64 + LANE, caches=4), pattern((GRID // 4) * 64 + LANE, caches=4)
  assert (column.fresh, column.shared) == (8 / 32, 8 / 32) and (row.fresh, row.shared) == (8 / 32, 1.0)

def test_an_index_that_depends_on_memory_is_unknown() -> None:
  accesses = Accesses([GRID, LANE, LOOP], 32, 16)
  assert accesses.pattern(BUFFER.index(UOp.param(1, I32, 64).index(LANE).load())) is None

def test_rows_that_are_named_by_a_number_of_all_lanes() -> None:
  """Their elements are adjacent; workgroups read different rows."""
  row = UOp.param(1, I32, 64).index(GRID).load()
  found = Accesses([GRID, LANE, LOOP], 32, 16).pattern(BUFFER.index(row * 64 + LANE))
  assert found is not None and found.fresh == 1.0 and len(found.lanes) == 2
  assert all(lanes == tuple(range(lanes[0], lanes[0] + 128, 4)) for lanes in found.lanes)

def test_every_operation_of_indices() -> None:
  x = ((((LANE * 3 ^ LOOP) & 15) | 16) - (LANE >> 2) + (LANE << 1) + (LANE // 3) % 4
       + (LANE < 5).where(LANE, -LANE).maximum(LOOP) + LANE.cast(I32))
  function = compiled(x, [LANE, LOOP])
  assert function is not None
  for lane in range(0, 64, 7):
    for loop in range(8):
      small = lane if lane < 5 else -lane
      assert (function(lane, loop) == (((lane * 3 ^ loop) & 15) | 16) - (lane >> 2) + (lane << 1) + lane // 3 % 4
              + max(small, loop) + lane)

def lanes(stride: int, count: int = 32, start: int = 0) -> Pattern:
  return Pattern((tuple(start + stride * i for i in range(count)),), 1.0, 1.0)

@pytest.mark.parametrize("found, width, count", [
  (lanes(4), 4, 2), (lanes(4, start=4), 4, 3), (lanes(16), 16, 8), (lanes(8192), 2, 32), (lanes(0), 4, 1),
  (lanes(60, 2), 8, 2)])
def test_sectors(found: Pattern, width: int, count: int) -> None: assert sectors(found, width, 64) == count

def test_the_worse_sample_counts() -> None:
  assert sectors(Pattern((lanes(4).lanes[0], lanes(64).lanes[0]), 1.0, 1.0), 4, 64) == 32

def test_distinct_bytes() -> None: assert (distinct_bytes(lanes(4), 4), distinct_bytes(lanes(0), 16)) == (128, 16)

@pytest.mark.parametrize("found, width, cycles", [
  (lanes(4), 4, 1), (lanes(2), 2, 1), (lanes(8), 4, 2), (lanes(128), 4, 32), (lanes(132), 4, 1), (lanes(0), 4, 1),
  (lanes(4, 64), 4, 2),
  (lanes(8), 8, 2), (lanes(16), 16, 4), (lanes(16, 64), 16, 8), (lanes(128), 16, 32), (lanes(144), 16, 4)])
def test_banks(found: Pattern, width: int, cycles: int) -> None: assert bank_cycles(found, width, 32) == cycles
