"""Arithmetic of pairs of real tensors, the real and the imaginary parts: products, quotients, magnitudes, angles.

A pair is (a, b) for a + ib. Gradients are those of the expressions in the planes, so that of a real loss is
dL/da + i dL/db, as in PyTorch. Where a formula has no derivative, at 0, the gradient is 0.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.functional.arithmetic import atan2, log1p
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class Planes(NamedTuple):
  """The real and the imaginary parts of complex numbers: tensors of one shape and type."""
  real: Tensor
  imag: Tensor

def add(x: Planes, y: Planes) -> Planes:
  """Return x + y."""
  return Planes(x.real.add(y.real), x.imag.add(y.imag))

def sub(x: Planes, y: Planes) -> Planes:
  """Return x - y."""
  return Planes(x.real.sub(y.real), x.imag.sub(y.imag))

def mul(x: Planes, y: Planes) -> Planes:
  """Return x * y."""
  return Planes(x.real.mul(y.real).sub(x.imag.mul(y.imag)), x.real.mul(y.imag).add(x.imag.mul(y.real)))

def scaled(x: Planes, factor: Any) -> Planes:
  """Return x times a real tensor or number."""
  return Planes(x.real.mul(factor), x.imag.mul(factor))

def div(x: Planes, y: Planes) -> Planes:
  """Return x / y. The divisor is scaled by its larger part, so that its square does not overflow.

  The quotient of a divisor with an infinite part is 0, and that of 0 is infinite.
  """
  scale = y.real.abs().maximum(y.imag.abs()).detach()
  none, wide = scale.eq(0), scale.isinf()
  safe, one = none.bitwise_or(wide).where(1, scale), scale.const_like(1)
  def scaled_part(part: Tensor, at_zero: int) -> Tensor:
    infinite = part.isinf().where(one.copysign(part), 0)
    return wide.where(infinite, none.where(one.copysign(part).mul(at_zero), part.div(safe)))
  c, d = scaled_part(y.real, 1), scaled_part(y.imag, 0)
  bottom = c.mul(c).add(d.mul(d)).mul(scale)
  return Planes(x.real.mul(c).add(x.imag.mul(d)).div(bottom), x.imag.mul(c).sub(x.real.mul(d)).div(bottom))

def times_i(x: Planes) -> Planes:
  """Return ix."""
  return Planes(x.imag.neg(), x.real)

def over_i(x: Planes) -> Planes:
  """Return -ix."""
  return Planes(x.imag, x.real.neg())

def neg(x: Planes) -> Planes:
  """Return -x."""
  return Planes(x.real.neg(), x.imag.neg())

def is_zero(x: Planes) -> Tensor:
  """Return True where both parts are 0."""
  return x.real.eq(0).bitwise_and(x.imag.eq(0))

def choose(condition: Tensor, x: Planes, y: Planes) -> Planes:
  """Return x where a condition is true, else y."""
  return Planes(condition.where(x.real, y.real), condition.where(x.imag, y.imag))

def magnitude(x: Planes) -> Tensor:
  """Return |x| without overflow."""
  infinite = x.real.isinf().bitwise_or(x.imag.isinf())
  most = infinite.where(math.inf, x.real.abs().maximum(x.imag.abs())).detach()
  flat = most.eq(0).bitwise_or(most.isinf())
  scale = flat.where(1, most)
  square = x.real.div(scale).square().add(x.imag.div(scale).square())
  return flat.where(most, flat.where(1, square).sqrt().mul(scale))

def angle(x: Planes) -> Tensor:
  """Return the angle, from -pi to pi."""
  flat = is_zero(x)
  return flat.where(atan2(x.imag.detach(), x.real.detach()), atan2(flat.where(0, x.imag), flat.where(1, x.real)))

def sgn(x: Planes) -> Planes:
  """Return x / |x|, and 0 for 0."""
  size = magnitude(x)
  none = size.eq(0)
  size = none.where(1, size)
  return Planes(none.where(0, x.real.div(size)), none.where(0, x.imag.div(size)))

def exp(x: Planes) -> Planes:
  """Return e ** x."""
  size = x.real.exp()
  return Planes(size.mul(x.imag.cos()), times_zero(size, x.imag.sin()))

def times_zero(size: Tensor, x: Tensor) -> Tensor:
  """Return size * x, and 0 for infinity * 0."""
  return x.eq(0).bitwise_and(size.isinf()).where(0, size).mul(x)

def log(x: Planes) -> Planes:
  """Return the natural logarithm. Near |x| = 1 the real part is that of 1 + (|x|**2 - 1), without cancellation."""
  a, b = x.real.abs(), x.imag.abs()
  swap = a.lt(b)
  large, small = swap.where(b, a), swap.where(a, b)
  near = large.gt(0.5).bitwise_and(large.lt(2))
  t = near.where(large.sub(1).mul(large.add(1)).add(small.square()), 0)
  size = near.where(1, magnitude(x))
  return Planes(near.where(log1p(t).mul(0.5), size.log()), angle(x))

def sqrt(x: Planes) -> Planes:
  """Return the square root whose real part is not negative."""
  none = is_zero(x)
  safe = Planes(none.where(1, x.real), x.imag)
  m = magnitude(safe).mul(0.5).add(safe.real.abs().mul(0.5)).sqrt()
  u = safe.imag.mul(0.5).div(m)
  right = safe.real.ge(0)
  first = right.where(m, u.mul(m.const_like(1).copysign(safe.imag)))
  second = right.where(u, m.copysign(safe.imag))
  return Planes(none.where(0, first), none.where(x.imag, second))

def reciprocal(x: Planes) -> Planes:
  """Return 1 / x."""
  return div(Planes(x.real.const_like(1), x.real.const_like(0)), x)

_MOST_STEPS = 64    # whole exponents up to this are powers by squaring

def power(x: Planes, exponent: int) -> Planes:
  """Return x ** n for a whole number, by squaring."""
  if exponent < 0: return reciprocal(power(x, -exponent))
  found = None
  while exponent:
    if exponent & 1: found = x if found is None else mul(found, x)
    exponent >>= 1
    if exponent: x = mul(x, x)
  return Planes(x.real.const_like(1), x.imag.const_like(0)) if found is None else found

def is_small_whole(exponent: Any) -> bool:
  """Is a number one whose power is computed by squaring?"""
  return isinstance(exponent, (int, float)) and exponent == int(exponent) and abs(exponent) <= _MOST_STEPS if (
    not isinstance(exponent, float) or math.isfinite(exponent)) else False

def pow(x: Planes, y: Planes) -> Planes:
  """Return x ** y: exp(y log x), and 1 where y is 0. Powers of 0 are 0 for a positive real part of y, infinite for a
  negative one, else NaN."""
  none, one = is_zero(x), is_zero(y)
  found = exp(mul(y, log(Planes(none.where(1, x.real), none.where(0, x.imag)))))
  zero, unit = found.real.const_like(0), found.real.const_like(1)
  positive = y.real.gt(0)
  of_zero = Planes(positive.where(0, y.real.lt(0).where(math.inf, zero.add(math.nan))), positive.where(0, math.nan))
  return choose(one, Planes(unit, zero), choose(none, of_zero, found))
