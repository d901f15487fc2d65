"""`Tensor`: n-dimensional arrays, computed when they are needed.

A Tensor is a handle on a node of the tensor graph (docs/design/uop.md). Its methods come in families, each using those
before it:

  base casts elementwise functions activations movement reduction creation random matmul indexing sorting convolution
  loss interchange decomposition digest kernels

This file adds the rest: creation from data, reads, devices, training mode and gradients.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
import builtins
import importlib
import os
import weakref
from typing import Any

from tinyhw.arithmetic import elements
from tinyhw.config import Context, Wrapper
from tinyhw.device import Buffer, BufferOptions, Compiled, Device, DeviceLike, computing, on_disk, outside
from tinyhw.dtype import DType as DType, DTypeLike, dtypes, to_dtype
from tinyhw.engine.memory import cuts
from tinyhw.engine.memory.buffers import new_buffer
from tinyhw.engine.memory.writes import lost, memory_of, node_over, note, unique, values
from tinyhw.engine.run.realize import this_thread
from tinyhw.engine.schedule.multi import axis_of, check_axis
from tinyhw.errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError, UnknownValueError
from tinyhw.files.storage import fetch
from tinyhw.gradient import define_checkpoint, gradients
from tinyhw.methods.base import GradMode, Handle, TensorType, complex_room, leaves, register, stored
from tinyhw.methods.checks import flag, is_number, whole
from tinyhw.methods.creation import checked_shape
from tinyhw.methods.data import hostdata
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import constant_value, is_storage
from tinyhw.methods.kernels import Kernels
from tinyhw.methods.names import respell, widen
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_LEAF_OPS = frozenset({Ops.RESHAPE, Ops.BUFFER, Ops.MULTI})

class train(Wrapper):
  """`with Tensor.train():` or `@Tensor.train()`: training mode inside, in this thread. The old mode is restored
  afterwards."""
  def __init__(self, mode: bool = True):
    self.mode = flag("mode", mode)
    self.context = Context(TRAINING=int(self.mode))

  def fresh(self) -> train: return train(self.mode)
  def __enter__(self) -> None: self.context.__enter__()
  def __exit__(self, *error: Any) -> None: self.context.__exit__(*error)

class NoGrad(Wrapper):
  """`with Tensor.no_grad():`, `@Tensor.no_grad()` or `Tensor.no_grad = True`: results are cut off from their operands,
  in this thread."""
  def __init__(self) -> None: self.before = False
  def fresh(self) -> NoGrad: return NoGrad()
  def __call__(self, function: Any = None) -> Any: return NoGrad() if function is None else super().__call__(function)
  def __bool__(self) -> bool: return GradMode.off

  def __enter__(self) -> None: self.before, GradMode.off = GradMode.off, True
  def __exit__(self, *_: object) -> None: GradMode.off = self.before

class _TensorType(TensorType):
  @property
  def no_grad(cls) -> NoGrad: return NoGrad()
  @no_grad.setter
  def no_grad(cls, value: bool) -> None: GradMode.off = flag("no_grad", value)

class Tensor(Kernels, metaclass=_TensorType):
  """An n-dimensional array of one type on one device.

  data: a number, nested lists, bytes, anything with the buffer protocol or __array__, a path (the file's bytes, on
  DISK), a graph node, a Tensor, or None, which is 0. An array of ml_dtypes has the same type here, or the narrowest
  one that holds its elements (int4: int8).
  device: None is `Device.DEFAULT`. dtype: None follows the data. requires_grad: see the property.
  """
  __slots__ = ()
  train = train

  def __init__(self, data: Any = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
               requires_grad: bool | None = None):
    if requires_grad is not None: requires_grad = flag("requires_grad", requires_grad)
    self.grad, self._requires_grad, self._is_leaf, self._alias = None, requires_grad, False, None
    kind = None if dtype is None else to_dtype(dtype)
    if kind in dtypes.complexes or isinstance(data, Handle) and data.holds_complex:
      complex_room().fill(self, data, device, kind, requires_grad)
      return
    whole, data = (data, data.uop) if isinstance(data, Handle) else (None, data)
    if isinstance(data, UOp):
      self.uop = _on_device(graph.element(data, kind), device)
      if whole is not None and self.uop is data: self._alias = whole._view(data)._alias
      self._is_leaf = requires_grad is True or data.op in _LEAF_OPS
      note(self)
      return
    if isinstance(data, os.PathLike):
      self.uop = _file(data, kind)
      if device is not None: self.uop = self.to(device).uop
      note(self)
      return
    place = Device.canonicalize(device)
    if on_disk(place):
      self.uop = Tensor(data, None, kind).to(place).uop
      return
    if data is None: data = 0.0
    if isinstance(data, (bool, int, float)) and type(data) in (bool, int, float):
      if kind is not None: hostdata.check_held((data,), kind)
      self.uop = graph.constant(hostdata.type_of((data,)) if kind is None else kind, data, place)
      if requires_grad: self.uop = unique(self.uop)
    elif hostdata.holds_arrays(data): self.uop = _stacked(self, data, place, kind)
    else:
      host = _host_data(data, kind)
      if host.dtype in dtypes.complexes:
        complex_room().fill(self, host, device, host.dtype, requires_grad)
        return
      self.uop = stored(host, place)
    self._is_leaf = True
    note(self)

  @staticmethod
  def from_blob(ptr: int, shape: tuple[int, ...], dtype: DTypeLike | None = None,
                device: DeviceLike | None = None) -> Tensor:
    """A tensor over memory at an address, which must outlive it and the work on it.

    Raises DeviceError if the device cannot see the memory.

    Devices work on after the last tensor is gone. Call `Device[...].synchronize()` before the memory is freed. After
    its owner has written the memory, call `invalidate()`: values computed from the tensor are then computed again.
    """
    ptr, sizes = whole("an address", ptr, 0), checked_shape((shape,))
    kind, place = to_dtype(dtype or dtypes.default_float), Device.canonicalize(device)
    if not isinstance(place, str):
      raise DeviceError(f"memory at an address is of one device, not of {place}; name one, and shard() the tensor")
    size = int(graph.size(sizes))
    node = new_buffer(place, size, kind, storage=Buffer(place, size, kind, options=BufferOptions(ptr)).allocate())
    return Tensor._leaf(graph.reshape(node, sizes))

  @staticmethod
  def from_url(url: str, gunzip: bool = False, **kwargs: Any) -> Tensor:
    """The bytes of a download, which is cached. Raises ArgumentError if url is not text."""
    if not isinstance(url, str): raise ArgumentError(f"a URL is text, not {url!r}")
    return Tensor(fetch(url, gunzip=gunzip), **kwargs)

  # ***** reading *****

  def _static_shape(self) -> tuple[int, ...]:
    shape = tuple([d if isinstance(d, int)
                   else d.substitute({u: u.src[1] for u in d.toposort() if u.op is Ops.BIND}).simplify()
                   for d in self.shape])
    if not all(isinstance(d, int) or d.op is Ops.CONST for d in shape):
      raise ShapeError(f"a tensor of shape {graph.show(self.shape)} has no value; bind its Variables")
    return tuple([int(d) for d in shape])

  def _read(self, zero_copy: bool = False) -> tuple[memoryview, tuple[int, ...]]:
    """The bytes of the elements, and the shape.

    The caller holds the lock, or knows that no other thread writes there.
    """
    shape = self._static_shape()
    count = 1
    for d in shape: count *= d
    if not count: return memoryview(b""), shape
    value = constant_value(self.uop)
    if value is not None: return memoryview(bytearray(hostdata.pack([value], self.dtype)) * count), shape
    return self._buffer().as_memoryview(allow_zero_copy=zero_copy)[:count * self.dtype.itemsize], shape

  def _wait(self) -> None:
    """Wait for a device that works asynchronously, before the lock is taken to read. Other threads go on meanwhile."""
    devices = self.uop.device
    if not isinstance(devices, str) or on_disk(devices) or not Device[devices].is_asynchronous: return
    self._static_shape()   # its error comes before those of kernels
    Device[self._buffer().device].synchronize()

  def data(self) -> memoryview:
    """The elements as a memoryview of this shape.

    Raises DTypeError for types that Python does not have (bfloat16, fp8); tolist() reads them.

    >>> Tensor([[1, 2], [3, 4]]).data()[1, 0]
    3
    """
    return self._memory()

  def _memory(self, zero_copy: bool = False) -> memoryview:
    """The memoryview of data(). With zero_copy it is in place if the host sees the memory."""
    if self.dtype.fmt is None: raise DTypeError(f"Python has no {self.dtype}; use tolist(), or cast to float32 first")
    if Compiled.some_asynchronous: self._wait()
    with lock: raw, shape = self._read(zero_copy)
    form: Any = self.dtype.fmt
    # a memoryview has no other empty shapes
    try: flat: memoryview = raw.cast("B").cast(form) if 0 in shape else raw.cast("B").cast(form, shape)
    except ValueError:
      raise DTypeError(
        f"this Python has no memoryview of {self.dtype}; use tolist(), or cast to float32 first") from None
    return flat

  def tolist(self) -> Any:
    """The elements as Python numbers: a number for shape (), else lists as deep as the shape.

    >>> Tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    if Compiled.some_asynchronous: self._wait()
    with lock:   # no thread writes there meanwhile
      raw, shape = self._read(zero_copy=True)
      return hostdata.nested(raw, self.dtype, shape)

  def item(self) -> Any:
    """The only element as a Python number. Raises ShapeError if there are more.

    >>> Tensor([1.0, 2.0]).sum().item()
    3.0
    """
    if Compiled.some_asynchronous: self._wait()
    with lock:
      raw, shape = self._read(zero_copy=True)
      if len(raw) != self.dtype.itemsize:
        raise ShapeError(f"item() wants one element, and the shape is {shape}; use tolist()")
      return elements(raw, self.dtype)[0]

  def numpy(self) -> Any:
    """The elements as a NumPy array; bfloat16 and fp8 become float32.

    >>> Tensor([1, 2]).numpy()
    array([1, 2], dtype=int32)
    """
    if self.dtype.fmt is None: return self.float().numpy()
    try: numpy = importlib.import_module("numpy")
    except ImportError:
      raise ArgumentError("numpy() needs NumPy, which is not installed; use tolist() or data() instead") from None
    if Compiled.some_asynchronous: self._wait()
    with lock: raw, shape = self._read()
    return numpy.frombuffer(raw, dtype=numpy.dtype(self.dtype.fmt)).reshape(shape)

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    return array if dtype is None else array.astype(dtype)

  # ***** devices *****

  def to(self, device: DeviceLike | None) -> Tensor:
    """This tensor on another device; itself if it is there. None is the default device. On several devices (a tuple)
    each has the whole tensor: see `shard`.

    DISK:/path is a file, which is written now. A tensor on DISK reads only the needed bytes, when they are needed.

    >>> Tensor([1, 2]).shard(("CPU", "CPU:1"), axis=0).to("CPU").tolist()
    [1, 2]
    """
    place = Device.canonicalize(device)
    if on_disk(place) and place != self.uop.device:
      return self.empty(self._static_shape(), device=place, dtype=self.dtype).assign(self)
    return self if place == self.uop.device else self._moved(_on_device(self.uop, place), lambda grad: grad.to(device))

  def to_(self, device: DeviceLike | None) -> Tensor:
    """Move this tensor to another device.

    >>> x = Tensor([1, 2])
    >>> x.to_("PYTHON").device
    'PYTHON'
    """
    return self._replaced(self.to(device))

  def shard(self, devices: tuple[str, ...], axis: int | None = None) -> Tensor:
    """This tensor on several devices: in equal parts along an axis, or (None) the whole tensor on each. Operations on
    it run on all of them.

    Raises ShapeError if the axis does not divide among the devices, DeviceError unless devices is a tuple of different
    names.

    >>> x = Tensor([[1, 2], [3, 4]]).shard(("CPU", "CPU:1"), axis=0)
    >>> x.device
    ('CPU', 'CPU:1')
    >>> x.sum(0).tolist()
    [4, 6]
    """
    if not isinstance(devices, (tuple, list)):
      raise DeviceError(f"shard wants a tuple of devices, not {devices!r}; to() moves to one device")
    place = Device.canonicalize(tuple(devices))
    k = None if axis is None else self._own_axis("shard", axis)
    if isinstance(place, str): return self.to(place)
    if k is not None: check_axis(self.shape, k, place)
    return self._moved(_on_device(self.uop, place, k), lambda grad: grad.shard(devices, axis))

  def shard_(self, devices: tuple[str, ...], axis: int | None = None) -> Tensor:
    """Let this tensor live on several devices, as `shard` says.

    >>> Tensor([1, 2]).shard_(("CPU", "CPU:1"), axis=0).tolist()
    [1, 2]
    """
    return self._replaced(self.shard(devices, axis))

  def shard_like(self, y: Tensor) -> Tensor:
    """This tensor on the devices of another one, in parts along the same axis.

    >>> y = Tensor([1, 2]).shard(("CPU", "CPU:1"), axis=0)
    >>> Tensor([3, 4]).shard_like(y).device
    ('CPU', 'CPU:1')
    """
    other = self._operand("shard_like", y)
    return self.to(other.device) if isinstance(other.device, str) else self.shard(other.device, axis_of(other.uop))

  def _moved(self, u: UOp, move: Callable[[Tensor], Tensor]) -> Tensor:
    """This tensor as a node on another device, and its gradient with it."""
    if u is self.uop: return self
    moved = self._new(u)
    moved._requires_grad = self._requires_grad
    if self.grad is not None: moved.grad = move(self.grad)
    if on_disk(self.uop.device): register(moved)   # for backward() it counts as made from data
    return moved

  def _replaced(self, moved: Tensor) -> Tensor:
    """Become a tensor on another device, and take its gradient."""
    self.grad = moved.grad
    return self.replace(moved)

  def clone(self, device: DeviceLike | None = None) -> Tensor:
    """The same values in new storage. The clone of a tensor on DISK is on a computing device.

    >>> x = Tensor([1, 2])
    >>> y = x.clone()
    >>> x[0] = 5
    >>> y.tolist()
    [1, 2]
    """
    return self._new(unique(_on_device(self.uop, computing(self.device) if device is None else device)))

  def copied(self) -> Tensor:
    """A copy in new storage, made now, without a kernel of its own.

    >>> Tensor([1, 2]).copied().tolist()
    [1, 2]
    """
    shape = self._static_shape()
    if 0 in shape: return Tensor._leaf(stored(hostdata.HostData(b"", shape, self.dtype), computing(self.device)))
    with lock:
      raw, _ = self._read(zero_copy=True)
      return Tensor._leaf(stored(hostdata.HostData(raw, shape, self.dtype), computing(self.device)))

  # ***** gradients *****

  def gradient(self, *targets: Tensor, gradient: Tensor | float | None = None) -> list[Tensor]:
    """The derivatives of this scalar with respect to each target, as tensors of the targets' shapes. With `gradient`,
    which broadcasts, the scalar is the sum of its product with this tensor.

    They are graphs: differentiate them again for higher derivatives. Raises GradientError for a target from which this
    was not computed. The gradient is zeros if the dependence goes only through detach(), rounding or an index.

    >>> x = Tensor([1.0, 2.0])
    >>> slope, = (x * x).sum().gradient(x)
    >>> slope.tolist()
    [2.0, 4.0]
    """
    if any([isinstance(t, Tensor) and t.holds_complex for t in targets]):
      return complex_room().gradients(self, targets, gradient)  # type: ignore[no-any-return]
    for t in targets:
      if not isinstance(t, Tensor): raise ArgumentError(f"gradient() wants Tensors, not {t!r}")
      if not dtypes.is_float(t.dtype):
        raise GradientError(f"a tensor of {t.dtype} has no gradient; only float types do")
    if this_thread.capture is not None: this_thread.capture.differentiated = True
    found = gradients(self.uop, self._seed(gradient), [t.uop for t in targets])
    if (missed := cuts.missed(self.uop, targets)) is not None:
      raise GradientError(f"gradient() would not be all of {_cut(missed)}")
    below = None
    results = []
    for t, g in zip(targets, found):
      if g is None:
        below = self.uop.toposort() if below is None else below
        if t.uop not in below and 0 not in t.shape and not any(u.realized is t.uop for u in below):
          raise GradientError(f"the tensor of shape {graph.show(self.shape)} was not computed from the target of "
                              f"shape {graph.show(t.shape)}; " +
                              (_LOST if any(u in lost for u in below) else
                               "take the gradient before the tensor is realized, and for the tensor that went in"))
        g = graph.full(t.shape, t.dtype, 0, t.uop.device)
      results.append(self._own(g))
    return results

  def _seed(self, gradient: Tensor | float | None) -> UOp:
    if not dtypes.is_float(self.dtype):
      raise GradientError(f"a tensor of {self.dtype} cannot be differentiated; only float types can")
    if gradient is None:
      if not all(d == 1 for d in self.shape):
        raise GradientError(f"a gradient without `gradient` is that of one number, and the shape is "
                            f"{graph.show(self.shape)}; "
                            "reduce it with sum() or mean(), or pass gradient=")
      return graph.full(self.shape, self.dtype, 1, self.uop.device)
    what, given = ("weight the gradient of", self.ufix(gradient) if is_number(gradient)
                   else self._operand("gradient", gradient))
    if given.shape != self.shape and not graph.same_numbers(graph.broadcast_shape(what, self.shape, given.shape),
                                                            self.shape):
      graph.refuse_shape(what, self.shape, given.shape)
    return graph.cast(graph.relabelled(graph.broadcast(given.uop, self.shape), self.shape), self.dtype)

  def backward(self, gradient: Tensor | float | None = None) -> Tensor:
    """Add to `grad` of the tensors from which this one was computed. Without `gradient` it must be one number, else
    `gradient` broadcasts to its shape.

    These are float tensors that were made from data or by creation functions, or realized, or marked. If any of them
    has requires_grad=True only those get gradients; else all but those with False. Results get none unless
    `retain_grad()` asks for it. Other tensors keep their `grad`, and so do those that this one depends on only through
    detach(). Optimizers mark their parameters. Nothing is computed yet.

    Raises GradientError if no tensor wants a gradient, or if an in-place write cut off a part of a marked tensor's
    gradient.

    >>> x = Tensor([1.0, 2.0])
    >>> loss = (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    seed = self._seed(gradient)
    if this_thread.capture is not None: this_thread.capture.differentiated = True
    below = self.uop.toposort()
    stands_for = {u.realized for u in below if u.realized is not None}
    found = [t for t in leaves() if t._requires_grad is not False and dtypes.is_float(t.uop.dtype)
             and (t.uop in below or t.uop in stands_for)]
    retained, found = [t for t in found if t.retains_grad], [t for t in found if not t.retains_grad]
    marked = ([t for t in found if t._requires_grad] or found) + retained
    if marked and all(not t._requires_grad and memory_of(t.uop)[0] in lost for t in marked):
      raise GradientError(f"backward() finds nothing to go on to: {_LOST}")
    if (missed := cuts.missed(self.uop)) is not None:
      raise GradientError(f"backward() would not reach all of {_cut(missed)}")
    if not marked:
      raise GradientError("backward() found no tensor that wants a gradient: the tensor was computed from none that "
                          "is still alive, "
                          "or it was realized, which forgets how it was computed")
    for t, g in zip(marked, gradients(self.uop, seed, [t.uop for t in marked])):
      if g is None: continue
      if (capture := this_thread.capture) is not None:
        if t.grad is None and id(t) not in capture.grads: capture.graded.append(weakref.ref(t))
        if t.grad is not None and capture.grads.get(id(t)) is t.grad: capture.added.add(id(t))
      new = self._own(g)   # not the storage of `gradient`
      with lock: t.grad = new if t.grad is None else t.grad.add(new)
    return self

  @staticmethod
  def checkpoint(fxn: Callable[..., Any], *args: Any) -> Any:
    """fxn(*args), whose inner values are computed again for the backward pass instead of kept: less memory for more
    work.

    fxn: a function of Tensors (and other arguments) that returns a Tensor, or Tensors in tuples, lists and dicts. Its
    arguments, its results, and Tensors from outside that it uses are kept. Gradients reach all of them. If all results
    are realized at once, they have the same bits as without a checkpoint. The exception is a kernel that needs values
    of both passes: it may be optimised to add in another order. fxn is called once, so its side effects happen once,
    and random numbers inside are the same again. Raises ArgumentError if fxn is not callable.

    >>> w = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> Tensor.checkpoint(lambda x: (x @ w).square(), Tensor([[1.0, -1.0]])).sum().gradient(w)[0].tolist()
    [[-4.0, -4.0], [4.0, 4.0]]
    """
    if not callable(fxn): raise ArgumentError(f"checkpoint wants a function and its arguments, not {fxn!r}")
    if GradMode.off: return fxn(*args)
    known = {u for _, u in values().values()} | {x.uop for x in args if isinstance(x, Tensor)}
    found = fxn(*args)
    define_checkpoint(_new_nodes(found, known), known)
    return found

  # ***** Python's protocols *****

  def __len__(self) -> int:
    if not self.ndim:
      raise UnknownValueError("a tensor of shape () has no length; use .item() for its value, or .numel()")
    d = self.shape[0]
    return d if isinstance(d, int) else int(d)

  def __iter__(self) -> Iterator[Tensor]:
    for i in range(len(self)): yield self[i]

  def __bool__(self) -> bool:
    raise UnknownValueError("the truth of a Tensor is not known without computing it; use .item(), .any() or .all()")

  def __float__(self) -> builtins.float: return float(self.item())

  def __int__(self) -> builtins.int: return int(self.item())

  def __contains__(self, x: Any) -> bool: raise UnknownValueError("`in` needs the values; use .eq(x).any().item()")

  def __reduce_ex__(self, protocol: Any) -> Any:
    """Pickle with the elements. From protocol 5 on they are not copied if the host sees them, and are out of band if
    the pickler wants that.

    A tensor that is the whole of a Buffer pickles with the Buffer. So tensors and captures of TinyJit that share memory
    still share it after a pickle of them together.
    """
    with lock:
      whole = self._whole_buffer()
      if whole is not None: return _over, (whole, self.shape, self._requires_grad)
      raw, shape = self._read(zero_copy=protocol >= 5)
    return _unpickled, (outside(raw, protocol), shape, self.dtype, computing(self.device), self._requires_grad)

  def _whole_buffer(self) -> Buffer | None:
    """Return the Buffer whose elements are this tensor's, all of them, in order. None for a value, a part, or a tensor
    that is not on just one device."""
    if (isinstance(self.device, tuple) or on_disk(self.device) or memory_of(self.uop)[0] is None
        or 0 in self._static_shape()):
      return None
    found, node = self._buffer(), memory_of(self.uop)[0]
    is_whole = (node is not None and node.storage is found and found.base is found and found.dtype is self.dtype
                and found.nbytes == Tensor.nbytes(self))
    return found if is_whole else None

  def __format__(self, spec: str) -> str: return format(self.item(), spec) if spec else repr(self)

  def usum(self, *uops: Tensor) -> Tensor:
    """The sum of this tensor and others: Tensor.usum(a, b, c).

    >>> Tensor.usum(Tensor([1]), Tensor([2]), Tensor([3])).tolist()
    [6]
    """
    total = Tensor._operand(self, "usum", self)
    for x in uops: total = total.add(x)
    return total

  def uprod(self, *uops: Tensor) -> Tensor:
    """The product of this tensor and others: Tensor.uprod(a, b, c).

    >>> Tensor.uprod(Tensor([2]), Tensor([3])).tolist()
    [6]
    """
    total = Tensor._operand(self, "uprod", self)
    for x in uops: total = total.mul(x)
    return total

respell(Tensor)
widen(Tensor)

def _new_nodes(found: Any, known: set[UOp]) -> list[UOp]:
  """Return the nodes of the new float Tensors that a function returned."""
  if isinstance(found, dict): return [u for x in found.values() for u in _new_nodes(x, known)]
  if isinstance(found, (list, tuple)): return [u for x in found for u in _new_nodes(x, known)]
  computed = (isinstance(found, Tensor) and found.uop not in known and not is_storage(found.uop)
              and dtypes.is_float(found.dtype))
  return [found.uop] if computed else []

def _cut(t: Any) -> str:
  """Describe the missing part of a tensor's gradient, and the remedy."""
  return (f"the gradient of a tensor of shape {graph.show(t.shape)}: a tensor below was computed from it, and one of "
          f"the two was overwritten in "
          "place since (assign, an optimizer's step, t[...] = value). Take gradients before that; or make a clone() "
          "of the storage before the first "
          "write, and write to that; or detach() or realize() what is to be a constant")

