"""Distributions whose samples are made of gamma-distributed numbers: Gamma, Chi2, InverseGamma, Beta, Dirichlet,
StudentT, FisherSnedecor.

A gamma number is drawn by rejection (Marsaglia and Tsang 2000), in rounds of which each accepts 95 of 100 at least. Its
gradient is implicit: dx/da = -(dF/da) / density, where F is the regularized incomplete gamma function, differentiated
by a central difference in float64.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.distributions import constraints
from tinyhw.distributions.distribution import Distribution, Shape, surrogate
from tinyhw.dtype import dtypes
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import GradMode
from tinyhw.special.entropy import xlogy
from tinyhw.special.gamma import digamma, igamma, lgamma
from tinyhw.tensor import Tensor

_ROUNDS = 10     # 1e-13 of the draws are left

def standard_gamma(a: Tensor, shape: Shape) -> Tensor:
  """Draw gamma numbers of rate 1, with gradients for the concentrations a."""
  wide = a.detach().double().expand(shape).contiguous().realize()
  least = (wide < 1).where(wide + 1, wide)
  d = least - 1 / 3
  c = (d * 9).rsqrt()
  found, done = d, wide.zeros_like().bool()
  for _ in range(_ROUNDS):
    x, u = Tensor.randn(*shape, dtype=dtypes.float64), Tensor.rand(*shape, dtype=dtypes.float64)
    v = (x * c + 1) ** 3
    taken = (v > 0) & (u.log() < x.square() * 0.5 + d - d * v + d * v.maximum(1e-300).log())
    found, done = (done | ~taken).where(found, d * v), done | taken
    Tensor.realize(found, done)      # a round at a time: one kernel for all of them would be large
  boost = (Tensor.rand(*shape, dtype=dtypes.float64).maximum(1e-300).log() / wide).exp()
  x = (wide < 1).where(found * boost, found).maximum(1e-300).realize()
  if GradMode.off: return x.cast(a.dtype).maximum(2.0 ** -126)
  slope = -_slope(wide, x) / ((wide - 1) * x.log() - x - lgamma(wide)).exp()
  return surrogate(x, [a.expand(shape).double()], [slope.contiguous()]).cast(a.dtype).maximum(2.0 ** -126)

def _slope(a: Tensor, x: Tensor) -> Tensor:
  """Return the derivative of the regularized incomplete gamma function for a."""
  step = a * 1e-4
  return (igamma(a + step, x) - igamma(a - step, x)) / (step * 2)

class Gamma(Distribution):
  """rate**a x**(a - 1) exp(-rate x) / Gamma(a), where a is the concentration."""
  arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
  support, has_rsample = constraints.nonnegative, True

  def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
    self._keep(validate_args, concentration=concentration, rate=rate)

  def _draw(self, shape: Shape) -> Tensor: return standard_gamma(self.p.concentration, shape) / self.p.rate
  def _log_prob(self, x: Tensor) -> Tensor:
    a, rate = self.p.concentration, self.p.rate
    return xlogy(a, rate) + xlogy(a - 1, x) - rate * x - lgamma(a)

  def _entropy(self) -> Tensor:
    a = self.p.concentration
    return a - self.p.rate.log() + lgamma(a) + (1 - a) * digamma(a)

  def _cdf(self, x: Tensor) -> Tensor: return igamma(self.p.concentration, self.p.rate * x)
  def _mean(self) -> Tensor: return self.p.concentration / self.p.rate
  def _mode(self) -> Tensor: return ((self.p.concentration - 1) / self.p.rate).maximum(0)
  def _variance(self) -> Tensor: return self.p.concentration / self.p.rate.square()

class Chi2(Gamma):
  """The sum of df squared normal numbers."""
  def __init__(self, df: Any, validate_args: bool | None = None):
    self._keep(validate_args, concentration=df)
    half = self._parts["concentration"] * 0.5
    self._parts = {"df": self._parts["concentration"], "concentration": half, "rate": half.full_like(0.5)}

class InverseGamma(Gamma):
  """The reciprocal of a gamma number."""
  support = constraints.positive

  def _draw(self, shape: Shape) -> Tensor: return super()._draw(shape).reciprocal()
  def _log_prob(self, x: Tensor) -> Tensor: return super()._log_prob(x.reciprocal()) - x.log() * 2
  def _entropy(self) -> Tensor:
    a = self.p.concentration
    return a + self.p.rate.log() + lgamma(a) - (a + 1) * digamma(a)

  def _cdf(self, x: Tensor) -> Tensor: return 1 - super()._cdf(x.reciprocal())
  def _mean(self) -> Tensor:
    a = self.p.concentration
    return (a > 1).where(self.p.rate / (a - 1), math.inf)

  def _mode(self) -> Tensor: return self.p.rate / (self.p.concentration + 1)
  def _variance(self) -> Tensor:
    a = self.p.concentration
    return (a > 2).where(self.p.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

class Dirichlet(Distribution):
  """Shares whose sum is 1. concentration: (..., K)."""
  arg_constraints, event_axes, _event_dims = {"concentration": constraints.positive}, {"concentration": 1}, 1
  support, has_rsample = constraints.simplex, True

  def __init__(self, concentration: Any, validate_args: bool | None = None):
    self._keep(validate_args, concentration=concentration)

  def _draw(self, shape: Shape) -> Tensor:
    x = standard_gamma(self.p.concentration, shape)
    return x / x.sum(-1, keepdim=True)

  def _log_prob(self, x: Tensor) -> Tensor:
    a = self.p.concentration
    return xlogy(a - 1, x).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

  def _entropy(self) -> Tensor:
    a = self.p.concentration
    total, count = a.sum(-1), sizes(a)[-1]
    return lgamma(a).sum(-1) - lgamma(total) + (total - count) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)

  def _mean(self) -> Tensor: return self.p.concentration / self.p.concentration.sum(-1, keepdim=True)
  def _mode(self) -> Tensor:
    a = self.p.concentration
    inside = (a - 1).maximum(0)
    shares = inside / inside.sum(-1, keepdim=True)
    corner = Tensor([1.0, *[0.0] * (sizes(a)[-1] - 1)], dtype=a.dtype, device=a.device)  # PyTorch's choice of a corner
    return (a < 1).all(-1, keepdim=True).where(corner, shares)

  def _variance(self) -> Tensor:
    a = self.p.concentration
    total = a.sum(-1, keepdim=True)
    return a * (total - a) / (total.square() * (total + 1))

class Beta(Distribution):
  """x**(a - 1) (1 - x)**(b - 1) / B(a, b), with a = concentration1, b = concentration0."""
  arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
  support, has_rsample = constraints.unit_interval, True

  def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
    self._keep(validate_args, concentration1=concentration1, concentration0=concentration0)

  def _both(self) -> Dirichlet:
    return Dirichlet(self.p.concentration1.stack(self.p.concentration0, dim=-1), validate_args=False)

  def _draw(self, shape: Shape) -> Tensor: return self._both()._draw((*shape, 2))[..., 0]
  def _log_prob(self, x: Tensor) -> Tensor: return self._both()._log_prob(x.stack(1 - x, dim=-1))
  def _entropy(self) -> Tensor: return self._both()._entropy()
  def _mean(self) -> Tensor: return self._both()._mean()[..., 0]
  def _mode(self) -> Tensor: return self._both()._mode()[..., 0]
  def _variance(self) -> Tensor: return self._both()._variance()[..., 0]

class StudentT(Distribution):
  """Student's distribution with df degrees of freedom."""
  arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
  support, has_rsample = constraints.real, True

  def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
    self._keep(validate_args, df=df, loc=loc, scale=scale)

  def _draw(self, shape: Shape) -> Tensor:
    chi = standard_gamma(self.p.df * 0.5, shape) * 2
    return self.p.loc + self.p.scale * self._gaussian(shape) * (self.p.df / chi).sqrt()

  def _log_prob(self, x: Tensor) -> Tensor:
    z, df = (x - self.p.loc) / self.p.scale, self.p.df
    return (lgamma((df + 1) * 0.5) - lgamma(df * 0.5) - (df + 1) * 0.5 * (z.square() / df + 1).log()
            - self.p.scale.log() - df.log() * 0.5 - 0.5 * math.log(math.pi))

  def _entropy(self) -> Tensor:
    df = self.p.df
    below = lgamma(df * 0.5) + math.lgamma(0.5) - lgamma((df + 1) * 0.5)
    return self.p.scale.log() + (df + 1) * 0.5 * (digamma((df + 1) * 0.5) - digamma(df * 0.5)) + df.log() * 0.5 + below

  def _mean(self) -> Tensor: return (self.p.df > 1).where(self.p.loc, math.nan)
  def _mode(self) -> Tensor: return self._parts["loc"]
  def _variance(self) -> Tensor:
    df = self.p.df
    spread = (df > 2).where(self.p.scale.square() * df / (df - 2), math.inf)
    return (df > 1).where(spread, math.nan)

