"""DLPack: the structures by which array libraries exchange memory, and the names of their capsules.

Source: dlpack.h of DLPack 1.1 (github.com/dmlc/dlpack), and "Python Specification for DLPack" of its documentation;
written by hand.
"""
from __future__ import annotations
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

VERSION = (1, 1)                                        # DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION
LEGACY_NAME, LEGACY_USED = b"dltensor", b"used_dltensor"
NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"

# DLDeviceType
kDLCPU, kDLCUDAHost, kDLROCMHost = 1, 3, 11             # memory that the host reads and writes
# DLDataTypeCode
kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool = 0, 1, 2, 4, 6
kDLFloat8_e4m3fn, kDLFloat8_e4m3fnuz, kDLFloat8_e5m2, kDLFloat8_e5m2fnuz = 10, 11, 12, 13
FLAG_READ_ONLY, FLAG_IS_COPIED = 1 << 0, 1 << 1         # DLPACK_FLAG_BITMASK_...

Deleter = CFUNCTYPE(None, c_void_p)                     # void (*deleter)(struct DLManagedTensor *self)

class DLTensor(Structure):
  """Memory with a shape. strides are in elements, NULL for row-major; byte_offset is the offset of the first
  element."""
  _fields_ = [
    ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
    ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
    ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]

class DLManagedTensor(Structure):
  """The content of a capsule named "dltensor"."""
  _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]

class DLManagedTensorVersioned(Structure):
  """The content of a capsule named "dltensor_versioned"."""
  _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
              ("flags", c_uint64),
                         ("dl_tensor", DLTensor)]
