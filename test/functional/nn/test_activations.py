"""functional/nn/activations.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, IndexRangeError

F = torch.nn.functional

CASES = """
F.relu(x)
F.relu6(x)
F.leaky_relu(x, 0.2)
F.elu(x, 0.5)
F.celu(x, 2.0)
F.selu(x)
F.silu(x)
F.mish(x)
F.hardswish(x)
F.hardtanh(x, -0.5, 0.5)
F.threshold(x, 0.1, 7.0)
F.rrelu(x)
F.gelu(x)
F.gelu(x, approximate="tanh")
F.softplus(x, 3.0)
F.hardshrink(x)
F.softshrink(x, 0.2)
F.tanhshrink(x)
F.softsign(x)
F.logsigmoid(x)
F.glu(x)
F.prelu(x, w)
F.dropout(x, 0.5, training=False)
torch.logit(u, eps=0.1)
F.one_hot(i, 4)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_dropout_keeps_the_mean() -> None:
  kept = F.dropout(torch.ones(4000), 0.25)
  assert kept.mean().item() == pytest.approx(1.0, abs=0.05)
  assert sorted(set(kept.tolist())) == pytest.approx([0.0, 4 / 3])
  with pytest.raises(ArgumentError, match="p is 2"): F.dropout(torch.ones(3), 2)

def test_in_place() -> None:
  x = torch.tensor([-1.0, 2.0])
  F.relu(x, inplace=True)
  assert x.tolist() == [0.0, 2.0]

def test_gumbel_softmax() -> None:
  torch.manual_seed(0)
  x = torch.tensor([[0.0, 1.0, 2.0]] * 500, requires_grad=True)
  soft, hard = torch.nn.functional.gumbel_softmax(x, 0.5), torch.nn.functional.gumbel_softmax(x, hard=True)
  assert abs(soft.sum(1) - 1).max().item() < 1e-5 and set(hard.detach().round().flatten().tolist()) == {0.0, 1.0}
  assert hard.mean(0).tolist() == pytest.approx([0.09, 0.245, 0.665], abs=0.06)
  assert torch.nn.functional.gumbel_softmax(x, hard=True, dim=0).sum(0).tolist() == pytest.approx([1.0] * 3, abs=1e-4)
  (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
  assert x.grad.abs().sum().item() > 0

@pytest.mark.parametrize("classes, count", [([0, 3], 3), ([-1], 3), ([-1], -1)])
def test_one_hot_refuses_other_classes(classes: list[int], count: int) -> None:
  with pytest.raises(IndexRangeError, match="a class is"):
    torch.nn.functional.one_hot(torch.tensor(classes), count)
