"""Quantized elements of GGUF files as Tensors. Each type is a row of TYPES, with a function from the bytes of its
blocks to their elements.

A block holds `length` elements in `size` bytes. A decoder takes uint8 of shape (n, size) and returns float32 of shape
(n, length). It consists of shifts, masks and products, so the elements are computed where they are used, and the bytes
stay small.

Every product below is exact (its factors have at most 24 bits together). So results equal those of the format's
description to the last bit, in whatever order a compiler computes them.

Source: ggml's documentation of its block formats (ggml-quants.h, ggml-common.h). The names are ggml's.
"""
from __future__ import annotations
from collections.abc import Callable
import math

from tinyhw.device import on_disk
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, ShapeError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class GgmlType(NamedTuple):
  """A type of elements. length: elements in a block. dtype: that of plain elements, with one in a block. Otherwise
  decode computes the elements."""
  name: str
  length: int
  size: int
  dtype: DType | None = None
  decode: Callable[[Tensor], Tensor] | None = None

# ***** parts of decoders *****

def _half(b: Tensor, at: int) -> Tensor:
  """Return the float16 at a byte of each block: (n, 1), as float32."""
  return b[:, at:at + 2].bitcast(dtypes.float16).cast(dtypes.float32)

def _nibbles(b: Tensor) -> Tensor:
  """Split bytes into their low and high halves: (..., k) -> (..., 2, k)."""
  return b.bitwise_and(15).stack(b.rshift(4), dim=-2)

def _fields(b: Tensor, bits: int, dim: int) -> Tensor:
  """Split each byte into fields of 1, 2 or 4 bits, lowest first, along a new axis."""
  places = Tensor.arange(0, 8, bits, dtype=dtypes.uint8, device=b.device)
  shape = [1] * (b.ndim + 1)
  shape[dim] = 8 // bits
  return b.unsqueeze(dim).rshift(places.reshape(shape)).bitwise_and((1 << bits) - 1)

def _signed(b: Tensor, less: int) -> Tensor:
  """Convert to float32 and subtract `less`."""
  return b.cast(dtypes.float32).sub(less)

def _scales_and_minima(b: Tensor) -> tuple[Tensor, Tensor]:
  """Return the eight scales and eight minima of Q4_K and Q5_K, (n, 8) each. They have 6 bits each, in twelve bytes. The
  upper two bits of the last four are in other bytes."""
  first, second, third = b[:, 0:4], b[:, 4:8], b[:, 8:12]
  scales = first.bitwise_and(63).cat(third.bitwise_and(15).bitwise_or(first.rshift(6).lshift(4)), dim=1)
  minima = second.bitwise_and(63).cat(third.rshift(4).bitwise_or(second.rshift(6).lshift(4)), dim=1)
  return scales.cast(dtypes.float32), minima.cast(dtypes.float32)

def _picked(codes: Tensor, values: tuple[int, ...]) -> Tensor:
  """Look up codes in a table of 16 elements. Polynomials would not be shorter."""
  return Tensor(values, dtype=dtypes.float32, device=codes.device)[codes.cast(dtypes.int32)]

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# twice the values of e2m1, since halves are not integers
MXFP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

# ***** decoders *****

def _q4_0(b: Tensor) -> Tensor: return _signed(_nibbles(b[:, 2:]), 8).flatten(1) * _half(b, 0)
def _q4_1(b: Tensor) -> Tensor: return _signed(_nibbles(b[:, 4:]), 0).flatten(1) * _half(b, 0) + _half(b, 2)

def _fifth_bits(b: Tensor) -> Tensor:
  """Return the fifth bits of 32 elements, from four bytes: (n, 32), 0 or 16."""
  return _fields(b, 1, 2).flatten(1).lshift(4)

def _q5_0(b: Tensor) -> Tensor: return _signed(_nibbles(b[:, 6:]).flatten(1) + _fifth_bits(b[:, 2:6]), 16) * _half(b, 0)
def _q5_1(b: Tensor) -> Tensor:
  return _signed(_nibbles(b[:, 8:]).flatten(1) + _fifth_bits(b[:, 4:8]), 0) * _half(b, 0) + _half(b, 2)
