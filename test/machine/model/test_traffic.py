"""Cost of accesses on an invented card: by sectors, by banks, and by requests of other waves."""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.inst import Effect, Inst, MInst
from tinyhw.machine.model.access import Pattern
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.occupancy import RegisterFile, ComputeUnit
from tinyhw.machine.model.traffic import Traffic, accessed
from tinyhw.uop.ops import UOp

UNIT = ComputeUnit("unit", 2, 8, 4, {"v": RegisterFile(64, 8)}, 1 << 10, 16, 4)
CARD = Hardware("A card", UNIT, 10, 2.0, local_rate=16, first_rate=32, second_rate=160, memory_gbs=40, last_gbs=0,
                flops={}, sector=32, banks=4)
LOAD = MInst(Inst("load", "", (), effects=Effect.LOAD), [])

def lanes(stride: int, fresh: float = 1.0) -> Pattern:
  return Pattern((tuple(stride * n for n in range(4)),), fresh, fresh)

def test_caches_and_memory() -> None:
  known = Traffic(CARD, 4, lambda inst: lanes(4, 0.5))
  assert known.shared(LOAD, 16) == {"g": 1.0, "2": 32 * 10 / 160, "m": 16 * 0.5 * 10 / 20}
  assert Traffic(CARD, 4, lambda inst: lanes(32)).shared(LOAD, 16)["g"] == Traffic(CARD, 4).shared(LOAD, 16)["g"] == 4
  assert Traffic(CARD, 4).shared(LOAD, 64, private=True)["g"] == 2

def test_fewer_units_share_the_card() -> None:
  assert Traffic(CARD, 4, lambda inst: lanes(4), units=1).shared(LOAD, 16)["m"] == 16 / 20

def test_another_cache_before_memory() -> None:
  card = CARD._replace(last_gbs=80)
  assert Traffic(card, 4, lambda inst: lanes(4, 0.5)).shared(LOAD, 16)["l"] == 32 * 0.5 * 10 / 40

def test_what_the_last_cache_keeps_comes_once() -> None:
  buffer = UOp.param(0, dtypes.float32, 64)
  load = MInst(LOAD.row, [], buffer.index(UOp.const(dtypes.int32, 0)).load())
  assert accessed(load) is load.origin.src[0] and accessed(MInst(LOAD.row, [], load.origin, comment="reload")) is None
  assert Traffic(CARD, 4, lambda inst: lanes(4), once={buffer: 0.25}).shared(load, 16)["m"] == 16 * 0.25 * 10 / 20

def test_local_memory_by_banks() -> None:
  for stride, cycles, times in ((4, 1, 1), (16, 4, 4), (20, 1, 1)):
    traffic = Traffic(CARD, 4, lambda inst, stride=stride: lanes(stride))
    assert traffic.local(LOAD, 16) == cycles and traffic.conflict(LOAD, 16) == times
  assert Traffic(CARD, 4).local(LOAD, 64) == 4
