"""Conversions, in those that a target has. arithmetic.py defines them; results here are equal to the bit, except for a
NaN's sign.

Every target converts between integers. `Capabilities` lists under CAST the types that it converts to and from float32
and float64: integers, narrow floats, bool. Every other pair goes through these. Narrow floats are converted by integer
operations on their codes where the hardware has no conversion. Vectors of 64-bit integers to and from floats are not
here, because no vector unit below AVX-512 has them; legalize.py converts those lane by lane.
"""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING

from tinyhw import arithmetic
from tinyhw.dtype import FLOAT_FORMATS, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.codegen.math.decompose import Decomposer

SMALL_FLOATS = frozenset(dtypes.narrow_floats)
_CODES = {8: dtypes.uint8, 16: dtypes.uint16}  # by bits: the integers that hold a narrow float's code

def lanewise(source: DType, target: DType, wide_casts: bool = False) -> bool:
  """Does no vector unit convert between these scalar types? wide_casts: no unit with Capabilities.wide_casts."""
  a, b = (source, target) if dtypes.is_float(source) else (target, source)
  if wide_casts and a.itemsize >= 4 and (b is dtypes.int64 or source is dtypes.uint64): return False
  return dtypes.is_float(a) and dtypes.is_int(b) and (b.itemsize == 8 or b is dtypes.uint32)

def cast(d: Decomposer, x: UOp, dtype: DType) -> UOp:
  """Return x, which is final, as another type with as many lanes."""
  source, target = x.dtype.scalar(), dtype.scalar()
  if source is target: return x
  if x.op is Ops.CONST:
    return UOp(Ops.CONST, dtype, (), arithmetic.cast(source, target)(arithmetic.round_to(source)(x.arg)))
  if target is dtypes.bool: return d.alu(Ops.CMPNE, d.cast(x, dtypes.float32) if source in SMALL_FLOATS else x, 0)
  if source in SMALL_FLOATS or target in SMALL_FLOATS: return _cast_small(d, x, source, target)
  if source is dtypes.bool and not (d.has(Ops.CAST, x.dtype) and d.has(Ops.CAST, dtype)):
    return d.alu(Ops.WHERE, x, d.const(dtype, 1), d.const(dtype, 0))
  if dtypes.is_int(source) and dtypes.is_int(target): return UOp(Ops.CAST, dtype, (x,))
  if x.dtype.count > 1 and lanewise(source, target):
    if source is dtypes.uint32: return _from_uint32(d, x, target)
    if d.has(Ops.CAST, source) and d.has(Ops.CAST, target): return UOp(Ops.CAST, dtype, (x,))
  elif d.has(Ops.CAST, x.dtype) and d.has(Ops.CAST, dtype): return UOp(Ops.CAST, dtype, (x,))
  between = _intermediate_type(source, target)
  if between is not None: return d.cast(d.cast(x, between), target)
  if target is dtypes.uint64 and dtypes.is_float(source): return _to_uint64(d, x)
  if source is dtypes.uint64 and dtypes.is_float(target): return _from_uint64(d, x, target)
  if target is dtypes.int64 and dtypes.is_float(source): return _to_int64(d, x)
  if source is dtypes.int64 and dtypes.is_float(target): return _from_int64(d, x, target)
  if x.dtype.count > 1: return UOp(Ops.CAST, dtype, (x,))
  raise CompileError(f"the target does not convert {source} to {target}, and codegen knows no other way; use another "
                     f"type")

def _intermediate_type(source: DType, target: DType) -> DType | None:
  """Return an integer type between a float and an integer, so that machines have each step."""
  integer = target if dtypes.is_float(source) else source
  if not dtypes.is_int(integer): return None
  if integer.itemsize < 4: return dtypes.int32
  return dtypes.int64 if integer is dtypes.uint32 else None

# ***** 64-bit integers where only halves of them are converted *****

