"""The gamma function's family: lgamma, digamma, polygamma, the incomplete gammas, Riemann's and Hurwitz's zeta.

Arguments are shifted up by the recurrence until an asymptotic series with Bernoulli numbers has the accuracy of
float64. Sources: Abramowitz and Stegun 6.1.40, 6.3.18, 6.4.11; Lentz's continued fraction (6.5.31) for igammac.
"""
from __future__ import annotations
from fractions import Fraction
import functools
import math
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import broadcast, checked
from tinyhw.methods.base import Handle
from tinyhw.special.horner import in_double, is_whole, polynomial, with_slope
from tinyhw.tensor import Tensor

@functools.lru_cache(None)
def bernoulli(n: int) -> tuple[Fraction, ...]:
  """Return the Bernoulli numbers B_0 to B_n."""
  found: list[Fraction] = []
  for m in range(n + 1):
    found.append(Fraction(1) if m == 0 else
                 -sum((math.comb(m + 1, k) * found[k] for k in range(m)), Fraction(0)) / (m + 1))
  return tuple(found)

_SHIFTS = 9         # an argument of 1 becomes 10
_TERMS = 9

def _raised(x: Tensor) -> tuple[Tensor, list[Tensor]]:
  """Return x + _SHIFTS where x is below 10, and the arguments that were passed, which are infinite elsewhere."""
  small = x.lt(10)
  return small.where(x.add(_SHIFTS), x), [small.where(x.add(k), math.inf) for k in range(_SHIFTS)]

# ***** logarithm of gamma *****

def lgamma(input: Tensor) -> Tensor:
  """Return log(abs(gamma(x))), infinite at 0 and negative whole numbers."""
  return in_double(_lgamma, checked("lgamma", input))

def _lgamma(x: Tensor) -> Tensor: return with_slope(_log_gamma(x.detach()), x, _digamma)

def _log_gamma(x: Tensor) -> Tensor:
  negative = x.lt(0.5)
  y = _positive(negative.where(x.sub(1, reverse=True), x))
  angle = x.sub(x.floor()).mul(math.pi).sin().abs()
  reflected = angle.log().add(y).sub(math.log(math.pi), reverse=True)
  found = negative.where(reflected, y)
  pole = x.le(0) & is_whole(x)
  return (pole | x.isinf()).where(math.inf, x.isnan().where(math.nan, found))

def _positive(x: Tensor) -> Tensor:
  """Return log(gamma(x)) for x from 1/2 on. Near its zeros 1 and 2 it is (x - 1) (x - 2) times a power series."""
  z, passed = _raised(x)
  product = passed[0]
  for p in passed[1:]: product = product.mul(p)
  big = z.sub(0.5).mul(z.log()).sub(z).add(0.5 * math.log(2 * math.pi)).add(_stirling(z))
  big = x.lt(10).where(big.sub(x.lt(10).where(product, 1).log()), big)
  near = x.sub(1.5)
  return near.abs().le(1).where(_between(near.abs().le(1).where(x, 1.5)), big)

def _stirling(z: Tensor) -> Tensor:
  terms = [float(bernoulli(2 * _TERMS)[2 * k] / (2 * k * (2 * k - 1))) for k in range(1, _TERMS + 1)]
  return polynomial(z.square().reciprocal(), terms[::-1]).div(z)

def _between(x: Tensor) -> Tensor:
  """Return log(gamma(x)) for x from 1/2 to 5/2, by Taylor's series at 1 or 2, whose terms are values of zeta."""
  low = x.lt(1.5)
  t = low.where(x.sub(1), x.sub(2))
  # log(gamma(2 + t)) = (1 - euler) t + sum (-1)**k (zeta(k) - 1) t**k / k; gamma(1 + t) = gamma(2 + t) / (1 + t)
  terms = [0.0, 1 - _EULER] + [(-1) ** k * _zeta_less_one(k) / k for k in range(2, 60)]
  return polynomial(t, terms[::-1]).sub(low.where(t, 0)._log1p())

