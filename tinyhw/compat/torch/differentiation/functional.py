"""`torch.autograd.functional`: Jacobians, Hessians and their products, of functions of one tensor or of several.

They are those of torch.func (transforms.py), in the form of these older functions: an argument alone is no tuple.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.differentiation import transforms
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.base import Handle

def _many(x: Any) -> tuple[Any, ...]: return tuple(x) if isinstance(x, (tuple, list)) else (x,)

def _cut(x: Any, keep: bool) -> Any:
  """Return results without gradients unless they are to be kept."""
  if isinstance(x, tuple): return tuple([_cut(y, keep) for y in x])
  return x if keep else dress(plain(x).detach())

def _jacobian(func: Callable[..., Any], inputs: Any, forward: bool) -> Any:
  xs = _many(inputs)
  make = transforms.jacfwd if forward else transforms.jacrev
  single = isinstance(inputs, Handle)
  found = make(func, 0 if single else tuple(range(len(xs))))(*xs)
  return tuple(found) if isinstance(found, list) else found

def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
  """Return the Jacobian of a function. Several inputs or results give tuples, results first."""
  if strategy not in ("reverse-mode", "forward-mode"):
    raise ArgumentError(f"strategy is 'reverse-mode' or 'forward-mode', not {strategy!r}")
  return _cut(_jacobian(func, inputs, strategy == "forward-mode"), create_graph)

def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
  """Return the second derivatives of a function with one number as its result."""
  def slopes(*xs: Any) -> Any: return _jacobian(_scalar(func), xs[0] if isinstance(inputs, Handle) else xs, False)
  return _cut(_jacobian(slopes, inputs, False), create_graph)

def _scalar(func: Callable[..., Any]) -> Callable[..., Any]:
  def called(*xs: Any) -> Any:
    y: Any = func(*xs)
    if not isinstance(y, Handle) or plain(y).numel() != 1:
      raise ShapeError(f"the function gives one number, not {y!r:.80}")
    return dress(plain(y).reshape(()))
  return called

def _vector(v: Any, like: Any) -> tuple[Any, ...]:
  if v is not None: return _many(v)
  values = _many(like)
  if len(values) != 1 or values[0].numel() != 1: raise ArgumentError("v is left out only for a result of one number")
  return (dress(plain(values[0]).detach().const_like(1)),)

def _single(found: tuple[Any, ...], like: Any) -> Any: return found[0] if isinstance(like, Handle) else found

def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
  """Return (result, v @ Jacobian)."""
  y, product = transforms.vjp(func, *_many(inputs))
  seeds = _vector(v, y)
  found = product(seeds[0] if isinstance(y, Handle) else seeds)
  return _cut(y, create_graph), _single(_cut(tuple(found), create_graph), inputs)

def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
  """Return (result, Jacobian @ v)."""
  y, found = transforms.jvp(func, _many(inputs), _vector(v, inputs))
  return _cut(y, create_graph), _cut(found, create_graph)

def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
  """Return (result, Hessian @ v), for a function with one number as its result."""
  xs = _many(inputs)
  places = tuple(range(len(xs)))
  slopes = transforms.grad(_scalar(func), places)
  _, found = transforms.jvp(slopes, xs, _vector(v, inputs))
  return _cut(func(*xs), create_graph), _single(_cut(tuple(found), create_graph), inputs)

vhp = hvp      # the matrix is symmetric
