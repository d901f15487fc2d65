"""The structures of DLPack against sizes and offsets of C compilers for dlpack.h on 64-bit systems."""
import ctypes
import struct

import pytest

from tinyhw.autogen import dlpack

@pytest.mark.skipif(struct.calcsize("P") != 8, reason="the offsets are those of 64-bit systems")
@pytest.mark.parametrize("kind, size, offsets", [
  (dlpack.DLTensor, 48, {"data": 0, "device_type": 8, "device_id": 12, "ndim": 16, "code": 20, "bits": 21, "lanes": 22,
                         "shape": 24, "strides": 32,
                         "byte_offset": 40}),
  (dlpack.DLManagedTensor, 64, {"dl_tensor": 0, "manager_ctx": 48, "deleter": 56}),
  (dlpack.DLManagedTensorVersioned, 80, {"major": 0, "minor": 4, "manager_ctx": 8, "deleter": 16, "flags": 24,
                                         "dl_tensor": 32})])
def test_layouts(kind, size, offsets):
  assert ctypes.sizeof(kind) == size and {name: getattr(kind, name).offset for name in offsets} == offsets
