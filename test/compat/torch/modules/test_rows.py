"""compat/torch/modules/rows.py: constructors and results of layers without parameters, against PyTorch's."""
from __future__ import annotations
import inspect

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.compat.torch import nn
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

def test_losses_have_bases() -> None:
  from tinyhw.compat.torch.nn.modules.loss import _Loss, _WeightedLoss
  class Mine(_Loss):  # type: ignore[misc,valid-type]  # a class of the table
    """A loss of a program's own."""
  assert isinstance(nn.MSELoss(), _Loss) and isinstance(nn.NLLLoss(), _WeightedLoss)
  assert Mine(reduction="sum").reduction == "sum"
  assert not isinstance(nn.MSELoss(), _WeightedLoss) and Mine(size_average=False).reduction == "sum"
  assert _WeightedLoss(torch.ones(2), reduce=False).reduction == "none" and not isinstance(nn.ReLU(), _Loss)

def test_upsampling() -> None:
  agree("torch.nn.UpsamplingBilinear2d(scale_factor=2)(image), torch.nn.UpsamplingNearest2d(9)(image)")
