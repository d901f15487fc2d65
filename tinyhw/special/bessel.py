"""Bessel functions of orders 0 and 1, modified ones, and Airy's function: Chebyshev series near 0 and far from it.

tables.py has the coefficients with their meaning. Far from 0, J and Y are an amplitude and a phase. Values are within
2 ULP of float32, near zeros of the function within 2 ULP of the amplitude. Source: Abramowitz and Stegun, 9 and 10.
"""
from __future__ import annotations
import math

from tinyhw.functional.operands import checked
from tinyhw.special import tables
from tinyhw.special.horner import chebyshev, in_double, polynomial, with_slope
from tinyhw.tensor import Tensor

# ***** modified, of the first kind *****

def _scaled_i(x: Tensor, order: int) -> Tensor:
  """Return exp(-abs(x)) I(x)."""
  size = x.abs()
  near = size.le(8)
  y, z = near.where(size, 8), near.where(8, size)
  close = chebyshev(y.mul(0.25).sub(1), tables.I0E_NEAR if order == 0 else tables.I1E_NEAR)
  far = chebyshev(z.reciprocal().mul(16).sub(1), tables.I0E_FAR if order == 0 else tables.I1E_FAR).div(z.sqrt())
  if order == 0: return near.where(close, far)
  return near.where(close.mul(x), x.lt(0).where(far.neg(), far))

def _grown(x: Tensor, scaled: Tensor) -> Tensor:
  """Return scaled * exp(abs(x)), without an overflow of the exponential alone."""
  half = x.abs().mul(0.5).exp()
  return scaled.mul(half).mul(half)

def _i0(x: Tensor) -> Tensor:
  d = x.detach()
  return with_slope(_grown(d, _scaled_i(d, 0)), x, _i1)

def _i1(x: Tensor) -> Tensor:
  d = x.detach()
  return with_slope(_grown(d, _scaled_i(d, 1)), x, lambda y: _i0(y).sub(_over(_i1(y), y)))

def _over(f: Tensor, x: Tensor) -> Tensor:
  """Return f / x, 1/2 where x is 0, for an odd function of slope 1/2 there."""
  zero = x.eq(0)
  return zero.where(0.5, f.div(zero.where(1, x)))

def _i0e(x: Tensor) -> Tensor:
  d = x.detach()
  return with_slope(_scaled_i(d, 0), x, lambda y: _i1e(y).sub(y.sign().mul(_i0e(y))))

def _i1e(x: Tensor) -> Tensor:
  d = x.detach()
  return with_slope(_scaled_i(d, 1), x, lambda y: _i0e(y).sub(_over(_i1e(y), y)).sub(y.sign().mul(_i1e(y))))

def i0(input: Tensor) -> Tensor:
  """Return the modified Bessel function of the first kind, of order 0."""
  return in_double(_i0, checked("i0", input))

def i0e(input: Tensor) -> Tensor:
  """Return exp(-abs(x)) i0(x)."""
  return in_double(_i0e, checked("i0e", input))

def i1(input: Tensor) -> Tensor:
  """Return the modified Bessel function of the first kind, of order 1."""
  return in_double(_i1, checked("i1", input))

def i1e(input: Tensor) -> Tensor:
  """Return exp(-abs(x)) i1(x)."""
  return in_double(_i1e, checked("i1e", input))

# ***** modified, of the second kind *****

def _scaled_k(x: Tensor, order: int) -> Tensor:
  """Return exp(x) K(x): infinite at 0, NaN below."""
  near = x.le(2)
  y, z = (near & x.gt(0)).where(x, 1), near.where(2, x)
  t = y.square().mul(0.5).sub(1)
  log = y.mul(0.5).log()
  if order == 0: close = chebyshev(t, tables.K0_NEAR).sub(log.mul(_grown(y, _scaled_i(y, 0))))
  else: close = chebyshev(t, tables.K1_NEAR).div(y).add(log.mul(_grown(y, _scaled_i(y, 1))))
  far = chebyshev(z.reciprocal().mul(4).sub(1), tables.K0_FAR if order == 0 else tables.K1_FAR).div(z.sqrt())
  found = near.where(close.mul(y.exp()), far)
  return x.eq(0).where(math.inf, x.lt(0).where(math.nan, found))

def _k(x: Tensor, order: int) -> Tensor: return _scaled_k(x, order).mul(x.neg().exp())

def modified_bessel_k0(input: Tensor) -> Tensor:
  """Return the modified Bessel function of the second kind, of order 0."""
  def value(x: Tensor) -> Tensor: return with_slope(_k(x.detach(), 0), x, lambda y: _k(y, 1).neg())
  return in_double(value, checked("modified_bessel_k0", input))

def modified_bessel_k1(input: Tensor) -> Tensor:
  """Return the modified Bessel function of the second kind, of order 1."""
  def value(x: Tensor) -> Tensor:
    return with_slope(_k(x.detach(), 1), x, lambda y: _k(y, 0).add(_k(y, 1).div(y)).neg())
  return in_double(value, checked("modified_bessel_k1", input))

def scaled_modified_bessel_k0(input: Tensor) -> Tensor:
  """Return exp(x) modified_bessel_k0(x)."""
  def value(x: Tensor) -> Tensor:
    return with_slope(_scaled_k(x.detach(), 0), x, lambda y: _scaled_k(y, 0).sub(_scaled_k(y, 1)))
  return in_double(value, checked("scaled_modified_bessel_k0", input))

