"""Quantized elements of GGUF files as Tensors. Each type is a row of TYPES, with a function from the bytes of its
blocks to their numbers.

A block holds `length` elements in `size` bytes. Each element has a small code without a sign. The elements of a group
share two factors:

    element = scale * factor * (code - offset) - minimum * shift

`scale` and `minimum` are floats of the block, `factor` and `shift` small integers of the group, `offset` a constant of
the type. Some types have a table instead: its number at a code replaces code - offset. `split` reads these numbers from
bytes. It consists of shifts and masks, so elements are computed where they are used, and the bytes stay small. The
smallest types have codes for vectors of 4 or 8 elements, which grids.py lists, and bits for signs.

Every product below is exact (its factors have at most 24 bits together). So results equal those of the format's
description to the last bit, in whatever order a compiler computes them.

Source: ggml's documentation of its block formats (ggml-quants.h, ggml-common.h). The names are ggml's.
"""
from __future__ import annotations
import base64
from collections.abc import Callable
import functools
import math
import struct

from tinyhw.device import on_disk
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, FileFormatError, ShapeError
from tinyhw.llm.grids import GRIDS
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class Parts(NamedTuple):
  """The numbers of n blocks. codes: integers, (n, length). scale, minimum: floats, (n, 1). factors, shifts: integers,
  (n, groups); None: all are 1."""
  codes: Tensor
  scale: Tensor
  factors: Tensor | None = None
  minimum: Tensor | None = None
  shifts: Tensor | None = None

