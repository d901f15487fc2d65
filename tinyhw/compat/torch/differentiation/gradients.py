"""`torch.autograd.grad` and `backward`, and `torch.utils.checkpoint`."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.errors import ArgumentError, GradientError, ShapeError
from tinyhw.functional.batching import batched, placeholder
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import flag
from tinyhw.tensor import Tensor

def _listed(what: str, x: Any) -> list[Any]:
  items = [x] if isinstance(x, Handle) else list(x)
  for t in items:
    if not isinstance(t, Handle): raise ArgumentError(f"{what} are tensors, not {t!r}")
  return items

def _seeds(outputs: list[Any], grad_outputs: Any) -> list[Any]:
  """Return the gradient of each output: ones for those without axes."""
  if grad_outputs is None: given: list[Any] = [None] * len(outputs)
  else: given = [grad_outputs] if isinstance(grad_outputs, Handle) else list(grad_outputs)
  if len(given) != len(outputs): raise ArgumentError(f"{len(given)} grad_outputs for {len(outputs)} outputs")
  for y, g in zip(outputs, given):
    if g is None and y.numel() != 1:
      raise GradientError(f"an output of shape {y.shape} has no gradient of its own; give grad_outputs")
  return given

def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:
  """Return the gradients of the sum of outputs for inputs. create_graph: they may be differentiated again.

  allow_unused: None for an input that the outputs do not use, instead of GradientError. materialize_grads: zeros.
  is_grads_batched: grad_outputs have one more axis in front, and so have the results.
  """
  ys, xs = _listed("outputs", outputs), _listed("inputs", inputs)
  if flag("is_grads_batched", is_grads_batched):
    return _of_many(ys, xs, grad_outputs, create_graph, allow_unused, materialize_grads)
  found: list[Any] = [None] * len(xs)
  for y, g in zip(ys, _seeds(ys, grad_outputs)):
    for k, x in enumerate(xs):
      try: part, = plain(y).gradient(x, gradient=None if g is None else plain(g))
      except GradientError:
        if not (allow_unused or materialize_grads or len(ys) > 1): raise
        continue
      found[k] = part if found[k] is None else found[k] + part
  for k, x in enumerate(xs):
    if found[k] is None and materialize_grads: found[k] = plain(x).zeros_like()
    if found[k] is None and not allow_unused:
      raise GradientError(f"input {k} was not used; allow_unused=True gives None")
  return tuple([None if g is None else dress(g if create_graph else g.detach()) for g in found])

def _of_many(ys: list[Any], xs: list[Any], grad_outputs: Any, create_graph: bool, allow_unused: bool | None,
             materialize_grads: bool) -> tuple[Any, ...]:
  """Return gradients for many seeds at once, which are along the first axis."""
  if grad_outputs is None: raise ArgumentError("is_grads_batched=True wants grad_outputs")
  seeds = _listed("grad_outputs", grad_outputs)
  if len(seeds) != len(ys): raise ArgumentError(f"{len(seeds)} grad_outputs for {len(ys)} outputs")
  counts = {int(g.shape[0]) if g.ndim else 0 for g in seeds}
  if len(counts) != 1 or any(sizes(g)[1:] != sizes(y) for g, y in zip(seeds, ys)):
    raise ShapeError(f"grad_outputs {[tuple(g.shape) for g in seeds]} do not have one axis before those of outputs "
                     f"{[tuple(y.shape) for y in ys]}")
  ones = [Tensor._new(placeholder(tuple(sizes(y)), plain(y).uop)) for y in ys]
  found = grad(ys, xs, [dress(one) for one in ones], None, True, True, allow_unused, False, materialize_grads)
  wanted = [plain(g).uop for g in found if g is not None]
  many = iter(batched(wanted, {one.uop: plain(g).uop for one, g in zip(ones, seeds)}, counts.pop()))
  made = [None if g is None else Tensor._new(next(many)) for g in found]
  return tuple([None if g is None else dress(g if create_graph else g.detach()) for g in made])

def backward(tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, create_graph: bool = False,
             inputs: Any = None) -> None:
  """Add to `grad` of the tensors from which some were computed. inputs: of these alone."""
  ys = _listed("tensors", tensors)
  for y, g in zip(ys, _seeds(ys, grad_tensors)): y.backward(g, inputs=inputs)

def add(y: Any, gradient: Any, inputs: Any) -> None:
  """Add the gradients of y for inputs to their `grad`. Those that y does not use keep theirs."""
  xs = _listed("inputs", inputs)
  if not xs: raise ArgumentError("backward() has no inputs; name tensors, or leave inputs out")
  for x, g in zip(xs, grad(y, xs, gradient, allow_unused=True)):
    if g is not None: x.grad = g if x.grad is None else x.grad + g

def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               preserve_rng_state: bool = True, **keywords: Any) -> Any:
  """Call a function whose inner values are computed again for the backward pass, instead of kept."""
  return dress(Tensor.checkpoint(lambda *xs: function(*dress(xs), **keywords), *args))

def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          preserve_rng_state: bool = True) -> Any:
  """Call modules one after another, in segments. The inner values of all but the last one are computed again."""
  parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
  if not 1 <= segments <= len(parts): raise ArgumentError(f"segments is {segments}; it is from 1 to {len(parts)}")
  size = len(parts) // segments
  def run(some: list[Any]) -> Callable[[Any], Any]:
    def called(x: Any) -> Any:
      for part in some: x = part(x)
      return x
    return called
  for begin in range(0, size * (segments - 1), size): input = checkpoint(run(parts[begin:begin + size]), input)
  return run(parts[size * (segments - 1):])(input)

def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
  """Return a tensor of the same memory, which may want a gradient: tensors were once wrapped in this."""
  found = dress(plain(data).detach())
  return found.requires_grad_() if requires_grad else found
