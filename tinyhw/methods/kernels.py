"""Access to kernels: kernels that a user writes (`custom_kernel`), and the kernels that realize would run
(`schedule_linear`).

A user's kernel runs when the call is made, as an in-place write does, and its tensors are storage. For gradients, each
result is a node of its own over that storage, with the user's gradient rule.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes
from tinyhw.engine.memory.writes import base_of, fresh_tag, unique
from tinyhw.engine.run.faults import boundary
from tinyhw.engine.run.realize import is_buffer, known
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import ArgumentError, DeviceError, GradientError
from tinyhw.gradient import define_gradient
from tinyhw.methods.base import Handle
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import constant_value, storage_view
from tinyhw.methods.random.digest import Digest
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

GradientFunction = Callable[[UOp, UOp], Sequence[Any]]

class Kernels(Digest):
  """The methods custom_kernel and schedule_linear."""
  __slots__ = ()

  def custom_kernel(self, *lst: Tensor, fxn: Callable[..., UOp],
                    grad_fxn: GradientFunction | None = None) -> list[Tensor]:
    """Run a kernel written in UOps on these tensors, now. Return the tensors as they are after the run. Those that the
    kernel stores to are new Tensors on the same storage.

    fxn: makes the kernel. It gets one UOp per tensor, which has its shape, size and dtype. `x[i, j]` is the address of
    an element, and its value in arithmetic. `x[i, j].store(value).end(i, j)` writes at every point of the ranges,
    `UOp.range(n, number)`. Sums are `value.reduce(Ops.ADD, k)`. The kernel is the `.sink()` of the stores.

    The points run in any order. So of a tensor that it stores to, a kernel may read only the element that it stores. A
    tensor that is stored to has to be contiguous storage, such as `Tensor.empty` makes.

    grad_fxn: gets the gradient of a result, and a UOp whose src[1:] are the nodes of the tensors. It returns for each
    tensor a gradient (a node or Tensor), or None. Raises ArgumentError for a kernel that breaks these rules.

    >>> def double(out, x):
    ...   i = UOp.range(x.size, 0)
    ...   return out[i].store(x[i] * 2).end(i).sink()
    >>> Tensor.empty(3).custom_kernel(Tensor([1.0, 2.0, 3.0]), fxn=double)[0].tolist()
    [2.0, 4.0, 6.0]
    """
    from tinyhw.engine.run.custom import finished, launch, placeholder, written_slots  # few programs have kernels
    tensors = [self._self(), *(self._operand("custom_kernel", x) for x in lst)]
    if not callable(fxn):
      raise ArgumentError(f"custom_kernel wants a function that makes the kernel as fxn=, not {fxn!r}")
    for x in tensors:
      if x.device != self.device:
        raise DeviceError(f"custom_kernel wants tensors on one device, and they are on {self.device} and {x.device}")
      if not all(isinstance(d, int) for d in x.shape):
        raise ArgumentError(f"custom_kernel wants sizes that are numbers, not {graph.show(x.shape)}")
    device = self.device
    if not isinstance(device, str):
      raise DeviceError(f"custom_kernel runs on one device, and these tensors are on {device}; move them with to(), "
                        f"and shard() what it gives")
    sink = finished(fxn(*[placeholder(slot, x.uop) for slot, x in enumerate(tensors)]))
    written = written_slots(sink)
    inputs = [x.uop for x in tensors]
    nodes = [_memory(x, k in written) for k, x in enumerate(tensors)]
    for k in written:
      if nodes.count(nodes[k]) > 1:
        raise ArgumentError(f"argument {k} of custom_kernel is stored to, and shares its storage with another; "
                            f"clone() one")
    if any(nodes[k].arg[2] for k in written): launch(sink, device, nodes)
    results = list(tensors)
    for k in written: results[k] = self._new(_applied(tensors[k].uop, sink, inputs, k, grad_fxn))
    return results

  def schedule_linear(self, *lst: Tensor) -> list[Kernel]:
    """Return the kernels that realizing these tensors together would run, in order. Nothing runs. `kernel.sink` is the
    graph of a kernel.

    >>> len((Tensor([1.0, 2.0]) * 2 + 1).schedule_linear())
    1
    """
    nodes = [x.uop for x in (self, *(self._operand("schedule_linear", x) for x in lst))]
    todo = [u if constant_value(u) is None else unique(u) for u in nodes if known(u) is None and not is_buffer(u)]
    return _kernels(todo) if todo else []

@boundary
def _kernels(nodes: list[UOp]) -> list[Kernel]: return schedule(canonicalize(nodes, known)).kernels

def _memory(x: Tensor, written: bool) -> UOp:
  """Return the BUFFER that holds a tensor's elements in order.

  A tensor that is only read is copied if its elements are not in order anywhere.
  """
  x.realize()
  view = storage_view(x.uop)
  if view is not None and is_buffer(view): return base_of(view)
  if written:
    raise ArgumentError(f"custom_kernel cannot store to a part or a permutation of storage (shape "
                        f"{graph.show(x.shape)}); store to a "
                        "Tensor.empty of its own, and assign that")
  return base_of(x.clone().realize().uop)

def _applied(u: UOp, sink: UOp, inputs: list[UOp], slot: int, grad_fxn: GradientFunction | None) -> UOp:
  """Return a node that reads the storage that a kernel wrote, with the user's gradient."""
  others = [k for k, s in enumerate(inputs) if k != slot and dtypes.is_float(s.dtype)]
  # backward() finds the inputs below it
  node = graph.node(Ops.DETACH, u.dtype, (u, *[inputs[k] for k in others]), None, u.shape, fresh_tag())
  def backward(_: UOp, g: UOp) -> tuple[UOp | None, ...]:
    if grad_fxn is None:
      raise GradientError("this value was computed by a custom_kernel without a gradient; pass grad_fxn=, or detach() "
                          "the result")
    given = given_gradients("a custom_kernel", grad_fxn(g, UOp(Ops.GROUP, dtypes.void, (sink, *inputs))), inputs)
    return tuple([given[k] for k in others])
  define_gradient(node, tuple([inputs[k] for k in others]), backward)
  return node

def given_gradients(who: str, given: Any, inputs: Sequence[UOp]) -> tuple[UOp | None, ...]:
  """Return the gradients of a user's grad_fxn as nodes of the inputs' types.

  Raises GradientError unless there is a gradient or None for each input.
  """
  if not isinstance(given, (tuple, list)) or len(given) != len(inputs):
    count = len(given) if isinstance(given, (tuple, list)) else repr(given)
    raise GradientError(f"grad_fxn of {who} gives {count}, and there are {len(inputs)} inputs; give a tuple with a "
                        f"gradient or None for each")
  found: list[UOp | None] = []
  for k, (g, like) in enumerate(zip(given, inputs)):
    u = g.uop if isinstance(g, Handle) else g
    if u is not None and (not isinstance(u, UOp) or u.shape != like.shape):
      raise GradientError(f"grad_fxn of {who} gives {g!r:.80} for input {k} of shape {graph.show(like.shape)}; give a "
                          f"Tensor or a node of that shape")
    found.append(None if u is None or not dtypes.is_float(like.dtype) else graph.cast(u, like.dtype))
  return tuple(found)
