"""Distributions of one real number, by location and scale: Normal, Uniform, Laplace, Cauchy, Gumbel, Exponential and
their kin."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.distributions import constraints
from tinyhw.distributions.distribution import HALF_LOG_2PI, Distribution, Shape
from tinyhw.functional.arithmetic import expm1, log1p
from tinyhw.special.bessel import i0e, i1e
from tinyhw.special.errors import erfinv, ndtr
from tinyhw.special.gamma import digamma, lgamma
from tinyhw.tensor import Tensor

_LOCATED = {"loc": constraints.real, "scale": constraints.positive}
EULER = 0.57721566490153286060

class _Located(Distribution):
  """Base of the distributions with a location and a scale."""
  arg_constraints, support, has_rsample = _LOCATED, constraints.real, True

  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    self._keep(validate_args, loc=loc, scale=scale)

  def _unit(self, x: Tensor) -> Tensor: return (x - self.p.loc) / self.p.scale
  def _mean(self) -> Tensor: return self._parts["loc"]
  def _mode(self) -> Tensor: return self._parts["loc"]

class Normal(_Located):
  """The normal distribution: exp(-((x - loc) / scale)**2 / 2) / (scale sqrt(2 pi))."""
  def _draw(self, shape: Shape) -> Tensor: return self.p.loc + self._gaussian(shape) * self.p.scale
  def _log_prob(self, x: Tensor) -> Tensor: return self._unit(x).square() * -0.5 - self.p.scale.log() - HALF_LOG_2PI
  def _entropy(self) -> Tensor: return self.p.scale.log() + (0.5 + HALF_LOG_2PI)
  def _cdf(self, x: Tensor) -> Tensor: return ndtr(self._unit(x))
  def _icdf(self, x: Tensor) -> Tensor: return self.p.loc + self.p.scale * erfinv(x * 2 - 1) * math.sqrt(2)
  def _variance(self) -> Tensor: return self.p.scale.square()

class Laplace(_Located):
  """Laplace's distribution: exp(-|x - loc| / scale) / (2 scale)."""
  def _draw(self, shape: Shape) -> Tensor:
    u = self._uniform(shape) - 0.5
    return self.p.loc - self.p.scale * u.sign() * log1p(u.abs() * -2)

  def _log_prob(self, x: Tensor) -> Tensor: return -self._unit(x).abs() - (self.p.scale * 2).log()
  def _entropy(self) -> Tensor: return (self.p.scale * 2).log() + 1
  def _cdf(self, x: Tensor) -> Tensor:
    z = self._unit(x)
    return 0.5 - z.sign() * expm1(-z.abs()) * 0.5

  def _icdf(self, x: Tensor) -> Tensor:
    u = x - 0.5
    return self.p.loc - self.p.scale * u.sign() * log1p(u.abs() * -2)

  def _variance(self) -> Tensor: return self.p.scale.square() * 2

class Cauchy(_Located):
  """Cauchy's distribution, without mean and variance."""
  def _draw(self, shape: Shape) -> Tensor: return self.p.loc + self.p.scale * ((self._uniform(shape) - 0.5)
                                                                              * math.pi).tan()
  def _log_prob(self, x: Tensor) -> Tensor: return -log1p(self._unit(x).square()) - self.p.scale.log() - math.log(
    math.pi)
  def _entropy(self) -> Tensor: return self.p.scale.log() + math.log(4 * math.pi)
  def _cdf(self, x: Tensor) -> Tensor: return self._unit(x).atan() / math.pi + 0.5
  def _icdf(self, x: Tensor) -> Tensor: return self.p.loc + self.p.scale * ((x - 0.5) * math.pi).tan()
  def _mean(self) -> Tensor: return self._parts["loc"].full_like(math.nan)
  def _variance(self) -> Tensor: return self._parts["loc"].full_like(math.inf)

class Gumbel(_Located):
  """Gumbel's distribution of largest values."""
  def _draw(self, shape: Shape) -> Tensor: return self.p.loc - self.p.scale * (-self._uniform(shape).log()).log()
  def _log_prob(self, x: Tensor) -> Tensor:
    z = -self._unit(x)
    return z - z.exp() - self.p.scale.log()

  def _entropy(self) -> Tensor: return self.p.scale.log() + (1 + EULER)
  def _cdf(self, x: Tensor) -> Tensor: return (-(-self._unit(x)).exp()).exp()
  def _icdf(self, x: Tensor) -> Tensor: return self.p.loc - self.p.scale * (-x.log()).log()
  def _mean(self) -> Tensor: return self.p.loc + self.p.scale * EULER
  def _variance(self) -> Tensor: return self.p.scale.square() * (math.pi ** 2 / 6)

