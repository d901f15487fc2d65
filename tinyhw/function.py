"""`function`: a function over Tensors as a unit of the graph. It declares its inputs, and may have its own gradient and
kernels.

A call runs the Python function, which expresses its results as always. Nothing is computed. It adds to a plain call:
- inputs: The Tensors among its arguments, in containers and in attributes of objects there (`self`). Other Tensors that
  it uses are implicit, and refused unless they are allowed. Data and random numbers that are made inside are its own.
- no values: Inside, Tensors cannot be read or realized. So the results depend on graphs only.
- gradient: `grad_fxn` replaces the rules of the nodes inside.
- kernels: With `precompile`, results are made by kernels that are not fused with later ones, and are compiled in the
  call. `precompile_backward` does the same for the gradients when they are expressed.

The function's Python code runs in each call, so its live-ins are never out of date. The schedule and kernels of equal
calls are found in the caches.
"""
from __future__ import annotations
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Generic, TypeVar

from tinyhw.capture.names import by_name, is_named, qualified_name
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import next_number
from tinyhw.engine.memory.writes import fresh_tag
from tinyhw.engine.run.realize import prepare, this_thread
from tinyhw.errors import ArgumentError, FunctionError
from tinyhw.gradient import define_gradient, gradients
from tinyhw.methods.base import leaves
from tinyhw.methods.graph import graph
from tinyhw.methods.kernels import given_gradients
from tinyhw.nn.state import get_state_dict
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

R = TypeVar("R")

class DecoratedFunction(Generic[R]):
  """The wrapper that `function` makes of a function."""
  def __init__(self, fxn: Callable[..., R], precompile: bool, precompile_backward: bool, allow_implicit: bool,
               grad_fxn: Callable[..., Any] | None):
    if not callable(fxn): raise ArgumentError(f"function wants something that can be called, not {fxn!r}")
    if grad_fxn is not None and not callable(grad_fxn):
      raise ArgumentError(f"grad_fxn can be called, or is None; it is {grad_fxn!r}")
    self.fxn, self.precompile, self.precompile_backward = fxn, precompile, precompile_backward
    self.allow_implicit, self.grad_fxn = allow_implicit, grad_fxn
    self.name = getattr(fxn, "__qualname__", type(fxn).__qualname__)
    functools.update_wrapper(self, fxn)

  def __reduce_ex__(self, protocol: Any) -> Any:
    """Pickle a decorated function by its name, as functions do, and others by their parts."""
    name = qualified_name(self.fxn)
    if is_named(self, *name): return by_name, name
    return (_of_class, name) if is_named(self, *name, _of_class) else super().__reduce_ex__(protocol)

  def __get__(self, obj: Any, objtype: Any = None) -> Any: return self if obj is None else functools.partial(self, obj)

  def __call__(self, *args: Any, **kwargs: Any) -> R:
    explicit = _explicit([*args, *kwargs.values()])
    first, outer = next_number(), this_thread.traced
    this_thread.traced = self.name
    try: made = self.fxn(*args, **kwargs)
    finally: this_thread.traced = outer
    results: tuple[Any, ...] = made if isinstance(made, tuple) else (made,)
    if not results or not all(isinstance(t, Tensor) for t in results):
      raise FunctionError(f"function {self.name} returns {made!r:.80}; return a Tensor, or a tuple of Tensors")
    inputs = list(dict.fromkeys(t.uop for t in explicit))
    implicit = _implicit([t.uop for t in results], inputs, first)
    if implicit and not self.allow_implicit:
      listed = ", ".join(f"{graph.show(u.shape)} {u.dtype} on {u.device}" for u in implicit[:8])
      raise FunctionError(f"function {self.name} uses {len(implicit)} buffers that are not among its arguments "
                          f"({listed}); pass the Tensors, or "
                          "say function(..., allow_implicit=True)")
    nodes = [t.uop for t in results]
    if self.precompile: nodes = [graph.contiguous(u) for u in nodes]
    if self.grad_fxn is not None: nodes = self._with_gradient(nodes, [*inputs, *implicit])
    elif self.precompile_backward: nodes = [_compiled_backward(u, _wanted(u, inputs)) for u in nodes]
    if self.precompile: prepare(nodes)
    if all(u is t.uop for u, t in zip(nodes, results)): return made
    found = tuple(Tensor._new(u) for u in nodes)
    # the results of the function, around other nodes
    return found if isinstance(made, tuple) else found[0]  # type: ignore[return-value]

  def _with_gradient(self, nodes: list[UOp], inputs: list[UOp]) -> list[UOp]:
    """Return the results with the user's rule as their gradient. The rule takes a gradient for each result, and a node
    whose sources are the results and inputs.

    With several results it is called for each of them, with zeros for the others, and its returned gradients are added:
    gradients are linear in these.
    """
    call = UOp(Ops.GROUP, dtypes.void, (UOp(Ops.GROUP, dtypes.void, tuple(nodes)), *inputs))
    shapes = [(u.shape, u.dtype) for u in nodes]
    def rule_of(k: int) -> Callable[[UOp, UOp], tuple[UOp | None, ...]]:
      def rule(_: UOp, g: UOp) -> tuple[UOp | None, ...]:
        # it is there
        if len(shapes) == 1: return given_gradients(self.name, self.grad_fxn(g, call), inputs)  # type: ignore[misc]
        grads = [g if i == k else graph.full(shape, dtype, 0, g.device) for i, (shape, dtype) in enumerate(shapes)]
        return given_gradients(self.name, self.grad_fxn(*grads, call=call), inputs)  # type: ignore[misc]  # it is there
      return rule
    return [_wrapped(u, inputs, rule_of(k)) for k, u in enumerate(nodes)]