_EULER = 0.5772156649015329

@functools.lru_cache(None)
def _zeta_less_one(s: int) -> float:
  """Return zeta(s) - 1, by the Euler-Maclaurin formula."""
  n = 12
  found = math.fsum(k ** -s for k in range(2, n)) + n ** (1 - s) / (s - 1) + 0.5 * n ** -s
  factor = s * n ** (-s - 1.0)
  for k in range(1, 8):
    found += float(bernoulli(16)[2 * k]) / math.factorial(2 * k) * factor
    factor *= (s + 2 * k - 1) * (s + 2 * k) / n ** 2
  return float(found)

def mvlgamma(input: Tensor, p: int) -> Tensor:
  """Return the logarithm of the multivariate gamma function of order p."""
  if not isinstance(p, int) or p < 1: raise ArgumentError(f"p is {p}; it is a whole number, at least 1")
  x = checked("mvlgamma", input)
  def total(y: Tensor) -> Tensor:
    found = _lgamma(y)
    for k in range(1, p): found = found.add(_lgamma(y.sub(k / 2)))
    return found.add(p * (p - 1) / 4 * math.log(math.pi))
  return in_double(total, x)

# ***** derivatives *****

def digamma(input: Tensor) -> Tensor:
  """Return the derivative of lgamma."""
  return in_double(_digamma, checked("digamma", input))

def _digamma(x: Tensor) -> Tensor:
  def slope(y: Tensor) -> Tensor: return _polygamma(1, y)
  d = x.detach()
  negative = d.lt(0)
  y = negative.where(d.sub(1, reverse=True), d)
  z, passed = _raised(y)
  terms = [float(bernoulli(2 * _TERMS)[2 * k] / (2 * k)) for k in range(1, _TERMS + 1)]
  w = z.square().reciprocal()
  found = z.log().sub(z.reciprocal().mul(0.5)).sub(polynomial(w, terms[::-1]).mul(w))
  for p in passed: found = found.sub(p.reciprocal())
  part = d.sub(d.floor())
  cot = part.mul(math.pi).cos().div(part.mul(math.pi).sin()).mul(math.pi)
  found = negative.where(found.sub(cot), found)
  zero = d.eq(0)
  found = zero.where(zero.where(d, 1).reciprocal().neg(), (negative & is_whole(d)).where(math.nan, found))
  return with_slope(d.eq(math.inf).where(math.inf, found), x, slope)

def polygamma(n: int, input: Tensor) -> Tensor:
  """Return the n-th derivative of digamma."""
  if isinstance(n, Handle): n, input = input, n
  if not isinstance(n, int) or n < 0: raise ArgumentError(f"n is {n}; it is a whole number, at least 0")
  return in_double(lambda x: _polygamma(n, x), checked("polygamma", input))

def _polygamma(n: int, x: Tensor) -> Tensor:
  if n == 0: return _digamma(x)
  def slope(y: Tensor) -> Tensor: return _polygamma(n + 1, y)
  d = x.detach()
  negative = d.lt(0.5)
  y = negative.where(d.sub(1, reverse=True), d)
  found = _hurwitz(y.const_like(float(n + 1)), y, 10).mul(float((-1) ** (n + 1) * math.factorial(n)))
  found = negative.where(found.mul((-1) ** n).sub(_cotangent_slope(n, d)), found)
  pole = d.le(0) & is_whole(d)
  return with_slope(pole.where(math.inf if n % 2 else -math.inf, found), x, slope)

def _cotangent_slope(n: int, x: Tensor) -> Tensor:
  """Return the n-th derivative of pi cot(pi x), a polynomial of the cotangent: cot' = -pi (1 + cot**2)."""
  terms = [0.0, math.pi]                     # coefficients of powers of the cotangent
  for _ in range(n):
    slopes = [k * c for k, c in enumerate(terms)][1:] + [0.0, 0.0]
    terms = [-math.pi * (c + (slopes[k - 2] if k > 1 else 0.0)) for k, c in enumerate(slopes)]
  part = x.sub(x.round()).mul(math.pi)
  return polynomial(part.cos().div(part.sin()), terms[::-1])

