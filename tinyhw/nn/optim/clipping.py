"""Gradients together: their norm, clipping by norm and by value; parameters as one vector and back.

All functions work on Tensors, and on tensors of tinyhw.compat.torch, whose class their results have.
"""
from __future__ import annotations
from collections.abc import Iterable
import math
from typing import Any

from tinyhw.dtype import dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, GradientError
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

def _listed(what: str, given: Any) -> list[Any]:
  items = [given] if isinstance(given, Handle) else list(given)
  for x in items:
    if not isinstance(x, Handle): raise ArgumentError(f"{what} wants tensors, not {x!r}")
  return items

def _gradients(what: str, parameters: Any) -> list[Any]: return [p.grad for p in _listed(what, parameters)
                                                                 if p.grad is not None]

def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Any:
  """Return the norm of all elements of tensors, without axes, in float32 at least.

  norm_type: p of the p-norm; inf for the largest; 0 counts the tensors that are not all zero.
  error_if_nonfinite: raise GradientError for NaN and infinities.
  """
  items, p = _listed("get_total_norm", tensors), float(norm_type)
  if not items: return Tensor(0.0)
  parts = [x.detach().cast(least_upper_dtype(dtypes.float32, x.dtype)).abs().reshape(-1) for x in items]
  parts = [x.to(items[0].device) for x in parts]
  if math.isinf(p):
    found = parts[0].max() if p > 0 else parts[0].min()
    for x in parts[1:]: found = found.maximum(x.max()) if p > 0 else found.minimum(x.min())
  else:
    sums = [(x != 0).any() * 1.0 if p == 0 else (x * x).sum() if p == 2 else (x ** p).sum() for x in parts]
    total = sums[0]
    for x in sums[1:]: total = total + x
    found = total.sqrt() if p == 2 else total if p == 0 else total ** (1 / p)
  found = found.cast(items[0].dtype)
  if error_if_nonfinite and not math.isfinite(found.item()):
    raise GradientError(f"the norm of order {p} of {len(items)} gradients is {found.item()}; a gradient is not finite")
  return found

def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
  """Scale gradients by max_norm / total_norm where that is below 1."""
  factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
  for g in _gradients("clip_grads_with_norm_", parameters): g.assign(g * factor.cast(g.dtype).to(g.device))

def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Any:
  """Scale gradients so that the norm of all together is at most max_norm. Return the norm that they had.

  >>> from tinyhw import Tensor
  >>> w = Tensor([3.0, 4.0], requires_grad=True)
  >>> loss = (w * w).sum().backward()
  >>> norm = clip_grad_norm_([w], 1.0)
  >>> norm.item(), [round(g, 3) for g in w.grad.tolist()]
  (10.0, [0.6, 0.8])
  """
  parameters = _listed("clip_grad_norm_", parameters)
  gradients = _gradients("clip_grad_norm_", parameters)
  total = get_total_norm(gradients, norm_type, error_if_nonfinite)
  clip_grads_with_norm_(parameters, max_norm, total)
  return total

def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
  """Bring the elements of gradients between -clip_value and clip_value."""
  for g in _gradients("clip_grad_value_", parameters): g.assign(g.clamp(-clip_value, clip_value))

def parameters_to_vector(parameters: Iterable[Any]) -> Any:
  """Return the elements of all parameters as one vector."""
  items = _listed("parameters_to_vector", parameters)
  if not items: raise ArgumentError("parameters_to_vector wants a tensor at least")
  flat = [p.reshape(-1) for p in items]
  return flat[0].cat(*flat[1:])

def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
  """Write the elements of a vector into parameters, in order."""
  if not isinstance(vec, Handle): raise ArgumentError(f"vector_to_parameters wants a tensor, not {vec!r}")
  items, begin, vec = _listed("vector_to_parameters", parameters), 0, vec.detach()  # type: ignore[attr-defined]
  for p in items:
    count = int(p.numel())
    p.assign(vec[begin:begin + count].reshape(p.shape).cast(p.dtype))
    begin += count