def _from_int64(d: Decomposer, x: UOp, target: DType) -> UOp:
  """Convert int64 by its halves, which are exact in float64, so that the sum rounds once.

  For float32, all bits below its last bit are first merged into one sticky bit.
  """
  if target is dtypes.float32:
    low = d.alu(Ops.AND, x, 0x7ff)
    sticky = d.alu(Ops.XOR, d.alu(Ops.OR, x, d.alu(Ops.AND, d.alu(Ops.ADD, low, 0x7ff), 0x800)), low)
    whole = d.alu(Ops.ADD, d.alu(Ops.SHR, x, 53), 1)   # 0 or 1: x is exact in float64
    near = d.alu(Ops.CMPLT, d.bitcast(whole, dtypes.uint64), d.const(dtypes.uint64.vec(x.dtype.count), 2))
    return d.cast(d.cast(d.alu(Ops.WHERE, near, x, sticky), dtypes.float64), target)
  high = d.cast(d.cast(d.alu(Ops.SHR, x, 32), dtypes.int32), target)
  low = d.cast(d.cast(x, dtypes.uint32), target)
  return d.alu(Ops.ADD, d.alu(Ops.MUL, high, 2.0 ** 32), low)

def _to_int64(d: Decomposer, x: UOp) -> UOp:
  """Convert to int64 by the halves of the whole number in float64 (TRUNC must be the target's own).

  A number that does not fit becomes the smallest number.
  """
  if x.dtype.scalar() is dtypes.float32: return d.cast(d.cast(x, dtypes.float64), dtypes.int64)
  whole = d.alu(Ops.TRUNC, x)
  part = d.alu(Ops.MUL, whole, 2.0 ** -32)
  high = d.alu(Ops.TRUNC, part)
  # rounded down
  high = d.alu(Ops.SUB, high, d.alu(Ops.WHERE, d.alu(Ops.CMPLT, part, high), d.const(x.dtype, 1.0),
                                    d.const(x.dtype, 0.0)))
  # 0 to 2**32 - 1
  low = d.alu(Ops.SUB, whole, d.alu(Ops.MUL, high, 2.0 ** 32))
  upper = d.cast(low, dtypes.int32)                        # the smallest number from 2**31 on: the sign of the half
  offset = d.cast(d.alu(Ops.SUB, low, 2.0 ** 31), dtypes.int32)
  half = d.alu(Ops.WHERE, d.alu(Ops.CMPLT, low, 2.0 ** 31), upper, d.alu(Ops.XOR, offset, -1 << 31))
  joined = d.alu(Ops.OR, d.alu(Ops.SHL, d.cast(d.cast(high, dtypes.int32), dtypes.int64), 32),
                 d.cast(d.bitcast(half, dtypes.uint32), dtypes.int64))
  fits = d.alu(Ops.AND, d.alu(Ops.CMPLT, whole, 2.0 ** 63), d.alu(Ops.CMPLT, d.const(x.dtype, -2.0 ** 63), whole))
  return d.alu(Ops.WHERE, fits, joined, -1 << 63)

# ***** unsigned integers and floats *****

def _from_uint32(d: Decomposer, x: UOp, target: DType) -> UOp:
  """Convert uint32 by its halves, which are exact, so that the sum rounds once."""
  if target is dtypes.float64:
    centred = d.cast(d.bitcast(d.alu(Ops.XOR, x, 1 << 31), dtypes.int32), target)
    return d.alu(Ops.ADD, centred, 2147483648.0)
  high = d.cast(d.bitcast(d.alu(Ops.SHR, x, 16), dtypes.int32), target)
  low = d.cast(d.bitcast(d.alu(Ops.AND, x, 0xffff), dtypes.int32), target)
  return d.alu(Ops.ADD, d.alu(Ops.MUL, high, 65536.0), low)

def _from_uint64(d: Decomposer, x: UOp, target: DType) -> UOp:
  """Convert uint64. From 2**63 on: halve it, keep its last bit so that rounding is right, then double it."""
  halved = d.alu(Ops.OR, d.alu(Ops.SHR, x, 1), d.alu(Ops.AND, x, 1))
  half = d.cast(d.bitcast(halved, dtypes.int64), target)
  signed = d.bitcast(x, dtypes.int64)
  return d.alu(Ops.WHERE, d.alu(Ops.CMPLT, signed, 0), d.alu(Ops.ADD, half, half), d.cast(signed, target))

