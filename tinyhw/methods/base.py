"""`Handle`: what a Tensor is before it has methods. A thin, mutable handle on a graph node, with operands, storage and leaves.

Method families are classes that derive from each other in the order of `tensor.py`, so each may use the ones before it. Making a result costs
about 1 us here; what an operation costs is its nodes.

Leaves. `backward()` has to find the tensors whose gradients are wanted. Those made from data or by creation functions, realized, or marked with
requires_grad=True are registered here; results of operations are not.

Storage. Equal nodes are one object, so two tensors with equal expressions share a node. `realize` gives each its own storage all the same (the
second gets a copy), so that `assign` to one never shows in the other; views of one buffer do see each other's assignments.
"""
from __future__ import annotations
import gc
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tinyhw.config import TRACEMETA, TRAINING
from tinyhw.device import Buffer, Device, DeviceLike, on_disk
from tinyhw.dtype import ConstType, DType, dtypes, least_upper_dtype
from tinyhw.engine import writes
from tinyhw.engine.buffers import buffer_of, buffers_in, multi, new_buffer
from tinyhw.engine.disk import refusal, resolve, view_of
from tinyhw.engine.multi import Distribution, is_multi
from tinyhw.engine.realize import Again, is_buffer, realize as realize_nodes, this_thread
from tinyhw.engine.writes import assign_of, assigned, is_room, memory_of, rebased, unique
from tinyhw.errors import ArgumentError, DeviceError, DTypeError, FunctionError, JitError, ShapeError
from tinyhw.gradient import transposed
from tinyhw.methods import graph
from tinyhw.methods.checks import plain
from tinyhw.methods.hostdata import HostData, pack
from tinyhw.trace import record
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_SCALARS = frozenset({int, float, bool})
_VIEWS = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.MULTI})  # movements under which each element still has one place of its own
_MOST_FILLED = 1 << 20  # a constant of up to so many elements is realized by copying it from the host rather than by a kernel

def register(tensor: Handle) -> None:
  """Make a tensor one that backward() may find."""
  if not tensor._is_leaf:
    tensor._is_leaf = True
    writes.note(tensor)

def leaves() -> list[Handle]:
  """The registered tensors that are alive."""
  return writes.leaves()  # type: ignore[return-value]  # all that are noted are Handles

class _GradMode(threading.local):
  """Whether results are cut from what they were computed from, as `Tensor.no_grad` asks, in this thread."""
  off = False

GradMode = _GradMode()

class TensorType(type):
  """The class of the class Tensor, for `Tensor.training`, which is the variable TRAINING under another name."""
  @property
  def training(cls) -> bool:
    """True: dropout drops, and batchnorm uses and learns batch statistics."""
    return bool(TRAINING.value)

  @training.setter
  def training(cls, value: bool) -> None: TRAINING.value = int(value)

def _keeps_apart(u: UOp) -> bool: return u.op in _VIEWS or is_room(u)

def is_storage(u: UOp) -> bool:
  """u names memory as it is: a BUFFER under movements that keep elements apart, or what an ASSIGN left there."""
  while _keeps_apart(u) or u.op is Ops.ASSIGN: u = u.src[0]
  return u.op is Ops.BUFFER

def storage_view(u: UOp) -> UOp | None:
  """The memory that u names, without the ASSIGNs that wrote there; None if u is a computed value."""
  chain: list[UOp] = []
  while _keeps_apart(u) or u.op in (Ops.ASSIGN, Ops.DETACH):
    if _keeps_apart(u): chain.append(u)
    u = u.src[0] if u.op is not Ops.ASSIGN or u.realized is None else u.realized
  if u.op is not Ops.BUFFER: return None
  for movement in reversed(chain): u = movement.replace(src=(u, *movement.src[1:]))
  return u

def constant_value(u: UOp) -> ConstType | None:
  """The number that every element of u is, if u is a constant, moved and repeated but not padded."""
  while _keeps_apart(u) or u.op is Ops.EXPAND: u = u.src[0]
  return u.arg if u.op is Ops.CONST else None

def stored(host: HostData, device: DeviceLike | None) -> UOp:
  """Storage on a device that holds data of the host; on several devices, each has all of it.

  Raises DeviceError for DISK: files are written by assign() and to() alone."""
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
  """A BUFFER as a tensor of a shape; of several devices each has all of it."""
  return graph.reshape(node, shape) if isinstance(node.arg[1], str) else multi(node, shape, None)