def _q8_0(b: Tensor) -> Tensor: return b[:, 2:].bitcast(dtypes.int8).cast(dtypes.float32) * _half(b, 0)

def _q2_k(b: Tensor) -> Tensor:
  """Decode 16 scales and minima of 4 bits, each for 16 elements of 2 bits. A byte holds 4 elements at a distance of
  32."""
  scales, minima = b[:, :16].bitwise_and(15).cast(dtypes.float32), b[:, :16].rshift(4).cast(dtypes.float32)
  codes = _fields(b[:, 16:80].reshape(-1, 2, 32), 2, 2).reshape(-1, 16, 16).cast(dtypes.float32)
  return (codes * (_half(b, 80) * scales).unsqueeze(-1) - (_half(b, 82) * minima).unsqueeze(-1)).flatten(1)

def _q3_k(b: Tensor) -> Tensor:
  """Decode Q3_K: as Q2_K, with 16 signed scales of 6 bits. A third bit in the first 32 bytes is 0 for negative
  elements."""
  high = _fields(b[:, :32], 1, 1).reshape(-1, 2, 4, 32)
  codes = _fields(b[:, 32:96].reshape(-1, 2, 32), 2, 2).bitwise_or(high.lshift(2)).reshape(-1, 16, 16)
  low = _nibbles(b[:, 96:104]).flatten(1)
  scales = low.bitwise_or(_fields(b[:, 104:108], 2, 1).flatten(1).lshift(4))
  return (_signed(codes, 4) * (_half(b, 108) * _signed(scales, 32)).unsqueeze(-1)).flatten(1)

