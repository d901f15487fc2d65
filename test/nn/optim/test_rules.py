"""nn/optim/rules.py: numbers of floats and of Tensors are the same; the optimizers' tests have the formulas."""
from __future__ import annotations
import math
from types import SimpleNamespace
from typing import Any

import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim import rules, widest_float
from tinyhw.nn.optim.rules import muon_factor, power
from tinyhw.tensor import Tensor

OPTIONS = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01, "momentum": 0.9, "dampening": 0.1,
           "alpha": 0.75, "lr_decay": 0.1, "rho": 0.9, "lambd": 1e-2, "t0": 3.0, "etas": (0.5, 1.2),
           "step_sizes": (1e-6, 50.0), "momentum_decay": 4e-3, "beta2_decay": -0.8}
RULES = {name: value for name, value in vars(rules).items() if isinstance(value, rules.UpdateRule)}

def options(make: Any) -> Any:
  made = {name: tuple(map(make, x)) if isinstance(x, tuple) else make(x) for name, x in OPTIONS.items()}
  return SimpleNamespace(given=lambda name: OPTIONS[name], **made)

def wide(x: float) -> Tensor: return Tensor(x, dtype=widest_float(Tensor(0).device))

def tolerance() -> float:
  """In float32 1 - 0.99**t loses two digits of seven, and RAdam's difference of two lengths another one."""
  return 1e-12 if widest_float(Tensor(0).device) == dtypes.float64 else 1e-4

@pytest.mark.parametrize("name", RULES)
def test_numbers_of_floats_and_of_tensors(name: str) -> None:
  """The same formulas run on the host and on a device."""
  rule, plain, lazy = RULES[name], options(float), options(wide)
  here, there = dict(rule.shared(plain)), {k: wide(v) for k, v in rule.shared(plain).items()}
  for _ in range(7):
    wanted, found = rule.numbers(plain, here), rule.numbers(lazy, there)
    assert list(wanted) == list(found)
    for key, value in {**found, **there}.items():
      assert float(value.item()) == pytest.approx({**wanted, **here}[key], rel=tolerance()), key

def test_powers() -> None:
  for base, exponent in ((0.5, 3.0), (0.0, 2.0)):
    for given in ((base, wide(exponent)), (wide(base), wide(exponent)), (wide(base), exponent)):
      assert power(*given).item() == base ** exponent

def test_factors_of_muon() -> None:
  assert muon_factor(None, [8, 2]) == 2.0 and muon_factor("original", [2, 8]) == 1.0
  assert muon_factor("match_rms_adamw", [4, 9]) == pytest.approx(0.2 * math.sqrt(9))
  with pytest.raises(ArgumentError, match="adjust_lr_fn is"): muon_factor("other", [1, 1])