class GgmlType(NamedTuple):
  """A type of elements. length: elements in a block. dtype: that of plain elements, with one in a block.

  Others have `split`, which takes uint8 of shape (n, size), and the bits of a code, the elements of a group, and the
  offset or the table of numbers. An empty table: codes are the numbers.
  """
  name: str
  length: int
  size: int
  dtype: DType | None = None
  split: Callable[[Tensor], Parts] | None = None
  bits: int = 0
  group: int = 32
  offset: int = 0
  table: tuple[int, ...] | None = None

  def decode(self, b: Tensor) -> Tensor:
    """Return the elements of blocks: uint8 of shape (n, size) -> float32 of shape (n, length)."""
    assert self.split is not None
    return self.elements(self.split(b))

  def elements(self, parts: Parts) -> Tensor:
    """Return the elements of blocks from their numbers: float32, (n, length)."""
    numbers = self.numbers(parts.codes).reshape(-1, self.length // self.group, self.group)
    x = numbers * _product(parts.scale, parts.factors).unsqueeze(-1)
    if parts.minimum is not None: x = x - _product(parts.minimum, parts.shifts).unsqueeze(-1)
    return x.flatten(1)

  def numbers(self, codes: Tensor) -> Tensor:
    """Return the integers that codes stand for, as float32."""
    if not self.table: return codes.cast(dtypes.float32).sub(self.offset)
    return Tensor(self.table, dtype=dtypes.float32, device=codes.device)[codes.cast(dtypes.int32)]

def _product(x: Tensor, factors: Tensor | None) -> Tensor:
  return x.cast(dtypes.float32) if factors is None else x.cast(dtypes.float32) * factors.cast(dtypes.float32)

# ***** parts of blocks *****

def _half(b: Tensor, at: int) -> Tensor:
  """Return the float16 at a byte of each block: (n, 1)."""
  return b[:, at:at + 2].bitcast(dtypes.float16)

def _nibbles(b: Tensor) -> Tensor:
  """Split bytes into their low and high halves: (..., k) -> (..., 2, k)."""
  return b.bitwise_and(15).stack(b.rshift(4), dim=-2)

def fields(b: Tensor, bits: int, dim: int) -> Tensor:
  """Split each byte into fields of 1, 2 or 4 bits, lowest first, along a new axis."""
  places = Tensor.arange(0, 8, bits, dtype=dtypes.uint8, device=b.device)
  shape = [1] * (b.ndim + 1)
  shape[dim] = 8 // bits
  return b.unsqueeze(dim).rshift(places.reshape(shape)).bitwise_and((1 << bits) - 1)

def _signed(b: Tensor, less: int) -> Tensor:
  """Convert to int8 and subtract `less`."""
  return b.bitcast(dtypes.int8).sub(less)

def _scales_and_minima(b: Tensor) -> tuple[Tensor, Tensor]:
  """Return the eight factors and eight shifts of Q4_K and Q5_K, (n, 8) each. They have 6 bits, in twelve bytes. The
  upper two bits of the last four are in other bytes."""
  first, second, third = b[:, 0:4], b[:, 4:8], b[:, 8:12]
  factors = first.bitwise_and(63).cat(third.bitwise_and(15).bitwise_or(first.rshift(6).lshift(4)), dim=1)
  shifts = second.bitwise_and(63).cat(third.rshift(4).bitwise_or(second.rshift(6).lshift(4)), dim=1)
  return factors, shifts

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# twice the values of e2m1, since halves are not integers
MXFP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

# ***** vectors of elements *****

@functools.lru_cache(maxsize=None)
def _levels(name: str) -> tuple[tuple[int, ...], ...]:
  """Return the vectors of a table of grids.py."""
  levels, text = GRIDS[name]
  bits, count = (2, 8) if len(levels) <= 4 else (3, 4)
  words = [x for x, in struct.iter_unpack("<H", base64.b64decode(text))]
  return tuple([tuple([levels[word >> bits * k & (1 << bits) - 1] for k in range(count)]) for word in words])

def _vectors(name: str, index: Tensor) -> Tensor:
  """Return the vectors of a table at indices: (..., k) -> int8, (..., k, 4 or 8)."""
  return Tensor(_levels(name), dtype=dtypes.int8, device=index.device)[index.cast(dtypes.int32)]

def _words(b: Tensor, dtype: DType, begin: int, end: int) -> Tensor: return b[:, begin:end].bitcast(dtype)

def _places(b: Tensor, bits: int, step: int, count: int) -> Tensor:
  """Split words into `count` fields at a distance of `step` bits, lowest first, along a new last axis."""
  shifts = Tensor([step * k for k in range(count)], dtype=b.dtype, device=b.device)
  return b.unsqueeze(-1).rshift(shifts).bitwise_and((1 << bits) - 1)

def _signs(bits: Tensor) -> Tensor:
  """Return eight signs, 1 or -1, for each byte, lowest bit first: (..., k) -> int8, (..., k, 8)."""
  return _places(bits, 1, 1, 8).cast(dtypes.int8).mul(-2).add(1)

def _even_signs(bits: Tensor) -> Tensor:
  """Return eight signs for 7 bits each. The eighth makes the number of negative ones even."""
  odd = bits.bitwise_xor(bits.rshift(4))
  odd = odd.bitwise_xor(odd.rshift(2))
  odd = odd.bitwise_xor(odd.rshift(1)).bitwise_and(1)
  return _signs(bits.bitwise_or(odd.lshift(7)).cast(dtypes.uint8))

def _part(b: Tensor, at: int, part: float) -> Tensor:
  """Return a part of the float16 at a byte of each block, as float32: (n, 1)."""
  return _half(b, at).cast(dtypes.float32).mul(part)

def _odd(factors: Tensor) -> Tensor: return factors.lshift(1).add(1)

# ***** types *****

def _q4_0(b: Tensor) -> Parts: return Parts(_nibbles(b[:, 2:]).flatten(1), _half(b, 0))
def _q4_1(b: Tensor) -> Parts: return Parts(_nibbles(b[:, 4:]).flatten(1), _half(b, 0), minimum=-_half(b, 2))

def _fifth_bits(b: Tensor) -> Tensor:
  """Return the fifth bits of 32 elements, from four bytes: (n, 32), 0 or 16."""
  return fields(b, 1, 2).flatten(1).lshift(4)

def _q5_0(b: Tensor) -> Parts: return Parts(_nibbles(b[:, 6:]).flatten(1) + _fifth_bits(b[:, 2:6]), _half(b, 0))
def _q5_1(b: Tensor) -> Parts:
  return Parts(_nibbles(b[:, 8:]).flatten(1) + _fifth_bits(b[:, 4:8]), _half(b, 0), minimum=-_half(b, 2))
def _q8_0(b: Tensor) -> Parts: return Parts(b[:, 2:].bitwise_xor(128), _half(b, 0))

def _q2_k(b: Tensor) -> Parts:
  """Split 16 factors and shifts of 4 bits, each for 16 elements of 2 bits. A byte holds 4 elements at a distance of
  32."""
  codes = fields(b[:, 16:80].reshape(-1, 2, 32), 2, 2).flatten(1)
  return Parts(codes, _half(b, 80), b[:, :16].bitwise_and(15), _half(b, 82), b[:, :16].rshift(4))

def _q3_k(b: Tensor) -> Parts:
  """Split Q3_K: as Q2_K, with 16 signed factors of 6 bits. A third bit in the first 32 bytes is 0 for negative
  elements."""
  high = fields(b[:, :32], 1, 1).reshape(-1, 2, 4, 32)
  codes = fields(b[:, 32:96].reshape(-1, 2, 32), 2, 2).bitwise_or(high.lshift(2)).flatten(1)
  factors = _nibbles(b[:, 96:104]).flatten(1).bitwise_or(fields(b[:, 104:108], 2, 1).flatten(1).lshift(4))
  return Parts(codes, _half(b, 108), _signed(factors, 32))

def _q4_k(b: Tensor) -> Parts:
  factors, shifts = _scales_and_minima(b[:, 4:16])
  return Parts(_nibbles(b[:, 16:].reshape(-1, 4, 32)).flatten(1), _half(b, 0), factors, _half(b, 2), shifts)

def _q5_k(b: Tensor) -> Parts:
  """Split Q5_K: as Q4_K, with a fifth bit. Bit k of 32 bytes holds that of the k-th 32 elements."""
  factors, shifts = _scales_and_minima(b[:, 4:16])
  codes = _nibbles(b[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) + fields(b[:, 16:48], 1, 1).lshift(4)
  return Parts(codes.flatten(1), _half(b, 0), factors, _half(b, 2), shifts)

def _q6_k(b: Tensor) -> Parts:
  """Split twice 128 elements: four bits in 128 bytes, two more in 64, 16 factors of 8 bits."""
  low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
  codes = low.bitwise_or(fields(b[:, 128:192].reshape(-1, 2, 32), 2, 2).lshift(4)).flatten(1)
  return Parts(codes, _half(b, 208), b[:, 192:208].bitcast(dtypes.int8))

def _iq4_nl(b: Tensor) -> Parts: return Parts(_nibbles(b[:, 2:]).flatten(1), _half(b, 0))

def _iq4_xs(b: Tensor) -> Parts:
  """Split eight groups of 32, with factors of 6 bits. The upper two bits of a factor are in other bytes."""
  factors = fields(b[:, 4:8], 4, 2).flatten(1).bitwise_or(fields(b[:, 2:4], 2, 2).flatten(1).lshift(4))
  return Parts(_nibbles(b[:, 8:].reshape(-1, 8, 16)).flatten(1), _half(b, 0), _signed(factors, 32))

def _iq2_xxs(b: Tensor) -> Parts:
  """Split eight groups of 32: four indices of 8 bits, then four times 7 bits of signs and a factor of 4 bits."""
  high = _words(b, dtypes.uint32, 2, 66).reshape(-1, 8, 2)[:, :, 1]
  vectors = _vectors("IQ2_XXS", b[:, 2:66].reshape(-1, 8, 8)[:, :, :4])
  return Parts(vectors.mul(_even_signs(_places(high, 7, 7, 4))).flatten(1), _part(b, 0, 1 / 8), _odd(high.rshift(28)))

def _iq2_xs(b: Tensor) -> Parts:
  """Split 32 words: an index of 9 bits and 7 bits of signs. Then 16 factors of 4 bits."""
  words = _words(b, dtypes.uint16, 2, 66)
  vectors = _vectors("IQ2_XS", words.bitwise_and(511)).mul(_even_signs(words.rshift(9)))
  return Parts(vectors.flatten(1), _part(b, 0, 1 / 8), _odd(fields(b[:, 66:74], 4, 2).flatten(1)))

def _iq2_s(b: Tensor) -> Parts:
  """Split 32 indices of 10 bits, whose upper two are in other bytes, 32 bytes of signs, and 16 factors of 4 bits."""
  index = b[:, 2:34].cast(dtypes.uint16).bitwise_or(fields(b[:, 66:74], 2, 2).flatten(1).cast(dtypes.uint16).lshift(8))
  vectors = _vectors("IQ2_S", index).mul(_signs(b[:, 34:66]))
  return Parts(vectors.flatten(1), _part(b, 0, 1 / 8), _odd(fields(b[:, 74:82], 4, 2).flatten(1)))

def _iq3_xxs(b: Tensor) -> Parts:
  """Split 64 indices of 8 bits, for 4 elements each, and 8 words: four times 7 bits of signs and a factor of 4 bits."""
  high = _words(b, dtypes.uint32, 66, 98)
  signs = _even_signs(_places(high, 7, 7, 4)).flatten(1)
  return Parts(_vectors("IQ3_XXS", b[:, 2:66]).flatten(1).mul(signs), _part(b, 0, 1 / 4), _odd(high.rshift(28)))

def _iq3_s(b: Tensor) -> Parts:
  """Split 64 indices of 9 bits, whose upper one is in other bytes, 32 bytes of signs, and 8 factors of 4 bits."""
  index = b[:, 2:66].cast(dtypes.uint16).bitwise_or(fields(b[:, 66:74], 1, 2).flatten(1).cast(dtypes.uint16).lshift(8))
  numbers = _vectors("IQ3_S", index).flatten(1).mul(_signs(b[:, 74:106]).flatten(1))
  return Parts(numbers, _half(b, 0), _odd(fields(b[:, 106:110], 4, 2).flatten(1)))

def _shifted(index: Tensor, below: Tensor) -> Tensor:
  """Return eight times the elements of IQ1_S and IQ1_M, which are an eighth more than -1, 0 or 1, or less."""
  return _vectors("IQ1_S", index).mul(8).add(1 - below.cast(dtypes.int8).lshift(1).unsqueeze(-1)).flatten(1)

def _iq1_s(b: Tensor) -> Parts:
  """Split 32 indices of 11 bits. Eight words have the upper three bits of four of them, a factor of 3 bits, and whether
  an eighth is subtracted."""
  words = _words(b, dtypes.uint16, 34, 50)
  index = b[:, 2:34].cast(dtypes.uint16).bitwise_or(_places(words, 3, 3, 4).flatten(1).lshift(8))
  below = words.rshift(15).unsqueeze(-1).expand(-1, 8, 4).flatten(1)
  return Parts(_shifted(index, below), _part(b, 0, 1 / 8), _odd(words.rshift(12).bitwise_and(7)))

def _iq1_m(b: Tensor) -> Parts:
  """Split 32 indices of 11 bits, whose upper three are in half-bytes, with the bit that subtracts an eighth. Four words
  have 16 factors of 3 bits, and in their upper 4 bits the scale."""
  halves = fields(b[:, 32:48], 4, 2).flatten(1)
  index = b[:, :32].cast(dtypes.uint16).bitwise_or(halves.bitwise_and(7).cast(dtypes.uint16).lshift(8))
  words = _words(b, dtypes.uint16, 48, 56)
  up = Tensor([0, 4, 8, 12], dtype=dtypes.uint16, device=b.device)
  scale = words.rshift(12).lshift(up).sum(1, keepdim=True, dtype=dtypes.uint16).bitcast(dtypes.float16)
  return Parts(_shifted(index, halves.rshift(3)), scale.cast(dtypes.float32).mul(1 / 8),
               _odd(_places(words, 3, 3, 4).flatten(1)))

def _tq1_0(b: Tensor) -> Parts:
  """Split bytes that have five digits of 0 to 2 each, or four: byte / 256 in base 3, rounded up."""
  def digits(part: Tensor, count: int) -> Tensor:
    powers = Tensor([3**k for k in range(count)], dtype=dtypes.int32, device=b.device).reshape(1, -1, 1)
    return part.cast(dtypes.int32).unsqueeze(1).mul(powers).bitwise_and(255).mul(3).rshift(8).flatten(1)
  return Parts(digits(b[:, :32], 5).cat(digits(b[:, 32:48], 5), digits(b[:, 48:52], 4), dim=1), _half(b, 52))

def _tq2_0(b: Tensor) -> Parts: return Parts(fields(b[:, :64].reshape(-1, 2, 32), 2, 2).flatten(1), _half(b, 64))
def _q1_0(b: Tensor) -> Parts: return Parts(fields(b[:, 2:18], 1, 2).flatten(1), _half(b, 0))

def _mxfp4(b: Tensor) -> Parts:
  """Split elements with a shared exponent e.

  The scale is half of 2**(e - 127), made from its bits, since the table has twice the values. The two smallest scales
  are subnormal numbers.
  """
  e = b[:, :1].cast(dtypes.uint32)
  bits = (e < 2).where(Tensor.full((1, 1), 0x200000, dtype=dtypes.uint32, device=b.device).lshift(e),
                       (e.maximum(1) - 1).lshift(23))
  return Parts(_nibbles(b[:, 1:]).flatten(1), bits.bitcast(dtypes.float32))

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
  2: GgmlType("Q4_0", 32, 18, None, _q4_0, 4, offset=8),
  3: GgmlType("Q4_1", 32, 20, None, _q4_1, 4),
  6: GgmlType("Q5_0", 32, 22, None, _q5_0, 5, offset=16),
  7: GgmlType("Q5_1", 32, 24, None, _q5_1, 5),
  8: GgmlType("Q8_0", 32, 34, None, _q8_0, 8, offset=128),
  10: GgmlType("Q2_K", 256, 84, None, _q2_k, 2, 16),
  11: GgmlType("Q3_K", 256, 110, None, _q3_k, 3, 16, 4),
  12: GgmlType("Q4_K", 256, 144, None, _q4_k, 4),
  13: GgmlType("Q5_K", 256, 176, None, _q5_k, 5),
  14: GgmlType("Q6_K", 256, 210, None, _q6_k, 6, 16, 32),
  20: GgmlType("IQ4_NL", 32, 18, None, _iq4_nl, 4, table=IQ4),
  23: GgmlType("IQ4_XS", 256, 136, None, _iq4_xs, 4, table=IQ4),
  16: GgmlType("IQ2_XXS", 256, 66, None, _iq2_xxs, 8, table=()),
  17: GgmlType("IQ2_XS", 256, 74, None, _iq2_xs, 8, 16, table=()),
  22: GgmlType("IQ2_S", 256, 82, None, _iq2_s, 8, 16, table=()),
  18: GgmlType("IQ3_XXS", 256, 98, None, _iq3_xxs, 8, table=()),
  21: GgmlType("IQ3_S", 256, 110, None, _iq3_s, 8, table=()),
  19: GgmlType("IQ1_S", 256, 50, None, _iq1_s, 8, table=()),
  29: GgmlType("IQ1_M", 256, 56, None, _iq1_m, 8, 16, table=()),
  34: GgmlType("TQ1_0", 256, 54, None, _tq1_0, 2, 256, table=(-1, 0, 1)),
  35: GgmlType("TQ2_0", 256, 66, None, _tq2_0, 2, 256, table=(-1, 0, 1, 2)),
  41: GgmlType("Q1_0", 128, 18, None, _q1_0, 1, 128, table=(-1, 1)),
  39: GgmlType("MXFP4", 32, 17, None, _mxfp4, 4, table=MXFP4),
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
  if kind.split is None:
    assert kind.dtype is not None
    return data.bitcast(kind.dtype)
  blocks = data.to(None) if on_disk(data.device) else data
  return kind.decode(blocks.reshape(-1, kind.size)).flatten()
