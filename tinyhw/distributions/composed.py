"""Distributions made of others, and of vectors: Independent, MixtureSameFamily, TransformedDistribution, relaxed
categorical ones, LogisticNormal."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.distributions import constraints
from tinyhw.distributions.continuous import Normal
from tinyhw.distributions.discrete import Bernoulli, Categorical
from tinyhw.distributions.distribution import Distribution, Shape, summed
from tinyhw.distributions.transforms import ComposeTransform, StickBreakingTransform, Transform
from tinyhw.errors import ArgumentError
from tinyhw.functional.arithmetic import log1p
from tinyhw.functional.operands import sizes
from tinyhw.functional.reductions import log_softmax, logsumexp
from tinyhw.special.gamma import lgamma
from tinyhw.tensor import Tensor

class _Around(Distribution):
  """Base of the distributions that have another one as `base_dist`."""
  base_dist: Distribution

  def _around(self, base: Distribution, batch: Shape, event: Shape, check: bool | None) -> None:
    Distribution.__init__(self, batch, event, check)
    self.base_dist, self.has_rsample = base, base.has_rsample

  @property
  def _like(self) -> Tensor:
    found: Tensor = self.base_dist._like
    return found

class Independent(_Around):
  """A distribution whose last batch axes are one event."""
  def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
    batch, event, n = base_distribution.batch_shape, base_distribution.event_shape, reinterpreted_batch_ndims
    if n > len(batch): raise ArgumentError(f"{n} axes of a batch of shape {batch} cannot be an event")
    split = len(batch) - n
    self._around(base_distribution, batch[:split], (*batch[split:], *event), validate_args)
    self.reinterpreted_batch_ndims, self.has_enumerate_support = n, base_distribution.has_enumerate_support and not n
    if isinstance(base_distribution.support, constraints.Constraint):
      self.support = constraints.independent(base_distribution.support, n)

  def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
    """Return the distribution with its batch broadcast to a shape."""
    n = len(self._event_shape) - len(self.base_dist.event_shape)
    return type(self)(self.base_dist.expand((*tuple(batch_shape), *self._event_shape[:n])), n)

  def _draw(self, shape: Shape) -> Tensor: return self.base_dist._draw(shape)
  def _log_prob(self, x: Tensor) -> Tensor: return summed(self.base_dist._log_prob(x), self.reinterpreted_batch_ndims)
  def _entropy(self) -> Tensor: return summed(self.base_dist._entropy(), self.reinterpreted_batch_ndims)
  def _values(self) -> Tensor: return self.base_dist._values()
  def _mean(self) -> Tensor: return self.base_dist._mean()
  def _mode(self) -> Tensor: return self.base_dist._mode()
  def _variance(self) -> Tensor: return self.base_dist._variance()
  def __repr__(self) -> str: return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"

class TransformedDistribution(_Around):
  """A distribution of f(x), for x of another one and a transform, or a list of them."""
  def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None):
    parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
    if not all(isinstance(t, Transform) for t in parts):
      raise ArgumentError(f"transforms are needed, not {transforms!r}")
    self.transforms = parts
    whole = ComposeTransform(parts)
    base, need = base_distribution, max(whole.domain_dims, 0)
    missing = need - len(base.event_shape)
    if missing > 0: base = Independent(base, missing)
    shape = whole.forward_shape((*base.batch_shape, *base.event_shape))
    dims = max(whole.codomain_dims, len(base.event_shape) + whole.codomain_dims - whole.domain_dims)
    split = len(shape) - dims
    self._around(base, shape[:split], shape[split:], validate_args)

  def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
    """Return the distribution with its batch broadcast to a shape."""
    found = object.__new__(type(self))
    found.__dict__.update(self.__dict__)
    found.base_dist, found._batch_shape = self.base_dist.expand(batch_shape), tuple(batch_shape)
    return found

  def _draw(self, shape: Shape) -> Tensor:
    lead = shape[:len(shape) - len(self._batch_shape) - len(self._event_shape)]
    x = self.base_dist._draw(self.base_dist._shape(lead))
    for t in self.transforms: x = t._call(x)
    return x

  def _log_prob(self, y: Tensor) -> Tensor:
    total: Any = 0.0
    dims = len(self._event_shape)
    for t in reversed(self.transforms):
      x = t._inverse(y)
      dims += t.domain_dims - t.codomain_dims
      total = total - summed(t._log_slope(x, y), dims - t.domain_dims)
      y = x
    inner = summed(self.base_dist._log_prob(y), dims - len(self.base_dist.event_shape))
    return inner + total  # type: ignore[no-any-return]

  def _through(self, y: Tensor) -> tuple[Tensor, float]:
    sign = 1.0
    for t in reversed(self.transforms): y, sign = t._inverse(y), sign * t.sign
    return y, sign

  def _cdf(self, y: Tensor) -> Tensor:
    x, sign = self._through(y)
    found = self.base_dist._cdf(x)
    return found if sign > 0 else 1 - found

  def _icdf(self, value: Tensor) -> Tensor:
    sign = math.prod([t.sign for t in self.transforms])
    x = self.base_dist._icdf(value if sign > 0 else 1 - value)
    for t in self.transforms: x = t._call(x)
    return x

class LogisticNormal(TransformedDistribution):
  """Shares of K + 1 classes by stick breaking of K normal numbers."""
  def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
    base = Normal(self._take(loc), self._take(scale), validate_args)
    super().__init__(base, StickBreakingTransform(), validate_args)

class RelaxedBernoulli(Distribution):
  """A number between 0 and 1 that becomes Bernoulli's as the temperature falls. Source: Maddison et al. 2016."""
  support, has_rsample = constraints.unit_interval, True

  def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    odds = Bernoulli(self._take(probs), self._take(logits), validate_args)
    self._keep(validate_args, logits=odds._parts["logits"], temperature=self._take(temperature))
    self._parts["probs"] = odds._parts["probs"].expand(sizes(self._parts["logits"]))

  def _draw(self, shape: Shape) -> Tensor:
    u = self._uniform(shape)
    return ((u.log() - log1p(-u) + self.p.logits) / self.p.temperature).sigmoid()

  def _log_prob(self, x: Tensor) -> Tensor:
    t = self.p.temperature
    odds = x.log() - log1p(-x)
    difference = self.p.logits - odds * t
    return t.log() + difference - log1p(difference.exp()) * 2 - x.log() - log1p(-x)

