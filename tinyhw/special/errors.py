"""The error function's family: erfc, its scaled form, inverses, the normal distribution's functions.

erfc and erfcx use a Chebyshev series of exp(x*x) erfc(x) in t = (x - k) / (x + k); see make_tables.py in
test/special. The inverse starts from Giles' approximation and takes two Newton steps. For results in float32, two
polynomials suffice.
"""
from __future__ import annotations
import math

from tinyhw.dtype import dtypes
from tinyhw.functional.operands import checked, floats
from tinyhw.functional.rules import with_rule
from tinyhw.special.horner import chebyshev, in_double, polynomial, with_slope
from tinyhw.special.tables import ERFCX, ERFINV_NEAR, ERFINV_TAIL
from tinyhw.tensor import Tensor

_SCALE = 3.75      # t = (x - _SCALE) / (x + _SCALE)

def _scaled(x: Tensor) -> Tensor:
  """Return exp(x * x) erfc(x) for x from 0 on."""
  infinite = x.isinf()
  y = infinite.where(0, x)
  return infinite.where(0, chebyshev(y.sub(_SCALE).div(y.add(_SCALE)), ERFCX).div(y.mul(2).add(1)))

def _square_exp(x: Tensor, sign: float) -> Tensor:
  """Return exp(sign * x * x), with the square in two parts, so that its rounding error is not multiplied."""
  whole = x.mul(16).trunc().div(16)
  rest = x.sub(whole).mul(x.add(whole))
  return whole.square().mul(sign).exp().mul(rest.mul(sign).exp())

def _complement(x: Tensor) -> Tensor:
  d = x.detach()
  size = d.abs()
  tail = size.gt(28).where(0, _scaled(size).mul(_square_exp(size.minimum(28), -1.0)))
  found = d.isnan().where(math.nan, d.lt(0).where(tail.sub(2, reverse=True), tail))
  return with_slope(found, x, lambda y: y.square().neg().exp().mul(-2 / math.sqrt(math.pi)))

def erfc(input: Tensor) -> Tensor:
  """Return 1 - erf(x), accurate where it is small."""
  return in_double(_complement, checked("erfc", input))

def erfcx(input: Tensor) -> Tensor:
  """Return exp(x * x) erfc(x)."""
  def scaled(x: Tensor) -> Tensor:
    d = x.detach()
    size = d.abs()
    tail = _scaled(size)
    far = d.lt(-27)
    found = d.lt(0).where(_square_exp(far.where(0, size), 1.0).mul(2).sub(tail), tail)
    found = d.isnan().where(math.nan, far.where(math.inf, found))
    return with_slope(found, x, lambda y: y.mul(2).mul(scaled(y)).sub(2 / math.sqrt(math.pi)))
  return in_double(scaled, checked("erfcx", input))

# Giles 2010, "Approximating the erfinv function", single precision; Newton's steps make it one of double
_CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)
_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
         1.00167406, 2.83297682)

def _rough_inverse(x: Tensor) -> Tensor:
  """Return the inverse for results in float32, with a relative error of 1e-10: two polynomials, no Newton's steps."""
  inside = x.detach().abs().lt(1)
  y = inside.where(x.detach(), 0).double()
  w = y.sub(1, reverse=True).mul(y.add(1)).log().neg()
  near = w.lt(6)
  found = near.where(polynomial(near.where(w, 3).mul(1 / 3).sub(1), ERFINV_NEAR),
                     polynomial(near.where(10.5625, w).sqrt().sub(3.25), ERFINV_TAIL)).mul(y)
  return _with_ends(found.cast(x.dtype), inside, x)

def _inverse(x: Tensor) -> Tensor:
  d = x.detach()
  inside = d.abs().lt(1)
  y = inside.where(d, 0)
  w = y.sub(1, reverse=True).mul(y.add(1)).log().neg()
  near = w.lt(5)
  start = near.where(polynomial(near.where(w, 0).sub(2.5), _CENTRE), polynomial(w.maximum(0).sqrt().sub(3), _TAIL))
  found = start.mul(y).contiguous()
  for _ in range(2):   # Newton's step on erf, or on erfc where erf is near 1
    size = found.abs()
    miss = size.lt(0.5).where(found.erf().sub(y), _complement(size).sub(y.abs().sub(1, reverse=True)).neg().mul(
      found.lt(0).where(-1, 1)))
    found = found.sub(miss.mul(found.square().exp()).mul(math.sqrt(math.pi) / 2)).contiguous()
  return _with_ends(found, inside, x)

def _with_ends(found: Tensor, inside: Tensor, x: Tensor) -> Tensor:
  """Return the inverse with its values at -1, 1 and outside, and its gradient."""
  d = x.detach()
  found = inside.where(found, d.eq(1).where(math.inf, d.eq(-1).where(-math.inf, d.const_like(math.nan))))
  def rule(y: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]:
    return (g.mul(y.square().exp().mul(math.sqrt(math.pi) / 2)),)
  return with_rule(found, (x,), rule)

def erfinv(input: Tensor) -> Tensor:
  """Return the number whose error function is x, infinite at -1 and 1, NaN outside."""
  x = floats(checked("erfinv", input))[0]
  return _inverse(x) if x.dtype is dtypes.float64 else _rough_inverse(x)

def ndtr(input: Tensor) -> Tensor:
  """Return the cumulative function of the standard normal distribution."""
  return in_double(lambda x: _complement(x.mul(-math.sqrt(0.5))).mul(0.5), checked("ndtr", input))

def log_ndtr(input: Tensor) -> Tensor:
  """Return the logarithm of ndtr, without underflow."""
  def logarithm(x: Tensor) -> Tensor:
    low = x.lt(-1)
    t = x.mul(math.sqrt(0.5))
    far = low.where(_scaled_of(low.where(t.neg(), 1)), 1).mul(0.5).log().sub(t.square())
    near = _complement(low.where(0, t)).mul(-0.5)._log1p()
    return low.where(far, near)
  return in_double(logarithm, checked("log_ndtr", input))

def _scaled_of(x: Tensor) -> Tensor:
  return with_slope(_scaled(x.detach()), x, lambda y: y.mul(2).mul(_scaled(y)).sub(2 / math.sqrt(math.pi)))

def ndtri(input: Tensor) -> Tensor:
  """Return the number whose ndtr is x: the quantile function of the standard normal distribution."""
  def quantile(p: Tensor) -> Tensor:
    d = p.detach()
    low = d.lt(0.25)
    middle = _inverse(low.where(0, d.mul(2).sub(1))).mul(math.sqrt(2))
    small = low & d.gt(0)
    q = small.where(d, 0.1)
    r = q.log().mul(-2).sqrt()                       # Abramowitz and Stegun 26.2.23, then Newton on log(ndtr)
    t = r.sub(polynomial(r, (0.010328, 0.802853, 2.515517)).div(polynomial(r, (0.001308, 0.189269, 1.432788,
                                                                               1.0)))).neg()
    for _ in range(3):
      u = t.mul(-math.sqrt(0.5))
      scaled = _scaled(u).mul(0.5)
      miss = scaled.log().sub(u.square()).sub(q.log())
      t = t.sub(miss.mul(scaled).mul(math.sqrt(2 * math.pi))).contiguous()
    found = low.where(d.eq(0).where(-math.inf, d.lt(0).where(math.nan, t)), middle)
    def rule(y: Tensor, g: Tensor, _: Tensor) -> tuple[Tensor]:
      return (g.mul(y.square().mul(0.5).exp().mul(math.sqrt(2 * math.pi))),)
    return with_rule(found, (p,), rule)
  return in_double(quantile, checked("ndtri", input))
