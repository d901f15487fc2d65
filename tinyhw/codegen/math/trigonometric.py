"""SIN and COS as operations that every target has, exact to the last bits for arguments of any size.

|x| is converted to a number of turns. x = f * 2**e with f below 2. The fraction of the turns x/(2 pi) is a product of f
and of bits of 1/(2 pi) that begin at bit e. Higher bits make whole turns, and lower bits do not matter. Source of the
idea: Payne and Hanek, Radian reduction for trigonometric functions, 1983.

The bits are chosen among constants word by word with the bits of e, not loaded. float32 counts turns in int32, which
drops whole ones by itself. float64 has no integer product and adds exact products of floats. The part within 1/8 turn
of a quarter is an angle of at most pi/4, for which polynomials give sine and cosine. Below 1/2, |x| is the angle.
Coefficients: test/numerics/minimax.py.
"""
from __future__ import annotations

from tinyhw.codegen.math.floating import (DOUBLE, SINGLE, Precise, exact_product, exact_sum, fast_sum, fma, polynomial,
                                          real, signed, subtract,
                                          unsigned, with_sign)
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.ops import UOp

# (sin(r)/r - 1) / z for z = r*r, |r| <= pi/4, from z**0; relative errors of the sine: 2**-27.9 and 2**-57.9
SIN: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (-0.16666655242443085, 0.008332189172506332, -0.0001951828453456983),
  dtypes.float64: (-0.1666666666666663, 0.00833333333332184, -0.0001984126982935854, 2.7557313538522683e-06,
                   -2.5050734391391034e-08,
                   1.589543346183372e-10),
}
# (cos(r) - 1) / z, from z**0; relative errors of the cosine: 2**-33.0 and 2**-63.9
COS: dict[DType, tuple[float, ...]] = {
  dtypes.float32: (-0.5, 0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05),
  dtypes.float64: (-0.5, 0.041666666666666595, -0.0013888888888873338, 2.480158728899747e-05, -2.7557314215293666e-07,
                   2.0875705114035134e-09,
                   -1.135873272061046e-11),
}
# the first 1163 bits of 1/(2 pi) after the point
INVERSE_TURN = int(
  "145f306dc9c882a53f84eafa3ea69bb81b6c52b3278872083fca2c757bd778ac36e48dc74849ba5c00c925dd413a32439fc3bd63962534e7dd1046bea5d768909d338e04d68befc8"
  "27323ac7306a673e93908bf177bf250763ff12fffbc0b301fde5e2316b414da3eda6cfd9e4f96136e9e8c7ecd3cbfd45aea4f758fd7cbe2f67a0e73ef14a525d4d7f6bf623f1aba1"
  "0ac", 16)
INVERSE_TURN_BITS = 1163
# 2 pi in two parts; for float32 times 2**-32
TURN: dict[DType, tuple[float, float]] = {
  dtypes.float32: (1.4629180922209883e-09, -4.0699274335533885e-17),
  dtypes.float64: (6.283185307179586, 2.4492935982947064e-16),
}
ROUNDER = 1.5 * 2.0 ** 52  # added to a double, it leaves the nearest integer in the low bits
DIRECT = 0.5    # below it, |x| is the angle

class MantissaExponent(NamedTuple):
  """|x| = f * 2**e: f is in 1..2, or less where e is 0."""
  f: UOp
  e: UOp

class Turn(NamedTuple):
  """|x| as quarter turns, whose last two bits are the first two of `quarters`, and an angle of at most pi/4."""
  quarters: UOp
  angle: UOp

def _place(size: UOp, one: int, infinity: int, mantissa: int) -> MantissaExponent:
  bits = signed(size)
  exponent = (bits & infinity).maximum(one) - one
  return MantissaExponent(real(subtract(bits, exponent)), exponent.bitcast(unsigned(size).dtype) >> mantissa)

def _window(e: UOp, word: int, zeros: int, count: int) -> list[UOp]:
  """Return bits of 1/(2 pi), after `zeros` zeros, from bit e on: `count` words of `word` bits.

  The high bits of e choose words, the low ones shift them.
  """
  top = 64 if word == 32 else 512  # the highest bit of e
  length = (2 * top + word * count) // word
  shift = INVERSE_TURN_BITS + zeros - length * word
  whole = INVERSE_TURN >> shift if shift >= 0 else INVERSE_TURN << -shift
  words = [e.const_like(whole >> (length - 1 - k) * word & (1 << word) - 1) for k in range(length)]
  while top >= word:
    near, step = (e & top).eq(0), top // word
    words = [near.where(a, b) for a, b in zip(words, words[step:])][:step + count]
    top //= 2
  left = e & (word - 1)
  right = left ^ (word - 1)
  return [(a << left) | ((b >> 1) >> right) for a, b in zip(words, words[1:])]