_LOST = ("a tensor below it was computed from contents that were overwritten in place since (assign, an optimizer's "
         "step, t[...] = value), and is "
         "storage now; take gradients before that, or write to a clone() made before the first write")

# ***** making tensors *****

def _host_data(data: Any, dtype: DType | None) -> hostdata.HostData:
  if isinstance(data, complex): return hostdata.from_complex([data], (), dtype)
  if isinstance(data, (list, tuple, range)): return hostdata.from_nested(list(data), dtype)
  if isinstance(data, (bytes, bytearray)): return hostdata.from_bytes(data, dtype or dtypes.uint8)
  return hostdata.from_array(data, dtype)

def _file(path: os.PathLike[Any], dtype: DType | None) -> UOp:
  """Return a file as a tensor on DISK: of bytes, or of a type.

  The file is opened now, and read when the tensor is. Raises MissingFileError, ShapeError.
  """
  kind = dtypes.uint8 if dtype is None else dtype
  device = Device.canonicalize(f"DISK:{os.fsdecode(path)}")
  opaque = Device[device].allocator.alloc(0)
  length = opaque.file.length()
  if length % kind.itemsize:
    raise ShapeError(f"{device} has {length} bytes, no whole number of {kind}, which has {kind.itemsize} each")
  return new_buffer(device, length // kind.itemsize, kind,
                    storage=Buffer(device, length // kind.itemsize, kind, opaque))

def _stacked(self: Tensor, rows: Any, device: DeviceLike, dtype: DType | None) -> UOp:
  """Make a tensor of a list with Tensors in it."""
  tensors = [Tensor(x, device=device) for x in rows]
  u = tensors[0].stack(*tensors[1:]).uop
  return u if dtype is None else graph.cast(u, dtype)

def _on_device(u: UOp, device: DeviceLike | None, axis: int | None = None) -> UOp:
  """Return u on a device: a COPY unless it is there, or has no device. axis: the axis along which several devices have
  parts of it."""
  if device is None: return u
  place = Device.canonicalize(device)
  if on_disk(place) and place != u.device:
    raise ArgumentError(f"a file is written by .to({place!r}), or by assigning to Tensor.empty(..., device={place!r})")
  if u.device is None:
    if isinstance(place, str): return u
    u = graph.where(graph.full(u.shape, dtypes.bool, True, place), u, u)   # constants alone have no device
  if place == u.device and (isinstance(place, str) or axis == axis_of(u)): return u
  if on_disk(u.device) and not isinstance(place, str): u = graph.copy(u, place[0])
  return graph.copy(u, place, axis)

def _unpickled(raw: Any, shape: tuple[int, ...], dtype: DType, device: str, requires_grad: bool | None) -> Tensor:
  return Tensor._leaf(stored(hostdata.HostData(raw, shape, dtype), device), requires_grad)

def _over(buffer: Buffer, shape: tuple[int, ...], requires_grad: bool | None) -> Tensor:
  return Tensor._leaf(graph.reshape(node_over(buffer), shape), requires_grad)

def is_numpy_ndarray(x: Any) -> bool:
  """Is x a NumPy array? The test does not import NumPy."""
  return str(type(x)) == "<class 'numpy.ndarray'>"
