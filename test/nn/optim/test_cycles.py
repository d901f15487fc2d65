"""nn/optim/cycles.py: rates and momenta of hundreds of steps against PyTorch's, and plateaus."""
from __future__ import annotations
import random
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from test.nn.optim.test_schedules import Make, compare, optimizer, settings
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim import cycles

CYCLES: dict[str, Make] = {
  "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 1e-3),
  "equal restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
  "one cycle": lambda s, o: s.OneCycleLR(o, [0.1, 0.2], 150),
  "three phases": lambda s, o: s.OneCycleLR(o, 0.1, epochs=10, steps_per_epoch=15, three_phase=True,
                                            anneal_strategy="linear"),
  "triangles": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 10, 5),
  "halved triangles": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.3], 10, mode="triangular2"),
  "shrinking triangles": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 10, 5, mode="exp_range", gamma=0.99,
                                                 cycle_momentum=False),
  "own scale": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 10, 5, scale_fn=lambda x: 1 / x),
}

@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", CYCLES)
def test_against_pytorch(name: str, kind: str) -> None: compare(pytest.importorskip("torch"), CYCLES[name], kind)

@pytest.mark.parametrize("options", [{}, {"mode": "max", "patience": 3, "threshold_mode": "abs", "cooldown": 2,
                                          "min_lr": 1e-3}, {"factor": 0.5, "patience": 1, "min_lr": [0.1, 0.0]}])
def test_plateaus(options: dict[str, Any]) -> None:
  torch, draw = pytest.importorskip("torch"), random.Random(0)
  measures = [draw.random() + 1 / (i + 1) for i in range(200)]
  found = []
  for t in (torch, ours):
    o = optimizer(t, "SGD")
    schedule = t.optim.lr_scheduler.ReduceLROnPlateau(o, **options)
    for i, m in enumerate(measures):
      schedule.step(t.tensor(m, dtype=t.float64) if i % 2 else m)
      found.append(settings(o))
  assert found[:200] == found[200:]

def test_fractions_of_epochs() -> None:
  torch, found = pytest.importorskip("torch"), []
  for t in (torch, ours):
    o = optimizer(t, "SGD")
    for times in (1, 2):
      schedule = t.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, times)
      for epoch in (0.5, 2.25, 7.75, 30):
        schedule.step(epoch)
        found.append(settings(o))
  assert found[:8] == [pytest.approx(x, rel=1e-12) for x in found[8:]]

def test_refusals() -> None:
  o, c = optimizer(ours, "SGD"), cycles
  for match, call in {
      "T_0 is 0": lambda: c.CosineAnnealingWarmRestarts(o, 0),
      "T_mult is": lambda: c.CosineAnnealingWarmRestarts(o, 1, 0),
      "give total_steps": lambda: c.OneCycleLR(o, 1), "total_steps is -1": lambda: c.OneCycleLR(o, 1, -1),
      "pct_start is 2": lambda: c.OneCycleLR(o, 1, 9, pct_start=2), "anneal_strategy is": lambda: c.OneCycleLR(
        o, 1, 9, anneal_strategy="x"), "mode is 'triangular'": lambda: c.CyclicLR(o, 0, 1, mode="x"),
      "has no momentum": lambda: c.CyclicLR(ours.optim.Adagrad([ours.nn.Parameter(ours.ones(1))]), 0, 1),
      "factor is 1": lambda: c.ReduceLROnPlateau(o, factor=1), "mode is 'min'": lambda: c.ReduceLROnPlateau(o, "x"),
      "threshold_mode is": lambda: c.ReduceLROnPlateau(o, threshold_mode="x"),
      "wants the measure": lambda: c.ReduceLROnPlateau(o).step()}.items():
    with pytest.raises(ArgumentError, match=match): call()
  schedule = c.OneCycleLR(o, 1, 3)
  for _ in range(3): schedule.step()
  with pytest.raises(ArgumentError, match="with 3 steps"): schedule.step()
