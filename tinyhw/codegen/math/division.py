"""Integer division that rounds down, in operations that cannot trap.

By a power of two: shift and mask. By another positive constant: a multiplication and a shift where the product fits.
Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994. A dividend that may be
negative is mirrored first, since -1 - x is not negative when x is.

By a variable: on magnitudes, as unsigned numbers, with a divisor of 0 raised to 1. The signs are corrected afterwards.
No operation can divide by zero or overflow: the smallest integer divided by -1 wraps, and x // 0 and x % 0 are 0.

A remaining IDIV or MOD has a dividend that is not negative and a positive divisor. A target without IDIV (a GPU)
estimates quotients from below in floating point, and corrects them by the remainder.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.codegen.math.decompose import Decomposer

_UNSIGNED = {dtypes.int8: dtypes.uint8, dtypes.int16: dtypes.uint16, dtypes.int32: dtypes.uint32,
             dtypes.int64: dtypes.uint64}

def divide(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  return _divided(d, src[0], src[1], dtype, Ops.IDIV)

def modulo(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  return _divided(d, src[0], src[1], dtype, Ops.MOD)

def reciprocal(divisor: int, largest: int) -> tuple[int, int]:
  """Return (m, s) such that x*m >> s is x // divisor for 0 <= x <= largest, with the smallest s."""
  s = divisor.bit_length()
  while True:
    m = -(-(1 << s) // divisor)
    if (m * divisor - (1 << s)) * largest < 1 << s: return m, s
    s += 1

def _divided(d: Decomposer, a: UOp, b: UOp, dtype: DType, op: Ops) -> UOp | None:
  if not dtypes.is_int(dtype): return None
  if b.op is Ops.CONST and b.arg >= 0: return _by_constant(d, a, int(b.arg), dtype, op)
  if dtype.scalar().itemsize < 4:
    single = dtypes.uint32 if dtypes.is_unsigned(dtype) else dtypes.int32
    return d.cast(d.alu(op, d.cast(a, single), d.cast(b, single)), dtype.scalar())
  if a.vmin >= 0 and b.vmin > 0: return _plain(d, op, a, b)
  if dtypes.is_unsigned(dtype): return _by_unsigned(d, a, b, op)
  return _by_signed(d, a, b, dtype, op)

def _plain(d: Decomposer, op: Ops, a: UOp, b: UOp) -> UOp:
  """Return the machine's own operation. A missing MOD uses the quotient, and a missing IDIV uses estimates."""
  if not d.has(Ops.IDIV, a.dtype.scalar()):
    unsigned = _UNSIGNED.get(a.dtype.scalar(), a.dtype.scalar())
    x, y = d.bitcast(a, unsigned), d.bitcast(b, unsigned)
    quotient, left = (_estimated_32 if unsigned is dtypes.uint32 else _estimated_64)(d, x, y)
    return d.bitcast(quotient if op is Ops.IDIV else left, a.dtype.scalar())
  if op is Ops.MOD and not d.has(op, a.dtype.scalar()) and d.has(Ops.IDIV, a.dtype.scalar()):
    return d.alu(Ops.SUB, a, d.alu(Ops.MUL, UOp(Ops.IDIV, a.dtype, (a, b)), b))
  return UOp(op, a.dtype, (a, b))

# ***** by a constant *****

def _by_constant(d: Decomposer, a: UOp, divisor: int, dtype: DType, op: Ops) -> UOp:
  if divisor == 0: return d.const(dtype, 0)
  if divisor & (divisor - 1) == 0:
    if op is Ops.MOD: return d.alu(Ops.AND, a, divisor - 1)
    return d.alu(Ops.SHR, a, divisor.bit_length() - 1) if divisor > 1 else a
  low, high = int(a.vmin), int(a.vmax)
  if low >= 0: quotient = _quotient(d, a, divisor, high, dtype)
  else:
    sign = d.alu(Ops.SHR, a, dtype.scalar().bitsize - 1)  # all ones where a is negative
    mirrored = d.alu(Ops.XOR, a, sign)
    quotient = d.alu(Ops.XOR, _quotient(d, mirrored, divisor, max(high, -1 - low), dtype), sign)
  if op is Ops.IDIV: return quotient
  return d.alu(Ops.SUB, a, d.alu(Ops.MUL, quotient, divisor))

def _quotient(d: Decomposer, a: UOp, divisor: int, largest: int, dtype: DType) -> UOp:
  """Return a // divisor for 0 <= a <= largest."""
  multiplier, shift = reciprocal(divisor, largest)
  scalar = dtype.scalar()
  product = multiplier * largest
  if product <= scalar.max: return d.alu(Ops.SHR, d.alu(Ops.MUL, a, multiplier), shift)
  wide = dtypes.int64 if product < 1 << 63 else dtypes.uint64
  if scalar.itemsize < 8 and product < 1 << 64 and d.has(Ops.MUL, wide):
    return d.cast(d.alu(Ops.SHR, d.alu(Ops.MUL, d.cast(a, wide), multiplier), shift), scalar)
  if scalar.itemsize < 4:
    return d.cast(_quotient(d, d.cast(a, dtypes.int32), divisor, largest, dtypes.int32.vec(dtype.count)), scalar)
  if dtypes.is_unsigned(dtype) or a.vmin >= 0: return _plain(d, Ops.IDIV, a, d.const(dtype, divisor))
  unsigned = _UNSIGNED[scalar]
  return d.bitcast(_plain(d, Ops.IDIV, d.bitcast(a, unsigned), d.const(unsigned.vec(dtype.count), divisor)), scalar)

# ***** by a variable *****

def _by_unsigned(d: Decomposer, a: UOp, b: UOp, op: Ops) -> UOp:
  """Divide numbers that are not negative: only a divisor of 0 needs care."""
  result = _plain(d, op, a, _at_least_one(d, b))
  return d.alu(Ops.WHERE, d.alu(Ops.CMPEQ, b, 0), 0, result)

def _at_least_one(d: Decomposer, b: UOp) -> UOp:
  """Return b where it is not 0, else 1."""
  return d.alu(Ops.OR, b, d.cast(d.alu(Ops.CMPEQ, b, 0), b.dtype.scalar()))

def _magnitude(d: Decomposer, x: UOp, unsigned: DType) -> UOp:
  """Return |x| as an unsigned number, so that the smallest integer has one too."""
  return d.bitcast(x if x.vmin >= 0 else d.alu(Ops.WHERE, d.alu(Ops.CMPLT, x, 0), d.alu(Ops.NEG, x), x), unsigned)

def _by_signed(d: Decomposer, a: UOp, b: UOp, dtype: DType, op: Ops) -> UOp:
  """Divide signed numbers. Where the signs differ, negate the quotient of the magnitudes, and lower it by 1 for a
  remainder."""
  unsigned = _UNSIGNED[dtype.scalar()]
  x, y = _magnitude(d, a, unsigned), _at_least_one(d, _magnitude(d, b, unsigned))
  quotient = _plain(d, Ops.IDIV, x, y)
  left = d.alu(Ops.CMPNE, d.alu(Ops.MUL, quotient, y), x)
  lowered = d.alu(Ops.NEG, d.bitcast(d.alu(Ops.ADD, quotient, d.cast(left, unsigned)), dtype.scalar()))
  differ = d.alu(Ops.CMPLT, d.alu(Ops.XOR, a, b), 0)
  result = d.alu(Ops.WHERE, differ, lowered, d.bitcast(quotient, dtype.scalar()))
  if op is Ops.MOD: result = d.alu(Ops.SUB, a, d.alu(Ops.MUL, result, b))
  return d.alu(Ops.WHERE, d.alu(Ops.CMPEQ, b, 0), 0, result)

# ***** without a divider *****

def _estimated_32(d: Decomposer, a: UOp, b: UOp) -> tuple[UOp, UOp]:
  """Return quotient and remainder of uint32, b > 0, by an estimate of 2**32 / b that is never too large.

  Floats give 22 bits of it, and a step of Newton's method gives all. The factor is 2**32, lowered by more than the
  conversion of b and the division can round up. So the estimate is below 2**32 / b by less than 2**-20 of it, and by 1
  for the fraction. After the step the quotient lacks 2 at most.
  """
  scaled = d.alu(Ops.FDIV, d.const(dtypes.float32.vec(b.dtype.count), 4294966784.0), d.cast(b, dtypes.float32))
  estimate = d.alu(Ops.WHERE, d.alu(Ops.CMPEQ, b, 1), d.const(b.dtype, 0xffffffff),
                   d.bitcast(d.cast(scaled, dtypes.int32), dtypes.uint32))
  lacks = d.alu(Ops.SUB, d.const(b.dtype, 0), d.alu(Ops.MUL, b, estimate))  # 2**32 - b * estimate
  estimate = d.alu(Ops.ADD, estimate, _high(d, estimate, lacks))
  quotient = _high(d, a, estimate)
  return _corrected(d, quotient, d.alu(Ops.SUB, a, d.alu(Ops.MUL, quotient, b)), b)

def _high(d: Decomposer, x: UOp, y: UOp) -> UOp:
  """Return the upper half of a product of uint32."""
  return d.cast(d.alu(Ops.SHR, d.alu(Ops.MUL, d.cast(x, dtypes.uint64), d.cast(y, dtypes.uint64)), 32), dtypes.uint32)

def _estimated_64(d: Decomposer, a: UOp, b: UOp) -> tuple[UOp, UOp]:
  """Return quotient and remainder of uint64, b > 0.

  Twice, the remainder is divided in float64, and the result is lowered by 2**-49 of it. The first estimate leaves less
  than 2**16 times b; the second leaves less than 3 times b.
  """
  quotient, left = d.const(a.dtype, 0), a
  divisor = d.cast(b, dtypes.float64)
  for _ in range(2):
    estimate = d.cast(d.alu(Ops.MUL, d.alu(Ops.FDIV, d.cast(left, dtypes.float64), divisor), 1.0 - 2.0 ** -49),
                      dtypes.uint64)
    quotient, left = d.alu(Ops.ADD, quotient, estimate), d.alu(Ops.SUB, left, d.alu(Ops.MUL, estimate, b))
  return _corrected(d, quotient, left, b)

def _corrected(d: Decomposer, quotient: UOp, left: UOp, b: UOp) -> tuple[UOp, UOp]:
  """Correct a quotient that is up to 2 too small, and its remainder."""
  for _ in range(2):
    enough = d.alu(Ops.CMPLT, left, b)
    quotient = d.alu(Ops.WHERE, enough, quotient, d.alu(Ops.ADD, quotient, 1))
    left = d.alu(Ops.WHERE, enough, left, d.alu(Ops.SUB, left, b))
  return quotient, left