def _to_uint64(d: Decomposer, x: UOp) -> UOp:
  """Convert to uint64. From 2**63 to 2**64: convert the excess over 2**63, and set the top bit."""
  top = d.bitcast(d.cast(d.alu(Ops.ADD, x, -2.0 ** 63), dtypes.int64), dtypes.uint64)
  low = d.bitcast(d.cast(x, dtypes.int64), dtypes.uint64)
  reached = d.alu(Ops.XOR, d.alu(Ops.CMPLT, x, 2.0 ** 63), True)
  above = d.alu(Ops.AND, reached, d.alu(Ops.CMPLT, x, 2.0 ** 64))
  return d.alu(Ops.WHERE, above, d.alu(Ops.XOR, top, 1 << 63), low)

# ***** floats narrower than float32 *****

def _cast_small(d: Decomposer, x: UOp, source: DType, target: DType) -> UOp:
  single = dtypes.float32
  if source in SMALL_FLOATS:
    if target is not single: return d.cast(d.cast(x, single), target)
    if d.has(Ops.CAST, x.dtype): return UOp(Ops.CAST, single.vec(x.dtype.count), (x,))
    return _decode_bfloat16(d, x) if source is dtypes.bfloat16 else _decode(d, x, source)
  if source is dtypes.float64: return d.cast(_round_to_odd(d, x), target)
  if source is not single: return d.cast(d.cast(x, single), target)
  if d.has(Ops.CAST, target.vec(x.dtype.count)): return UOp(Ops.CAST, target.vec(x.dtype.count), (x,))
  return _encode_bfloat16(d, x) if target is dtypes.bfloat16 else _encode(d, x, target)

def _round_to_odd(d: Decomposer, x: UOp) -> UOp:
  """Return a float64 as a float32 whose last bit is set if anything was cut off. A second rounding then rounds like
  one.

  Source: Boldo, Melquiond 2008, Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd.
  """
  nearest = d.cast(x, dtypes.float32)
  back, bits = d.cast(nearest, dtypes.float64), d.bitcast(nearest, dtypes.uint32)
  def magnitude(y: UOp) -> UOp:
    return d.bitcast(d.alu(Ops.AND, d.bitcast(y, dtypes.uint64), (1 << 63) - 1), dtypes.float64)
  toward_zero = d.alu(Ops.WHERE, d.alu(Ops.CMPLT, magnitude(x), magnitude(back)), d.alu(Ops.SUB, bits, 1), bits)
  return d.bitcast(d.alu(Ops.WHERE, d.alu(Ops.CMPNE, back, x), d.alu(Ops.OR, toward_zero, 1), bits), dtypes.float32)

def _word(d: Decomposer, x: UOp) -> UOp:
  """Return the code of a narrow float in 32 bits."""
  return d.cast(d.bitcast(x, _CODES[x.dtype.scalar().bitsize]), dtypes.uint32)

def _decode_bfloat16(d: Decomposer, x: UOp) -> UOp: return d.bitcast(d.alu(Ops.SHL, _word(d, x), 16), dtypes.float32)

def _encode_bfloat16(d: Decomposer, x: UOp) -> UOp:
  """Add half of the last remaining bit before cutting off the rest; a little less where that bit is even."""
  bits = d.bitcast(x, dtypes.uint32)
  code = d.alu(Ops.SHR, _round(d, bits, 16), 16)
  code = d.alu(Ops.WHERE, d.alu(Ops.CMPNE, x, x), d.const(code.dtype, 0x7fc0), code)
  return d.bitcast(d.cast(code, dtypes.uint16), dtypes.bfloat16)

def _round(d: Decomposer, bits: UOp, shift: int) -> UOp:
  """Return bits such that a shift to the right rounds to nearest, ties to even."""
  odd = d.alu(Ops.AND, d.alu(Ops.SHR, bits, shift), 1)
  return d.alu(Ops.ADD, d.alu(Ops.ADD, bits, (1 << (shift - 1)) - 1), odd)

