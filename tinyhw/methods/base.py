"""`Handle`: the base class of Tensor, without the methods of users. It is a thin, mutable handle on a graph node, with
operands, storage and leaves.

Each family of methods is a class. They derive from each other in the order of `tensor.py`, so that each may use those
before it. Making a result costs about 1 us here. The rest of the cost of an operation is that of its nodes.

Leaves. `backward()` has to find the tensors whose gradients are wanted. It finds the registered ones: made from data or
by creation functions, realized, or marked with requires_grad=True. Results of operations are not registered.

Storage. Equal nodes are one object, so two tensors with equal expressions share a node. `realize` still gives each its
own storage (the second gets a copy). So `assign` to one never shows in the other. Views of one buffer do see each
other's assignments.
"""
from __future__ import annotations
import importlib
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from tinyhw.config import TRACEMETA, TRAINING
from tinyhw.device import Buffer, Device, DeviceLike, on_disk
from tinyhw.dtype import ConstType, DType, dtypes, least_upper_dtype
from tinyhw.engine.memory import cuts, writes
from tinyhw.engine.memory.buffers import buffer_of, buffers_in, multi, new_buffer
from tinyhw.engine.memory.disk import refusal, resolve, view_of
from tinyhw.engine.memory.writes import (
  MAYBE_MEMORY, Alias, assign_of, base_of, is_free, leave, memory_of, rebased, unique)
from tinyhw.engine.run.realize import Again, compute, is_buffer, realize as realize_nodes, this_thread
from tinyhw.errors import ArgumentError, DeviceError, DTypeError, FunctionError, GradientError, JitError, ShapeError
from tinyhw.methods.checks import flag, plain
from tinyhw.methods.data.hostdata import HostData, pack
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import (
  before_write, constant_value, extended, in_order, is_storage, kept, repeats, share, storage_view, unexpanded, written)
from tinyhw.threads import alone, lock
from tinyhw.trace import record
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_SCALARS = frozenset({int, float, bool})
_BUFFER = Ops.BUFFER
# operations whose result may be memory, or one number everywhere; others compute
_MAYBE_FOUND = MAYBE_MEMORY | {Ops.CONST}
# A constant of at most this many elements is realized by a copy from the host, not by a kernel.
_MOST_FILLED = 1 << 20

def register(tensor: Handle) -> None:
  """Register a tensor as a leaf, so that backward() may find it."""
  if not tensor._is_leaf:
    tensor._is_leaf = True
    writes.note(tensor)

def leaves() -> list[Handle]:
  """Return the registered tensors that are alive."""
  return writes.leaves()  # type: ignore[return-value]  # all that are noted are Handles

class _GradMode(threading.local):
  """A flag of this thread: are results detached from their inputs, as `Tensor.no_grad` asks?"""
  off = False

GradMode = _GradMode()

class TensorType(type):
  """The metaclass of Tensor. It makes `Tensor.training` another name of the variable TRAINING."""
  @property
  def training(cls) -> bool:
    """True while dropout drops elements, and batchnorm uses and updates batch statistics."""
    return bool(TRAINING.value)

  @training.setter
  def training(cls, value: bool) -> None: TRAINING.value = int(flag("training", value))

def complex_room() -> Any:
  """Return the module of complex tensors, which is loaded when the first one appears.

  Such a tensor is two tensors of floats, its planes. No node of a graph has a complex type, so no kernel, device or
  renderer knows of them.
  """
  return importlib.import_module("tinyhw.complex.tensor")

def is_complex(x: Any) -> bool:
  """Is x a complex number of Python, or a tensor of complex numbers?"""
  return type(x) is complex or isinstance(x, Handle) and x.holds_complex

def stored(host: HostData, device: DeviceLike | None) -> UOp:
  """Return new storage on a device, filled with data of the host. On several devices, each gets all of the data.

  Raises DeviceError for DISK: only assign() and to() write files.
  """
  size = 1
  for d in host.shape: size *= int(d)
  place = Device.canonicalize(device)
  if on_disk(place): raise refusal(place, "making a tensor")
  found = new_buffer(place, size, host.dtype)
  if size:
    for buffer in buffers_in(buffer_of(found)): buffer.allocate().copyin(memoryview(host.data))
  if this_thread.stored is not None: this_thread.stored(buffer_of(found), bytes(host.data))
  return whole(found, tuple(host.shape))

