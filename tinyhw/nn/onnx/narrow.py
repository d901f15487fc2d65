"""Element types that no Tensor has: integers of 4 and 2 bits, floats of 4 and 6 bits, and powers of two as scales.

A tensor of such a type has its numbers in another type, its holder, which is the narrowest that holds them. Constants
of a model stay packed in memory. Their tensor is an expression that decodes them, so each kernel that uses them does.

Source: onnx.proto; OCP Microscaling Formats (MX) Specification 1.0.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class NarrowType(NamedTuple):
  """A row of NARROW. A float has a sign, an exponent and a mantissa; an integer has none of these."""
  name: str
  holder: DType
  bits: int
  exponent: int = 0
  mantissa: int = 0

  @property
  def limits(self) -> tuple[int, int]:
    """The least and the largest integer."""
    if dtypes.is_unsigned(self.holder): return 0, (1 << self.bits) - 1
    return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

  @property
  def largest(self) -> float:
    """The largest float. The largest exponent is that of numbers, since there is no infinity."""
    return (2 - 2.0 ** -self.mantissa) * 2.0 ** ((1 << self.exponent) - 1 - self.bias)

  @property
  def bias(self) -> int: return (1 << self.exponent - 1) - 1

SCALE = 24   # float8e8m0

# Types by their number in TensorProto.DataType.
NARROW: dict[int, NarrowType] = {
  21: NarrowType("uint4", dtypes.uint8, 4), 22: NarrowType("int4", dtypes.int8, 4),
  23: NarrowType("float4e2m1", dtypes.fp8e4m3, 4, 2, 1), SCALE: NarrowType("float8e8m0", dtypes.bfloat16, 8, 8, 0),
  25: NarrowType("uint2", dtypes.uint8, 2), 26: NarrowType("int2", dtypes.int8, 2),
  27: NarrowType("float6e2m3", dtypes.fp8e4m3, 6, 2, 3), 28: NarrowType("float6e3m2", dtypes.fp8e4m3, 6, 3, 2),
}

# ***** codes to numbers *****

def unpacked(packed: Tensor, bits: int) -> Tensor:
  """Return codes, one in each uint8, of bytes. The first code is in the lowest bits."""
  if bits == 8: return packed
  if bits == 6:   # four codes in three bytes
    a, b, c = (packed.pad([(0, -int(packed.shape[0]) % 3)]).reshape(-1, 3)[:, i] for i in range(3))
    codes = [a & 63, (a >> 6) | ((b & 15) << 2), (b >> 4) | ((c & 3) << 4), c >> 2]
  else: codes = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
  return codes[0].stack(*codes[1:], dim=-1).flatten()

def decoded(codes: Tensor, row: NarrowType) -> Tensor:
  """Return the numbers of codes in the type's holder."""
  if dtypes.is_int(row.holder): return _signed(codes.cast(row.holder), row)
  if row.bits == 8: return scales(codes)
  field, fraction = (codes >> row.mantissa) & ((1 << row.exponent) - 1), codes & ((1 << row.mantissa) - 1)
  whole = field.eq(0).where(fraction, (fraction | (1 << row.mantissa)).cast(dtypes.int32) << field.maximum(1) - 1)
  value = whole.cast(dtypes.float32) * 2.0 ** (1 - row.bias - row.mantissa)
  return (codes >= 1 << row.bits - 1).where(-value, value).cast(row.holder)

def _signed(codes: Tensor, row: NarrowType) -> Tensor:
  """Let the highest bit of codes count negative, if the type has a sign."""
  half = 0 if dtypes.is_unsigned(row.holder) else 1 << row.bits - 1
  return (codes ^ half) - half if half else codes

def scales(codes: Tensor) -> Tensor:
  """Return powers of two by their exponents plus 127. 255 is NaN."""
  wide = codes.cast(dtypes.uint16)
  bits = wide.eq(0).where(0x40, wide.eq(255).where(0x7fc0, wide << 7))   # 2^-127 is below bfloat16's normal numbers
  return bits.cast(dtypes.uint16).bitcast(dtypes.bfloat16)

# ***** numbers to codes' numbers *****

def narrowed(x: Tensor, number: int, saturate: bool = True, round_mode: str = "up") -> Tensor:
  """Convert to a type of NARROW, as Cast does: integers wrap, floats are rounded and saturate."""
  row = NARROW[number]
  if dtypes.is_int(row.holder):
    return _signed(x.cast(dtypes.int32) & ((1 << row.bits) - 1), row).cast(row.holder)
  wide = x.cast(dtypes.float32)
  return _to_scale(wide, saturate, round_mode) if number == SCALE else _to_float(wide, row)

def _to_float(x: Tensor, row: NarrowType) -> Tensor:
  """Round float32 to the nearest number of a type, ties to even. NaN, which the types lack, becomes 0."""
  size = x.isnan().where(0, x.abs().minimum(row.largest))
  exponent = (size.bitcast(dtypes.int32) >> 23).maximum(128 - row.bias)   # that of float32, at least of the least step
  step = ((exponent - row.mantissa) << 23).bitcast(dtypes.float32)
  rounded = (size / step).round() * step
  return (x.bitcast(dtypes.int32) < 0).where(-rounded, rounded).cast(row.holder)

def _to_scale(x: Tensor, saturate: bool, round_mode: str) -> Tensor:
  """Round float32 to powers of two from 2^-127 to 2^127. Negative numbers become NaN.

  saturate: numbers outside of the range become its ends, else NaN.
  """
  bits = x.bitcast(dtypes.int32)
  exponent, fraction = bits >> 23, bits & 0x7fffff
  # Numbers from 2^-127 to 2^-126 have no exponent in float32: their fraction is at least a half.
  fraction = exponent.eq(0).where((fraction - 0x400000).maximum(0) * 2, fraction)
  if round_mode == "up": code = exponent + (fraction > 0)
  elif round_mode == "down": code = exponent
  elif round_mode == "nearest": code = exponent + (fraction >= 0x400000)
  else: raise ArgumentError(f"round_mode is up, down or nearest, not {round_mode!r}")
  outside = (code > 254) | (x < 2.0 ** -127)
  code = (code.minimum(254) if saturate else outside.where(255, code))
  return scales((x.isnan() | (x < 0)).where(255, code).cast(dtypes.uint8))