class FisherSnedecor(Distribution):
  """The ratio of two chi-squared numbers, each divided by its degrees of freedom."""
  arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
  support, has_rsample = constraints.positive, True

  def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
    self._keep(validate_args, df1=df1, df2=df2)

  def _draw(self, shape: Shape) -> Tensor:
    a, b = self.p.df1, self.p.df2
    return standard_gamma(a * 0.5, shape) / a / (standard_gamma(b * 0.5, shape) / b)

  def _log_prob(self, x: Tensor) -> Tensor:
    a, b = self.p.df1 * 0.5, self.p.df2 * 0.5
    ratio = self.p.df1 / self.p.df2
    return lgamma(a + b) - lgamma(a) - lgamma(b) + a * ratio.log() + (a - 1) * x.log() - (a + b) * (ratio * x + 1).log()

  def _mean(self) -> Tensor: return (self.p.df2 > 2).where(self.p.df2 / (self.p.df2 - 2), math.nan)
  def _mode(self) -> Tensor:
    a, b = self.p.df1, self.p.df2
    return (a > 2).where((a - 2) / a * b / (b + 2), math.nan)

  def _variance(self) -> Tensor:
    a, b = self.p.df1, self.p.df2
    return (b > 4).where(b.square() * 2 * (a + b - 2) / (a * (b - 2).square() * (b - 4)), math.nan)