def whole(node: UOp, shape: graph.Shape) -> UOp:
  """Give a BUFFER a shape. On several devices, each has all of the data."""
  return graph.reshape(node, shape) if isinstance(node.arg[1], str) else multi(node, shape, None)

class Handle(metaclass=TensorType):
  """A handle on a graph node. Assign and realize may change `uop`. Nodes never change."""
  # NumPy's numbers and arrays leave `array * tensor` to the tensor, so that the result is a tensor.
  __array_priority__ = 1000
  __slots__ = ("uop", "grad", "_requires_grad", "_is_leaf", "_alias", "_thread", "_retains", "_planes", "__weakref__")
  uop: UOp
  grad: Tensor | None
  _requires_grad: bool | None
  _is_leaf: bool
  # Only retain_grad() sets it; most tensors lack the attribute.
  _alias: Alias | None
  _thread: int
  # Only retain_grad() sets it; most tensors lack the attribute.
  _retains: bool
  # Only tensors of complex numbers have it: the real and the imaginary parts.
  _planes: tuple[Tensor, Tensor]
  # True in the class of tensors of complex numbers.
  holds_complex: ClassVar[bool] = False

  @classmethod
  def _new(cls, uop: UOp, alias: Alias | None = None) -> Tensor:
    """Return a tensor on a node: the result of an operation."""
    self = object.__new__(cls)
    if GradMode.off and uop.op not in GroupOp.Movement: uop = graph.detach(uop)
    self.uop, self.grad, self._requires_grad, self._is_leaf, self._alias = uop, None, None, False, alias
    writes.note(self)
    if TRACEMETA.value: record(uop)
    return self  # type: ignore[return-value]  # the only class of tensors is Tensor

  def _view(self, u: UOp) -> Tensor:
    """Return a result that is a view of this tensor. u: movements, BITCASTs and DETACHs of its node.

    If several threads take the first views of a value at the same time, each makes its own Alias. These are equal.
    """
    alias, mine = self._alias, self.uop
    if alias is None:
      op = mine.op
      if op is _BUFFER or op in MAYBE_MEMORY and memory_of(mine)[0] is not None: return self._new(u)
      self._alias = alias = Alias(weakref.ref(self), mine, None)
    elif alias.view is not None: alias = extended(alias, mine, u)
    return self._new(u, alias)

  def _own(self, u: UOp | None = None) -> Tensor:
    """Return a node (by default this one) as a tensor that shares no memory.

    Methods that do not make views return this even where there is nothing to compute.
    """
    u = self.uop if u is None else u
    return self._new(u if memory_of(u)[0] is None else graph.contiguous(u))

  @classmethod
  def _leaf(cls, uop: UOp, requires_grad: bool | None = None) -> Tensor:
    """Return a tensor that a user created, rather than computed from others."""
    self = cls._new(uop)
    if requires_grad is not None: self._requires_grad = flag("requires_grad", requires_grad)
    register(self)
    return self

  @classmethod
  def _holding(cls, storage: UOp) -> Tensor:
    """Return a tensor over existing storage: a leaf, made cheaply."""
    self = object.__new__(cls)
    self.uop, self.grad, self._requires_grad, self._is_leaf, self._alias = storage, None, None, True, None
    writes.note(self)
    return self  # type: ignore[return-value]  # the only class of tensors is Tensor

  @property
  def shape(self) -> tuple[sint, ...]:
    """The sizes of the axes: ints, or expressions of Variables.

    >>> Tensor.zeros(2, 3).shape
    (2, 3)
    """
    return self.uop.shape

  @property
  def dtype(self) -> DType:
    """The type of the elements.

    >>> Tensor([1.5]).dtype
    dtypes.float32
    """
    return self.uop.dtype

  @property
  def ndim(self) -> int:
    """The number of axes.

    >>> Tensor.zeros(2, 3).ndim
    2
    """
    return len(self.uop.shape)

  @property
  def device(self) -> DeviceLike:
    """The device on which the tensor is or will be computed: a name, or a tuple of names.

    >>> Tensor([1.5]).device
    'CPU'
    """
    return self.uop.device or Device.DEFAULT

  @property
  def lazydata(self) -> UOp:
    """The older name of `uop`."""
    return self.uop

  @property
  def requires_grad(self) -> bool | None:
    """True: backward() fills `grad`. False: it never does. None: it does, unless another tensor of the graph says True.

    >>> Tensor([1.0], requires_grad=True).requires_grad
    True
    """
    return self._requires_grad

  @requires_grad.setter
  def requires_grad(self, value: bool | None) -> None:
    self._requires_grad = None if value is None else flag("requires_grad", value)
    if value:
      self._is_leaf = True
      writes.note(self)

  def requires_grad_(self, requires_grad: bool | None = True) -> Tensor:
    """Set requires_grad, and return the tensor.

    >>> Tensor([1.0]).requires_grad_().requires_grad
    True
    """
    self.requires_grad = requires_grad
    return self._self()

  def retain_grad(self) -> None:
    """Let backward() fill `grad` of this tensor too, although it was computed from others or was written. Does nothing
    to a tensor of requires_grad=True.

    The gradient is for the value that the tensor has when backward() is called, after in-place writes to it. Equal
    expressions are one value, so they share one gradient. clone() makes a separate value. Raises GradientError for a
    tensor that never has a gradient: of requires_grad=False, or of no float type.

    >>> x = Tensor([1.0, 2.0])
    >>> y = x * 3
    >>> y.retain_grad()
    >>> loss = (y * y).sum().backward()
    >>> y.grad.tolist(), x.grad.tolist()
    ([6.0, 12.0], [18.0, 36.0])
    """
    if self._requires_grad is False or not dtypes.is_float(self.uop.dtype):
      raise GradientError(f"a tensor of {self.uop.dtype} with requires_grad={self._requires_grad} has no gradient to "
                          f"retain; retain that of a float "
                          "tensor that may have one")
    if self._requires_grad: return
    self._retains = True
    register(self)

  @property
  def retains_grad(self) -> bool:
    """True if backward() fills `grad` because of retain_grad().

    >>> Tensor([1.0]).retains_grad
    False
    """
    return getattr(self, "_retains", False)

  def _self(self) -> Tensor: return self  # type: ignore[return-value]  # the only class of tensors is Tensor

  # ***** operands *****

  def _tensor(self, x: Any) -> Tensor:
    """Return x as a tensor on this device. x may be anything that Tensor(...) takes, except None. Raises ArgumentError
    for None."""
    if isinstance(x, Handle): return x._self()
    if x is None: raise ArgumentError("cannot compute with None; give a Tensor or a number")
    device = self.uop.device
    return type(self)(x, device=None if on_disk(device) else device)  # type: ignore[call-arg,return-value]  # Tensor's

  def _operand(self, what: str, x: Any) -> Tensor:
    """Return x, which must be a Tensor. Raises ArgumentError."""
    if isinstance(x, Handle): return x._self()
    raise ArgumentError(f"{what} wants a Tensor, not {x!r}; make one with Tensor(...)")

  def _on_this_device(self, what: str, x: Any) -> Tensor:
    """Return x, which must be a Tensor on the device of this one. Raises ArgumentError, DeviceError."""
    found = self._operand(what, x)
    check_devices(what, self.uop, found.uop)
    return found

  def _other(self, x: Any, dtype: DType | None = None) -> UOp:
    """Return the node of an operand.

    Python numbers, and numbers made of Variables, are weak: they take the type of this tensor if it can hold their
    kind.
    """
    if isinstance(x, Handle): return x.uop
    mine = self.uop.dtype if dtype is None else dtype
    if type(x) in _SCALARS: return graph.constant(_number_type("combine", mine, x), x)
    if isinstance(x, UOp):
      return (graph.element(x, _weak(mine, int if x.dtype is dtypes.weakint else float)) if x.dtype in dtypes.weaks
              else x)
    return self._other(number, dtype) if (number := plain(x)) is not x else self._tensor(x).uop

  def _pair(self, what: str, x: Any) -> tuple[UOp, UOp]:
    """Return the nodes of this tensor and of another operand, promoted to one type and broadcast to one shape.

    Raises ShapeError, DTypeError or DeviceError that name both.
    """
    a = self.uop
    if not isinstance(x, Handle): x = plain(x)
    if type(x) in _SCALARS:
      dtype = _number_type(what, a.dtype, x)
      return graph.cast(a, dtype), graph.full(a.shape, dtype, x)
    b = self._other(x)
    if a.dtype is not b.dtype:
      dtype = least_upper_dtype(a.dtype, b.dtype)
      a, b = graph.cast(a, dtype), graph.cast(b, dtype)
    first, second = a.shape, b.shape
    if first != second:
      shape = graph.broadcast_shape(what, first, second)
      a, b = graph.broadcast(a, shape), graph.broadcast(b, shape)
    if a._device_ is not b._device_ or a._device_ is None: check_devices(what, a, b)
    return a, b

  def _beyond(self, x: Any) -> int:
    """Return 1 where x is a whole number above all values of this integer type, -1 where it is below them, else 0."""
    if isinstance(x, Handle) or dtypes.is_float(self.uop.dtype) or type(x := plain(x)) is not int: return 0
    low, high = _weak(self.uop.dtype, int).limits()
    return int(x > high) - int(x < low)

  def _axis(self, axis: int, extra: int = 0) -> int:
    """Return an axis, counted from the front. Raises IndexRangeError."""
    return graph.axis_of(axis, len(self.uop.shape) + extra)

  def _own_axis(self, what: str, axis: int) -> int:
    """Return an axis, counted from the front. The tensor must have axes. Raises ShapeError, IndexRangeError."""
    if not self.uop.shape:
      raise ShapeError(f"cannot {what} a tensor of shape (): it has no axes; reshape it to (1,) first")
    return graph.axis_of(axis, len(self.uop.shape))

  def _axes(self, axis: int | Iterable[int] | None) -> tuple[int, ...]:
    """Return axes, counted from the front and sorted. None means all."""
    n = len(self.uop.shape)
    if axis is None: return tuple(range(n))
    axes = graph.axes_of(axis, n) if isinstance(axis, Iterable) else (graph.axis_of(axis, n),)
    return axes if n else ()

  # ***** storage *****

  def _again(self, step: Callable[..., Tensor], *others: Tensor) -> Callable[..., Tensor]:
    """Build a step of a loop once, from this tensor and others. The result runs the step at once on other tensors of
    the same shapes, types and devices.

    All of these must be realized, each in storage of its own. On several devices each step is built anew, since their
    parts may change from step to step.
    """
    if not isinstance(self.device, str): return lambda *given: step(*given).realize()
    examples = (self, *others)
    assert all(is_buffer(t.uop) for t in examples), "a step of a loop is built from realized tensors"
    run = Again(step(*examples).contiguous().uop, [writes.base_of(t.uop) for t in examples])
    return lambda *given: self._holding(run(*[writes.base_of(t.uop) for t in given]))

  def replace(self, x: Handle) -> Tensor:
    """Let this handle stand for the value of x. Views of this tensor, and values computed from it before, keep the old
    value and its gradients.

    Raises ShapeError if the shape differs.

    >>> x = Tensor([1, 2])
    >>> x.replace(x + 1).tolist()
    [2, 3]
    """
    x = self._operand("replace", x)
    if self.uop.shape != x.uop.shape: graph.refuse_shape("replace", self.uop.shape, x.uop.shape)
    if self._alias is not None: leave(self)
    self.hold(x.uop)
    return self._self()

  def hold(self, u: UOp) -> None:
    """Stand for another node of the same value. The node may be storage."""
    if self._alias is not None: self._alias = kept(self)
    self.uop = u
    if (u.op is _BUFFER or is_storage(u)) and dtypes.is_float(u.dtype): self._is_leaf = True
    writes.note(self)

  def assign(self, x: Any) -> Tensor:
    """Write x into the storage of this tensor. x broadcasts. A tensor without storage takes the value of x instead.
    Views of this tensor see the write, and so does the tensor of which this one is a view.

    The write is done when this tensor is next realized, or now if other tensors share the storage. An expression made
    before the write keeps the old contents. An expression made after it reads the new ones.

    Raises ShapeError, DTypeError, DeviceError if x does not fit. Raises ArgumentError for an expanded view, whose
    elements share memory.

    >>> x = Tensor([1, 2])
    >>> x.assign(x * 10).tolist()
    [10, 20]
    """
    with lock: return self._updated(x)

  def _written_place(self, u: UOp) -> UOp:
    """Return the view that a write to u writes to. u: the node of this tensor, or a part of it.

    Raises ArgumentError where u repeats elements of memory.
    """
    if not repeats(u): return u
    return unexpanded(u, base_of(u))

  def _in_place(self, operation: Callable[[Any], Tensor], x: Any) -> Tensor:
    """Implement `t += x`. No other thread writes between the read and the write."""
    with lock: return self._updated(operation(x))

  def _updated(self, x: Any) -> Tensor:
    """Implement `assign`. `t[a:b] += x` first calls this for the part, and then stores the part into t, where it is
    already."""
    if self._alias is not None: before_write(self)
    other = graph.cast(self._other(x), self.uop.dtype) if not isinstance(x, Handle) else x.uop
    mine = self.uop
    if other is mine: return self._self()
    if on_disk(mine.device): return self._write_file(other)
    mine = self._written_place(mine)
    _check_types(mine, other)
    check_devices("assign", mine, other)
    if other.shape != mine.shape:
      if not graph.same_numbers(graph.broadcast_shape("assign", mine.shape, other.shape), mine.shape):
        graph.refuse_shape("assign", mine.shape, other.shape)
      other = graph.relabelled(graph.broadcast(other, mine.shape), mine.shape)
    if 0 in mine.shape: return self._self()
    # The target keeps the ASSIGNs that wrote there before: they are in order, and a reader of one of them reads before
    # the next one writes.
    stored_here = storage_view(mine) is not None
    # Copy the value, so that this tensor does not share x's storage.
    if not stored_here and memory_of(other)[0] is not None: other = unique(other)
    if self._alias is not None: share(self, other)
    else: self.uop = written(mine, other) if stored_here else other
    writes.note(self)
    if TRACEMETA.value: record(self.uop)
    if stored_here and writes.seen_by_others(self): realize_all((self,))
    return self._self()

  @alone
  def _write_file(self, value: UOp) -> Tensor:
    """Write a value now into the part of a file that this tensor is.

    Raises DeviceError if the part is not contiguous.
    """
    mine = self.uop
    if this_thread.capture is not None:
      raise JitError(f"a file is written while TinyJit captures ({mine.device}), and replays would not write it again")
    _check_types(mine, value)
    if graph.broadcast_shape("assign", mine.shape, value.shape) != mine.shape:
      graph.refuse_shape("assign", mine.shape, value.shape)
    piece = resolve(mine)
    if piece.rest:
      raise DeviceError(f"the part of {mine.device} to write is not in one piece; write whole rows, or the whole "
                        f"tensor")
    raw = self._new(graph.broadcast(value, mine.shape))._read(zero_copy=True)[0]
    target = view_of(piece)
    touched = [target.base, *[found for view in target.base._views if (found := view()) is not None]]
    realize_nodes([], overwritten=touched)
    target.copyin(raw)
    writes.overwrite(touched)
    return self._self()

  def realize(self, *lst: Handle, do_update_stats: bool = True) -> Tensor:
    """Compute this tensor and the given others now, in one schedule. After that, each has storage of its own or is a
    view of storage.

    Each becomes a leaf: gradients do not flow to the tensors from which it was computed. To read the value by `numpy()`
    or `item()` also computes it, and keeps gradients.

    >>> (Tensor([1, 2]) + 1).realize()
    <Tensor (2,) int32 on CPU, realized: [2, 3]>
    """
    if this_thread.traced is not None: refuse_values("realized", self.uop.shape)
    realize_all(tensors := (self, *[self._operand("realize", x) for x in lst]) if lst else (self,))
    if cuts.are_any:
      for t in tensors:
        if (node := memory_of(t.uop)[0]) is not None: cuts.forget(node)
    return self._self()

  def _buffer(self) -> Buffer:
    """Return the storage that holds exactly the elements of this tensor, in order, for reading. Computes them first if
    necessary. The graph stays, for backward().

    Raises JitError while TinyJit captures: replays would not repeat Python's work on the values.
    """
    if this_thread.traced is not None: refuse_values("read", self.uop.shape)
    if this_thread.capture is not None:
      raise JitError(f"a tensor of shape {graph.show(self.uop.shape)} is read while TinyJit captures, and replays "
                     f"would not read it again; return "
                     "the tensor, and read it outside")
    if on_disk(self.uop.device):
      piece = resolve(self.uop)
      return self._self().to(None)._buffer() if piece.rest or self.uop.dtype is dtypes.bool else view_of(piece)
    if memory_of(self.uop)[1]: realize_all((self,))
    devices = self.uop.device
    if isinstance(devices, tuple): return self._new(graph.copy(self.uop, devices[0]))._buffer()
    memory = storage_view(self.uop)
    found = None if memory is None else in_order(memory)
    if found is None:
      u = self.uop if memory is None else graph.contiguous(memory)
      if u.realized is None: realize_nodes([u])
      found = None if u.realized is None else in_order(u.realized)
      assert found is not None, f"realize left {u} without storage in order"
    # On one device it is a Buffer. If it comes from empty(), nothing has allocated it yet.
    return buffer_of(found).ensure_allocated()  # type: ignore[no-any-return]

