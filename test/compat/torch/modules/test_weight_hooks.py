"""compat/torch/modules/weight_hooks.py: the older weight_norm and spectral_norm against PyTorch's."""
from __future__ import annotations
import warnings

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from test.compat.torch.modules.test_parametrize import LAYERS, agree
from tinyhw.compat.torch.modules.weight_hooks import WeightHook
from tinyhw.errors import ArgumentError

@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_against_pytorch(name: str, layer: str) -> None:
  torch = pytest.importorskip("torch")
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    a, b = agree(torch, lambda t, m: getattr(t.nn.utils, name)(m), layer)
  getattr(ours.nn.utils, f"remove_{name}")(b)
  np.testing.assert_allclose(b.weight.detach().numpy(), a.weight.detach().numpy(), rtol=1e-4, atol=1e-6)
  assert set(b.state_dict()) == {"weight", "bias"}

def test_refusals() -> None:
  utils, net = ours.nn.utils, ours.nn.Linear(2, 2)
  for match, call in {"no parameter 'x'": lambda: utils.weight_norm(net, "x"), "no such norm": lambda:
                      utils.remove_weight_norm(net), "at least 1": lambda: utils.spectral_norm(
                      net, n_power_iterations=0)}.items():
    with pytest.raises(ArgumentError, match=match): call()
  with pytest.raises(NotImplementedError): WeightHook("weight").compute(net)
