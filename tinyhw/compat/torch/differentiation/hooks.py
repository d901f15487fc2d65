"""Hooks: functions that a tensor's gradient passes, and the way to remove any hook.

A hook of a tensor is called when a gradient is expressed, with the whole gradient of the tensor's value. The gradient
is a tensor that may be computed lazily, so a hook that reads its elements computes it. Equal expressions are one value
with one gradient, as for retain_grad; clone() makes a separate value. A hook lives as long as its node, or until it is
removed. A hook that holds its own tensor keeps both alive, so it should be removed.
"""
from __future__ import annotations
from collections.abc import Callable
import itertools
from typing import Any
import weakref

from tinyhw.compat.torch.differentiation.modes import enable_grad
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.dtype import dtypes
from tinyhw.engine.memory import writes
from tinyhw.errors import ArgumentError, GradientError, ShapeError
from tinyhw.functional.operands import sizes
from tinyhw.gradient import hook_gradient, reaches
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class RemovableHandle:
  """The way to remove a hook. As a context, it removes the hook at the end."""
  def __init__(self, hooks: dict[int, Any], key: int): self.hooks, self.key = hooks, key
  def remove(self) -> None:
    """Remove the hook. It may be called twice."""
    self.hooks.pop(self.key, None)

  def __enter__(self) -> RemovableHandle: return self
  def __exit__(self, *_: object) -> None: self.remove()

_numbers = itertools.count()

def registered(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
  """Add a hook, and return the way to remove it."""
  if not callable(hook): raise ArgumentError(f"a hook is a function, not {hook!r}")
  key = next(_numbers)
  hooks[key] = hook
  return RemovableHandle(hooks, key)

def register_hook(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
  """Call hook with the tensor's gradient when one is expressed. A tensor that it returns replaces the gradient.

  Raises GradientError for a tensor that has no gradient, or for a complex one.
  """
  if not callable(hook): raise ArgumentError(f"a hook is a function, not {hook!r}")
  if tensor.holds_complex: raise GradientError("a complex tensor has no hooks here; hook its view_as_real")
  if not tensor.requires_grad:
    raise GradientError("a hook wants a tensor that requires a gradient; call requires_grad_() on it, or on a tensor "
                        "that it is computed from")
  functions: dict[int, Callable[[UOp], UOp]] = {}
  found = registered(functions, lambda g: _passed(hook, g))
  hook_gradient(tensor.uop, tensor if tensor._requires_grad else None, functions)
  return found

def _passed(hook: Callable[[Any], Any], gradient: UOp) -> UOp:
  g = Tensor._new(gradient)
  with enable_grad(): found = hook(dress(g))
  if found is None: return gradient
  if not isinstance(found, Handle): raise ArgumentError(f"a hook returns a tensor or None, not {found!r}")
  if sizes(found._self()) != sizes(g): raise ShapeError(f"a hook gave {found.shape} for a gradient of shape {g.shape}")
  node: UOp = plain(found).cast(g.dtype).uop
  return node

def is_differentiable(tensor: Handle) -> bool:
  """Does a gradient of the tensor flow to one with requires_grad=True?"""
  if tensor.holds_complex: return any(is_differentiable(part) for part in tensor._planes)
  if not dtypes.is_float(tensor.dtype): return False
  with lock:
    writes.classify()
    nodes = {node for h in writes.marked() for node in (h.uop, _memory(h.uop)) if node is not None}
  return bool(nodes) and reaches(tensor.uop, nodes)

def _memory(u: UOp) -> UOp | None:
  """Return the memory for which a marked node stands. A tensor that was detached, and marked then, is another one."""
  return None if u.op is Ops.DETACH else writes.memory_of(u)[0]

# ***** after gradients were added *****

class LeafHooks:
  """A leaf, and the functions to call when a gradient was added to its `grad`."""
  def __init__(self, leaf: Any):
    self.leaf: weakref.ref[Any] = weakref.ref(leaf)
    self.functions: dict[int, Callable[[Any], Any]] = {}

_waiting: dict[int, LeafHooks] = {}      # by the identity of the leaf

def register_post_accumulate(tensor: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
  """Call hook(tensor) after a backward pass has added to the `grad` of a leaf. Raises GradientError for others."""
  if not tensor.requires_grad or not tensor.is_leaf:
    raise GradientError("a hook after a gradient was added wants a leaf with requires_grad=True")
  with lock:
    for key in [k for k, w in _waiting.items() if w.leaf() is None or not w.functions]: del _waiting[key]
    waiting = _waiting.get(id(tensor))
    if waiting is None or waiting.leaf() is not tensor:
      waiting = LeafHooks(tensor)
      _waiting[id(tensor)] = waiting
  return registered(waiting.functions, hook)

def adding(backward: Callable[[], Any]) -> Any:
  """Run a backward pass, then call the hooks of leaves to whose `grad` it added."""
  if not _waiting: return backward()
  before = [(leaf, leaf.grad, w.functions) for w in list(_waiting.values()) if (leaf := w.leaf()) is not None]
  found = backward()
  for leaf, old, functions in before:
    if leaf.grad is old: continue
    for function in list(functions.values()): function(leaf)
  return found