# ***** zeta *****

def zeta(input: Any, other: Any) -> Tensor:
  """Return Hurwitz's zeta, sum (k + other)**-input from k = 0 on."""
  def value(s: Tensor, q: Tensor) -> Tensor:
    s, q = broadcast(s, q)
    least = q.isfinite().where(q, 0).minimum(0).min().item() if q.numel() else 0.0
    if least < -_MOST_TERMS: raise ArgumentError(f"zeta of {least}: it would take more than {_MOST_TERMS} terms")
    return _hurwitz(s, q, 10 + math.ceil(-least))
  return in_double(value, input, other)

_MOST_TERMS = 1 << 10

def _hurwitz(s: Tensor, q: Tensor, n: int) -> Tensor:
  """Sum n terms directly, the rest, from q + n >= 10 on, by the Euler-Maclaurin formula."""
  total = q.const_like(0.0)
  for k in range(n):
    total = total.add(q.add(k).pow(s.neg()))
    if k % 16 == 15: total = total.contiguous()
  top = q.add(n)
  power = top.pow(s.neg())
  total = total.add(power.mul(top).div(s.sub(1))).add(power.mul(0.5))
  factor = s.mul(power).div(top)
  for k in range(1, 11):
    total = total.add(factor.mul(float(bernoulli(20)[2 * k]) / math.factorial(2 * k)))
    factor = factor.mul(s.add(2 * k - 1)).mul(s.add(2 * k)).div(top.square())
  pole = q.le(0) & is_whole(q)
  total = (q.lt(0) & is_whole(s).logical_not()).where(math.nan, pole.where(math.inf, total))
  return s.eq(1).where(math.inf, s.lt(1).where(math.nan, total))

# ***** incomplete *****

def igamma(input: Any, other: Any) -> Tensor:
  """Return the regularized lower incomplete gamma function P(input, other)."""
  return in_double(lambda a, x: _incomplete(*broadcast(a, x))[0], input, other)

def igammac(input: Any, other: Any) -> Tensor:
  """Return the regularized upper incomplete gamma function Q(input, other)."""
  return in_double(lambda a, x: _incomplete(*broadcast(a, x))[1], input, other)

def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
  """P by its power series where x is at most a + 1, else Q by Legendre's continued fraction."""
  low = x.lt(a.add(1))
  scale = x.log().mul(a).sub(x).sub(_lgamma(a)).exp()
  y = low.where(x, 1)
  term = total = a.reciprocal()
  for k in range(1, 120):
    term = term.mul(y).div(a.add(k))
    total = total.add(term)
    if k % 20 == 0: term, total = term.contiguous(), total.contiguous()
  below = total.mul(scale)
  z = low.where(a.add(2), x)
  tiny = 1e-300
  b = z.add(1).sub(a)
  c, d = z.const_like(1 / tiny), b.reciprocal()
  h = d
  for k in range(1, 80):
    step = a.sub(k).mul(k)
    b = b.add(2)
    d = step.mul(d).add(b).reciprocal()
    c = b.add(step.div(c))
    h = h.mul(d).mul(c)
    if k % 10 == 0: b, c, d, h = (v.contiguous() for v in (b, c, d, h))
  above = h.mul(scale)
  lower, upper = low.where(below, above.sub(1, reverse=True)), low.where(below.sub(1, reverse=True), above)
  bad = x.lt(0) | a.lt(0) | (a.eq(0) & x.eq(0)) | (a.isinf() & x.isinf())
  zero, infinite = x.eq(0) | (a.isinf() & x.isfinite()), x.isinf() | a.eq(0)
  lower = bad.where(math.nan, zero.where(0, infinite.where(1, lower)))
  upper = bad.where(math.nan, zero.where(1, infinite.where(0, upper)))
  return lower, upper