def _turn_single(size: UOp, fused: bool) -> Turn:
  """Reduce a float32, in units of 2**-32 turn.

  f*2**24 times 32 bits is an integer and may wrap. f times 24 more bits has an integer part and a fraction, to which 24
  more bits add.
  """
  int32, uint32 = dtypes.int32, dtypes.uint32.vec(size.dtype.count)
  f, e = _place(size, SINGLE.one, SINGLE.infinity, SINGLE.mantissa)
  first, second, third = _window(e, 32, 24, 3)
  whole = (f * 2.0 ** 24).cast(int32) * first.bitcast(signed(size).dtype)
  high, low = exact_product(f, _small_float(second >> 8), fused)
  carry = high.cast(int32)
  fraction = fma(f * 2.0 ** -24, _small_float(((second & 255) << 16) | (third >> 16)),
                 subtract(high, carry.cast(dtypes.float32)) + low)
  centred = (whole + carry) + (1 << 29)
  near = (centred & ((1 << 30) - 1)) - (1 << 29)
  main = near.cast(dtypes.float32)
  rest = subtract(near, main.cast(int32)).cast(dtypes.float32) + fraction
  return Turn(centred.bitcast(uint32), _angle(Precise(main, rest)))

def _small_float(bits: UOp) -> UOp:
  """Return an unsigned number below 2**31 as a float."""
  return bits.bitcast(dtypes.int32.vec(bits.dtype.count)).cast(dtypes.float32)

def _turn_double(size: UOp, fused: bool) -> Turn:
  """Reduce a float64, in turns: f*2**5 times four pieces of 48 bits. All products but the last are exact.

  Whole turns and quarters are removed before anything is rounded.
  """
  f, e = _place(size, DOUBLE.one, DOUBLE.infinity, DOUBLE.mantissa)
  a, b, c = _window(e, 64, 53, 3)
  pieces = (a >> 16, ((a & 0xffff) << 32) | (b >> 32), ((b & 0xffffffff) << 16) | (c >> 48), c & ((1 << 48) - 1))
  p0, p1, p2, p3 = [_piece(bits, 48 * k) for k, bits in enumerate(pieces)]
  scaled = f * 2.0 ** 5
  first, second, third = [exact_product(scaled, p, fused) for p in (p0, p1, p2)]
  total, error = exact_sum(_fraction(first.high) + first.low, _fraction(second.high))
  shifted = fma(total, 4.0, ROUNDER)
  near = fma(shifted - ROUNDER, -0.25, total)
  one = exact_sum(near, third.high)
  two = exact_sum(second.low, error)
  three = exact_sum(one.high, two.high)
  rest = fma(scaled, p3, third.low) + (one.low + (two.low + three.low))
  return Turn(unsigned(shifted) << 62, _angle(fast_sum(three.high, rest)))

def _piece(bits: UOp, below: int) -> UOp:
  """Return a number below 2**48, times 2**-below, as the mantissa of a float, from which the leading 1 is subtracted.
  """
  return real(bits | ((DOUBLE.bias + 52 - below) << 52)) - 2.0 ** (52 - below)

def _fraction(x: UOp) -> UOp: return subtract(x, x.trunc())

def _angle(turns: Precise) -> UOp:
  """Return the angle in radians, rounded once."""
  high, low = TURN[turns.high.dtype.scalar()]
  return fma(turns.high, high, fma(turns.high, low, turns.low * high))

def _turn(x: UOp, fused: bool) -> Turn:
  size = real(unsigned(x) & ~(1 << (x.dtype.scalar().bitsize - 1)))
  turn = (_turn_single if x.dtype.scalar() is dtypes.float32 else _turn_double)(size, fused)
  return Turn(turn.quarters, (size < DIRECT).where(size, turn.angle))

def _wave(x: UOp, turn: Turn, flipped: UOp) -> UOp:
  """Return the sine of a turn: sine and cosine of the angle alternate from quarter to quarter.

  NaN and infinity give NaN.
  """
  scalar, angle, top = x.dtype.scalar(), turn.angle, x.dtype.scalar().bitsize - 1
  z = angle * angle
  sine = fma(angle * z, polynomial(z, SIN[scalar]), angle)
  cosine = polynomial(z, (1.0,) + COS[scalar])
  result = (turn.quarters & (1 << top - 1)).eq(0).where(sine, cosine)
  return fma(x, 0.0, with_sign(result, flipped))

def sin(u: UOp, fused: bool) -> UOp:
  x = u.src[0]
  turn = _turn(x, fused)
  return _wave(x, turn, (turn.quarters ^ unsigned(x)) & (1 << x.dtype.scalar().bitsize - 1))

def cos(u: UOp, fused: bool) -> UOp:
  """Return the sine a quarter turn later."""
  x, top = u.src[0], u.src[0].dtype.scalar().bitsize - 1
  turn = _turn(x, fused)
  later = turn.quarters + (1 << top - 1)
  return _wave(x, Turn(later, turn.angle), later & (1 << top))
