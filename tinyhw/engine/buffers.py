"""BUFFER nodes and the storage behind them.

A BUFFER node names storage in the graph; the `Buffer` hangs on the node (`storage`), so it lives as long as some graph mentions it.
"""
from __future__ import annotations
import itertools

from tinyhw.device import Buffer, Device
from tinyhw.dtype import DType
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_numbers = itertools.count()

def new_buffer(device: str, size: int, dtype: DType, storage: Buffer | None = None) -> UOp:
  """A BUFFER node for `size` elements on a device; its Buffer is not allocated before it is needed."""
  device = Device.canonicalize(device)
  node = UOp(Ops.BUFFER, dtype, (), (next(_numbers), device, size))
  node.storage = Buffer(device, size, dtype) if storage is None else storage
  return node

def buffer_of(node: UOp) -> Buffer:
  """The Buffer behind a BUFFER node."""
  assert node.op is Ops.BUFFER and node.storage is not None, f"no storage behind {node}"
  return node.storage  # type: ignore[no-any-return]  # the slot is Any: uop knows no Buffer
