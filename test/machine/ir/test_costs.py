"""Costs of instructions in the tables."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.model.latency import costs
from tinyhw.isa.sass.model.latency import COSTS
from tinyhw.machine.ir.costs import PipeCost

@pytest.mark.parametrize("table", (COSTS, *(costs(family) for family in ("cdna", "rdna3", "rdna4"))))
def test_latencies_are_whole_cycles(table: dict[str, PipeCost]) -> None:
  """Interleaving keeps a cycle and a line in one number."""
  assert table and all(isinstance(cost.latency, int) and cost.latency >= 0 and cost.slots == 1
                       for cost in table.values())
