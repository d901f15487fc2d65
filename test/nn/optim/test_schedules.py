"""nn/optim/schedules.py: rates of hundreds of steps against PyTorch's, also from a saved state."""
from __future__ import annotations
from collections.abc import Callable
import copy
import importlib
import math
from typing import Any
import warnings

import pytest

import tinyhw.compat.torch as ours
from tinyhw import nn
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim import schedules
from tinyhw.tensor import Tensor

STEPS = 150
Make = Callable[[Any, Any], Any]

SCHEDULES: dict[str, Make] = {
  "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
  "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 40], 0.3),
  "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 12),
  "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.8, 30),
  "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.98),
  "PolynomialLR": lambda s, o: s.PolynomialLR(o, 50, 2.0),
  "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 20, 1e-3),
  "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda n: 0.95 ** n, lambda n: 1 / (1 + n)]),
  "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda n: 0.97),
  "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 30),
                                                 s.ExponentialLR(o, 0.9)], [5, 60]),
  "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.95)]),
}

def optimizer(torch: Any, kind: str) -> Any:
  a, b = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
  return getattr(torch.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.5,
                                    **({"momentum": 0.9} if kind == "SGD" else {}))

def settings(o: Any) -> list[float]:
  return [x for g in o.param_groups for x in (g["lr"], *((g["momentum"],) if "momentum" in g else g["betas"]))]

def compare(torch: Any, make: Make, kind: str) -> None:
  """Compare the settings of each step. In the middle, go on with new objects from saved states."""
  sides = [(t, optimizer(t, kind)) for t in (torch, ours)]
  running = [(t, o, make(t.optim.lr_scheduler, o)) for t, o in sides]
  for i in range(STEPS):
    wanted, found = (settings(o) for _, o, _ in running)
    assert all(math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-15) for x, y in zip(wanted, found)), (i, wanted, found)
    assert running[0][2].get_last_lr() == pytest.approx(running[1][2].get_last_lr(), rel=1e-12)
    for k, (t, o, schedule) in enumerate(running):
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step()
        if i == STEPS // 2:
          saved = copy.deepcopy((o.state_dict(), schedule.state_dict()))
          o = optimizer(t, kind)
          schedule = make(t.optim.lr_scheduler, o)
          o.load_state_dict(saved[0])
          schedule.load_state_dict(saved[1])
          running[k] = t, o, schedule

@pytest.mark.parametrize("name", SCHEDULES)
def test_against_pytorch(name: str) -> None: compare(pytest.importorskip("torch"), SCHEDULES[name], "SGD")

@pytest.mark.parametrize("name", ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
                                  "CosineAnnealingLR", "LambdaLR"])
def test_a_given_epoch(name: str) -> None:
  torch = pytest.importorskip("torch")
  found = []
  for t in (torch, ours):
    o = optimizer(t, "SGD")
    schedule = SCHEDULES[name](t.optim.lr_scheduler, o)
    for epoch in (3, 17, 4, 60):
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step(epoch)
      found.append(settings(o))
  assert found[:4] == [pytest.approx(x, rel=1e-12) for x in found[4:]]

def test_on_an_optimizer_of_nn_optim() -> None:
  p = Tensor([1.0])
  o = nn.optim.SGD([p], lr=1.0)
  schedule = importlib.import_module("tinyhw.nn.optim.schedules").ExponentialLR(o, 0.5)
  for _ in range(2):
    with Tensor.train():
      o.zero_grad()
      p.sum().backward()
      o.step()
    schedule.step()
  assert p.item() == -0.5 and o.lr.item() == 0.25

def test_a_tensor_stays_the_rate() -> None:
  rate = ours.tensor(0.5)
  o = ours.optim.SGD([ours.nn.Parameter(ours.zeros(1))], lr=rate)
  ours.optim.lr_scheduler.ExponentialLR(o, 0.5).step()
  assert o.param_groups[0]["lr"] is rate and rate.item() == 0.25

def test_refusals() -> None:
  s, o = schedules, optimizer(ours, "SGD")
  for match, call in {
      "wants an optimizer": lambda: s.StepLR(None, 3), "no initial_lr": lambda: s.StepLR(o, 3, last_epoch=4),
      "has no get_lr": lambda: s.LRScheduler(o), "3 values for 2 groups": lambda: s.LambdaLR(o, [float] * 3),
      "factor is 2": lambda: s.ConstantLR(o, 2), "start_factor is 0": lambda: s.LinearLR(o, 0),
      "end_factor is 2": lambda: s.LinearLR(o, 1, 2), "a schedule at least": lambda: s.ChainedScheduler([]),
      "another optimizer": lambda: s.SequentialLR(o, [s.StepLR(optimizer(ours, "SGD"), 1)], []),
      "1 milestones, not 0": lambda: s.SequentialLR(o, [s.StepLR(o, 1), s.StepLR(o, 1)], []),
      "without an epoch": lambda: s.ChainedScheduler([s.StepLR(o, 1)]).step(3)}.items():
    with pytest.raises(ArgumentError, match=match): call()
