"""BUFFER nodes and their storage.

A BUFFER node names storage in the graph. The `Buffer` hangs on the node (`storage`), so it lives as long as some graph
mentions the node. The storage of a BUFFER on several devices is a `MultiBuffer`.
"""
from __future__ import annotations
import itertools
import weakref

from typing import Any

from tinyhw.device import Buffer, Device, DeviceLike
from tinyhw.dtype import DType
from tinyhw.errors import UnknownValueError
from tinyhw.helpers import mv_address
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint, to_indices

_numbers = itertools.count()

class MultiBuffer:
  """Memory of one size on each of several devices."""
  __slots__ = ("device", "size", "dtype", "bufs", "viewers", "__weakref__")

  def __init__(self, bufs: tuple[Buffer, ...]):
    self.bufs, self.device = bufs, tuple([b.device for b in bufs])
    self.size, self.dtype = bufs[0].size, bufs[0].dtype
    self.viewers: list[Any] | None = None        # as a Buffer's

  def view(self, size: int, dtype: DType, offset: int) -> MultiBuffer:
    return MultiBuffer(tuple([b.view(size, dtype, offset) for b in self.bufs]))

  def __reduce__(self) -> Any: return joined, (self.bufs,)

  def __repr__(self) -> str: return f"<MultiBuffer {self.device} {self.size} {self.dtype}>"

Storage = Buffer | MultiBuffer

_together: weakref.WeakKeyDictionary[Buffer, weakref.ref[MultiBuffer]] = weakref.WeakKeyDictionary()

def joined(bufs: tuple[Buffer, ...]) -> MultiBuffer:
  """Return one storage for memory of one size on several devices. `storage_with` finds it again."""
  made = MultiBuffer(bufs)
  for b in bufs: _together[b] = weakref.ref(made)
  return made

def new_storage(device: DeviceLike, size: int, dtype: DType) -> Storage:
  """Return memory for `size` elements on each of the devices. It is allocated when first needed."""
  if isinstance(device, str): return Buffer(device, size, dtype)
  return joined(tuple([Buffer(d, size, dtype) for d in device]))

def storage_with(buffer: Buffer) -> Storage:
  """Return the storage that a Buffer is, or is a part of."""
  reference = _together.get(buffer)
  whole = None if reference is None else reference()
  return buffer if whole is None else whole

def buffers_in(storage: Storage) -> tuple[Buffer, ...]:
  """Return the Buffers of a storage, in the order of its devices."""
  return (storage,) if isinstance(storage, Buffer) else storage.bufs

def new_buffer(device: DeviceLike, size: int, dtype: DType, storage: Storage | None = None) -> UOp:
  """Return a BUFFER node for `size` elements on a device, or on each of several.

  Its Buffers are allocated when first needed.
  """
  place = Device.canonicalize(device)
  node = UOp(Ops.BUFFER, dtype, (), (next(_numbers), place, size))
  node.storage = new_storage(place, size, dtype) if storage is None else storage
  return node

def result_buffer(device: str | None, size: int, dtype: DType) -> UOp:
  """Return a BUFFER node as `new_buffer` does, for the canonical name of one device, or None."""
  place = Device.DEFAULT if device is None else device
  node = UOp(Ops.BUFFER, dtype, (), (next(_numbers), place, size))
  node.storage = Buffer(place, size, dtype)
  node._shape_, node._device_ = (size,), place    # as the properties would find them
  return node

def multi(node: UOp, shape: tuple[sint, ...], axis: int | None) -> UOp:
  """Return the tensor over a BUFFER on several devices, whose parts have one shape.

  The parts lie along an axis, or each device has the same contents.
  """
  part = node if node.shape == shape else UOp(Ops.RESHAPE, node.dtype, (node, *to_indices(shape)))
  return UOp(Ops.MULTI, node.dtype, (part,), axis)

def next_number() -> int:
  """Return a number greater than that of each existing BUFFER node, and smaller than those of all later ones."""
  return next(_numbers)

def renewed(node: UOp) -> UOp:
  """Return a new BUFFER node for the same storage."""
  node_again = UOp(Ops.BUFFER, node.dtype, (), (next(_numbers), *node.arg[1:]))
  node_again.storage = node.storage
  return node_again

def buffer_of(node: UOp) -> Any:
  """Return the Buffer, or MultiBuffer, of a BUFFER node.

  Raises UnknownValueError for a state of it that has been overwritten (writes.py).
  """
  if node.storage is None:
    assert node.op is Ops.BUFFER and isinstance(node.arg[0], int), f"no storage of {node}"
    raise UnknownValueError("the contents that this value is computed from have been overwritten in place; realize it "
                            "before they are written, "
                            "or hold it as a Tensor, not as a graph node; where several threads write, take a lock "
                            "(docs/guide/threads.md, section 3)")
  return node.storage

# ***** addresses *****

def overlap(a: Buffer, b: Buffer) -> bool:
  """Do two Buffers have bytes in common: in one memory, even that of another library, or in one file?"""
  if a is b: return True
  here, there = address_of(a), address_of(b)
  return (here is not None and there is not None and here[0] == there[0] and here[1] < there[1] + b.nbytes
          and there[1] < here[1] + a.nbytes)

def address_of(buffer: Buffer) -> tuple[object, int] | None:
  """Return the address space of a Buffer and its first address there; None without memory."""
  if buffer._buf is None or not buffer.nbytes: return None
  if buffer.allocator.lasting: return buffer.device, buffer.offset
  options, seen = buffer.base.options, buffer.allocator.as_memoryview(buffer._buf)
  if options is not None and options.external_ptr is not None: return "", options.external_ptr + buffer.offset
  if seen is None or seen.readonly: return id(buffer.base), buffer.offset
  return "", mv_address(seen)
