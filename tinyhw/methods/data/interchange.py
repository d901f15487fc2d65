"""Exchange of tensors with other libraries: DLPack, NumPy's array interface, Python's buffers, `copy`, and the text of
a tensor.

Shared memory is shared both ways, and tinyhw does not know of writes that others make there. The tensor over the
memory, and its views, show the present contents. Values that were already computed from the memory are kept. Values
still to be computed read the memory at that time. `invalidate()` declares that the memory was written, and realize()
keeps a value for good. For that reason, Python's readers (`np.asarray`, `memoryview`) get read-only memory.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.device import Buffer, BufferOptions, Device
from tinyhw.dtype import DType
from tinyhw.engine.memory.buffers import buffer_of, new_buffer
from tinyhw.engine.memory.writes import forget, memory_of
from tinyhw.engine.run.realize import this_thread
from tinyhw.errors import ArgumentError, DTypeError, InterchangeError
from tinyhw.methods.base import realize_all, stored
from tinyhw.methods.checks import flag
from tinyhw.methods.data import hostdata
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.memory import storage_view
from tinyhw.methods.loss import Loss
from tinyhw.threads import alone
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_HOST = (1, 0)   # the CPU as DLPack names it: kDLCPU, and its number

class Interchange(Loss):
  """Methods that share memory, copy and print."""
  __slots__ = ()

  # ***** DLPack: DLPack's documentation, "Python Specification for DLPack" *****

  def __dlpack_device__(self) -> tuple[int, int]:
    """Return (1, 0): memory of the CPU. Raises InterchangeError where the host cannot see the device's memory."""
    buffer = self._buffer() if 0 not in self.shape else None
    if buffer is None or buffer.allocator.as_memoryview(buffer.get_buf()) is not None: return _HOST
    raise InterchangeError(f"memory of {self.device} cannot be shared; move the tensor to a device of the host first: "
                           f".to(\"CPU\")")

  def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                 dl_device: tuple[int, int] | None = None,
                 copy: bool | None = None) -> Any:
    """Return a DLPack capsule over this tensor's memory, which is computed if necessary. Transposed and sliced storage
    is shared in place, with strides.

    max_version: the newest version that the taker knows; from (1, 0) on it gets the newer structure. copy: True asks
    for a copy. False refuses to share if the elements would have to be moved (a flipped view). Raises InterchangeError.

    >>> import numpy
    >>> numpy.from_dlpack(Tensor([[1, 2], [3, 4]]).T)
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if copy is not None: copy = flag("copy", copy)
    if stream is not None:
      raise InterchangeError(f"memory of the CPU has no streams, and stream={stream!r} was asked for; pass None")
    if dl_device is not None and tuple(dl_device) != _HOST:
      raise InterchangeError(f"memory of the CPU cannot be given to DLPack device {dl_device}")
    self.__dlpack_device__()
    from tinyhw.methods.data import dlpack  # ctypes: few programs share memory
    versioned = max_version is not None and max_version[0] >= 1
    shape = self._self()._static_shape()
    if 0 in shape:
      return dlpack.give(memoryview(b""), self.dtype, shape, dlpack.row_major(shape), 0, versioned, bool(copy))
    source = self._self().copied() if copy else self
    found = source._layout()
    if found is None or any(s < 0 for s in found[1]):
      if copy is False:
        raise InterchangeError("this view of memory has no strides that DLPack can say; pass copy=True or None")
      found = source._buffer(), dlpack.row_major(shape), 0
    buffer, strides, offset = found
    return dlpack.give(buffer.as_memoryview(force_zero_copy=True), self.dtype, shape, strides, offset, versioned,
                       bool(copy))

  @alone
  def _layout(self) -> tuple[Buffer, tuple[int, ...], int] | None:
    """Return the memory of this tensor if it is storage or a view of storage, with its strides and offset in elements.

    Writes that wait for this memory are done first.
    """
    if this_thread.capture is not None: self._buffer()   # raises JitError
    if memory_of(self.uop)[1]: realize_all((self,))
    memory = storage_view(self.uop)
    if memory is None: return None
    from tinyhw.methods.data.layout import layout  # views are seldom shared
    found = layout(memory)
    return None if found is None else (buffer_of(found[0]), found[1].strides, found[1].offset)

  @classmethod
  def from_dlpack(cls, x: Any, device: str | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of x: an array of another library with `__dlpack__`, or a DLPack capsule. Shares
    the memory if possible.

    Memory is copied if it is read-only, if its strides leave gaps or repeat elements, or if the device's kernels want
    its address to be a multiple of more bytes. If copy is True, it is always copied. If copy is False, a copy is
    refused. device: that of the result. On a device that does not use the host's memory the result is a copy. Raises
    InterchangeError.

    After a write to x, `invalidate()` lets values that were computed from the tensor be computed again.

    >>> import numpy
    >>> x = numpy.zeros(2, "float32")
    >>> t = Tensor.from_dlpack(x)
    >>> x[0] = 3
    >>> t.tolist()
    [3.0, 0.0]
    """
    from tinyhw.methods.data import dlpack  # ctypes: few programs share memory
    if copy is not None: copy = flag("copy", copy)
    place = Device.canonicalize(device)
    taken = dlpack.take(_capsule(x, dlpack.VERSION))
    order = dlpack.dense_order(taken)
    size = int(graph.size(taken.shape))
    if (copy or order is None or taken.read_only or 0 in taken.shape
        or not Device[place].allocator.is_aligned(taken.address, size * taken.dtype.itemsize)):
      if copy is False and 0 not in taken.shape:
        why = f"has strides {taken.strides} for shape {taken.shape}, between which lie other elements"
        if taken.read_only: why = "is read-only"
        elif order is not None: why = f"is at {taken.address:#x}, where kernels of {place} cannot use it"
        raise InterchangeError(f"the memory {why}, so it is copied; pass copy=None or True")
      return cls._leaf(stored(hostdata.HostData(dlpack.bytes_of(taken), taken.shape, taken.dtype), place))
    u = new_buffer(place, size, taken.dtype, storage=Buffer(
      place, size, taken.dtype, options=BufferOptions(taken.address, taken.owner)).allocate())
    u = graph.reshape(u, tuple(taken.shape[axis] for axis in order))
    return cls._leaf(graph.permute(u, tuple(order.index(axis) for axis in range(len(order)))))

  @alone
  def invalidate(self) -> Tensor:
    """Declare that others have written the memory of this tensor, and return it.

    Values that are still expressions of this memory are computed again when they are next wanted. This includes
    expressions through other tensors over that memory or a part of it. Tensors in storage of their own keep their
    values, so realize() values that are to stay. Replays of a TinyJit read the memory in each call, even without this.
    Raises ArgumentError for a tensor without storage.

    >>> import numpy
    >>> x = numpy.zeros(2, "float32")
    >>> t = Tensor.from_dlpack(x)
    >>> y = t + 1
    >>> y.tolist()
    [1.0, 1.0]
    >>> x[0] = 3
    >>> t.invalidate().tolist(), y.tolist()
    ([3.0, 0.0], [4.0, 1.0])
    """
    node = memory_of(self.uop)[0]
    if node is None:
      raise ArgumentError(f"a tensor of shape {graph.show(self.shape)} has no storage that others could have written; "
                          f"invalidate() "
                          "the one over their memory")
    forget(buffer_of(node))
    return self._self()

  # ***** NumPy and Python *****

  @property
  def __array_interface__(self) -> dict[str, Any]:
    """NumPy's description of the elements: read-only, and without a copy where the host can see them. bfloat16 and fp8
    do not have it.

    Source: NumPy reference, "The array interface protocol", version 3.
    """
    if self.dtype.fmt is None: raise AttributeError(f"NumPy has no {self.dtype}")
    raw, shape = self._self()._read(zero_copy=True)
    return {"version": 3, "shape": shape, "typestr": _typestr(self.dtype), "data": raw.toreadonly()}

  def __buffer__(self, flags: int) -> memoryview:
    """Return `memoryview(tensor)`, from Python 3.12 on: the elements, read-only, and without a copy where the host can
    see them.

    Raises InterchangeError for tensors that cannot be a memoryview: bfloat16 and fp8, and shapes of several axes
    without elements.
    """
    if self.ndim > 1 and 0 in self.shape:
      raise InterchangeError(f"a buffer of no elements has one axis, and the shape is {graph.show(self.shape)}; "
                             f"flatten() it")
    try: return self._self()._memory(zero_copy=True).toreadonly()
    except DTypeError as error: raise InterchangeError(error.message) from None

  # ***** copies *****

  def __copy__(self) -> Tensor:
    """Implement `copy.copy`: return another handle on the same values and the same storage."""
    other = self._new(self.uop)
    other.grad, other._requires_grad = self.grad, self._requires_grad
    return other

  def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
    """Implement `copy.deepcopy`: return the same values in storage of their own, computed now. The gradient is copied
    too.

    The copy is a leaf, like a tensor that is read from a file.
    """
    other = self._self().copied()
    memo[id(self)] = other
    other._requires_grad = self._requires_grad
    if self.grad is not None: other.grad = self.grad.__deepcopy__(memo)
    return other

  # ***** printing *****

  def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    """The forms that a notebook shows, by media type: text, a table, a picture (notebook.py)."""
    from tinyhw.methods.data.notebook import bundle  # for notebooks alone
    return bundle(self)

  def __repr__(self) -> str:
    from tinyhw.methods.data.printing import described  # views are needed only for printing
    return described(self)

# ***** memory of others *****

def _capsule(x: Any, version: tuple[int, int]) -> Any:
  """Return a capsule of x, in the newer format if x can make it."""
  give = getattr(x, "__dlpack__", None)
  if give is None:
    if type(x).__name__ == "PyCapsule": return x
    raise ArgumentError(f"from_dlpack wants an array with __dlpack__, or a DLPack capsule, not {type(x).__name__}; "
                        f"Tensor(x) copies other data")
  try:
    try: return give(max_version=version)
    except TypeError: return give()   # libraries from before versions existed
  except (BufferError, RuntimeError) as error:
    raise InterchangeError(f"{type(x).__name__} does not share its memory: {error}") from error

def _typestr(dtype: DType) -> str:
  """Return NumPy's name of a type: <f4."""
  kinds = {"?": "b", "e": "f", "f": "f", "d": "f"}
  code = kinds.get(dtype.fmt or "", "i" if (dtype.fmt or "").islower() else "u")
  return f"{'|' if dtype.itemsize == 1 else '<'}{code}{dtype.itemsize}"
