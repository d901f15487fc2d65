"""compat/torch/modules/pruning.py: masked parameters, against PyTorch's."""
from __future__ import annotations
import importlib
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

def _net(t: Any) -> Any:
  net = t.nn.Linear(4, 3)
  net.load_state_dict({"weight": t.arange(12.0).reshape(3, 4).sin(), "bias": t.tensor([0.3, -0.1, 0.2])})
  return net

CALLS = ["prune.l1_unstructured(net, 'weight', amount=0.5)", "prune.l1_unstructured(net, 'weight', amount=5)",
         "prune.l1_unstructured(net, 'bias', 1, importance_scores=t.tensor([1.0, 0.0, 2.0]))",
         "prune.ln_structured(net, 'weight', amount=1, n=2, dim=0)",
         "prune.ln_structured(net, 'weight', 0.5, n=float('inf'), dim=1)",
         "prune.custom_from_mask(net, 'bias', t.tensor([1.0, 0.0, 1.0]))", "prune.identity(net, 'weight')",
         "prune.global_unstructured([(net, 'weight'), (net, 'bias')], prune.L1Unstructured, amount=0.4)",
         "(prune.l1_unstructured(net, 'weight', 0.25), prune.l1_unstructured(net, 'weight', 0.5))",
         "(prune.ln_structured(net, 'weight', 1, 2, 0), prune.ln_structured(net, 'weight', 1, 2, 0))"]

@pytest.mark.parametrize("call", CALLS)
def test_agrees_with_pytorch(call: str) -> None:
  found = []
  for t in (pytest.importorskip("torch"), ours):
    net = _net(t)
    prune = importlib.import_module("torch.nn.utils.prune") if t is not ours else t.nn.utils.prune
    eval(call, {"prune": prune, "net": net, "t": t})
    y = net(t.ones(2, 4))
    y.sum().backward()
    state = {name: value.flatten().tolist() for name, value in net.state_dict().items()}
    slopes = {name: p.grad.flatten().tolist() for name, p in net.named_parameters()}
    found.append({**state, **{f"{name} slope": g for name, g in slopes.items()}, "y": y.flatten().tolist(),
                  "weight": net.weight.flatten().tolist(), "bias": net.bias.tolist()})
  assert found[0].keys() == found[1].keys()
  for name, wanted in found[0].items(): assert found[1][name] == pytest.approx(wanted), name

def test_random_elements() -> None:
  prune, net = ours.nn.utils.prune, _net(ours)
  prune.random_unstructured(net, "weight", 4)
  assert net.weight_mask.sum().item() == 8
  prune.random_structured(net, "weight", 1, dim=0)
  assert int((net.weight_mask == 0).all(1).sum().item()) >= 1
  prune.global_unstructured([(net, "bias")], prune.RandomUnstructured, amount=2)
  assert (net.bias == 0).sum().item() == 2

def test_parameters_again() -> None:
  prune, net = ours.nn.utils.prune, _net(ours)
  prune.l1_unstructured(net, "weight", 6)
  assert prune.is_pruned(net) and sorted(net.state_dict()) == ["bias", "weight_mask", "weight_orig"]
  value = net.weight.tolist()
  prune.remove(net, "weight")
  assert not prune.is_pruned(net) and net.weight.tolist() == value and list(net.state_dict()) == ["bias", "weight"]
  assert isinstance(net.weight, ours.nn.Parameter)

def test_refusals() -> None:
  prune, net = ours.nn.utils.prune, _net(ours)
  for match, call in {
      "is not pruned": lambda: prune.remove(net, "weight"),
      "no parameter 'x'": lambda: prune.custom_from_mask(net, "x", 1),
      "a count, or a share": lambda: prune.l1_unstructured(net, "weight", -1),
      "there are 12 elements": lambda: prune.l1_unstructured(net, "weight", 13)}.items():
    with pytest.raises(ArgumentError, match=match): call()
