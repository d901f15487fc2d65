"""`Distribution`, the base of distributions with PyTorch's names: shapes, samples, densities, and the parameters.

A distribution of batch_shape (B...) and event_shape (E...) has samples of shape (S..., B..., E...) and a log_prob of
shape (S..., B...). Public methods take and give tensors of the user's class (`_take`, `_give`). What computes has an
underscore, and works on plain tensors. Parameters are broadcast to the batch, and read as attributes.

validate_args: None checks parameters that are numbers or already computed. True checks all, also samples, and computes
them for that. A check raises ArgumentError.
"""
from __future__ import annotations
from collections.abc import Mapping
import math
from typing import TYPE_CHECKING, Any, ClassVar

from tinyhw.distributions.constraints import Constraint
from tinyhw.dtype import dtypes
from tinyhw.engine.run.realize import this_thread
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import common_shape, sizes
from tinyhw.methods.base import Handle
from tinyhw.methods.graph.memory import storage_view
from tinyhw.tensor import Tensor

Shape = tuple[int, ...]

class PlainParameters:
  """Parameters as attributes."""
  def __init__(self, parts: dict[str, Tensor]): self.__dict__.update(parts)
  if TYPE_CHECKING:
    def __getattr__(self, name: str) -> Tensor: ...

class Distribution:
  """The base: parameters, shapes, and the methods that call those of subclasses."""
  arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
  support: Any = None
  has_rsample = False
  has_enumerate_support = False
  event_axes: ClassVar[Mapping[str, int]] = {}     # parameters with axes of their own, after those of the batch
  _event_dims = 0                                  # axes of an event, the last ones of the first parameter
  _default_check: bool | None = None

  def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
    self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
    self._check_values = self._default_check if validate_args is None else validate_args
    self.__dict__.setdefault("_parts", {})

  @classmethod
  def set_default_validate_args(cls, value: bool) -> None:
    """Check the arguments of all distributions, or of none."""
    Distribution._default_check = value

  # ***** parameters *****

  def _keep(self, validate_args: bool | None, **given: Any) -> None:
    """Keep parameters, broadcast to the batch, and set the shapes."""
    parts = {name: _tensor(self._take(x), given.values()) for name, x in given.items()}
    batch = common_shape(*[sizes(x)[:x.ndim - self.event_axes.get(name, 0)] for name, x in parts.items()])
    self._parts = {}
    for name, x in parts.items():
      axes = self.event_axes.get(name, 0)
      shape = (*batch, *sizes(x)[x.ndim - axes:])
      self._parts[name] = x if sizes(x) == shape else x.expand(shape)
    first = next(iter(self._parts.values()))
    Distribution.__init__(self, batch, sizes(first)[first.ndim - self._event_dims:], validate_args)
    for name, x in given.items(): self._check_part(name, x)

  def _check_part(self, name: str, given: Any) -> None:
    constraint, value = self.arg_constraints.get(name), self._parts[name]
    if constraint is None or self._check_values is False or this_thread.capture is not None: return
    ready = not isinstance(given, Handle) or storage_view(given._self().uop) is not None
    if (self._check_values or ready) and not constraint.check(value.detach()).all().item():
      raise ArgumentError(f"{type(self).__name__}: {name} has values outside of {constraint}; "
                          f"validate_args=False allows them")

  def _check_sample(self, value: Tensor) -> None:
    if self._check_values and isinstance(self.support, Constraint) and this_thread.capture is None:
      if not self.support.check(value.detach()).all().item():
        raise ArgumentError(f"{type(self).__name__}: a value is outside of {self.support}")

  @property
  def p(self) -> PlainParameters:
    """The parameters as plain tensors."""
    return PlainParameters(self._parts)

  def __getattr__(self, name: str) -> Any:
    parts = self.__dict__.get("_parts", {})
    if name in parts: return self._give(parts[name])
    raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

  def _take(self, x: Any) -> Any: return x
  def _give(self, x: Any) -> Any: return x

  def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
    """Return the distribution with its batch broadcast to a shape."""
    found = object.__new__(type(self))
    found.__dict__.update(self.__dict__)
    found._batch_shape = tuple(batch_shape)
    found._parts = {name: x.expand(*found._batch_shape, *sizes(x)[x.ndim - self.event_axes.get(name, 0):])
                    for name, x in self._parts.items()}
    return found

  # ***** shapes *****

  @property
  def batch_shape(self) -> Shape:
    """The shape of the batch."""
    return self._batch_shape

  @property
  def event_shape(self) -> Shape:
    """The shape of one event."""
    return self._event_shape

  def _shape(self, sample_shape: Any) -> Shape: return (*tuple(sample_shape), *self._batch_shape, *self._event_shape)

  @property
  def _like(self) -> Tensor: return next(iter(self._parts.values()))

  def _uniform(self, shape: Any) -> Tensor:
    """Return numbers in (0, 1), of the parameters' type."""
    kind = self._like.dtype
    return Tensor.rand(*shape, dtype=kind, device=self._like.device).maximum(_least(kind))

  def _gaussian(self, shape: Any) -> Tensor: return Tensor.randn(*shape, dtype=self._like.dtype,
                                                                 device=self._like.device)

  # ***** samples *****

  def rsample(self, sample_shape: Any = ()) -> Any:
    """Draw samples that have gradients."""
    if not self.has_rsample: raise NotImplementedError(f"samples of {type(self).__name__} have no gradient; use sample")
    return self._give(self._draw(self._shape(sample_shape)))

  def sample(self, sample_shape: Any = ()) -> Any:
    """Draw samples without gradients."""
    with Tensor.no_grad(): x = self._draw(self._shape(sample_shape))
    return self._give(x.detach().contiguous())

  def sample_n(self, n: int) -> Any:
    """Draw n samples."""
    return self.sample((n,))

  def _draw(self, shape: Shape) -> Tensor: raise NotImplementedError(f"{type(self).__name__} draws no samples")

  # ***** densities and moments *****

  def log_prob(self, value: Any) -> Any:
    """Return the logarithm of the density, or of the probability, of values."""
    x = _tensor(self._take(value), [self._like])
    self._check_sample(x)
    return self._give(self._log_prob(x))

  def cdf(self, value: Any) -> Any:
    """Return the probability of at most a value."""
    x = _tensor(self._take(value), [self._like])
    self._check_sample(x)
    return self._give(self._cdf(x))

  def icdf(self, value: Any) -> Any:
    """Return the values of which a probability is at most."""
    return self._give(self._icdf(_tensor(self._take(value), [self._like])))

  def entropy(self) -> Any:
    """Return the entropy, in nats."""
    return self._give(self._entropy())

  def perplexity(self) -> Any:
    """Return the exponential of the entropy."""
    return self._give(self._entropy().exp())

  def enumerate_support(self, expand: bool = True) -> Any:
    """Return all values of a discrete distribution, along a new first axis."""
    values = self._values()
    found = values.reshape(-1, *[1] * len(self._batch_shape), *sizes(values)[1:])
    return self._give(found.expand(-1, *self._batch_shape, *sizes(values)[1:]) if expand else found)

  @property
  def mean(self) -> Any:
    """The mean."""
    return self._give(self._mean())

  @property
  def mode(self) -> Any:
    """The value of the largest density."""
    return self._give(self._mode())

  @property
  def variance(self) -> Any:
    """The variance."""
    return self._give(self._variance())

  @property
  def stddev(self) -> Any:
    """The square root of the variance."""
    return self._give(self._variance().sqrt())

  def _none(self, what: str) -> Any: raise NotImplementedError(f"{type(self).__name__} has no {what} in closed form")
  def _log_prob(self, x: Tensor) -> Tensor: return self._none("log_prob")  # type: ignore[no-any-return]
  def _cdf(self, x: Tensor) -> Tensor: return self._none("cdf")  # type: ignore[no-any-return]
  def _icdf(self, x: Tensor) -> Tensor: return self._none("icdf")  # type: ignore[no-any-return]
  def _entropy(self) -> Tensor: return self._none("entropy")  # type: ignore[no-any-return]
  def _values(self) -> Tensor: return self._none("enumerate_support")  # type: ignore[no-any-return]
  def _mean(self) -> Tensor: return self._none("mean")  # type: ignore[no-any-return]
  def _mode(self) -> Tensor: return self._none("mode")  # type: ignore[no-any-return]
  def _variance(self) -> Tensor: return self._none("variance")  # type: ignore[no-any-return]

  def __repr__(self) -> str:
    parts = [f"{name}: {x.item() if not x.ndim else sizes(x)}" for name, x in self._parts.items()]
    return f"{type(self).__name__}({', '.join(parts)})"

