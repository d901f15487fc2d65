"""`autograd.gradcheck` and `gradgradcheck`: gradients beside differences of the function's values."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.differentiation.gradients import grad
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, GradientError
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, **options: Any) -> bool:
  """Compare the gradients of a function with differences of its values, for each element of each input that wants a
  gradient.

  Inputs should be float64. Raises GradientError where they differ, unless raise_exception is False. Other options are
  accepted, and change nothing.
  """
  given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
  wanted = [k for k, x in enumerate(given) if isinstance(x, Handle) and x.requires_grad]
  if not wanted: raise ArgumentError("gradcheck wants an input with requires_grad=True")
  outputs = _floats(func(*given))
  for number, y in enumerate(outputs):
    for element in range(int(y.numel())):
      seed = dress(_unit(y, element))
      found = grad(y, [given[k] for k in wanted], seed, allow_unused=True, materialize_grads=True)
      for k, slope in zip(wanted, found):
        if not _agree(func, given, k, number, element, slope, eps, atol, rtol):
          if not raise_exception: return False
          raise GradientError(f"the gradient of element {element} of result {number} for input {k} is not that of "
                              f"differences: {slope.tolist()}")
  return True

def _agree(func: Callable[..., Any], given: list[Any], k: int, number: int, element: int, slope: Any, eps: float,
           atol: float, rtol: float) -> bool:
  x = plain(given[k]).detach()
  found = slope.reshape(-1).tolist()
  for place in range(int(x.numel())):
    ends = []
    for sign in (eps, -eps):
      moved = dress(x.add(_unit(x, place).mul(sign)))
      values = _floats(func(*given[:k], moved, *given[k + 1:]))
      ends.append(float(plain(values[number]).reshape(-1)[element].item()))
    difference = (ends[0] - ends[1]) / (2 * eps)
    if not abs(difference - found[place]) <= atol + rtol * abs(difference): return False
  return True

def _unit(like: Any, place: int) -> Tensor:
  x = plain(like)
  return Tensor.arange(int(x.numel()), device=x.device).eq(place).cast(x.dtype).reshape(sizes(x))

def _floats(found: Any) -> list[Any]:
  values = found if isinstance(found, (tuple, list)) else [found]
  return [y for y in values if isinstance(y, Handle) and dtypes.is_float(y.dtype)]

def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True, **options: Any) -> bool:
  """Compare the gradients of a function's gradients with differences of these."""
  given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
  wanted = [k for k, x in enumerate(given) if isinstance(x, Handle) and x.requires_grad]
  def slopes(*xs: Any) -> Any:
    ys = _floats(func(*xs))
    seeds = grad_outputs if grad_outputs is not None else [dress(plain(y).detach().const_like(0.7)) for y in ys]
    return grad(ys, [xs[k] for k in wanted], seeds, create_graph=True, allow_unused=True, materialize_grads=True)
  return gradcheck(slopes, given, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