class Handle(metaclass=TensorType):
  """A handle on a graph node. `uop` may change (assign, realize); nodes never do."""
  __array_priority__ = 1000   # NumPy's numbers and arrays leave `array * tensor` to the tensor, so that it stays one
  __slots__ = ("uop", "grad", "_requires_grad", "_is_leaf", "__weakref__")
  uop: UOp
  grad: Tensor | None
  _requires_grad: bool | None
  _is_leaf: bool

  @classmethod
  def _new(cls, uop: UOp) -> Tensor:
    """A result: a tensor on a node."""
    self = object.__new__(cls)
    if GradMode.off and uop.op not in GroupOp.Movement: uop = graph.detach(uop)
    self.uop, self.grad, self._requires_grad, self._is_leaf = uop, None, None, False
    writes.note(self)
    if TRACEMETA.value: record(uop)
    return self  # type: ignore[return-value]  # the only class of tensors is Tensor

  def _own(self, u: UOp | None = None) -> Tensor:
    """A node (this one) as a result without shared storage: methods that are no views give that also where there is nothing to do."""
    u = self.uop if u is None else u
    return self._new(u if storage_view(u) is None else graph.contiguous(u))

  @classmethod
  def _leaf(cls, uop: UOp, requires_grad: bool | None = None) -> Tensor:
    """A tensor that somebody made rather than computed."""
    self = cls._new(uop)
    if requires_grad is not None: self._requires_grad = requires_grad
    register(self)
    return self

  @classmethod
  def _holding(cls, storage: UOp) -> Tensor:
    """A tensor over storage that is there: a leaf, cheaply."""
    self = object.__new__(cls)
    self.uop, self.grad, self._requires_grad, self._is_leaf = storage, None, None, True
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
    """Where it is or will be computed: the name of a device, or a tuple of names.

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
    """True: backward() fills `grad`. False: it never does. None: it does unless some other tensor of the graph says True.

    >>> Tensor([1.0], requires_grad=True).requires_grad
    True
    """
    return self._requires_grad

  @requires_grad.setter
  def requires_grad(self, value: bool | None) -> None:
    self._requires_grad = value
    if value: register(self)

  def requires_grad_(self, requires_grad: bool | None = True) -> Tensor:
    """Set requires_grad, and return the tensor.

    >>> Tensor([1.0]).requires_grad_().requires_grad
    True
    """
    self.requires_grad = requires_grad
    return self._self()

  def _self(self) -> Tensor: return self  # type: ignore[return-value]  # the only class of tensors is Tensor

  # ***** operands *****

  def _tensor(self, x: Any) -> Tensor:
    """Anything that Tensor(...) takes, but None, as a tensor on this device. Raises ArgumentError for None."""
    if isinstance(x, Handle): return x._self()
    if x is None: raise ArgumentError("cannot compute with None; give a Tensor or a number")
    device = self.uop.device
    return type(self)(x, device=None if on_disk(device) else device)  # type: ignore[call-arg,return-value]  # Tensor's

  def _operand(self, what: str, x: Any) -> Tensor:
    """x, which must be a Tensor. Raises ArgumentError."""
    if isinstance(x, Handle): return x._self()
    raise ArgumentError(f"{what} wants a Tensor, not {x!r}; make one with Tensor(...)")

  def _other(self, x: Any, dtype: DType | None = None) -> UOp:
    """The node of an operand. Python numbers and symbolic integers are weak: they take this tensor's type if its kind holds them."""
    if isinstance(x, Handle): return x.uop
    mine = self.uop.dtype if dtype is None else dtype
    if type(x) in _SCALARS: return graph.constant(_number_type("combine", mine, x), x)
    if isinstance(x, UOp): return graph.cast(x, _weak(mine, int)) if x.dtype is dtypes.weakint else x
    return self._other(number, dtype) if (number := plain(x)) is not x else self._tensor(x).uop

  def _pair(self, what: str, x: Any) -> tuple[UOp, UOp]:
    """This and another operand with one type and one shape. Raises ShapeError, DTypeError or DeviceError naming both."""
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
    _check_devices(what, a, b)
    return a, b

  def _beyond(self, x: Any) -> int:
    """1 where x is a whole number above all values of this integer type, -1 where it is below, else 0."""
    if isinstance(x, Handle) or dtypes.is_float(self.uop.dtype) or type(x := plain(x)) is not int: return 0
    low, high = _weak(self.uop.dtype, int).limits()
    return int(x > high) - int(x < low)

  def _axis(self, axis: int, extra: int = 0) -> int:
    """An axis counted from the front. Raises IndexRangeError."""
    return graph.axis_of(axis, len(self.uop.shape) + extra)

  def _own_axis(self, what: str, axis: int) -> int:
    """An axis counted from the front, of a tensor that has axes. Raises ShapeError, IndexRangeError."""
    if not self.uop.shape: raise ShapeError(f"cannot {what} a tensor of shape (): it has no axes; reshape it to (1,) first")
    return graph.axis_of(axis, len(self.uop.shape))

  def _axes(self, axis: int | Iterable[int] | None) -> tuple[int, ...]:
    """Axes counted from the front, sorted; None means all."""
    n = len(self.uop.shape)
    if axis is None: return tuple(range(n))
    axes = graph.axes_of(axis, n) if isinstance(axis, Iterable) else (graph.axis_of(axis, n),)
    return axes if n else ()

  # ***** storage *****

  def _again(self, step: Callable[..., Tensor], *others: Tensor) -> Callable[..., Tensor]:
    """A step of a loop, built once from this tensor and others: calls run it at once on other tensors of the same shapes, types and devices.

    All of these must be realized, each in storage of its own. On several devices, whose parts may change from step to step, each step is built."""
    if not isinstance(self.device, str): return lambda *given: step(*given).realize()
    examples = (self, *others)
    assert all(is_buffer(t.uop) for t in examples), "a step of a loop is built from realized tensors"
    run = Again(step(*examples).contiguous().uop, [writes.base_of(t.uop) for t in examples])
    return lambda *given: self._holding(run(*[writes.base_of(t.uop) for t in given]))

  def replace(self, x: Handle) -> Tensor:
    """Let this handle stand for x's value. Raises ShapeError if the shape differs.

    >>> x = Tensor([1, 2])
    >>> x.replace(x + 1).tolist()
    [2, 3]
    """
    x = self._operand("replace", x)
    if self.uop.shape != x.uop.shape: graph.refuse_shape("replace", self.uop.shape, x.uop.shape)
    self.hold(x.uop)
    return self._self()

  def hold(self, u: UOp) -> None:
    """Stand for a node, which may be storage."""
    self.uop = u
    if is_storage(u) and dtypes.is_float(u.dtype): self._is_leaf = True
    writes.note(self)

  def assign(self, x: Any) -> Tensor:
    """Write x into this tensor's storage; x broadcasts. A tensor without storage takes x's value instead, and gets storage of its own for it.

    The write is done when this tensor is next realized, or now if other tensors look at the storage. Values are what they were where they were
    expressed: what was computed from the old contents keeps its value, what is expressed from now on sees the new ones.

    Raises ShapeError, DTypeError, DeviceError if x does not fit; ArgumentError for a part of a tensor that has no storage, which it would not reach.

    >>> x = Tensor([1, 2])
    >>> x.assign(x * 10).tolist()
    [10, 20]
    """
    if writes.memory_of(self.uop)[0] is None and (whole := _cut_from(self.uop)) and _is_held(whole, self):
      raise ArgumentError(f"assign() to a part of a tensor of shape {graph.show(whole[0].shape)} that has no storage would not reach it; realize() "
                          "that tensor first, or write t[...] = value")
    return self._updated(x)

  def _updated(self, x: Any) -> Tensor:
    """What `assign` does. `t[a:b] += x` comes here for the part, which it then puts into t."""
    other = graph.cast(self._other(x), self.uop.dtype) if not isinstance(x, Handle) else x.uop
    mine = self.uop
    if other is mine: return self._self()
    if on_disk(mine.device): return self._write_file(other)
    _check_types(mine, other)
    _check_devices("assign", mine, other)
    if other.shape != mine.shape:
      if graph.broadcast_shape("assign", mine.shape, other.shape) != mine.shape: graph.refuse_shape("assign", mine.shape, other.shape)
      other = graph.broadcast(other, mine.shape)
    if 0 in mine.shape: return self._self()
    # the target keeps the ASSIGNs that wrote there before: they are in order, and whoever reads one of them reads before the next
    stored_here = storage_view(mine) is not None
    if not stored_here and storage_view(other) is not None: other = unique(other)   # the value, not x's storage
    self.uop = written(mine, other) if stored_here else other
    writes.note(self)
    if TRACEMETA.value: record(self.uop)
    if stored_here and writes.seen_by_others(self): realize_all((self,))
    return self._self()

  def _write_file(self, value: UOp) -> Tensor:
    """Write a value into the part of a file that this tensor is, now. Raises DeviceError if the part is not in one piece."""
    mine = self.uop
    if this_thread.capture is not None:
      raise JitError(f"a file is written while TinyJit captures ({mine.device}), and replays would not write it again")
    _check_types(mine, value)
    if graph.broadcast_shape("assign", mine.shape, value.shape) != mine.shape: graph.refuse_shape("assign", mine.shape, value.shape)
    piece = resolve(mine)
    if piece.rest: raise DeviceError(f"the part of {mine.device} to write is not in one piece; write whole rows, or the whole tensor")
    raw = self._new(graph.broadcast(value, mine.shape))._read(zero_copy=True)[0]
    target = view_of(piece)
    touched = [target.base, *[found for view in target.base._views if (found := view()) is not None]]
    realize_nodes([], overwritten=touched)
    target.copyin(raw)
    writes.overwrite(touched)
    return self._self()

  def realize(self, *lst: Handle, do_update_stats: bool = True) -> Tensor:
    """Compute this tensor, and the others given, now: one schedule for all. Afterwards each has storage of its own, or is a view of storage.

    >>> (Tensor([1, 2]) + 1).realize()
    <Tensor (2,) int32 on CPU, realized: [2, 3]>
    """
    if this_thread.traced is not None: refuse_values("realized", self.uop.shape)
    realize_all((self, *[self._operand("realize", x) for x in lst]))
    return self._self()

  def _buffer(self) -> Buffer:
    """The storage that holds exactly this tensor's elements, in order, to be read; computes them if need be. The graph stays, for backward().

    Raises JitError while TinyJit captures: what Python does with the values would not be done again.
    """
    if this_thread.traced is not None: refuse_values("read", self.uop.shape)
    if this_thread.capture is not None:
      raise JitError(f"a tensor of shape {graph.show(self.uop.shape)} is read while TinyJit captures, and replays would not read it again; return "
                     "the tensor, and read it outside")
    if on_disk(self.uop.device):
      piece = resolve(self.uop)
      return self._self().to(None)._buffer() if piece.rest or self.uop.dtype is dtypes.bool else view_of(piece)
    if memory_of(self.uop)[1]: realize_all((self,))
    devices = self.uop.device
    if isinstance(devices, tuple): return self._new(graph.copy(self.uop, devices[0]))._buffer()
    memory = storage_view(self.uop)
    found = None if memory is None else _in_order(memory)
    if found is None:
      u = self.uop if memory is None else graph.contiguous(memory)
      if u.realized is None: realize_nodes([u])
      found = None if u.realized is None else _in_order(u.realized)
      assert found is not None, f"realize left {u} without storage in order"
    return buffer_of(found).ensure_allocated()  # type: ignore[no-any-return]  # on one device it is a Buffer; of empty() nothing has made it yet

