"""Pauses between polls: none that a short kernel would notice, then a share of the wait, up to a limit."""
from __future__ import annotations

import pytest

from tinyhw.drivers.gpu import polling

def test_pauses_grow_with_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
  slept: list[float] = []
  gave: list[bool] = []
  monkeypatch.setattr(polling.time, "sleep", slept.append)
  monkeypatch.setattr(polling, "give_way", lambda: gave.append(True))
  for waited in (0.0, polling.SPIN_SECONDS, 0.008, 10.0): polling.pause(waited)
  assert slept == [0.001, polling.LONGEST_SLEEP] and len(gave) == 2
