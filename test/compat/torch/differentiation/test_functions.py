"""compat/torch/differentiation/functions.py: gradients of the user's own, as PyTorch's tutorials write them."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, GradientError, ShapeError

class Exponential(torch.autograd.Function):  # type: ignore[misc,name-defined]
  @staticmethod
  def forward(ctx: Any, x: Any) -> Any:
    result = x.exp()
    ctx.save_for_backward(result)
    return result

  @staticmethod
  def backward(ctx: Any, g: Any) -> Any:
    result, = ctx.saved_tensors
    return g * result

class StraightThrough(torch.autograd.Function):  # type: ignore[misc,name-defined]
  @staticmethod
  def forward(x: Any, scale: float) -> Any: return (x > 0).float() * scale

  @staticmethod
  def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ctx.scale = inputs[1]

  @staticmethod
  def backward(ctx: Any, g: Any) -> Any: return g * ctx.scale, None

class SumAndProduct(torch.autograd.Function):  # type: ignore[misc,name-defined]
  calls = 0

  @staticmethod
  def forward(ctx: Any, a: Any, b: Any) -> Any:
    ctx.save_for_backward(a, b)
    return a + b, a * b

  @staticmethod
  def backward(ctx: Any, g: Any, h: Any) -> Any:
    SumAndProduct.calls += 1
    a, b = ctx.saved_tensors
    return g + h * b, g + h * a

def test_a_gradient_of_ones_own_to_the_second_order() -> None:
  x = torch.tensor([0.0, 1.0], requires_grad=True)
  first, = torch.autograd.grad(Exponential.apply(x).sum(), x, create_graph=True)
  second, = torch.autograd.grad((first * first).sum(), x)
  assert first.tolist() == pytest.approx([1.0, 2.7182817], rel=1e-6)
  assert second.tolist() == pytest.approx([2.0, 14.778112], rel=1e-5)

def test_the_newer_form_with_a_number() -> None:
  x = torch.tensor([-1.0, 2.0], requires_grad=True)
  y = StraightThrough.apply(x, 3.0)
  y.sum().backward()
  assert y.tolist() == [0.0, 3.0] and x.grad.tolist() == [3.0, 3.0]

def test_several_results_call_backward_once() -> None:
  a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
  SumAndProduct.calls = 0
  y, z = SumAndProduct.apply(a, b)
  (y + 10 * z).sum().backward()
  assert (a.grad.item(), b.grad.item()) == (51.0, 21.0)
  assert SumAndProduct.calls <= 2      # at most once for each gradient
  y, z = SumAndProduct.apply(a, b)
  assert torch.autograd.grad(z.sum(), a)[0].item() == 5.0

def test_without_gradients_it_is_its_forward() -> None:
  with torch.no_grad(): assert Exponential.apply(torch.zeros(2)).tolist() == [1.0, 1.0]

def test_refuses() -> None:
  class Wrong(torch.autograd.Function):  # type: ignore[misc,name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any, n: int) -> Any: return x * n

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any: return g
  class Narrow(Wrong):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any: return g[:1], None
  class Dirty(Wrong):
    @staticmethod
    def forward(ctx: Any, x: Any, n: int) -> Any: return ctx.mark_dirty(x)
  x = torch.ones(2, requires_grad=True)
  with pytest.raises(GradientError, match="1 gradients for 2 arguments"): Wrong.apply(x, 2).sum().backward()
  with pytest.raises(ShapeError, match="gradient of shape"): Narrow.apply(x, 2).sum().backward()
  with pytest.raises(ArgumentError, match="mark_dirty"): Dirty.apply(x, 2)
  with pytest.raises(ArgumentError, match="define one"): torch.autograd.Function.apply(x)

def test_decorators_of_mixed_precision() -> None:
  seen = []
  class Square(torch.autograd.Function):  # type: ignore[name-defined,misc]  # a class of the table
    """x * x."""
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Any) -> Any:
      ctx.save_for_backward(x)
      seen.append((x.dtype, torch.is_autocast_enabled()))
      return x * x
    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, g: Any) -> Any: return 2 * ctx.saved_tensors[0] * g
  x = torch.tensor([3.0], requires_grad=True)
  Square.apply(x).sum().backward()
  with torch.autocast("cpu", dtype=torch.bfloat16): Square.apply(x.bfloat16())
  assert x.grad.tolist() == [6.0] and seen == [(torch.float32, False)] * 2
