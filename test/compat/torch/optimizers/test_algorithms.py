"""compat/torch/optimizers/algorithms.py: parameters and states of some steps against PyTorch's."""
from __future__ import annotations
import inspect
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.compat.torch.optimizers import algorithms
from tinyhw.errors import ArgumentError

CASES: list[tuple[str, dict[str, Any]]] = [
  ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
  ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
  ("SGD", {"lr": 0.05, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
  ("Adam", {"lr": 0.05}), ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
  ("Adam", {"betas": (0.3, 0.5)}), ("AdamW", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}), ("RMSprop", {}),
  ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
  ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}), ("Adadelta", {"weight_decay": 0.1}),
  ("Adamax", {"weight_decay": 0.1}), ("NAdam", {"weight_decay": 0.1}),
  ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {"lr": 0.05}),
  ("RAdam", {"lr": 0.05, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
  ("ASGD", {"t0": 3, "lambd": 0.1, "weight_decay": 0.1}), ("Rprop", {}), ("Adafactor", {"weight_decay": 0.1}),
]
_RNG = np.random.default_rng(0)
START = [_RNG.normal(size=shape).astype(np.float32) for shape in ((3, 4), (5,), (2, 3, 2))]

def trained(torch: Any, name: str, options: dict[str, Any], steps: int = 9) -> tuple[list[Any], Any]:
  """Return parameters after steps of which some pass over a parameter, and the optimizer."""
  params = [torch.nn.Parameter(torch.tensor(x)) for x in (START[:1] if name == "Muon" else START)]
  optimizer = getattr(torch.optim, name)(params, **options)
  for i in range(steps):
    optimizer.zero_grad()
    sum((p * p).sum() + (p * 0.7).sin().sum() for p in params if i % 4 != 3 or p.ndim > 1).backward()
    optimizer.step()
  return [p.detach().numpy() for p in params], optimizer

@pytest.mark.parametrize("name, options", CASES, ids=lambda x: x if isinstance(x, str) else ",".join(x))
def test_against_pytorch(name: str, options: dict[str, Any]) -> None:
  (wanted, theirs), (found, mine) = (trained(t, name, options) for t in (pytest.importorskip("torch"), ours))
  for x, y in zip(wanted, found): np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
  a, b = theirs.state_dict(), mine.state_dict()
  assert a["param_groups"] == b["param_groups"] and list(a["state"]) == list(b["state"])
  for k, state in a["state"].items():
    assert set(state) == set(b["state"][k])
    for key, x in state.items():
      np.testing.assert_allclose(b["state"][k][key].numpy(), x.numpy(), rtol=2e-5, atol=1e-6, err_msg=key)

def test_muon() -> None:
  """PyTorch multiplies in bfloat16 there."""
  for options in ({"lr": 0.1}, {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "nesterov": False}):
    (wanted, _), (found, _) = (trained(t, "Muon", options) for t in (pytest.importorskip("torch"), ours))
    np.testing.assert_allclose(found[0], wanted[0], atol=0.03)

@pytest.mark.parametrize("name", [name for name, value in vars(algorithms).items() if isinstance(value, type)
                                  and value.__module__ == algorithms.__name__ and name != "SparseAdam"])
def test_parameters_are_pytorchs(name: str) -> None:
  torch = pytest.importorskip("torch")
  theirs, mine = (inspect.signature(getattr(t.optim, name).__init__).parameters for t in (torch, ours))
  assert [(p.name, p.default, p.kind) for p in theirs.values()] == [(p.name, p.default, p.kind) for p in mine.values()]

def test_refusals() -> None:
  p = ours.nn.Parameter(ours.ones(2))
  for match, call in {
      "sparse gradients": lambda: ours.optim.SparseAdam([p]), "nesterov=True wants": lambda: ours.optim.SGD(
        [p], nesterov=True), "rho is 2": lambda: ours.optim.Adadelta([p], rho=2), "etas are": lambda: ours.optim.Rprop(
        [p], etas=(2, 3)), "beta2_decay is 1": lambda: ours.optim.Adafactor([p], beta2_decay=1),
      "d is 0": lambda: ours.optim.Adafactor([p], d=0), "Muon steps matrices": lambda: ours.optim.Muon([p]),
      "adjust_lr_fn": lambda: ours.optim.Muon([p], adjust_lr_fn="x")}.items():
    with pytest.raises(ArgumentError, match=match): call()
