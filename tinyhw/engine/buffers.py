"""BUFFER nodes and the storage behind them.

A BUFFER node names storage in the graph; the `Buffer` hangs on the node (`storage`), so it lives as long as some graph mentions it.
"""
from __future__ import annotations
import itertools

from tinyhw.device import Buffer, Device
from tinyhw.dtype import DType
from tinyhw.errors import UnknownValueError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_numbers = itertools.count()

def new_buffer(device: str, size: int, dtype: DType, storage: Buffer | None = None) -> UOp:
  """A BUFFER node for `size` elements on a device; its Buffer is not allocated before it is needed."""
  device = Device.canonicalize(device)
  node = UOp(Ops.BUFFER, dtype, (), (next(_numbers), device, size))
  node.storage = Buffer(device, size, dtype) if storage is None else storage
  return node

def renewed(node: UOp) -> UOp:
  """A BUFFER node of its own for the same storage."""
  node_again = UOp(Ops.BUFFER, node.dtype, (), (next(_numbers), *node.arg[1:]))
  node_again.storage = node.storage
  return node_again

def buffer_of(node: UOp) -> Buffer:
  """The Buffer behind a BUFFER node. Raises UnknownValueError for a state of it that has been overwritten (writes.py)."""
  if node.storage is None:
    assert node.op is Ops.BUFFER and isinstance(node.arg[0], int), f"no storage behind {node}"
    raise UnknownValueError("the contents that this value is computed from have been overwritten in place; realize it before they are written, "
                            "or hold it as a Tensor, not as a graph node")
  return node.storage  # type: ignore[no-any-return]  # the slot is Any: uop knows no Buffer