class Uniform(Distribution):
  """The same density from low to high."""
  arg_constraints, has_rsample = {"low": constraints.real, "high": constraints.real}, True

  def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
    self._keep(validate_args, low=low, high=high)
    self.support = constraints.interval(self._parts["low"], self._parts["high"])

  def _width(self) -> Tensor: return self.p.high - self.p.low
  def _draw(self, shape: Shape) -> Tensor:
    return self.p.low + Tensor.rand(*shape, dtype=self._like.dtype, device=self._like.device) * self._width()

  def _log_prob(self, x: Tensor) -> Tensor:
    return ((x >= self.p.low) & (x < self.p.high)).where(-self._width().log(), -math.inf)

  def _entropy(self) -> Tensor: return self._width().log()
  def _cdf(self, x: Tensor) -> Tensor: return ((x - self.p.low) / self._width()).clamp(0, 1)
  def _icdf(self, x: Tensor) -> Tensor: return self.p.low + x * self._width()
  def _mean(self) -> Tensor: return (self.p.low + self.p.high) / 2
  def _mode(self) -> Tensor: return self._parts["low"].full_like(math.nan)
  def _variance(self) -> Tensor: return self._width().square() / 12

class Exponential(Distribution):
  """rate * exp(-rate x) for x from 0 on."""
  arg_constraints, support, has_rsample = {"rate": constraints.positive}, constraints.nonnegative, True

  def __init__(self, rate: Any, validate_args: bool | None = None): self._keep(validate_args, rate=rate)
  def _draw(self, shape: Shape) -> Tensor: return -self._uniform(shape).log() / self.p.rate
  def _log_prob(self, x: Tensor) -> Tensor: return self.p.rate.log() - self.p.rate * x
  def _entropy(self) -> Tensor: return 1 - self.p.rate.log()
  def _cdf(self, x: Tensor) -> Tensor: return -expm1(-self.p.rate * x)
  def _icdf(self, x: Tensor) -> Tensor: return -log1p(-x) / self.p.rate
  def _mean(self) -> Tensor: return self.p.rate.reciprocal()
  def _mode(self) -> Tensor: return self._parts["rate"].zeros_like()
  def _variance(self) -> Tensor: return self.p.rate.square().reciprocal()

class LogNormal(_Located):
  """The exponential of a normal number."""
  support = constraints.positive

  def _normal(self) -> Normal: return Normal(self.p.loc, self.p.scale, validate_args=False)
  def _draw(self, shape: Shape) -> Tensor: return (self.p.loc + self._gaussian(shape) * self.p.scale).exp()
  def _log_prob(self, x: Tensor) -> Tensor: return self._normal()._log_prob(x.log()) - x.log()
  def _entropy(self) -> Tensor: return self._normal()._entropy() + self.p.loc
  def _cdf(self, x: Tensor) -> Tensor: return ndtr(self._unit(x.log()))
  def _icdf(self, x: Tensor) -> Tensor: return self._normal()._icdf(x).exp()
  def _mean(self) -> Tensor: return (self.p.loc + self.p.scale.square() / 2).exp()
  def _mode(self) -> Tensor: return (self.p.loc - self.p.scale.square()).exp()
  def _variance(self) -> Tensor:
    squared = self.p.scale.square()
    return expm1(squared) * (self.p.loc * 2 + squared).exp()

class _Half(Distribution):
  """Base of the distributions of an absolute value."""
  arg_constraints, support, has_rsample = {"scale": constraints.positive}, constraints.nonnegative, True
  whole: type[_Located] = Normal

  def __init__(self, scale: Any, validate_args: bool | None = None): self._keep(validate_args, scale=scale)
  def _base(self) -> _Located: return self.whole(self.p.scale.zeros_like(), self.p.scale, validate_args=False)
  def _draw(self, shape: Shape) -> Tensor: return self._base()._draw(shape).abs()
  def _log_prob(self, x: Tensor) -> Tensor: return (x >= 0).where(self._base()._log_prob(x) + math.log(2), -math.inf)
  def _entropy(self) -> Tensor: return self._base()._entropy() - math.log(2)
  def _cdf(self, x: Tensor) -> Tensor: return self._base()._cdf(x) * 2 - 1
  def _icdf(self, x: Tensor) -> Tensor: return self._base()._icdf((x + 1) / 2)
  def _mode(self) -> Tensor: return self._parts["scale"].zeros_like()

class HalfNormal(_Half):
  """The absolute value of a normal number of mean 0."""
  def _mean(self) -> Tensor: return self.p.scale * math.sqrt(2 / math.pi)
  def _variance(self) -> Tensor: return self.p.scale.square() * (1 - 2 / math.pi)

