"""Distributions of whole numbers: Bernoulli, Geometric, Binomial, NegativeBinomial, Poisson, Categorical and its kin;
and ContinuousBernoulli.

Most take probabilities (`probs`) or their logarithms up to a sum (`logits`), and have both as attributes.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.distributions import constraints
from tinyhw.distributions.distribution import Distribution, Shape, epsilon, surrogate
from tinyhw.distributions.gammas import standard_gamma
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.functional.arithmetic import log1p
from tinyhw.functional.operands import sizes
from tinyhw.functional.reductions import logsumexp
from tinyhw.special.entropy import xlogy
from tinyhw.special.gamma import igammac, lgamma
from tinyhw.tensor import Tensor

class _Odds(Distribution):
  """Base of the distributions with the probability of one event."""
  arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

  def _keep_odds(self, check: bool | None, probs: Any, logits: Any, **others: Any) -> None:
    if (probs is None) == (logits is None): raise ArgumentError(f"{type(self).__name__}: give probs or logits")
    given = {"logits": logits} if probs is None else {"probs": probs}
    self._keep(check, **given, **others)
    if probs is None: self._parts["probs"] = self._parts["logits"].sigmoid()
    else:
      p = self._parts["probs"]
      p = p.clamp(epsilon(p), 1 - epsilon(p))
      self._parts["logits"] = p.log() - log1p(-p)

  @property
  def param_shape(self) -> Shape:
    """The shape of the probabilities."""
    return sizes(self._parts["probs"])

def _cross(logits: Tensor, x: Tensor) -> Tensor:
  """Return -log p(x) for x = 0 or 1, stably."""
  return logits.maximum(0) - logits * x + log1p((-logits.abs()).exp())

class Bernoulli(_Odds):
  """1 with a probability, else 0."""
  support, has_enumerate_support = constraints.boolean, True

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_odds(validate_args, probs, logits)

  def _draw(self, shape: Shape) -> Tensor:
    return (Tensor.rand(*shape, device=self._like.device) < self.p.probs).cast(self._like.dtype)

  def _log_prob(self, x: Tensor) -> Tensor: return -_cross(self.p.logits, x)
  def _entropy(self) -> Tensor: return _cross(self.p.logits, self.p.probs)
  def _values(self) -> Tensor: return Tensor([0.0, 1.0], dtype=self._like.dtype)
  def _mean(self) -> Tensor: return self._parts["probs"]
  def _mode(self) -> Tensor:
    p = self.p.probs
    return p.eq(0.5).where(math.nan, (p >= 0.5).cast(p.dtype))

  def _variance(self) -> Tensor: return self.p.probs * (1 - self.p.probs)

class Geometric(_Odds):
  """The count of failures before the first success."""
  support = constraints.nonnegative_integer

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_odds(validate_args, probs, logits)

  def _draw(self, shape: Shape) -> Tensor: return (self._uniform(shape).log() / log1p(-self.p.probs)).floor()
  def _log_prob(self, x: Tensor) -> Tensor:
    p = self.p.probs
    return (x * p.eq(1).where(0, -p).eq(0).where(0, log1p(p.eq(1).where(0, -p)))) + p.log()

  def _entropy(self) -> Tensor: return _cross(self.p.logits, self.p.probs) / self.p.probs
  def _mean(self) -> Tensor: return self.p.probs.reciprocal() - 1
  def _mode(self) -> Tensor: return self._parts["probs"].zeros_like()
  def _variance(self) -> Tensor: return (self.p.probs.reciprocal() - 1) / self.p.probs

class Binomial(_Odds):
  """The count of successes in total_count trials."""
  has_enumerate_support = True

  def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_odds(validate_args, probs, logits, total_count=total_count)
    self.support = constraints.integer_interval(0, self._parts["total_count"])

  def _draw(self, shape: Shape) -> Tensor:
    most = int(self.p.total_count.max().item())
    trial = Tensor.arange(most).reshape(most, *[1] * len(shape)).cast(self._like.dtype)
    hits = (Tensor.rand(most, *shape, device=self._like.device) < self.p.probs) & (trial < self.p.total_count)
    return hits.sum(0).cast(self._like.dtype)

  def _log_prob(self, x: Tensor) -> Tensor:
    n, logits = self.p.total_count, self.p.logits
    chosen = lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1)
    return chosen + x * logits - n * (logits.maximum(0) + log1p((-logits.abs()).exp()))

  def _values(self) -> Tensor: return Tensor.arange(_one_count(self)[0] + 1).cast(self._like.dtype)
  def _entropy(self) -> Tensor:
    count, _ = _one_count(self)
    each = self._log_prob(self._values().reshape(count + 1, *[1] * len(self._batch_shape)))
    return -(each.exp() * each).sum(0)

  def _mean(self) -> Tensor: return self.p.total_count * self.p.probs
  def _mode(self) -> Tensor: return ((self.p.total_count + 1) * self.p.probs).floor().minimum(self.p.total_count)
  def _variance(self) -> Tensor: return self._mean() * (1 - self.p.probs)

def _one_count(d: Distribution) -> tuple[int, None]:
  n = d._parts["total_count"]
  low, high = n.min().item(), n.max().item()
  if low != high: raise NotImplementedError(f"counts from {low} to {high}: the values are known for equal counts only")
  return int(high), None

class NegativeBinomial(_Odds):
  """The count of successes before total_count failures."""
  support = constraints.nonnegative_integer

  def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_odds(validate_args, probs, logits, total_count=total_count)

  def _draw(self, shape: Shape) -> Tensor:
    rate = standard_gamma(self.p.total_count, shape) * self.p.logits.exp()
    return poisson(rate, shape)

  def _log_prob(self, x: Tensor) -> Tensor:
    n, logits = self.p.total_count, self.p.logits
    grown = n.eq(0).where(0, lgamma(n + x) - lgamma(x + 1) - lgamma(n.eq(0).where(1, n)))
    return n * (-logits).logsigmoid() + x * logits.logsigmoid() + grown

  def _mean(self) -> Tensor: return self.p.total_count * self.p.logits.exp()
  def _mode(self) -> Tensor: return ((self.p.total_count - 1) * self.p.logits.exp()).floor().maximum(0)
  def _variance(self) -> Tensor: return self._mean() / (-self.p.logits).sigmoid()

# above, a corrected normal number is within 2.4e-5 of the distribution function
LARGE_RATE = 512.0

def poisson(rate: Tensor, shape: Shape) -> Tensor:
  """Draw counts: the least k with P(at most k) > u, by bisection over the incomplete gamma function in float64.

  That function loses digits at large rates. There a normal number is corrected for the skewness (Cornish and Fisher).
  """
  every = rate.detach().double().expand(shape).contiguous().realize()
  z, wide = Tensor.randn(*shape, dtype=dtypes.float64).realize(), every.minimum(LARGE_RATE).realize()
  u = Tensor.rand(*shape, dtype=dtypes.float64).realize()
  low, high = wide.full_like(-1.0), (wide + wide.sqrt() * 12 + 40).ceil()
  most = float(high.max().item()) if wide.numel() else 1.0
  for _ in range(math.ceil(math.log2(most + 2))):
    middle = ((low + high) / 2).floor().maximum(0)
    above = igammac(middle + 1, wide) > u
    low, high = above.where(low, middle).realize(), above.where(middle, high).realize()
  large = (every + every.sqrt() * z + (z * z - 1) / 6 + 0.5).floor().maximum(0)
  return (every > LARGE_RATE).where(large, wide.eq(0).where(0, high)).cast(rate.dtype)

class Poisson(Distribution):
  """rate**k exp(-rate) / k!"""
  arg_constraints, support = {"rate": constraints.nonnegative}, constraints.nonnegative_integer

  def __init__(self, rate: Any, validate_args: bool | None = None): self._keep(validate_args, rate=rate)
  def _draw(self, shape: Shape) -> Tensor: return poisson(self.p.rate, shape)
  def _log_prob(self, x: Tensor) -> Tensor: return xlogy(x, self.p.rate) - self.p.rate - lgamma(x + 1)
  def _mean(self) -> Tensor: return self._parts["rate"]
  def _mode(self) -> Tensor: return self.p.rate.floor()
  def _variance(self) -> Tensor: return self._parts["rate"]

class _Weights(Distribution):
  """Base of the distributions with a probability for each of K classes: probs or logits (..., K)."""
  arg_constraints = {"probs": constraints.Constraint("nonnegative, not all zero", lambda x: (x >= 0).all(-1) & (
    x.sum(-1) > 0), 1), "logits": constraints.real_vector}
  event_axes = {"probs": 1, "logits": 1}

  def _keep_weights(self, check: bool | None, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None): raise ArgumentError(f"{type(self).__name__}: give probs or logits")
    given = probs if logits is None else logits
    if not hasattr(given, "ndim") or not given.ndim:
      raise ArgumentError(f"{type(self).__name__}: probs and logits have an axis of classes")
    self._keep(check, **({"logits": logits} if probs is None else {"probs": probs}))
    if probs is None:
      x = self._parts["logits"]
      self._parts["logits"] = x - logsumexp(x, -1, keepdim=True)
      self._parts["probs"] = self._parts["logits"].exp()
    else:
      p = self._parts["probs"] / self._parts["probs"].sum(-1, keepdim=True)
      self._parts = {"probs": p, "logits": p.clamp(epsilon(p), 1 - epsilon(p)).log()}
    self._num_events = sizes(self._parts["probs"])[-1]

  @property
  def param_shape(self) -> Shape:
    """The shape of the probabilities."""
    return sizes(self._parts["probs"])

  def _classes(self, shape: Shape) -> Tensor:
    """Draw classes, by Gumbel numbers. shape: without the axis of classes."""
    noise = -(-self._uniform((*shape, self._num_events)).log()).log()
    chance = self.p.probs.eq(0).where(-math.inf, self.p.logits)
    return (noise + chance).argmax(-1)

  def _entropy(self) -> Tensor: return -(self.p.probs * self.p.logits.maximum(-1e30)).sum(-1)

class Categorical(_Weights):
  """The number of a class, from 0 on."""
  has_enumerate_support = True

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_weights(validate_args, probs, logits)
    self.support = constraints.integer_interval(0, self._num_events - 1)

  def _draw(self, shape: Shape) -> Tensor: return self._classes(shape).cast(dtypes.int64)
  def _log_prob(self, x: Tensor) -> Tensor:
    shape = sizes((x + self.p.logits[..., 0]))
    logits = self.p.logits.expand(*shape, self._num_events)
    return logits.gather(-1, x.expand(shape).cast(dtypes.int32).unsqueeze(-1)).squeeze(-1)

  def _values(self) -> Tensor: return Tensor.arange(self._num_events).cast(dtypes.int64)
  def _mean(self) -> Tensor: return self._parts["probs"][..., 0].full_like(math.nan)
  def _mode(self) -> Tensor: return self.p.probs.argmax(-1).cast(dtypes.int64)
  def _variance(self) -> Tensor: return self._parts["probs"][..., 0].full_like(math.nan)

class OneHotCategorical(_Weights):
  """A class as a vector with one 1."""
  _event_dims, support, has_enumerate_support = 1, constraints.one_hot, True

  def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    self._keep_weights(validate_args, probs, logits)

  def _hot(self, places: Tensor) -> Tensor: return places.one_hot(self._num_events).cast(self._like.dtype)
  def _draw(self, shape: Shape) -> Tensor: return self._hot(self._classes(shape[:-1]))
  def _log_prob(self, x: Tensor) -> Tensor: return (x > 0).where(self.p.logits, 0).sum(-1)
  def _values(self) -> Tensor: return Tensor.eye(self._num_events, dtype=self._like.dtype)
  def _mean(self) -> Tensor: return self._parts["probs"]
  def _mode(self) -> Tensor: return self._hot(self.p.probs.argmax(-1))
  def _variance(self) -> Tensor: return self.p.probs * (1 - self.p.probs)

class OneHotCategoricalStraightThrough(OneHotCategorical):
  """OneHotCategorical whose samples have the gradient of the probabilities."""
  has_rsample = True

  def _draw(self, shape: Shape) -> Tensor:
    x = super()._draw(shape)
    return surrogate(x, [self.p.probs.expand(shape)], [x.ones_like()])

class Multinomial(_Weights):
  """Counts of classes in total_count draws."""
  _event_dims = 1

  def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    if isinstance(total_count, bool) or not isinstance(total_count, int) or total_count < 0:
      raise ArgumentError(f"total_count is {total_count!r}; it is a whole number, not negative")
    self.total_count = total_count
    self._keep_weights(validate_args, probs, logits)

  def _draw(self, shape: Shape) -> Tensor:
    places = self._classes((self.total_count, *shape[:-1]))
    return places.one_hot(self._num_events).sum(0).cast(self._like.dtype)

  def _log_prob(self, x: Tensor) -> Tensor:
    chosen = lgamma(x.sum(-1) + 1) - lgamma(x + 1).sum(-1)
    return chosen + (x.eq(0) & self.p.logits.eq(-math.inf)).where(0, self.p.logits * x).sum(-1)

  def _entropy(self) -> Tensor:
    each = Binomial(self.total_count, self.p.probs, validate_args=False)
    counts = each._values()[1:]
    weights = each._log_prob(counts.reshape(-1, *[1] * self.p.probs.ndim)).exp()
    grown = lgamma(counts + 1).reshape(-1, *[1] * self.p.probs.ndim)
    return super()._entropy() * self.total_count - math.lgamma(self.total_count + 1) + (weights * grown).sum((0, -1))

  def _mean(self) -> Tensor: return self.p.probs * self.total_count
  def _variance(self) -> Tensor: return self.p.probs * (1 - self.p.probs) * self.total_count

class ContinuousBernoulli(_Odds):
  """A number x between 0 and 1 with a density proportional to probs**x (1 - probs)**(1 - x). Source: Loaiza-Ganem and
  Cunningham 2019.

  lims: between these probabilities, series take the place of quotients that would cancel.
  """
  support, has_rsample = constraints.unit_interval, True

  def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
               validate_args: bool | None = None):
    self.lims = lims
    self._keep_odds(validate_args, probs, logits)

  def _far(self) -> tuple[Tensor, Tensor]:
    """Return where the probability is far from 1/2, and the probability, a far one elsewhere."""
    p = self.p.probs
    far = (p <= self.lims[0]) | (p > self.lims[1])
    return far, far.where(p, self.lims[0])

  def _log_scale(self) -> Tensor:
    """Return the logarithm of the factor that makes the density's integral 1."""
    far, p = self._far()
    below = p <= 0.5
    twice = below.where(log1p(below.where(p, 0) * -2), (below.where(1, p) * 2 - 1).log())
    near = (self.p.probs - 0.5).square()
    return far.where((log1p(-p) - p.log()).abs().log() - twice, (near * (104 / 45) + 4 / 3) * near + math.log(2))

  def _draw(self, shape: Shape) -> Tensor: return self._icdf(self._uniform(shape))
  def _log_prob(self, x: Tensor) -> Tensor: return self._log_scale() - _cross(self.p.logits, x)

  def _cdf(self, x: Tensor) -> Tensor:
    far, p = self._far()
    inside = far.where((p.pow(x) * (1 - p).pow(1 - x) + p - 1) / (p * 2 - 1), x)
    return (x <= 0).where(0, (x >= 1).where(1, inside))

  def _icdf(self, x: Tensor) -> Tensor:
    far, p = self._far()
    return far.where((log1p(-p + x * (p * 2 - 1)) - log1p(-p)) / (p.log() - log1p(-p)), x)

  def _mean(self) -> Tensor:
    far, p = self._far()
    gap = self.p.probs - 0.5
    near = (gap.square() * (16 / 45) + 1 / 3) * gap + 0.5
    return far.where(p / (p * 2 - 1) + (log1p(-p) - p.log()).reciprocal(), near)

  def _variance(self) -> Tensor:
    far, p = self._far()
    near = (self.p.probs - 0.5).square()
    return far.where(p * (p - 1) / (1 - p * 2).square() + (log1p(-p) - p.log()).square().reciprocal(),
                     near * near * (128 / 945) - near / 15 + 1 / 12)

  def _entropy(self) -> Tensor:
    p = self.p.probs
    rest = log1p(-p)
    return self._mean() * (rest - p.log()) - self._log_scale() - rest