def _decode(d: Decomposer, x: UOp, dtype: DType) -> UOp:
  """Move exponent and mantissa to their positions in float32, and correct the bias by a multiplication.

  Subnormals come out right by themselves. Where float32 has none, the bias is corrected by an addition. Subnormals then
  become a number with one more bit, which is subtracted.
  """
  form = FLOAT_FORMATS[dtype]
  shift, sign = 23 - form.mantissa_bits, 1 << (form.bits - 1)
  word = _word(d, x)
  magnitude = d.alu(Ops.AND, word, sign - 1)
  if d.capabilities.flushes:
    moved, bias = d.alu(Ops.SHL, magnitude, shift), (127 - form.bias) << 23
    longer, normal = (d.bitcast(d.alu(Ops.ADD, moved, add), dtypes.float32) for add in (bias + (1 << 23), bias))
    number = d.alu(Ops.WHERE, d.alu(Ops.CMPLT, magnitude, 1 << form.mantissa_bits),
                   d.alu(Ops.ADD, longer, -2.0 ** (1 - form.bias)), normal)
  else: number = d.alu(Ops.MUL, d.bitcast(d.alu(Ops.SHL, magnitude, shift), dtypes.float32), 2.0 ** (127 - form.bias))
  if form.fnuz: special, value = d.alu(Ops.CMPEQ, word, sign), d.const(word.dtype, 0x7fc00000)
  else:
    special = d.alu(Ops.CMPLT, d.const(word.dtype, form.largest_code), magnitude)
    value = d.alu(Ops.OR, d.alu(Ops.SHL, magnitude, shift), 0x7f800000)
  bits = d.alu(Ops.WHERE, special, value, d.bitcast(number, dtypes.uint32))
  return d.bitcast(d.alu(Ops.OR, bits, d.alu(Ops.SHL, d.alu(Ops.AND, word, sign), 32 - form.bits)), dtypes.float32)

def _encode(d: Decomposer, x: UOp, dtype: DType) -> UOp:
  """Round normal numbers on their bits, and subnormals by the addition of a number whose last bit is the quantum."""
  form = FLOAT_FORMATS[dtype]
  shift, sign = 23 - form.mantissa_bits, 1 << (form.bits - 1)
  bits = d.bitcast(x, dtypes.uint32)
  magnitude = d.alu(Ops.AND, bits, 0x7fffffff)
  size = d.bitcast(magnitude, dtypes.float32)
  rebias = -((127 - form.bias) << form.mantissa_bits) % (1 << 32)
  normal = d.alu(Ops.ADD, d.alu(Ops.SHR, _round(d, magnitude, shift), shift), rebias)
  anchor = 2.0 ** (24 - form.bias - form.mantissa_bits)
  code_of_anchor = struct.unpack("<I", struct.pack("<f", anchor))[0]
  small = d.alu(Ops.ADD, d.bitcast(d.alu(Ops.ADD, size, anchor), dtypes.uint32),
                d.const(bits.dtype, -code_of_anchor % (1 << 32)))
  code = d.alu(Ops.WHERE, d.alu(Ops.CMPLT, size, 2.0 ** (1 - form.bias)), small, normal)
  def constant(value: float) -> UOp: return d.const(bits.dtype, arithmetic.CODED[dtype][1](value))
  too_large = d.alu(Ops.CMPLT, d.const(bits.dtype, form.largest_code), code)
  code = d.alu(Ops.WHERE, too_large, constant(float("inf")), code)
  code = d.alu(Ops.WHERE, d.alu(Ops.CMPNE, x, x), constant(float("nan")), code)
  signed = d.alu(Ops.OR, code, d.alu(Ops.AND, d.alu(Ops.SHR, bits, 32 - form.bits), sign))
  if form.fnuz: signed = d.alu(Ops.WHERE, d.alu(Ops.CMPEQ, code, 0), code, signed)  # it has no -0
  return d.bitcast(d.cast(signed, _CODES[form.bits]), dtype)