def written(target: UOp, value: UOp) -> UOp:
  """A view of storage with a value written there. Where the view is not what each device has of its part, all parts are written anew."""
  if not is_multi(target) or storage_view(Distribution().of(target).node) is not None: return assigned(target, value)
  chain: list[UOp] = []
  while target.op is not Ops.MULTI and target.op is not Ops.ASSIGN:
    if target.op is not Ops.DETACH: chain.append(target)
    target = target.src[0]
  view = target
  for look in reversed(chain): view = look.replace(src=(view, *look.src[1:]))
  inside = transposed(graph.full(view.shape, dtypes.bool, True), view, target)
  return view.substitute({target: assigned(target, graph.where(inside, transposed(value, view, target), target))})

def _cut_from(u: UOp) -> list[UOp]:
  """The nodes that u, through movements, is a part of, from the first one on that it has not all of."""
  found: list[UOp] = []
  while u.op in GroupOp.Movement:
    if found or u.op is Ops.SHRINK: found.append(u.src[0])
    u = u.src[0]
  return found

def _is_held(nodes: list[UOp], by_other_than: Handle) -> bool:
  """Does a living tensor stand for one of the nodes, or look at their storage? Those of constants are noted nowhere: all of memory is searched."""
  memory = next((found for u in nodes if (found := writes.memory_of(u)[0]) is not None), None)
  if memory is not None and any(t is not by_other_than for t in writes.viewers(memory.storage)): return True
  holders = [*leaves(), *[t for reference, _ in writes.values().values() if (t := reference()) is not None]]
  if any(t.uop in nodes and t is not by_other_than for t in holders): return True
  if nodes[-1].base.op is not Ops.CONST: return False
  return any(isinstance(t, Handle) and t is not by_other_than for u in nodes for t in gc.get_referrers(u))

