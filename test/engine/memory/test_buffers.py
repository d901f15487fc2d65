"""BUFFER nodes: each is unique, on one device, and lives as long as its users."""
from __future__ import annotations
import gc
import weakref

import pytest

from tinyhw.device import Buffer
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import (
  MultiBuffer, buffer_of, buffers_in, multi, new_buffer, new_storage, renewed, storage_with)
from tinyhw.errors import DeviceError, UnknownValueError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def test_each_has_storage_of_its_own_that_is_allocated_when_needed() -> None:
  a, b = new_buffer("PYTHON", 5, dtypes.int16), new_buffer("PYTHON", 5, dtypes.int16)
  assert a is not b and a.op is Ops.BUFFER and a.shape == (5,) and a.device == "PYTHON"
  assert buffer_of(a) is not buffer_of(b) and not buffer_of(a).is_allocated()
  assert (buffer_of(a).size, buffer_of(a).dtype, buffer_of(a).nbytes) == (5, dtypes.int16, 10)

def test_devices_have_one_name() -> None:
  assert new_buffer("python:0", 1, dtypes.int8).arg[1] == "PYTHON" == new_buffer("PYTHON", 1, dtypes.int8).device
  with pytest.raises(DeviceError, match="there is no device 'TUBES'"): new_buffer("TUBES", 1, dtypes.int8)

def test_storage_may_be_given() -> None:
  storage = Buffer("PYTHON", 3, dtypes.float32)
  assert buffer_of(new_buffer("PYTHON", 3, dtypes.float32, storage)) is storage

def test_several_devices_have_a_buffer_each() -> None:
  node = new_buffer(["python", "PYTHON:1"], 4, dtypes.int8)
  storage = buffer_of(node)
  assert isinstance(storage, MultiBuffer) and node.device == storage.device == ("PYTHON", "PYTHON:1")
  assert (buffers_in(storage) == storage.bufs and [b.size for b in storage.bufs] == [4, 4]
          and all(storage_with(b) is storage for b in storage.bufs))
  view = storage.view(2, dtypes.int8, 1)
  assert ([b.base for b in view.bufs] == list(storage.bufs) and repr(view) == "<MultiBuffer ('PYTHON', 'PYTHON:1') 2 "
          "dtypes.int8>")
  single = Buffer("PYTHON", 2, dtypes.int8)
  assert buffers_in(single) == (single,) and storage_with(single) is single and new_storage("PYTHON", 2,
                                                                                            dtypes.int8).size == 2
  whole = multi(node, (2, 2), 1)
  assert whole.op is Ops.MULTI and whole.shape == (2, 4) and multi(node, (4,), None).src == (node,)

@pytest.mark.slow
def test_storage_lives_as_long_as_a_graph_mentions_it() -> None:
  node = new_buffer("PYTHON", 4, dtypes.float32)
  storage = weakref.ref(buffer_of(node))
  expression = node + 1
  del node
  gc.collect()
  assert storage() is not None
  del expression
  gc.collect()
  assert storage() is None

def test_a_node_without_storage_is_a_mistake_of_the_engine() -> None:
  canonical = UOp(Ops.BUFFER, dtypes.int8, (), (("in", 0), "PYTHON", 4))
  with pytest.raises(AssertionError, match="no storage of"): buffer_of(canonical)

def test_another_node_for_the_same_storage() -> None:
  node = new_buffer("PYTHON", 4, dtypes.int8)
  again = renewed(node)
  assert (again is not node and buffer_of(again) is buffer_of(node) and again.shape == node.shape
          and again.dtype is node.dtype)
  node.storage = None
  with pytest.raises(UnknownValueError, match="have been overwritten in place; realize it before"): buffer_of(node)