class HalfCauchy(_Half):
  """The absolute value of a number of Cauchy's distribution."""
  whole = Cauchy
  def _mean(self) -> Tensor: return self._parts["scale"].full_like(math.inf)
  def _variance(self) -> Tensor: return self._base()._variance()

class Pareto(Distribution):
  """Pareto's distribution: alpha scale**alpha / x**(alpha + 1) from scale on."""
  arg_constraints, has_rsample = {"scale": constraints.positive, "alpha": constraints.positive}, True

  def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
    self._keep(validate_args, scale=scale, alpha=alpha)
    self.support = constraints.greater_than_eq(self._parts["scale"])

  def _draw(self, shape: Shape) -> Tensor: return self._icdf(self._uniform(shape))
  def _log_prob(self, x: Tensor) -> Tensor:
    p = self.p
    return p.alpha.log() + p.alpha * p.scale.log() - (p.alpha + 1) * x.log()

  def _entropy(self) -> Tensor: return (self.p.scale / self.p.alpha).log() + self.p.alpha.reciprocal() + 1
  def _cdf(self, x: Tensor) -> Tensor: return 1 - (self.p.scale / x) ** self.p.alpha
  def _icdf(self, x: Tensor) -> Tensor: return self.p.scale * (-log1p(-x) / self.p.alpha).exp()
  def _mode(self) -> Tensor: return self._parts["scale"]
  def _mean(self) -> Tensor:
    a = self.p.alpha
    return (a > 1).where(a * self.p.scale / (a - 1), math.inf)

  def _variance(self) -> Tensor:
    a = self.p.alpha
    return (a > 2).where(self.p.scale.square() * a / ((a - 1).square() * (a - 2)), math.inf)

class Weibull(Distribution):
  """Weibull's distribution: a power of an exponential number."""
  arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
  support, has_rsample = constraints.positive, True

  def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
    self._keep(validate_args, scale=scale, concentration=concentration)

  def _draw(self, shape: Shape) -> Tensor: return self._of(-self._uniform(shape).log())
  def _of(self, e: Tensor) -> Tensor: return self.p.scale * e ** self.p.concentration.reciprocal()
  def _log_prob(self, x: Tensor) -> Tensor:
    k, z = self.p.concentration, (x / self.p.scale).log()
    return (k / self.p.scale).log() + (k - 1) * z - (k * z).exp()

  def _entropy(self) -> Tensor:
    k = self.p.concentration.reciprocal()
    return (1 - k) * EULER + (self.p.scale * k).log() + 1

  def _cdf(self, x: Tensor) -> Tensor: return -expm1(-(x / self.p.scale) ** self.p.concentration)
  def _icdf(self, x: Tensor) -> Tensor: return self._of(-log1p(-x))
  def _moment(self, n: int) -> Tensor: return lgamma(self.p.concentration.reciprocal() * n + 1).exp()
  def _mean(self) -> Tensor: return self.p.scale * self._moment(1)
  def _variance(self) -> Tensor: return self.p.scale.square() * (self._moment(2) - self._moment(1).square())
  def _mode(self) -> Tensor:
    k = self.p.concentration
    return self.p.scale * ((k - 1) / k) ** k.reciprocal()

class Kumaraswamy(Distribution):
  """Kumaraswamy's distribution from 0 to 1: a b x**(a - 1) (1 - x**a)**(b - 1)."""
  arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
  support, has_rsample = constraints.unit_interval, True

  def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
    self._keep(validate_args, concentration1=concentration1, concentration0=concentration0)

  def _ab(self) -> tuple[Tensor, Tensor]: return self._parts["concentration1"], self._parts["concentration0"]
  def _draw(self, shape: Shape) -> Tensor: return self._icdf(self._uniform(shape))
  def _log_prob(self, x: Tensor) -> Tensor:
    a, b = self._ab()
    return (a * b).log() + (a - 1) * x.log() + (b - 1) * log1p(-x ** a)

  def _cdf(self, x: Tensor) -> Tensor:
    a, b = self._ab()
    return 1 - (1 - x ** a) ** b

  def _icdf(self, x: Tensor) -> Tensor:
    a, b = self._ab()
    return (1 - (1 - x) ** b.reciprocal()) ** a.reciprocal()

  def _entropy(self) -> Tensor:
    a, b = self._ab()
    return 1 - b.reciprocal() + (1 - a.reciprocal()) * (digamma(b + 1) + EULER) - (a * b).log()

  def _moment(self, n: int) -> Tensor:
    a, b = self._ab()
    return (b.log() + lgamma(a.reciprocal() * n + 1) + lgamma(b) - lgamma(a.reciprocal() * n + 1 + b)).exp()

  def _mean(self) -> Tensor: return self._moment(1)
  def _variance(self) -> Tensor: return self._moment(2) - self._moment(1).square()
  def _mode(self) -> Tensor:
    a, b = self._ab()
    return ((a >= 1) & (b >= 1) & ((a > 1) | (b > 1))).where(((a - 1) / (a * b - 1)) ** a.reciprocal(), math.nan)

