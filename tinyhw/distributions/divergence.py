"""`kl_divergence(p, q)`: formulas by pairs of distributions, and `register_kl` for others."""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any, TypeVar

from tinyhw.distributions.composed import Independent
from tinyhw.distributions.continuous import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, LogNormal, Normal, Uniform
from tinyhw.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from tinyhw.distributions.distribution import summed
from tinyhw.distributions.gammas import Beta, Dirichlet, Gamma
from tinyhw.distributions.matrices import MultivariateNormal
from tinyhw.functional.operands import sizes
from tinyhw.linalg.factors import solve_triangular
from tinyhw.special.entropy import xlogy
from tinyhw.special.gamma import digamma, lgamma
from tinyhw.tensor import Tensor

Formula = Callable[[Any, Any], Any]
F = TypeVar("F", bound=Formula)
_formulas: dict[tuple[type, type], Formula] = {}

def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
  """Decorate a function of two distributions as the divergence of their classes. It gives a tensor of the user's."""
  def registered(function: Formula) -> Formula:
    _formulas[type_p, type_q] = function
    return function
  return registered

def _ours(type_p: type, type_q: type) -> Callable[[F], F]:
  def registered(function: F) -> F:
    _formulas[type_p, type_q] = lambda p, q: p._give(function(p, q))
    return function
  return registered

def kl_divergence(p: Any, q: Any) -> Any:
  """Return the Kullback-Leibler divergence KL(p || q), for each element of the batch.

  Raises NotImplementedError for a pair without a formula.
  """
  for a in type(p).__mro__:
    for b in type(q).__mro__:
      if (a, b) in _formulas: return _formulas[a, b](p, q)
  raise NotImplementedError(f"no formula for KL({type(p).__name__} || {type(q).__name__}); register_kl adds one")

@_ours(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
  ratio = (p.p.scale / q.p.scale).square()
  return (ratio + ((p.p.loc - q.p.loc) / q.p.scale).square() - 1 - ratio.log()) * 0.5

@_ours(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor: return _normal(p._normal(), q._normal())

@_ours(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
  ratio = (p.p.scale / q.p.scale).square()
  return (ratio - 1 - ratio.log()) * 0.5

@_ours(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
  ratio, gap = p.p.scale / q.p.scale, (p.p.loc - q.p.loc).abs()
  return -ratio.log() + gap / q.p.scale + ratio * (-gap / p.p.scale).exp() - 1

@_ours(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
  return ((p.p.scale + q.p.scale).square() + (p.p.loc - q.p.loc).square()).log() - (p.p.scale * q.p.scale * 4).log()

@_ours(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
  ratio, gap = p.p.scale / q.p.scale, (q.p.loc - p.p.loc) / q.p.scale
  euler = 0.57721566490153286060
  return -ratio.log() - gap + ratio * euler + (gap + lgamma(ratio + 1)).exp() - (1 + euler)

@_ours(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
  outside = (q.p.low > p.p.low) | (q.p.high < p.p.high)
  return outside.where(math.inf, ((q.p.high - q.p.low) / (p.p.high - p.p.low)).log())

@_ours(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
  ratio = q.p.rate / p.p.rate
  return ratio - 1 - ratio.log()

@_ours(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
  a, b = p.p.concentration, q.p.concentration
  return (b * (p.p.rate / q.p.rate).log() + lgamma(b) - lgamma(a) + (a - b) * digamma(a)
          + (q.p.rate - p.p.rate) * (a / p.p.rate))

@_ours(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
  a, b = p.p.concentration, q.p.concentration
  total = a.sum(-1, keepdim=True)
  return (lgamma(total).squeeze(-1) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
          + ((a - b) * (digamma(a) - digamma(total))).sum(-1))

@_ours(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor: return _dirichlet(p._both(), q._both())

@_ours(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
  a, b = p.p.probs, q.p.probs
  yes = a.eq(0).where(0, (b.eq(0) & (a > 0)).where(math.inf, a * ((-q.p.logits).softplus() - (-p.p.logits).softplus())))
  no = a.eq(1).where(0, (b.eq(1) & (a < 1)).where(math.inf, (1 - a) * (q.p.logits.softplus() - p.p.logits.softplus())))
  return yes + no

@_ours(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
  each = p.p.probs * (p.p.logits - q.p.logits) - p.p.logits.softplus() + q.p.logits.softplus()
  return (p.p.total_count > q.p.total_count).where(math.inf, p.p.total_count * each)

@_ours(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
  return -p._entropy() - (1 - q.p.probs).log() / p.p.probs - q.p.logits

@_ours(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
  return xlogy(p.p.rate, p.p.rate) - xlogy(p.p.rate, q.p.rate) - (p.p.rate - q.p.rate)

@_ours(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
  each = p.p.probs * (p.p.logits - q.p.logits)
  each = p.p.probs.eq(0).where(0, (q.p.probs.eq(0) & (p.p.probs > 0)).where(math.inf, each))
  return each.sum(-1)  # type: ignore[no-any-return]

@_ours(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor: return _categorical(p, q)

@_ours(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
  both = solve_triangular(q.p.scale_tril, p.p.scale_tril, upper=False).square().sum((-2, -1))
  gap = solve_triangular(q.p.scale_tril, (q.p.loc - p.p.loc).unsqueeze(-1), upper=False).square().sum((-2, -1))
  return q._log_size() - p._log_size() + (both + gap - sizes(p.p.loc)[-1]) * 0.5

@_ours(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
  if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
    raise NotImplementedError("the events of two Independent distributions have different axes")
  return summed(p._take(kl_divergence(p.base_dist, q.base_dist)), p.reinterpreted_batch_ndims)
