"""Transforms: invertible functions with the logarithm of their slope: `t(x)`, `t.inv`, `t.log_abs_det_jacobian`."""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.distributions.distribution import epsilon, summed
from tinyhw.errors import ArgumentError
from tinyhw.functional.arithmetic import log1p
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

class Transform:
  """The base. domain_dims, codomain_dims: axes of an event before and after it. sign: of the slope."""
  domain_dims = codomain_dims = 0
  sign = 1.0
  bijective = True

  def __init__(self, cache_size: int = 0): self.cache_size = cache_size
  def _take(self, x: Any) -> Any: return x
  def _give(self, x: Any) -> Any: return x
  def __call__(self, x: Any) -> Any: return self._give(self._call(self._take(x)))

  @property
  def inv(self) -> Any:
    """The inverse transform."""
    return InverseTransform(self)

  def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
    """Return log |dy/dx|, of the determinant for an event."""
    return self._give(self._log_slope(self._take(x), self._take(y)))

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape."""
    return tuple(shape)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    return tuple(shape)

  def _call(self, x: Tensor) -> Tensor: raise NotImplementedError(f"{type(self).__name__} has no result")
  def _inverse(self, y: Tensor) -> Tensor: raise NotImplementedError(f"{type(self).__name__} has no inverse")
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    raise NotImplementedError(f"{type(self).__name__} has no slope")
  def __repr__(self) -> str: return f"{type(self).__name__}()"

class InverseTransform(Transform):
  """The inverse of a transform."""
  def __init__(self, base: Transform):
    super().__init__()
    self.base, self.sign = base, base.sign
    self.domain_dims, self.codomain_dims = base.codomain_dims, base.domain_dims
    self._take, self._give = base._take, base._give  # type: ignore[method-assign]

  @property
  def inv(self) -> Any:
    """The transform itself."""
    return self.base

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape."""
    return self.base.inverse_shape(shape)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    return self.base.forward_shape(shape)

  def _call(self, x: Tensor) -> Tensor: return self.base._inverse(x)
  def _inverse(self, y: Tensor) -> Tensor: return self.base._call(y)
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return -self.base._log_slope(y, x)

class ExpTransform(Transform):
  """exp(x)."""
  def _call(self, x: Tensor) -> Tensor: return x.exp()
  def _inverse(self, y: Tensor) -> Tensor: return y.log()
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return x

class PowerTransform(Transform):
  """x ** exponent, for positive x."""
  def __init__(self, exponent: Any, cache_size: int = 0):
    super().__init__(cache_size)
    self.exponent = exponent
    largest = exponent.max().item() if isinstance(exponent, Handle) else exponent  # type: ignore[attr-defined]
    self.sign = math.copysign(1.0, largest)

  def _call(self, x: Tensor) -> Tensor: return x.pow(self._take(self.exponent))
  def _inverse(self, y: Tensor) -> Tensor: return y.pow(1 / self._take(self.exponent))
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return y.mul(self._take(self.exponent)).div(x).abs().log()

class SigmoidTransform(Transform):
  """1 / (1 + exp(-x))."""
  def _call(self, x: Tensor) -> Tensor: return x.sigmoid().clamp(2.0 ** -126, 1 - epsilon(x))
  def _inverse(self, y: Tensor) -> Tensor:
    y = y.clamp(2.0 ** -126, 1 - epsilon(y))
    return y.log() - log1p(-y)

  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return -(-x).softplus() - x.softplus()

class TanhTransform(Transform):
  """tanh(x)."""
  def _call(self, x: Tensor) -> Tensor: return x.tanh()
  def _inverse(self, y: Tensor) -> Tensor: return (log1p(y) - log1p(-y)) * 0.5
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return (math.log(2) - x - (x * -2).softplus()) * 2

class SoftplusTransform(Transform):
  """log(1 + exp(x))."""
  def _call(self, x: Tensor) -> Tensor: return x.softplus()
  def _inverse(self, y: Tensor) -> Tensor: return (1 - (-y).exp()).log() + y
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return -(-x).softplus()

class AbsTransform(Transform):
  """|x|, which has no one inverse: the positive one is taken."""
  bijective = False
  def _call(self, x: Tensor) -> Tensor: return x.abs()
  def _inverse(self, y: Tensor) -> Tensor: return y

class AffineTransform(Transform):
  """loc + scale x. event_dim: axes of an event."""
  def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
    super().__init__(cache_size)
    self.loc, self.scale, self.domain_dims, self.codomain_dims = loc, scale, event_dim, event_dim
    most = scale.max().item() if isinstance(scale, Handle) else scale  # type: ignore[attr-defined]
    self.sign = 1.0 if most > 0 else -1.0

  def _call(self, x: Tensor) -> Tensor: return x.mul(self._take(self.scale)).add(self._take(self.loc))
  def _inverse(self, y: Tensor) -> Tensor: return y.sub(self._take(self.loc)).div(self._take(self.scale))
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    scale = self._take(self.scale)
    if isinstance(scale, Handle): each = scale.abs().log()  # type: ignore[attr-defined]
    else: each = x.full_like(math.log(abs(scale)))
    return summed(each.expand(x.shape), self.domain_dims)