class VonMises(Distribution):
  """Von Mises' distribution of an angle: exp(concentration cos(x - loc)) / (2 pi I0(concentration)).

  Samples are drawn by rejection (Best and Fisher 1979), in rounds of which the last one is accepted.
  """
  arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
  support = constraints.real

  def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
    self._keep(validate_args, loc=loc, concentration=concentration)

  def _draw(self, shape: Shape) -> Tensor:
    k = self.p.concentration.detach().expand(shape).double().contiguous().realize()
    tau = (k.square() * 4 + 1).sqrt() + 1
    rho = (tau - (tau * 2).sqrt()) / (k * 2)
    r = (k < 1e-5).where(k.reciprocal() + k, (rho.square() + 1) / (rho * 2))
    found, done = k.zeros_like(), k.zeros_like().bool()
    for _ in range(_ROUNDS):
      z = (Tensor.rand(*shape, dtype=k.dtype) * math.pi).cos()
      f = (r * z + 1) / (r + z)
      c = k * (r - f)
      u, sign = Tensor.rand(*shape, dtype=k.dtype), Tensor.rand(*shape, dtype=k.dtype) - 0.5
      taken = ((c * (2 - c) - u) > 0) | (((c / u).log() + 1 - c) >= 0)
      found, done = done.where(found, sign.sign() * f.clamp(-1, 1).acos()), done | taken
      Tensor.realize(found, done)    # a round at a time: one kernel for all of them would be large
    x = found.cast(self._like.dtype) + self.p.loc + math.pi
    return x - (x / (2 * math.pi)).floor() * (2 * math.pi) - math.pi

  def _log_i0(self) -> Tensor: return i0e(self.p.concentration).log() + self.p.concentration
  def _log_prob(self, x: Tensor) -> Tensor:
    return self.p.concentration * (x - self.p.loc).cos() - math.log(2 * math.pi) - self._log_i0()

  def _mean(self) -> Tensor: return self._parts["loc"]
  def _mode(self) -> Tensor: return self._parts["loc"]
  def _variance(self) -> Tensor: return 1 - i1e(self.p.concentration) / i0e(self.p.concentration)

_ROUNDS = 24   # a round accepts two of three draws at least: 2e-12 are left

class GeneralizedPareto(Distribution):
  """What is above a threshold: (1 + concentration (x - loc) / scale)**(-1 / concentration - 1) / scale.

  Source: Pickands 1975.
  """
  arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
  support, has_rsample = constraints.real, True

  def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
    self._keep(validate_args, loc=loc, scale=scale, concentration=concentration)

  def _shape_of(self) -> tuple[Tensor, Tensor]:
    """Return where the concentration is 0, and the concentration, 1 there."""
    c = self.p.concentration
    none = c.abs() < 1e-8
    return none, none.where(1, c)

  def _draw(self, shape: Shape) -> Tensor: return self._icdf(self._uniform(shape))

  def _log_left(self, x: Tensor) -> Tensor:
    """Return the logarithm of the probability of more than a value."""
    z, (none, c) = (x - self.p.loc) / self.p.scale, self._shape_of()
    return none.where(-z, -log1p(none.where(0, z * c)) / c)

  def _log_prob(self, x: Tensor) -> Tensor:
    z, (none, c) = (x - self.p.loc) / self.p.scale, self._shape_of()
    return none.where(-z, -(c.reciprocal() + 1) * log1p(none.where(0, z * c))) - self.p.scale.log()

  def _cdf(self, x: Tensor) -> Tensor: return -expm1(self._log_left(x))

  def _icdf(self, x: Tensor) -> Tensor:
    left, (none, c) = log1p(-x), self._shape_of()
    return self.p.loc + self.p.scale * none.where(-left, expm1(none.where(0, -c * left)) / c)

  def _mean(self) -> Tensor:
    known = self.p.concentration < 1
    return known.where(self.p.loc + self.p.scale / (1 - known.where(self.p.concentration, 0.5)), math.inf)

  def _mode(self) -> Tensor: return self._parts["loc"]

  def _variance(self) -> Tensor:
    known = self.p.concentration < 0.5
    c = known.where(self.p.concentration, 0.25)
    return known.where(self.p.scale.square() / ((1 - c).square() * (1 - c * 2)), math.inf)

  def _entropy(self) -> Tensor: return self.p.scale.log() + self.p.concentration + 1