def scaled_modified_bessel_k1(input: Tensor) -> Tensor:
  """Return exp(x) modified_bessel_k1(x)."""
  def value(x: Tensor) -> Tensor:
    return with_slope(_scaled_k(x.detach(), 1), x, lambda y: _scaled_k(y, 1).sub(_scaled_k(y, 0)).sub(
      _scaled_k(y, 1).div(y)))
  return in_double(value, checked("scaled_modified_bessel_k1", input))

# ***** of the first and second kind *****

def _wave(x: Tensor, order: int, quarter: float) -> Tensor:
  """Return sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), c = x - (2 order + 1) pi / 4 - quarter pi / 2, for x from 8 on."""
  inverse = x.reciprocal().mul(8)
  t = inverse.square().mul(2).sub(1)
  p = chebyshev(t, tables.P0 if order == 0 else tables.P1)
  q = chebyshev(t, tables.Q0 if order == 0 else tables.Q1).mul(inverse)
  c = x.sub((2 * order + 1) * math.pi / 4 + quarter * math.pi / 2)
  return p.mul(c.cos()).sub(q.mul(c.sin())).mul(x.mul(math.pi / 2).rsqrt())

def _near(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
  """Return x <= 8, x there (else 8), and the argument of the series."""
  near = x.le(8)
  y = near.where(x, 8)
  return near, y, y.square().mul(1 / 32).sub(1)

def _j(x: Tensor, order: int) -> Tensor:
  size = x.abs()
  near, y, t = _near(size)
  far = size.isinf().where(0, _wave(near.where(8, size.isinf().where(8, size)), order, 0))
  if order == 0: return near.where(chebyshev(t, tables.J0_NEAR), far)
  found = near.where(chebyshev(t, tables.J1_NEAR).mul(y), far)
  return x.lt(0).where(found.neg(), found)

def _y(x: Tensor, order: int) -> Tensor:
  near, y, t = _near(x)
  y = y.gt(0).where(y, 1)
  far = x.isinf().where(0, _wave(near.where(8, x.isinf().where(8, x)), order, 1))
  log = y.log().mul(2 / math.pi)
  if order == 0: close = chebyshev(t, tables.Y0_NEAR).add(log.mul(_j(y, 0)))
  else: close = chebyshev(t, tables.Y1_NEAR).mul(y).add(log.mul(_j(y, 1))).sub(y.reciprocal().mul(2 / math.pi))
  return x.eq(0).where(-math.inf, x.lt(0).where(math.nan, near.where(close, far)))

def bessel_j0(input: Tensor) -> Tensor:
  """Return the Bessel function of the first kind, of order 0."""
  def value(x: Tensor) -> Tensor: return with_slope(_j(x.detach(), 0), x, lambda y: _j(y, 1).neg())
  return in_double(value, checked("bessel_j0", input))

def bessel_j1(input: Tensor) -> Tensor:
  """Return the Bessel function of the first kind, of order 1."""
  def value(x: Tensor) -> Tensor: return with_slope(_j(x.detach(), 1), x, lambda y: _j(y, 0).sub(_over(_j(y, 1), y)))
  return in_double(value, checked("bessel_j1", input))

def bessel_y0(input: Tensor) -> Tensor:
  """Return the Bessel function of the second kind, of order 0."""
  def value(x: Tensor) -> Tensor: return with_slope(_y(x.detach(), 0), x, lambda y: _y(y, 1).neg())
  return in_double(value, checked("bessel_y0", input))

def bessel_y1(input: Tensor) -> Tensor:
  """Return the Bessel function of the second kind, of order 1."""
  def value(x: Tensor) -> Tensor: return with_slope(_y(x.detach(), 1), x, lambda y: _y(y, 0).sub(_y(y, 1).div(y)))
  return in_double(value, checked("bessel_y1", input))

def spherical_bessel_j0(input: Tensor) -> Tensor:
  """Return sin(x) / x, which is 1 at 0."""
  def value(x: Tensor) -> Tensor:
    near = x.abs().lt(0.5)
    y = near.where(x, 0).square()
    series = polynomial(y, [(-1) ** k / math.factorial(2 * k + 1) for k in range(7, -1, -1)])
    far = near.where(1, x)
    return near.where(series, far.isinf().where(0, far.isinf().where(1, far).sin().div(far)))
  return in_double(value, checked("spherical_bessel_j0", input))

# ***** Airy *****

def _zeta(x: Tensor) -> Tensor: return x.mul(x.sqrt()).mul(2 / 3)
_ZETA_RIGHT, _ZETA_LEFT = 2 * 3 ** 1.5 / 3, 2 * 5 ** 1.5 / 3

def airy_ai(input: Tensor) -> Tensor:
  """Return Airy's function Ai."""
  def value(x: Tensor) -> Tensor:
    right, left = x.gt(3), x.lt(-5)
    middle = chebyshev((right | left).where(0, x).add(1).mul(0.25), tables.AIRY_NEAR)
    r = right.where(x, 3)
    zeta = _zeta(r)
    falling = chebyshev(zeta.reciprocal().mul(2 * _ZETA_RIGHT).sub(1), tables.AIRY_RIGHT).mul(zeta.neg().exp())
    falling = falling.div(r.sqrt().sqrt())
    s = left.where(x.neg(), 5)
    zeta = _zeta(s)
    inverse = zeta.reciprocal()
    t = inverse.mul(_ZETA_LEFT).square().mul(2).sub(1)
    c = zeta.sub(math.pi / 4)
    wave = chebyshev(t, tables.AIRY_F).mul(c.cos()).add(chebyshev(t, tables.AIRY_G).mul(inverse).mul(c.sin()))
    wave = wave.div(s.sqrt().sqrt()).mul(1 / math.sqrt(math.pi))
    return x.isnan().where(math.nan, right.where(falling, left.where(wave, middle)))
  return in_double(value, checked("airy_ai", input))

