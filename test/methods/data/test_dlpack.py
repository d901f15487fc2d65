"""DLPack capsules alone: names, versions, deleters."""
import ctypes

import pytest

from tinyhw.autogen import dlpack as c
from tinyhw.dtype import dtypes
from tinyhw.errors import InterchangeError
from tinyhw.methods.data import dlpack

def capsule(versioned: bool = True, **changes: int) -> object:
  """Return a capsule over eight bytes, with some fields of its tensor (or of the structure around it) changed."""
  made = dlpack.give(memoryview(bytearray(8)), dtypes.int32, (2,), (1,), 0, versioned, False)
  kind = c.DLManagedTensorVersioned if versioned else c.DLManagedTensor
  managed = kind.from_address(dlpack._pointer(made, c.NAME if versioned else c.LEGACY_NAME))
  for name, value in changes.items(): setattr(managed if hasattr(managed, name) else managed.dl_tensor, name, value)
  return made

@pytest.mark.parametrize("versioned", [True, False])
def test_what_is_given_can_be_taken_once(versioned):
  before = len(dlpack._given)
  made = capsule(versioned)
  taken = dlpack.take(made)
  assert taken.shape == (2,) and taken.strides == (1,) and taken.dtype is dtypes.int32 and not taken.read_only
  assert ctypes.string_at(taken.address, 8) == bytes(8)
  with pytest.raises(InterchangeError, match="taken already"): dlpack.take(made)
  del made
  assert len(dlpack._given) == before + 1
  del taken
  assert len(dlpack._given) == before

@pytest.mark.parametrize("changes, text", [
  ({"device_type": 2}, "on a device"), ({"lanes": 4}, "no dtype"), ({"code": 5}, "no dtype"), ({"bits": 4}, "no dtype"),
  ({"major": 9}, "DLPack 9")])
def test_refusals_leave_the_capsule_as_it_is(changes, text):
  before = len(dlpack._given)
  made = capsule(**changes)
  with pytest.raises(InterchangeError, match=text): dlpack.take(made)
  del made
  assert len(dlpack._given) == before

def test_flags_and_strides_that_are_left_out():
  assert dlpack.take(capsule(flags=c.FLAG_READ_ONLY)).read_only
  made = capsule(False)
  managed = c.DLManagedTensor.from_address(dlpack._pointer(made, c.LEGACY_NAME))
  managed.dl_tensor.strides = None
  managed.dl_tensor.byte_offset = 4
  managed.dl_tensor.ndim = 1
  taken = dlpack.take(made)
  assert taken.strides == (1,) and taken.address == managed.dl_tensor.data + 4

def test_row_major_strides():
  assert (dlpack.row_major((2, 3, 4)) == (12, 4, 1) and dlpack.row_major(()) == ()
          and dlpack.row_major((2, 0, 3)) == (3, 3, 1))