def refuse_values(what: str, shape: tuple[sint, ...]) -> None:
  """Raise the FunctionError of computing something inside of a function that `tinyhw.function` runs."""
  raise FunctionError(f"a tensor of shape {graph.show(shape)} is {what} inside of function {this_thread.traced}, which only expresses its results; "
                      f"do that outside, or leave out @function")

def _weak(dtype: DType, kind: type) -> DType:
  """The type of an operation between a tensor of dtype and a Python number of a kind."""
  if kind is bool or dtypes.is_float(dtype): return dtype
  if kind is int: return dtypes.default_int if dtype is dtypes.bool else dtype
  return dtypes.default_float

def _number_type(what: str, dtype: DType, x: ConstType) -> DType:
  """The type of an operation between a tensor of dtype and a Python number. Raises DTypeError for an int that it does not hold."""
  found = _weak(dtype, type(x))
  if type(x) is int: graph.check_number(what, found, x)
  return found

def _check_types(target: UOp, value: UOp) -> None:
  if target.dtype is not value.dtype:
    raise DTypeError(f"cannot assign {value.dtype} to a tensor of {target.dtype}; cast it first: .assign(x.cast(t.dtype))")

def _check_devices(what: str, a: UOp, b: UOp) -> None:
  first, second = a.device, b.device
  if first != second and first is not None and second is not None:
    if on_disk(first) or on_disk(second): raise refusal(first if on_disk(first) else second, what)
    raise DeviceError(f"cannot {what} a tensor on {first} and one on {second}; move one of them: .to({first!r})")

