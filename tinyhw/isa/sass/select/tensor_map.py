"""Tensor maps: 128 bytes that describe a tensor to the unit of bulk tensor copies (TMA, sm_90), made from a TensorBox
(uop/tensor_box.py).

The address of the tensor is 0. A launch adds the address of the buffer (`Code.descriptors`). Boxes lie in shared memory
with the 128-byte swizzle. Elements outside of the tensor are 0. Fields are as NVIDIA's assembler sets them
(tensormap.replace). Fields after byte 64 are as in reed-lau/cute-gemm, which found them equal to the driver's.
"""
from __future__ import annotations
import struct

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import LINE_BYTES, LINES
from tinyhw.uop.program import Program

BYTES = 128
MOST_AXES = 5
STRIDE_UNIT = 16      # bytes; the strides of all axes except the innermost one are multiples
SWIZZLE_128 = 3 << 13
TYPES = {dtypes.float16: 6, dtypes.bfloat16: 10}
BY_SIZE = {1: 0, 2: 1, 4: 2, 8: 4}   # unsigned integers: elements are only moved

Map = tuple[int, TensorBox, DType]  # the slot of a buffer, its tensor and box, its elements

def maps_of(program: Program) -> dict[Map, int]:
  """Return the maps of a program, in order of appearance."""
  found: dict[Map, int] = {}
  for u in program.uops:
    if u.op is Ops.TENSOR_BOX: found.setdefault((u.src[0].arg[0], u.arg, u.dtype), len(found))
  return found

def descriptors(program: Program) -> tuple[tuple[int, bytes], ...]:
  """Return the maps with the numbers of their buffers, in the form of Code."""
  numbers = {param.arg[0]: k for k, param in enumerate(program.params)}
  return tuple((numbers[slot], tensor_map(box, dtype)) for slot, box, dtype in maps_of(program))

def tensor_map(box: TensorBox, dtype: DType) -> bytes:
  """Return the map of a tensor at address 0. Raises CompileError if no map can describe it."""
  size, axes = dtype.itemsize, len(box.dims)
  strides = [stride * size for stride in box.strides[1:]]
  if (axes > MOST_AXES or any(stride % STRIDE_UNIT or stride >> 40 for stride in strides) or max(box.dims) > 1 << 32
      or max(box.sizes) > 256):
    raise CompileError(f"no tensor map can say {box}: axes are {MOST_AXES} at most, strides multiples of "
                       f"{STRIDE_UNIT} bytes, boxes up to 256 wide")
  made = bytearray(BYTES)
  struct.pack_into("<I", made, 8, axes - 1 << 4 | TYPES.get(dtype, BY_SIZE[size]) << 7 | SWIZZLE_128)
  for k, stride in enumerate(strides): struct.pack_into("<I", made, 12 + 4 * k, stride // STRIDE_UNIT & 0xffffffff)
  struct.pack_into("<H", made, 28, sum((stride // STRIDE_UNIT >> 32) << 4 * k for k, stride in enumerate(strides)))
  for k, n in enumerate(box.dims): struct.pack_into("<I", made, 32 + 4 * k, n - 1)
  for k, n in enumerate(box.sizes): made[55 + k] = n - 1
  struct.pack_into("<I4xI", made, 64, box.count * size, LINES * LINE_BYTES)
  return bytes(made)
