"""functional/rules.py: gradients by a rule."""
from __future__ import annotations

from tinyhw import Tensor
from tinyhw.functional.rules import unbroadcast, with_rule, with_scaled_gradient

def test_a_rule_is_the_gradient_to_any_order() -> None:
  x = Tensor([1.0, 3.0], requires_grad=True)
  y = with_rule(x.detach() * 5, (x,), lambda y, g, x: (g * x * x,))
  first, = y.sum().gradient(x)
  assert y.tolist() == [5.0, 15.0] and first.tolist() == [1.0, 9.0]
  assert first.sum().gradient(x)[0].tolist() == [2.0, 6.0]

def test_a_rule_of_two_inputs() -> None:
  a, b = Tensor([2.0]), Tensor([3.0])
  y = with_rule(a.mul(b).detach(), (a, b), lambda y, g, a, b: (g.mul(b), g.mul(a)))
  assert [d.tolist() for d in y.sum().gradient(a, b)] == [[3.0], [2.0]]

def test_a_scaled_gradient() -> None:
  x = Tensor([1.0, 3.0], requires_grad=True)
  y = with_scaled_gradient(x, Tensor([0.5, 2.0]))
  assert y.tolist() == [1.0, 3.0] and y.square().sum().gradient(x)[0].tolist() == [1.0, 12.0]

def test_unbroadcast() -> None:
  assert unbroadcast(Tensor.ones(2, 3), (3,)).tolist() == [2.0] * 3
  assert unbroadcast(Tensor.ones(2, 3), (2, 1)).tolist() == [[3.0], [3.0]]