def _of_class(module: str, name: str) -> Any:
  """Return the object of a class method's name, without the class to which it is bound."""
  found = by_name(module, name)
  return found.func if isinstance(found, functools.partial) else found.__func__

def _explicit(values: Iterable[Any]) -> list[Tensor]:
  """Return the Tensors among arguments, in order, including those in containers and attributes."""
  found: list[Tensor] = []
  for value in values:
    if isinstance(value, Tensor): found.append(value)
    elif hasattr(value, "__dict__") or isinstance(value, (list, tuple, dict)):
      found.extend(get_state_dict(value).values())
  return found

def _implicit(results: list[UOp], inputs: list[UOp], first: int) -> list[UOp]:
  """Return the BUFFERs that results read, that are below no input, and that existed before the call."""
  given = UOp(Ops.GROUP, dtypes.void, tuple(inputs)).toposort() if inputs else {}
  storages = {id(u.storage) for u in given if u.op is Ops.BUFFER}
  below = UOp(Ops.GROUP, dtypes.void, tuple(results)).toposort(lambda u: u not in given)
  return [u for u in below if u.op is Ops.BUFFER and u not in given and u.arg[0] < first
          and id(u.storage) not in storages]

def _wanted(u: UOp, inputs: list[UOp]) -> list[UOp]:
  """Return the nodes to which u's gradient flows: the inputs, and nodes of Tensors that may want a gradient.

  The latter lie below u, but not below the inputs.
  """
  below = u.toposort(lambda node: node not in inputs)
  found = [node for node in inputs if node in below] + [t.uop for t in leaves() if t.uop in below]
  return list(dict.fromkeys(node for node in found if node is not u and dtypes.is_float(node.dtype)))

def _wrapped(u: UOp, inputs: list[UOp], rule: Callable[[UOp, UOp], tuple[UOp | None, ...]]) -> UOp:
  """Return u under a new, unique node that has its own gradient."""
  # backward() finds the inputs below it
  node = graph.node(Ops.DETACH, u.dtype, (u, *inputs), None, u.shape, fresh_tag())
  define_gradient(node, tuple(inputs), rule)
  return node

def _compiled_backward(u: UOp, inputs: list[UOp]) -> UOp:
  """Return u with gradients from separate kernels, which are compiled when the gradients are expressed."""
  def rule(node: UOp, g: UOp) -> tuple[UOp | None, ...]:
    found = gradients(node.src[0], graph.contiguous(g), inputs, inputs)
    made = [None if x is None else graph.contiguous(x) for x in found]
    prepare([x for x in made if x is not None])
    return tuple(made)
  return _wrapped(u, inputs, rule)

def function(fxn: Callable[..., R] | None = None, *, precompile: bool = False, precompile_backward: bool = False,
             allow_implicit: bool = False,
             grad_fxn: Callable[..., Any] | None = None) -> Any:
  """Decorator, with or without parentheses, for a function or method that returns a Tensor or a tuple of Tensors.

  allow_implicit: it may use Tensors that it was not given.
  grad_fxn(gradient, call): returns the gradients of the inputs in order, None for none, as nodes or Tensors.
  `call.src[1:]` are the inputs. With several results it is grad_fxn(*gradients, call=call).
  precompile: compile its kernels in the call. precompile_backward: compile those of its gradients when they are
  expressed.

  Raises FunctionError for Tensors that were not given, for other results, and if Tensors are read or realized inside.
  Raises GradientError for wrong results of grad_fxn.

  A decorated function pickles by its name, as functions do. function(f) of another name pickles with f.

  An input that the function does not use has no gradient: backward() does not change its `grad`, and gradient() raises
  GradientError.

  >>> @function
  ... def area(width, height): return width * height
  >>> area(Tensor([2, 3]), Tensor([4, 5])).tolist()
  [8, 15]
  """
  if fxn is None:
    return lambda wrapped: function(wrapped, precompile=precompile, precompile_backward=precompile_backward,
                                    allow_implicit=allow_implicit, grad_fxn=grad_fxn)
  return DecoratedFunction(fxn, precompile, precompile_backward, allow_implicit, grad_fxn)

class _Module(ModuleType):
  """This module, callable as its function: `from tinyhw import function` finds either."""
  def __call__(self, *args: Any, **kwargs: Any) -> Any: return function(*args, **kwargs)

  @property
  def __signature__(self) -> Any: return inspect.signature(function)

sys.modules[__name__].__class__ = _Module
function.function = function  # type: ignore[attr-defined]  # so that tinyhw.function.function is found through either