def _q4_k(b: Tensor) -> Tensor:
  scales, minima = _scales_and_minima(b[:, 4:16])
  codes = _nibbles(b[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).cast(dtypes.float32)
  return (codes * (_half(b, 0) * scales).unsqueeze(-1) - (_half(b, 2) * minima).unsqueeze(-1)).flatten(1)

def _q5_k(b: Tensor) -> Tensor:
  """Decode Q5_K: as Q4_K, with a fifth bit. Bit k of 32 bytes holds that of the k-th 32 elements."""
  scales, minima = _scales_and_minima(b[:, 4:16])
  codes = _nibbles(b[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) + _fields(b[:, 16:48], 1, 1).lshift(4)
  return (codes.cast(dtypes.float32) * (_half(b, 0) * scales).unsqueeze(-1)
          - (_half(b, 2) * minima).unsqueeze(-1)).flatten(1)

def _q6_k(b: Tensor) -> Tensor:
  """Decode twice 128 elements: four bits in 128 bytes, two more in 64, 16 scales of 8 bits."""
  low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
  codes = low.bitwise_or(_fields(b[:, 128:192].reshape(-1, 2, 32), 2, 2).lshift(4)).reshape(-1, 16, 16)
  scales = b[:, 192:208].bitcast(dtypes.int8).cast(dtypes.float32)
  return (_signed(codes, 32) * (_half(b, 208) * scales).unsqueeze(-1)).flatten(1)

def _iq4_nl(b: Tensor) -> Tensor: return _picked(_nibbles(b[:, 2:]).flatten(1), IQ4) * _half(b, 0)

def _iq4_xs(b: Tensor) -> Tensor:
  """Decode eight groups of 32, with scales of 6 bits. The upper two bits of a scale are in other bytes."""
  low = _fields(b[:, 4:8], 4, 2).flatten(1)
  scales = low.bitwise_or(_fields(b[:, 2:4], 2, 2).flatten(1).lshift(4))
  codes = _nibbles(b[:, 8:].reshape(-1, 8, 16)).reshape(-1, 8, 32)
  return (_picked(codes, IQ4) * (_half(b, 0) * _signed(scales, 32)).unsqueeze(-1)).flatten(1)

def _mxfp4(b: Tensor) -> Tensor:
  """Decode elements with a shared exponent e.

  The factor is half of 2**(e - 127), made from its bits, since the table has twice the values. The two smallest factors
  are subnormal numbers.
  """
  e = b[:, :1].cast(dtypes.uint32)
  bits = (e < 2).where(Tensor.full((1, 1), 0x200000, dtype=dtypes.uint32, device=b.device).lshift(e),
                       (e.maximum(1) - 1).lshift(23))
  return _picked(_nibbles(b[:, 1:]).flatten(1), MXFP4) * bits.bitcast(dtypes.float32)

# ***** the table *****

# by the number in files; source: enum ggml_type
TYPES: dict[int, GgmlType] = {
  0: GgmlType("F32", 1, 4, dtypes.float32),
  1: GgmlType("F16", 1, 2, dtypes.float16),
  30: GgmlType("BF16", 1, 2, dtypes.bfloat16),
  28: GgmlType("F64", 1, 8, dtypes.float64),
  24: GgmlType("I8", 1, 1, dtypes.int8),
  25: GgmlType("I16", 1, 2, dtypes.int16),
  26: GgmlType("I32", 1, 4, dtypes.int32),
  27: GgmlType("I64", 1, 8, dtypes.int64),
  2: GgmlType("Q4_0", 32, 18, None, _q4_0),
  3: GgmlType("Q4_1", 32, 20, None, _q4_1),
  6: GgmlType("Q5_0", 32, 22, None, _q5_0),
  7: GgmlType("Q5_1", 32, 24, None, _q5_1),
  8: GgmlType("Q8_0", 32, 34, None, _q8_0),
  10: GgmlType("Q2_K", 256, 84, None, _q2_k),
  11: GgmlType("Q3_K", 256, 110, None, _q3_k),
  12: GgmlType("Q4_K", 256, 144, None, _q4_k),
  13: GgmlType("Q5_K", 256, 176, None, _q5_k),
  14: GgmlType("Q6_K", 256, 210, None, _q6_k),
  20: GgmlType("IQ4_NL", 32, 18, None, _iq4_nl),
  23: GgmlType("IQ4_XS", 256, 136, None, _iq4_xs),
  39: GgmlType("MXFP4", 32, 17, None, _mxfp4),
}

def kind_of(ggml_type: int) -> GgmlType:
  """Return the row of a type's number. Raises FileFormatError for an unknown number."""
  found = TYPES.get(ggml_type)
  if found is None:
    known = ", ".join(f"{kind.name} ({n})" for n, kind in TYPES.items())
    raise FileFormatError(f"elements of ggml type {ggml_type} are not known; known are {known}")
  return found

def bytes_of(n: int, kind: GgmlType) -> int:
  """Return the bytes of n elements. Raises ShapeError if they fill no whole number of blocks."""
  if n < 0 or n % kind.length:
    raise ShapeError(f"{n} elements of {kind.name} are no whole number of blocks of {kind.length}")
  return n // kind.length * kind.size

def ggml_data_to_tensor(t: Tensor, n: int, ggml_type: int) -> Tensor:
  """Return the n elements at the start of t: float32 of shape (n,), or the type of the file where elements are plain.

  t: uint8, maybe longer. On DISK only the needed part is read, when it is needed. Raises ArgumentError if t is too
  short or no uint8, ShapeError if n is no whole number of blocks, FileFormatError for an unknown type.

  >>> ggml_data_to_tensor(Tensor([0, 60, 0, 192], dtype="uint8"), 2, 1).tolist()
  [1.0, -2.0]
  """
  if not isinstance(t, Tensor) or t.dtype is not dtypes.uint8 or t.ndim != 1:
    raise ArgumentError(f"quantized data are a vector of uint8, not {t!r}")
  kind = kind_of(ggml_type)
  size = bytes_of(n, kind)
  if math.prod(t.shape) < size:
    raise ArgumentError(f"{n} elements of {kind.name} take {size} bytes, and there are {t.shape[0]}")
  data = t[:size]
  if kind.decode is None:
    assert kind.dtype is not None
    return data.bitcast(kind.dtype)
  blocks = data.to(None) if on_disk(data.device) else data
  return kind.decode(blocks.reshape(-1, kind.size)).flatten()