class RelaxedOneHotCategorical(Distribution):
  """Shares that become a one-hot vector as the temperature falls. Source: Maddison et al. 2016, Jang et al. 2016."""
  support, has_rsample, event_axes, _event_dims = constraints.simplex, True, {"logits": 1, "probs": 1}, 1

  def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
    classes = Categorical(self._take(probs), self._take(logits), validate_args)
    self._keep(validate_args, logits=classes._parts["logits"], temperature=self._take(temperature))
    self._parts["probs"] = classes._parts["probs"].expand(sizes(self._parts["logits"]))

  def _scores(self, shape: Shape) -> Tensor:
    noise = -(-self._uniform(shape).log()).log()
    return (self.p.logits + noise) / self.p.temperature.unsqueeze(-1)

  def _draw(self, shape: Shape) -> Tensor: return log_softmax(self._scores(shape), -1).exp()
  def _log_prob(self, x: Tensor) -> Tensor:
    t, count = self.p.temperature, sizes(self.p.logits)[-1]
    score = self.p.logits - x.log() * t.unsqueeze(-1)
    scale = lgamma(t.full_like(count)) + t.log() * (count - 1)
    return (score - logsumexp(score, -1, keepdim=True)).sum(-1) + scale - x.log().sum(-1)

class MixtureSameFamily(Distribution):
  """A mixture: a Categorical chooses along the last batch axis of another distribution."""
  def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None):
    if not isinstance(mixture_distribution, Categorical): raise ArgumentError("a mixture's weights are a Categorical")
    batch, event = component_distribution.batch_shape, component_distribution.event_shape
    if not batch or sizes(mixture_distribution._parts["probs"])[-1] != batch[-1]:
      raise ArgumentError(f"{sizes(mixture_distribution._parts['probs'])} weights for components of shape {batch}")
    Distribution.__init__(self, batch[:-1], event, validate_args)
    self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution

  @property
  def _like(self) -> Tensor:
    found: Tensor = self.component_distribution._like
    return found

  def _after(self, x: Tensor) -> Tensor: return x.unsqueeze(x.ndim - len(self._event_shape))

  def _draw(self, shape: Shape) -> Tensor:
    dims = len(self._event_shape)
    lead = shape[:len(shape) - dims - len(self._batch_shape)]
    chosen = self.mixture_distribution._draw((*lead, *self._batch_shape))
    all_of = self.component_distribution._draw(self.component_distribution._shape(lead))
    hot = chosen.one_hot(self.component_distribution.batch_shape[-1])
    hot = hot.reshape(*shape[:len(shape) - dims], -1, *[1] * dims)
    return Tensor.where(hot.bool(), all_of, 0).sum(-1 - dims).cast(all_of.dtype)

  def _weights(self) -> Tensor: return log_softmax(self.mixture_distribution._parts["logits"], -1)
  def _log_prob(self, x: Tensor) -> Tensor:
    return logsumexp(self.component_distribution._log_prob(self._after(x)) + self._weights(), -1)

  def _cdf(self, x: Tensor) -> Tensor:
    found: Tensor = (self.component_distribution._cdf(self._after(x)) * self._weights().exp()).sum(-1)
    return found

  def _probs(self) -> Tensor:
    p: Tensor = self.mixture_distribution._parts["probs"]
    return p.reshape(*sizes(p), *[1] * len(self._event_shape))

  def _mean(self) -> Tensor:
    found: Tensor = (self._probs() * self.component_distribution._mean()).sum(-1 - len(self._event_shape))
    return found

  def _variance(self) -> Tensor:
    axis = -1 - len(self._event_shape)
    means = self.component_distribution._mean()
    within: Tensor = (self._probs() * self.component_distribution._variance()).sum(axis)
    between: Tensor = (self._probs() * (means - self._mean().unsqueeze(axis)).square()).sum(axis)
    return within + between
