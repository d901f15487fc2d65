"""Access to the graph and to kernels: operations by name, expressions with parameters and their calls, kernels that a
user writes (`custom_kernel`), and the kernels that realize would run (`schedule_linear`).

A user's kernel runs when the call is made, as an in-place write does, and its tensors are storage. For gradients, each
result is a node of its own over that storage, with the user's gradient rule.

An expression with parameters is a graph over placeholders (`as_param`). `call` puts tensors in their places. Programs
do better with `function`, which also declares inputs and compiles.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import importlib
from typing import TYPE_CHECKING, Any
import weakref

from tinyhw.device import Device, DeviceLike
from tinyhw.dtype import ConstType, DTypeLike, dtypes, to_dtype
from tinyhw.engine.memory.buffers import new_buffer
from tinyhw.engine.memory.writes import base_of, fresh_tag, unique
from tinyhw.engine.run.faults import boundary
from tinyhw.engine.run.realize import is_buffer, known
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import (ArgumentError, DeviceError, DTypeError, FunctionError, GradientError, IndexingError,
                           ShapeError)
from tinyhw.gradient import define_gradient
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import flag, whole
from tinyhw.methods.creation import checked_shape
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import constant_value, storage_view
from tinyhw.methods.random.digest import Digest
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

GradientFunction = Callable[[UOp, UOp], Sequence[Any]]

_COMPARISONS = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
_slots: weakref.WeakKeyDictionary[UOp, int] = weakref.WeakKeyDictionary()     # of placeholders

class Kernels(Digest):
  """The methods custom_kernel, schedule_linear, alu, as_param, call, const, invalids, is_param, max_shape and their
  kin."""
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
    nodes = [memory_of(x, k in written) for k, x in enumerate(tensors)]
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

  # ***** operations of the graph *****

  def alu(self, op: Ops, *src: Tensor) -> Tensor:
    """Apply an elementwise operation of the graph to this tensor and others of its type, which broadcast.

    The first operand of Ops.WHERE is of bools. Raises ArgumentError for another operation or number of operands.

    >>> Tensor([1, 2]).alu(Ops.MAX, Tensor([2, 1])).tolist()
    [2, 2]
    """
    if not isinstance(op, Ops): raise ArgumentError(f"alu wants an operation, such as Ops.ADD, not {op!r:.80}")
    count = 1 if op in GroupOp.Unary else 2 if op in GroupOp.Binary else 3 if op is Ops.WHERE else 0
    operands = [self._self(), *(self._operand("alu", x) for x in src)]
    if len(operands) != count:
      raise ArgumentError(f"alu: {op} of {len(operands)} operands; " +
                          (f"it takes {count}" if count else "it is not an elementwise operation"))
    if any(x.dtype is not operands[-1].dtype for x in operands[op is Ops.WHERE:]):
      raise DTypeError(f"alu: operands of {', '.join([str(x.dtype) for x in operands])}; cast them to one type")
    shape = graph.broadcast_shape("alu", *[x.shape for x in operands])
    kind = dtypes.bool if op in _COMPARISONS else operands[-1].dtype
    return self._new(graph.node(op, kind, tuple([graph.broadcast(x.uop, shape) for x in operands]), None, shape))

  @classmethod
  def const(cls, b: ConstType, dtype: DTypeLike | None = None, device: DeviceLike | None = None,
            shape: tuple[int, ...] = ()) -> Tensor:
    """Return a tensor of one number, without storage. Its type follows the number, unless dtype is given.

    >>> Tensor.const(3.0, shape=(2,)).tolist()
    [3.0, 3.0]
    """
    kind = dtypes.from_py(b) if dtype is None else to_dtype(dtype)
    return cls._new(graph.full(checked_shape((shape,)), kind, graph.check_number("const", kind, b),
                               None if device is None else Device.canonicalize(device)))

  @classmethod
  def invalids(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Return a tensor whose elements mean nothing until they are written: `empty`.

    >>> Tensor.invalids(2, 3).shape
    (2, 3)
    """
    return cls.empty(*shape, dtype=dtype, device=device)

  # ***** expressions with parameters *****

  def as_param(self, slot: int) -> Tensor:
    """Return a placeholder of this shape, type and device, for the argument `slot` of `call`. It has no value.

    >>> x = Tensor([1.0, 2.0])
    >>> Tensor.call(x, x * 3, fxn=x.as_param(0) + x.as_param(1)).tolist()
    [4.0, 8.0]
    """
    if not all(isinstance(d, int) for d in self.shape) or not isinstance(self.device, str):
      raise ShapeError(f"as_param wants sizes that are numbers, and one device, not {graph.show(self.shape)} on "
                       f"{self.device}")
    node = new_buffer(self.device, int(graph.size(self.shape)), self.dtype)
    _slots[node] = whole("slot", slot, 0)
    return self._new(graph.reshape(node, self.shape))

  def call(self, *lst: Tensor, fxn: Tensor | UOp, grad_fxn: Callable[..., Any] | None = None) -> Tensor:
    """Return an expression with its placeholders replaced: this tensor for slot 0, the others for 1 and on.

    fxn: the expression, as a tensor or a node. grad_fxn: its gradient, as of `function`. Raises FunctionError for a
    placeholder without an argument, or with one of another shape or type.

    >>> x = Tensor([1.0, 2.0])
    >>> Tensor([3.0, 4.0]).call(fxn=x.as_param(0).square()).tolist()
    [9.0, 16.0]
    """
    given = [self._self(), *(self._operand("call", x) for x in lst)]
    body = fxn.uop if isinstance(fxn, Handle) else fxn
    if not isinstance(body, UOp): raise ArgumentError(f"call wants a Tensor or a node as fxn=, not {fxn!r:.80}")
    places: dict[UOp, UOp] = {}
    for node in body.toposort():
      slot = _slots.get(node)
      if slot is None: continue
      if slot >= len(given):
        raise FunctionError(f"call has {len(given)} arguments, and fxn a placeholder of slot {slot}")
      if given[slot].dtype is not node.dtype or graph.size(given[slot].shape) != graph.size(node.shape):
        raise FunctionError(f"argument {slot} of call has shape {graph.show(given[slot].shape)} and type "
                            f"{given[slot].dtype}; its placeholder has other ones")
      places[node] = graph.reshape(given[slot].uop, node.shape)
    found = self._new(body.substitute(places))
    if grad_fxn is None: return found
    decorated = importlib.import_module("tinyhw.function").function(lambda *_: found, grad_fxn=grad_fxn)
    return decorated(*given)  # type: ignore[no-any-return]

  def callify(self, *lst: Tensor) -> Tensor:
    """Return this tensor. Calls are made when tensors are realized, and equal ones are found in the cache.

    >>> Tensor([1.0]).callify().tolist()
    [1.0]
    """
    for x in lst: self._operand("callify", x)
    return self._self()

  def linear_with_vars(self, *lst: Tensor) -> tuple[list[Kernel], dict[str, int]]:
    """Return the kernels of `schedule_linear`, and the values that Variables are bound to, by name.

    >>> n = Variable("n", 1, 10).bind(3)
    >>> Tensor.ones(10)[:n].contiguous().linear_with_vars()[1]
    {'n': 3}
    """
    operands = [self._self(), *(self._operand("linear_with_vars", x) for x in lst)]
    graphs = [u for x in operands for u in (x.uop, *x.shape) if isinstance(u, UOp)]
    binds = [u for found in graphs for u in found.toposort() if u.op is Ops.BIND]
    return self.schedule_linear(*lst), {u.src[0].arg[0]: u.src[1].arg for u in binds}

  # ***** limits of symbolic sizes *****

  @property
  def max_shape(self) -> tuple[int, ...]:
    """The shape at the largest values of its Variables.

    >>> Tensor.ones(10)[:Variable("n", 1, 10).bind(3)].max_shape
    (10,)
    """
    return tuple([graph.most(d) for d in self.shape])

  def max_numel(self) -> int:
    """The number of elements at the largest values of the shape's Variables.

    >>> Tensor.ones(2, 3).max_numel()
    6
    """
    count = 1
    for d in self.max_shape: count *= d
    return count

  # ***** parameters that are trained *****

  @property
  def is_param(self) -> bool:
    """Is this a float tensor that may be trained? requires_grad=False says no.

    >>> Tensor([1.0]).is_param, Tensor([1]).is_param
    (True, False)
    """
    return self._requires_grad is not False and dtypes.is_float(self.dtype)

  def is_param_(self, is_param: bool = True) -> Tensor:
    """Mark this tensor as one that is trained, or (False) as one that is not. The mark is requires_grad.

    >>> Tensor([1.0]).is_param_(False).requires_grad
    False
    """
    return self.requires_grad_(flag("is_param", is_param))

  def __delitem__(self, indices: Any) -> None:
    raise IndexingError("elements of a tensor cannot be deleted; index the ones to keep, or write others there")

@boundary
def _kernels(nodes: list[UOp]) -> list[Kernel]: return schedule(canonicalize(nodes, known)).kernels

def memory_of(x: Tensor, written: bool) -> UOp:
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