def _in_order(u: UOp) -> UOp | None:
  """The BUFFER whose elements, in order, u consists of."""
  while u.op is Ops.RESHAPE: u = u.src[0]
  return u if u.op is Ops.BUFFER else None

def realize_all(tensors: Iterable[Handle]) -> None:
  """Compute tensors in one schedule."""
  pending: dict[int, tuple[Handle, UOp]] = {}
  wanted: dict[UOp, None] = {}
  for tensor in tensors:
    u = tensor.uop
    if id(tensor) in pending: continue
    memory, waits = memory_of(u)
    if memory is not None and storage_view(u) is not None:
      if waits: u = assign_of(u)
      else:
        tensor.uop = rebased(u, memory)
        continue
    elif this_thread.capture is None and u.size <= _MOST_FILLED and (value := constant_value(u)) is not None:
      tensor.uop = stored(HostData(bytes(pack([value], u.dtype)) * u.size, u.shape, u.dtype), u.device)
      tensor._is_leaf = True
      writes.note(tensor)
      continue
    elif u in wanted or u.realized is not None or constant_value(u) is not None: u = unique(u)
    wanted[u] = None
    pending[id(tensor)] = tensor, u
  if not pending: return
  realize_nodes(list(wanted))
  for tensor, u in pending.values():
    if memory_of(tensor.uop)[0] is None:   # else it was an ASSIGN, or the run wrote what the value was computed from
      assert u.realized is not None, f"realize left {u} without storage"
      tensor.hold(graph.reshape(u.realized, u.shape))
    elif dtypes.is_float(u.dtype): register(tensor)
