"""Pauses between polls: none that a short kernel would notice, then a share of the wait, up to a limit. A process that
was stopped did not wait."""
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

def test_a_process_that_was_stopped_did_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
  now = [100.0]
  monkeypatch.setattr(polling.time, "monotonic", lambda: now[0])
  duration = polling.WaitTime()
  longest = polling.LONGEST_GAP
  for seconds, waited in ((0.25, 0.25), (0.5, 0.75), (600.0, 0.75 + longest), (0.25, 1.0 + longest)):
    now[0] += seconds
    assert duration.look() == waited
  duration.restart()
  assert duration.look() == 0.0
