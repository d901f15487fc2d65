"""differentiation/gradients.py: gradients of functions, of gradients, and checkpoints, against PyTorch's."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError, GradientError

def gradients(torch: Any) -> list[Any]:
  x = torch.tensor([1.0, 2.0], requires_grad=True)
  y = torch.tensor([3.0, -1.0], requires_grad=True)
  first, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
  second, = torch.autograd.grad(first.sum(), x)
  both = torch.autograd.grad([x * y, x.sum()], [x, y], grad_outputs=[torch.tensor([1.0, 2.0]), None])
  unused = torch.autograd.grad(x.sum(), [x, y], allow_unused=True)
  zeros = torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)
  torch.autograd.backward([(x * 2).sum()])
  norm, = torch.autograd.grad(torch.nn.functional.relu(x * y), x, torch.ones(2), create_graph=True)
  ((norm.norm(2) - 1) ** 2).backward()
  return [first.tolist(), second.tolist(), [g.tolist() for g in both], unused[0].tolist(), unused[1],
          zeros[1].tolist(), x.grad.tolist(), y.grad.tolist()]

def test_against_pytorch() -> None:
  for a, b in zip(gradients(pytest.importorskip("torch")), gradients(ours), strict=True):
    assert b == (a if a is None or isinstance(a[0], list) else pytest.approx(a))

def of_inputs(torch: Any) -> list[Any]:
  x, y, z = (torch.tensor([1.0, float(k)], requires_grad=True) for k in range(3))
  (x * y).sum().backward(inputs=[x, z])
  (x * y).backward(torch.tensor([2.0, 3.0]), inputs=x)
  torch.autograd.backward([(x * y * 2).sum()], inputs=[y])
  h = x * 3
  (h * y).sum().backward(inputs=[h])
  return [x.grad.tolist(), y.grad.tolist(), z.grad, h.grad.tolist()]

def test_backward_of_some_inputs() -> None:
  assert of_inputs(ours) == of_inputs(pytest.importorskip("torch"))
  with pytest.raises(ArgumentError, match="no inputs"): ours.ones(1, requires_grad=True).sum().backward(inputs=[])

def test_checkpoints() -> None:
  w = ours.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
  y = ours.utils.checkpoint.checkpoint(lambda x: (x @ w).square(), ours.ones(1, 2), use_reentrant=False)
  y.sum().backward()
  assert type(y) is ours.Tensor and w.grad.tolist() == [[8.0, 12.0], [8.0, 12.0]]

def test_refusals() -> None:
  x, y = ours.tensor([1.0, 2.0], requires_grad=True), ours.tensor([3.0, 4.0], requires_grad=True)
  for match, call in {
      "give grad_outputs": lambda: ours.autograd.grad(x * 2, x), "was not computed": lambda: ours.autograd.grad(
        x.sum(), y), "are tensors": lambda: ours.autograd.grad(x.sum(), [3]), "1 grad_outputs for 2": lambda:
      ours.autograd.grad([x, x], x, [x]), "use a loop": lambda: ours.autograd.grad(
        x.sum(), x, is_grads_batched=True)}.items():
    with pytest.raises((ArgumentError, GradientError), match=match): call()