class SoftmaxTransform(Transform):
  """Shares in proportion to exp(x). The inverse is the logarithm."""
  domain_dims = codomain_dims = 1
  bijective = False
  def _call(self, x: Tensor) -> Tensor: return x.softmax(-1)
  def _inverse(self, y: Tensor) -> Tensor: return y.log()

class StickBreakingTransform(Transform):
  """K numbers become shares of K + 1 classes, each a part of the rest."""
  domain_dims = codomain_dims = 1

  def _offset(self, count: int, like: Tensor) -> Tensor:
    return Tensor([math.log(count - k) for k in range(count)], dtype=like.dtype, device=like.device)

  def _call(self, x: Tensor) -> Tensor:
    z = (x - self._offset(sizes(x)[-1], x)).sigmoid().clamp(2.0 ** -126, 1 - epsilon(x))
    rest = (1 - z).cumprod(-1)
    ones = x[..., :1].ones_like()
    return z.cat(ones, dim=-1) * ones.cat(rest, dim=-1)

  def _inverse(self, y: Tensor) -> Tensor:
    part = y[..., :-1]
    rest = (1 - part.cumsum(-1)).maximum(2.0 ** -126)
    return part.log() - rest.log() + self._offset(sizes(part)[-1], y)

  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    z = x - self._offset(sizes(x)[-1], x)
    return (-z + z.logsigmoid() + y[..., :-1].log()).sum(-1)

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape."""
    return (*tuple(shape)[:-1], shape[-1] + 1)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    return (*tuple(shape)[:-1], shape[-1] - 1)

class ReshapeTransform(Transform):
  """Another shape of events."""
  def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
    super().__init__(cache_size)
    self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
    if math.prod(in_shape) != math.prod(out_shape):
      raise ArgumentError(f"{in_shape} and {out_shape} differ in elements")
    self.domain_dims, self.codomain_dims = len(self.in_shape), len(self.out_shape)

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape."""
    return (*tuple(shape)[:len(shape) - len(self.in_shape)], *self.out_shape)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    return (*tuple(shape)[:len(shape) - len(self.out_shape)], *self.in_shape)

  def _call(self, x: Tensor) -> Tensor: return x.reshape(self.forward_shape(sizes(x)))
  def _inverse(self, y: Tensor) -> Tensor: return y.reshape(self.inverse_shape(sizes(y)))
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return Tensor.zeros(*sizes(x)[:x.ndim - len(self.in_shape)])

class IndependentTransform(Transform):
  """A transform whose last axes are one event."""
  def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
    super().__init__(cache_size)
    self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
    self.domain_dims = base_transform.domain_dims + reinterpreted_batch_ndims
    self.codomain_dims, self.sign = base_transform.codomain_dims + reinterpreted_batch_ndims, base_transform.sign

  def _call(self, x: Tensor) -> Tensor: return self.base_transform._call(x)
  def _inverse(self, y: Tensor) -> Tensor: return self.base_transform._inverse(y)
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    return summed(self.base_transform._log_slope(x, y), self.reinterpreted_batch_ndims)

class ComposeTransform(Transform):
  """Transforms one after the other."""
  def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
    super().__init__(cache_size)
    self.parts, self.sign = list(parts), math.prod([t.sign for t in parts])
    dims = self.parts[-1].codomain_dims if self.parts else 0
    for t in reversed(self.parts): dims = max(dims + t.domain_dims - t.codomain_dims, t.domain_dims)
    self.domain_dims = dims
    dims = self.parts[0].domain_dims if self.parts else 0
    for t in self.parts: dims = max(dims + t.codomain_dims - t.domain_dims, t.codomain_dims)
    self.codomain_dims = dims

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape."""
    for t in self.parts: shape = t.forward_shape(shape)
    return tuple(shape)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    for t in reversed(self.parts): shape = t.inverse_shape(shape)
    return tuple(shape)

  def _call(self, x: Tensor) -> Tensor:
    for t in self.parts: x = t._call(x)
    return x

  def _inverse(self, y: Tensor) -> Tensor:
    for t in reversed(self.parts): y = t._inverse(y)
    return y

  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    total, dims = None, self.domain_dims
    for t in self.parts:
      after = t._call(x)
      part = summed(t._log_slope(x, after), dims - t.domain_dims)
      total = part if total is None else total + part
      x, dims = after, dims + t.codomain_dims - t.domain_dims
    return x.zeros_like() if total is None else total
