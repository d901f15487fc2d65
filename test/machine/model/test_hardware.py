"""Rates in cycles of a card."""
from __future__ import annotations

from test.machine.model.test_traffic import CARD

def test_rates_are_by_cycle() -> None:
  assert CARD.memory_rate == 20 and CARD.last_rate == 0 and CARD._replace(last_gbs=60).last_rate == 30
