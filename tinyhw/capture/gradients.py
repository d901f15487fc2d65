"""Gradients across the calls of a TinyJit. There are three kinds: gradients from before a call that it uses, gradients
that it leaves, and gradients that must be absent."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any
import weakref

from tinyhw.capture.views import base_buffer, binds_in, same_view
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import buffer_of, storage_with
from tinyhw.engine.memory.writes import is_own
from tinyhw.engine.run import realize as realizing
from tinyhw.engine.run.realize import Capture
from tinyhw.errors import JitError
from tinyhw.methods.base import Handle, leaves
from tinyhw.methods.graph import graph
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

AGAIN = "call reset() to capture again, or make another TinyJit for it"

class Gradient:
  """A gradient that the call leaves in a Tensor.

  The Tensor is an argument (its position), a result (its leaf), or one that the function reads (a weak reference).
  """
  __slots__ = ("target", "leaf", "last")

  def __init__(self, target: Any, leaf: Any):
    self.target, self.leaf = target, leaf
    self.last: weakref.ref[Tensor] | None = None

  def holder(self, tensors: list[Tensor], made: dict[int, Tensor]) -> Tensor | None:
    if isinstance(self.target, int): return tensors[self.target]
    if isinstance(self.target, weakref.ref): return self.target()
    return made.get(id(self.target))

def carries_gradient(assign: UOp) -> bool:
  """Does a Tensor that may want a gradient stand below the value of a pending ASSIGN?"""
  below = assign.src[1].toposort(lambda u: u.op is not Ops.DETACH)
  return any(t.uop in below for t in leaves() if t._requires_grad is not False and dtypes.is_float(t.uop.dtype))

def refuse_gradient(assign: UOp) -> None:
  """Raise JitError for a pending ASSIGN through which a gradient would flow.

  Replays do the ASSIGN first, and then see only storage.
  """
  if not carries_gradient(assign): return
  raise JitError(f"the function takes gradients, and a tensor of shape {graph.show(assign.shape)} that it uses has a "
                 f"write that waits, through which "
                 "they would flow to other tensors; realize() it before the call, or assign(x.detach())")

class Held(NamedTuple):
  """A Tensor with a gradient from before the call that the function uses.

  The Tensor is an argument (its position), or one that the function reads (a weak reference).
  """
  target: Any
  only_added: bool      # only backward() adds to it: a missing gradient counts as zeros

class Gradients:
  """The gradients of a captured call.

  used: gradients from before that the call uses. They are inputs, as its arguments are. held: their Tensors. views: the
  views through which the call reads them.
  left: gradients that the call leaves. absent: Tensors that must have none before a call: positions of arguments, or
  weak references.
  asks: does the function ask for gradients by itself?
  """
  def __init__(self, capture: Capture, given: list[Tensor], asks: bool):
    found = gradients_used(capture, given)
    self.used = [g for _, g in found]
    self.held = [Held(next((k for k, x in enumerate(given) if x is t), weakref.ref(t)),
                      id(t) in capture.added and not asks) for t, _ in found]
    self.views = [g.uop for g in self.used]
    self.left: list[Gradient] = []
    self.absent: list[Any] = []

  def plan(self, capture: Capture, places: dict[int, int], planned: dict[int, Any], leaf: Callable[[Any], Any],
           made: type) -> None:
    """Record the gradients that the call has left.

    places: positions of arguments, by identity. planned: leaves of the result, by identity of their Tensors. made: the
    class of leaves that each call makes anew.
    """
    for t in leaves():
      g = t.grad
      if g is None or not is_own(g) or capture.grads.get(id(t)) is g: continue
      self.left.append(Gradient(places[id(t)] if id(t) in places else planned.get(id(t)) or weakref.ref(t), leaf(g)))
    graded = [found for reference in capture.graded if (found := reference()) is not None
              and not isinstance(planned.get(id(found)), made)]
    self.absent = [places.get(id(found), weakref.ref(found)) for found in graded]

  def before(self, tensors: list[Tensor]) -> list[Tensor]:
    """Return the gradients from before that the call uses. They have the captured views, and storage that no other
    argument has."""
    found: list[Tensor] = []
    seen = {id(buffer_of(base_buffer(t.uop))) for t in tensors}
    for held, view in zip(self.held, self.views):
      t: Any = tensors[held.target] if isinstance(held.target, int) else held.target()
      g = None if t is None else t.grad
      if g is None and t is not None and held.only_added:
        g = Tensor.full(view.shape, -0.0, dtype=view.dtype, device=view.device).contiguous()
      if g is None:
        raise JitError(f"a Tensor of shape {graph.show(view.shape)} had a gradient when the function was captured, "
                       f"and has none now; {AGAIN}")
      if not realizing.is_buffer(g.uop): g.realize()
      if not same_view(view, g.uop) or id(buffer_of(base_buffer(g.uop))) in seen: g = g.clone().realize()
      if not same_view(view, g.uop):
        raise JitError(f"the gradient of a Tensor of shape {graph.show(t.uop.shape)} has another shape, type, device "
                       f"or layout than when the "
                       f"function was captured, and the function uses it; {AGAIN}")
      seen.add(id(buffer_of(base_buffer(g.uop))))
      found.append(g)
    return found

  def check(self, tensors: list[Tensor]) -> None:
    """Raise JitError if the function would add to a gradient that was absent at the capture."""
    for target in self.absent:
      t: Any = tensors[target] if isinstance(target, int) else target()
      if t is not None and t.grad is not None:
        raise JitError(f"a tensor of shape {graph.show(t.uop.shape)} has a gradient now, which it had not when the "
                       f"function was captured, and "
                       "backward() would add to it; call zero_grad() before, or inside of the function from its first "
                       "call on")

  def release(self, tensors: list[Tensor]) -> None:
    """Drop the gradients of the last call, so that their storage is used again if no other object holds them."""
    for gradient in self.left:
      holder = gradient.holder(tensors, {})
      if holder is not None and gradient.last is not None and holder.grad is gradient.last(): holder.grad = None

  def leave(self, tensors: list[Tensor], made: dict[int, Any], leaf: Callable[[Any], Any]) -> None:
    """Put the gradients of a replay where the function would have left them."""
    for gradient in self.left:
      holder = gradient.holder(tensors, made)
      if holder is None: continue
      holder.grad = leaf(gradient.leaf)
      gradient.last = weakref.ref(leaf(gradient.leaf))

def separate_gradients(taken: set[int]) -> None:
  """Realize all gradients, each in its own storage, so that a capture can tell them apart. taken: storage of the
  arguments."""
  seen = set(taken)
  holders = [(t, g) for t in leaves() if (g := t.grad) is not None and is_own(g)]
  if lazy := [g for _, g in holders if not realizing.is_buffer(g.uop)]: Tensor.realize(*lazy)
  for t, g in holders:
    if id(buffer_of(base_buffer(g.uop))) in seen:
      separate = g.clone().realize()
      if t.grad is g: t.grad = g = separate
    seen.add(id(buffer_of(base_buffer(g.uop))))

def gradients_used(capture: Capture, given: list[Tensor]) -> list[tuple[Handle, Tensor]]:
  """Return Tensors whose gradients from before the capture it used, and these gradients."""
  used = {id(storage_with(b.base)) for step in capture.steps for b in step.buffers} - {id(buffer_of(base_buffer(t.uop)))
                                                                                       for t in given}
  found: list[tuple[Handle, Tensor]] = []
  for t in leaves():
    g: Any = capture.grads.get(id(t))
    if g is None or not realizing.is_buffer(g.uop) or id(buffer_of(base_buffer(g.uop))) not in used: continue
    if binds_in(g.uop):
      raise JitError(f"the function uses a gradient of shape {graph.show(g.shape)} from before; call zero_grad() "
                     f"inside of it")
    found.append((t, g))
  return found
