"""functional/nn/normalizations.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.batch_norm(image, None, None, w[:3], w[1:], training=True)
F.batch_norm(image, torch.zeros(3), torch.ones(3))
F.instance_norm(image)
F.group_norm(image, 3, w[:3])
F.layer_norm(x, (4,), w, w)
F.rms_norm(x, (4,), w)
F.local_response_norm(image, 2)
F.normalize(x, 3.0)
torch.native_layer_norm(x, (4,), w, None, 1e-5)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_training_updates_running_statistics() -> None:
  mean, var = torch.zeros(1), torch.ones(1)
  F.batch_norm(torch.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
  assert (mean.tolist(), var.tolist()) == ([1.0], [1.5])

def test_an_empty_batch_leaves_running_statistics() -> None:
  mean, var = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
  assert F.batch_norm(torch.zeros(0, 2, 3), mean, var, training=True).shape == (0, 2, 3)
  assert mean.tolist() == [1.0, 2.0] and var.tolist() == [3.0, 4.0]

@pytest.mark.parametrize("call", [
  lambda: F.batch_norm(torch.ones(2, 3), None, None), lambda: F.layer_norm(torch.ones(2, 3), (2,)),
  lambda: F.group_norm(torch.ones(2, 3), 2), lambda: F.batch_norm(torch.ones(1, 3), None, None, training=True)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