def _tensor(x: Any, beside: Any) -> Tensor:
  """Return a number or tensor as a tensor of floats, of the type of the tensors beside it."""
  kinds = [y.dtype for y in beside if isinstance(y, Handle) and dtypes.is_float(y.dtype)]
  kind = kinds[0] if kinds else dtypes.default_float
  if not isinstance(x, Handle):
    if isinstance(x, bool) or not isinstance(x, (int, float)):
      raise ArgumentError(f"a distribution's numbers are numbers or tensors, not {x!r}")
    return Tensor(float(x), dtype=kind)
  return x._self() if dtypes.is_float(x.dtype) else x._self().cast(kind)

def _least(kind: Any) -> float: return 2.0 ** -(dtypes.finfo(kind)[1] + 1)
def epsilon(x: Tensor) -> float: return float(2.0 ** -dtypes.finfo(x.dtype)[1])

def summed(x: Tensor, axes: int) -> Tensor:
  """Return sums over the last axes."""
  return x.sum(tuple(range(-axes, 0))) if axes else x

def surrogate(value: Tensor, parameters: list[Tensor], slopes: list[Tensor]) -> Tensor:
  """Return a value whose gradients for parameters are given slopes."""
  found = value.detach()
  for p, slope in zip(parameters, slopes): found = found + (p - p.detach()) * slope.detach()
  return found

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