def refuse_values(what: str, shape: tuple[sint, ...]) -> None:
  """Raise a FunctionError: a value is wanted inside of a function that `tinyhw.function` runs."""
  raise FunctionError(f"a tensor of shape {graph.show(shape)} is {what} inside of function {this_thread.traced}, "
                      f"which only expresses its results; "
                      f"do that outside, or leave out @function")

def _weak(dtype: DType, kind: type) -> DType:
  """Return the type of an operation between a tensor of dtype and a Python number of a kind."""
  if kind is bool or dtypes.is_float(dtype): return dtype
  if kind is int: return dtypes.default_int if dtype is dtypes.bool else dtype
  return dtypes.default_float

def _number_type(what: str, dtype: DType, x: ConstType) -> DType:
  """Return the type of an operation between a tensor of dtype and a Python number.

  Raises DTypeError for an int that this type cannot hold.
  """
  found = _weak(dtype, type(x))
  if type(x) is int: graph.check_number(what, found, x)
  return found

def _check_types(target: UOp, value: UOp) -> None:
  if target.dtype is not value.dtype:
    raise DTypeError(f"cannot assign {value.dtype} to a tensor of {target.dtype}; cast it first: "
                     f".assign(x.cast(t.dtype))")

def check_devices(what: str, a: UOp, b: UOp) -> None:
  """Raise DeviceError unless both are on one device, or one of them is on no device."""
  first, second = a.device, b.device
  if first != second and first is not None and second is not None:
    if on_disk(first) or on_disk(second): raise refusal(first if on_disk(first) else second, what)
    raise DeviceError(f"cannot {what} a tensor on {first} and one on {second}; move one of them: .to({first!r})")

