"""differentiation/gradients.py: gradients of functions, of gradients, and checkpoints, against PyTorch's."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError, GradientError, ShapeError

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
      ours.autograd.grad([x, x], x, [x])}.items():
    with pytest.raises((ArgumentError, GradientError), match=match): call()

def test_segments_are_computed_again() -> None:
  x = ours.tensor([1.0, -2.0], requires_grad=True)
  parts = [ours.sin, ours.exp, ours.nn.ReLU(), ours.cos, ours.tanh]
  checkpoint = ours.utils.checkpoint.checkpoint_sequential
  checkpoint(parts, 2, x, use_reentrant=False).sum().backward()
  found, x.grad = x.grad.tolist(), None
  x.sin().exp().relu().cos().tanh().sum().backward()
  assert found == x.grad.tolist() and checkpoint(ours.nn.Sequential(ours.nn.Tanh()), 1, x).shape == (2,)
  with pytest.raises(ArgumentError, match="from 1 to 5"): checkpoint(parts, 6, x)

def test_variables() -> None:
  x = ours.tensor([2.0])
  y = ours.autograd.Variable(x, requires_grad=True)
  (y * y).sum().backward()
  assert y.grad.tolist() == [4.0] and not x.requires_grad and not ours.autograd.Variable(x).requires_grad

def test_many_seeds_at_once() -> None:
  x, y = ours.tensor([1.0, -2.0], requires_grad=True), ours.tensor([3.0, 4.0], requires_grad=True)
  z, eye = x ** 2 * y, ours.eye(2)
  a, b = ours.autograd.grad(z, [x, y], eye, is_grads_batched=True)
  assert a.tolist() == [[6.0, 0.0], [0.0, -16.0]] and b.tolist() == [[1.0, 0.0], [0.0, 4.0]]
  found = ours.autograd.grad([z, x.sum()], [x], [eye, ours.ones(2)], is_grads_batched=True, create_graph=True)
  assert found[0].tolist() == [[7.0, 1.0], [1.0, -15.0]] and found[0].requires_grad
  unused = ours.autograd.grad(x.sum(), [x, y], ours.ones(3), is_grads_batched=True, allow_unused=True)
  assert unused[0].tolist() == [[1.0, 1.0]] * 3 and unused[1] is None
  with pytest.raises(ArgumentError, match="wants grad_outputs"): ours.autograd.grad(z, x, is_grads_batched=True)
  with pytest.raises(ArgumentError, match="2 grad_outputs for 1"):
    ours.autograd.grad(z, x, [eye, eye], is_grads_batched=True)
  with pytest.raises(ShapeError, match="one axis before"): ours.autograd.grad(z, x, ours.ones(2), is_grads_batched=True)
