"""Floats and their codes: float16, float32 and float64 as Python floats."""
from __future__ import annotations
import struct

_F32, _U32, _F64, _U64 = struct.Struct("<f"), struct.Struct("<I"), struct.Struct("<d"), struct.Struct("<Q")

# float16 values by their bits
HALVES: tuple[float, ...] = struct.unpack("<65536e", b"".join(i.to_bytes(2, "little") for i in range(65536)))

# struct gives Any
def float32_of(bits: int) -> float: return _F32.unpack(_U32.pack(bits))[0]  # type: ignore[no-any-return]
def bits_of_float32(x: float) -> int:
  """Return the 32 bits of x, rounded."""
  try: return _U32.unpack(_F32.pack(x))[0]  # type: ignore[no-any-return]
  except OverflowError: return 0xff800000 if x < 0 else 0x7f800000

def float64_of(bits: int) -> float: return _F64.unpack(_U64.pack(bits))[0]  # type: ignore[no-any-return]
def bits_of_float64(x: float) -> int: return _U64.unpack(_F64.pack(x))[0]  # type: ignore[no-any-return]