def realize_all(tensors: Iterable[Handle]) -> None:
  """Compute tensors in one schedule."""
  with lock:
    pending: dict[int, tuple[Handle, UOp]] = {}
    wanted: dict[UOp, None] = {}
    for tensor in tensors:
      u = tensor.uop
      if id(tensor) in pending: continue
      memory, waits = memory_of(u) if u.op in _MAYBE_FOUND else (None, False)
      if memory is not None and storage_view(u) is not None:
        if waits: u = assign_of(u)
        else:
          tensor.uop = rebased(u, memory)
          continue
      elif u.op not in _MAYBE_FOUND:
        if u in wanted or u.realized is not None and not is_free(u.realized): u = unique(u)
      elif this_thread.capture is None and u.size <= _MOST_FILLED and (value := constant_value(u)) is not None:
        if tensor._alias is not None: tensor._alias = kept(tensor)
        tensor.uop = stored(HostData(bytes(pack([value], u.dtype)) * u.size, u.shape, u.dtype), u.device)
        tensor._is_leaf = True
        writes.note(tensor)
        continue
      elif u in wanted or constant_value(u) is not None or u.realized is not None and not is_free(u.realized):
        u = unique(u)
      wanted[u] = None
      pending[id(tensor)] = tensor, u
    if not pending: return
    compute(list(wanted))
    for tensor, u in pending.values():
      # Otherwise it was an ASSIGN, or the run wrote to the inputs of the value.
      if tensor.uop.op not in _MAYBE_FOUND or memory_of(tensor.uop)[0] is None:
        assert u.realized is not None, f"realize left {u} without storage"
        tensor.hold(graph.reshape(u.realized, u.shape))
      elif dtypes.is_float(u.dtype): register(tensor)
