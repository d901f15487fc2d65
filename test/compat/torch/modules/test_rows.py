"""compat/torch/modules/rows.py: constructors and results of layers without parameters, against PyTorch's."""
from __future__ import annotations
import inspect

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.modules.rows import LAYERS
from tinyhw.errors import ArgumentError

OLD = ("args", "kwargs", "min_value", "max_value")   # the last two are deprecated by PyTorch

@pytest.mark.parametrize("name", LAYERS)
def test_constructors_are_pytorch_s(name: str) -> None:
  theirs = getattr(pytest.importorskip("torch").nn, name)
  wanted = [p for p in inspect.signature(theirs).parameters.values() if p.name not in OLD]
  mine = list(getattr(LAYERS[name], "signature", inspect.signature(LAYERS[name])).parameters.values())
  assert [(p.name, p.default) for p in mine] == [(p.name, p.default) for p in wanted]

def test_results() -> None:
  nn, x = torch.nn, torch.tensor([[-1.0, 2.0]])
  assert nn.LeakyReLU(0.5)(x).tolist() == [[-0.5, 2.0]]
  assert nn.Dropout(0.5).eval()(x).tolist() == [[-1.0, 2.0]]
  assert nn.MSELoss(reduction="sum")(x, x + 1).item() == 2.0
  assert nn.ConstantPad1d(1, 3.0)(x).tolist() == [[3.0, -1.0, 2.0, 3.0]]
  assert nn.ZeroPad1d(1)(x).tolist() == [[0.0, -1.0, 2.0, 0.0]]
  assert nn.ReflectionPad1d((1, 0))(x).tolist() == [[2.0, -1.0, 2.0]]
  assert nn.Flatten()(torch.ones(2, 3, 4)).shape == (2, 12)
  assert nn.Unflatten(1, (1, 2))(x).shape == (1, 1, 2)
  assert nn.Identity(3, a=4)(x) is x
  assert nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten().tolist() == [0.5, 0.5]
  assert repr(nn.LeakyReLU(0.5)) == "LeakyReLU(negative_slope=0.5)"
  weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
  assert list(weighted.state_dict()) == ["weight"]
  with pytest.raises(ArgumentError, match="it takes"): nn.ReLU(frob=1)
