"""`torch.autograd.Function`: a function with a gradient of the user's own.

A subclass has `forward(ctx, ...)` and `backward(ctx, ...)`, or `forward(...)` and `setup_context(ctx, inputs, output)`.
The backward function is called when a gradient is computed, each time that one is, with tensors that may be computed
lazily. Its results may be differentiated again.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import math
from typing import Any

from tinyhw.compat.torch.differentiation.modes import enable_grad, no_grad
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.types.narrowing import autocast, is_autocast_enabled
from tinyhw.dtype import dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError, GradientError, ShapeError
from tinyhw.functional.operands import sizes
from tinyhw.functional.rules import with_rule
from tinyhw.functional.shapes import cat
from tinyhw.methods.base import GradMode, Handle
from tinyhw.tensor import Tensor

class FunctionContext:
  """What a forward function keeps for its backward function: saved tensors, and any attributes."""
  def __init__(self, needs_input_grad: tuple[bool, ...] = ()):
    self.needs_input_grad = needs_input_grad
    self.saved_tensors: tuple[Any, ...] = ()
    self.fixed: tuple[Any, ...] = ()
    self.fills_zeros = True

  def save_for_backward(self, *tensors: Any) -> None:
    """Keep tensors (or None), which `saved_tensors` gives back."""
    self.saved_tensors = tensors

  def mark_non_differentiable(self, *tensors: Any) -> None:
    """Say which results have no gradient."""
    self.fixed = tensors

  def mark_dirty(self, *tensors: Any) -> None:
    """Refuse: a function here returns new tensors."""
    raise ArgumentError("a Function changes no tensor in place here; return a new one, and leave mark_dirty out")

  def set_materialize_grads(self, value: bool) -> None:
    """False: results without a gradient have None in the backward function, and not zeros."""
    self.fills_zeros = bool(value)

class AutogradFunction:
  """The base of functions with a gradient of their own; `apply` calls them."""
  @staticmethod
  def forward(*args: Any, **keywords: Any) -> Any:
    """Compute the result. Subclasses define it."""
    raise ArgumentError("a Function has a static method forward(ctx, ...); define one")

  @staticmethod
  def backward(ctx: Any, *gradients: Any) -> Any:
    """Return the gradient of each argument of forward, None where there is none. Subclasses define it."""
    raise ArgumentError("a Function has a static method backward(ctx, ...); define one")

  setup_context: Any = None

  @classmethod
  def apply(cls, *args: Any) -> Any:
    """Call forward without gradients, and give its results the gradient that backward computes."""
    needed = tuple([isinstance(x, Handle) and dtypes.is_float(x.dtype) and x._requires_grad is not False for x in args])
    ctx = FunctionContext(needed)
    with no_grad():
      if cls.setup_context is None: found = cls.forward(ctx, *args)
      else:
        found = cls.forward(*args)
        cls.setup_context(ctx, args, found)
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    if GradMode.off or not any(needed): return found
    fixed = {id(x) for x in ctx.fixed}
    places = [k for k, y in enumerate(results) if isinstance(y, Handle) and dtypes.is_float(y.dtype)
              and id(y) not in fixed]
    if not places: return found
    inputs = [plain(x) for x, wanted in zip(args, needed) if wanted]
    def rule(gradients: list[Tensor]) -> list[Tensor]:
      return cls._gradients(ctx, args, needed, results, places, gradients)
    joined = with_joint_rule([plain(results[k]) for k in places], inputs, rule)
    changed = {id(results[k]): dress(y) for k, y in zip(places, joined)}
    ctx.saved_tensors = tuple([changed.get(id(x), x) for x in ctx.saved_tensors])
    many = [changed.get(id(y), y) for y in results]
    return type(found)(many) if isinstance(found, (tuple, list)) else many[0]

  @classmethod
  def _gradients(cls, ctx: FunctionContext, args: Any, needed: tuple[bool, ...], results: list[Any], places: list[int],
                 gradients: list[Tensor]) -> list[Tensor]:
    given: list[Any] = [plain(y).zeros_like() if ctx.fills_zeros and isinstance(y, Handle) else None for y in results]
    for k, g in zip(places, gradients): given[k] = g
    with enable_grad(): found = cls.backward(ctx, *dress(given))
    slopes = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(slopes) < len(args) or any(g is not None for g in slopes[len(args):]):
      raise GradientError(f"{cls.__name__}.backward gave {len(slopes)} gradients for {len(args)} arguments; give one "
                          "for each, None where there is none")
    kept = []
    for x, g, wanted in zip(args, slopes, needed):
      if not wanted: continue
      if g is not None and sizes(g) != sizes(x):
        raise ShapeError(f"{cls.__name__}.backward gave a gradient of shape {g.shape} for an argument of {x.shape}")
      kept.append(plain(x).zeros_like() if g is None else plain(g).cast(x.dtype))
    return kept

def with_joint_rule(results: list[Tensor], inputs: list[Tensor], rule: Callable[[list[Tensor]], list[Tensor]]
                    ) -> list[Tensor]:
  """Return results of inputs, whose gradients a rule makes of the gradients of all results together."""
  if len(results) == 1: return [with_rule(results[0].detach(), inputs, lambda y, g, *xs: rule([g]))]
  kind = least_upper_dtype(*[y.dtype for y in results])
  counts = [math.prod(sizes(y)) for y in results]
  ends = [sum(counts[:k + 1]) for k in range(len(counts))]
  def parts(flat: Tensor) -> list[Tensor]:
    return [flat[end - n:end].reshape(sizes(y)).cast(y.dtype) for y, n, end in zip(results, counts, ends)]
  flat = cat([y.detach().cast(kind).reshape(-1) for y in results], 0)
  return parts(with_rule(flat, inputs, lambda y, g, *xs: rule(parts(g))))

def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorate a backward function whose results are not differentiated again."""
  @functools.wraps(function)
  def called(*args: Any) -> Any:
    with no_grad(): return function(*args)
  return called

def custom_fwd(fwd: Any = None, *, device_type: str | None = None, cast_inputs: Any = None) -> Any:
  """Decorate a forward function. cast_inputs: a type to which float tensors are cast while autocast is on."""
  if fwd is None: return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
  @functools.wraps(fwd)
  def called(*args: Any, **keywords: Any) -> Any:
    if cast_inputs is None or not is_autocast_enabled(): return fwd(*args, **keywords)
    def cast(x: Any) -> Any:
      return dress(plain(x).cast(cast_inputs)) if isinstance(x, Handle) and dtypes.is_float(x.dtype) else x
    with autocast(device_type or "cpu", enabled=False):
      return fwd(*[cast(x) for x in args], **{k: cast(x) for k, x in keywords.items()})
  return called

def custom_bwd(bwd: Any = None, *, device_type: str | None = None) -> Any:
  """Decorate a backward function."""
  return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
