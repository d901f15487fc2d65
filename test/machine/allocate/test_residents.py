"""Values with which a crowded loop starts."""
from __future__ import annotations
from generators.invented import cisc, matmul_loop

from tinyhw.machine.allocate.distance import Distances
from tinyhw.machine.allocate.residents import Residents
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.registers import registers_of

def residents(vectors: int) -> tuple[Residents, list[int]]:
  target = cisc(10, vectors)
  function = matmul_loop(target, 12, 2)
  liveness = Liveness(function, registers_of(target))
  return Residents(function, liveness, Distances(liveness), ()), [p.id for p in function.blocks[1].params]

def test_room_for_temporaries_and_one_value_from_memory() -> None:
  for vectors, kept in ((15, 12), (14, 10), (12, 8), (9, 5)):
    found, params = residents(vectors)
    memory = found.too_many(1)
    assert len(params) - 1 - len(memory) == kept, vectors
    assert params[0] not in memory, "the counter is in another bank, which is not crowded"

def test_banks_are_told_apart() -> None:
  found, params = residents(12)
  assert found.crowded([1]) and not found.bank_in(params[0],
                                                  found.crowded([1])) and found.bank_in(params[1], found.crowded([1]))
  assert found.too_many(0) == found.too_many(2) == set() or len(found.too_many(2)) == 0
