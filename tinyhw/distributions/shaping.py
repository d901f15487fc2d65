"""Transforms of matrices and of parts: CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform,
CumulativeDistributionTransform, CatTransform, StackTransform."""
from __future__ import annotations
from collections.abc import Sequence
import math

from tinyhw.distributions.distribution import Distribution, epsilon
from tinyhw.distributions.transforms import Transform
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.arithmetic import log1p
from tinyhw.functional.operands import sizes
from tinyhw.linalg.factors import linalg_cholesky
from tinyhw.tensor import Tensor

def _diagonal(x: Tensor) -> Tensor: return x.diagonal(dim1=-2, dim2=-1)
def _on_diagonal(x: Tensor) -> Tensor:
  return x.unsqueeze(-1) * x.eye(sizes(x)[-1], dtype=x.dtype, device=x.device)

def _below(x: Tensor, places: int = 1) -> Tensor:
  """Return the elements below the diagonal, row by row. places: 2 leaves out those next to it, too."""
  n = sizes(x)[-1]
  at = [i * n + j for i in range(n) for j in range(i - places + 1)]
  return x.flatten(-2)[..., Tensor(at)] if at else x.flatten(-2)[..., :0]

def _lower(x: Tensor, n: int) -> Tensor:
  """Return the matrix whose elements below the diagonal are those of a vector, row by row."""
  at = [i * (i - 1) // 2 + j if j < i else 0 for i in range(n) for j in range(n)]
  return x[..., Tensor(at)].reshape(*sizes(x)[:-1], n, n).tril(-1)

class CorrCholeskyTransform(Transform):
  """D (D - 1) / 2 numbers become the lower factor of a correlation matrix of D rows.

  Source: Lewandowski et al. 2009.
  """
  domain_dims, codomain_dims = 1, 2

  def _call(self, x: Tensor) -> Tensor:
    n = self.forward_shape(sizes(x))[-1]
    r = _lower(x.tanh().clamp(-1 + epsilon(x), 1 - epsilon(x)), n)
    left = (1 - r.square()).sqrt().cumprod(-1)[..., :-1]
    before = left[..., :1].ones_like().cat(left, dim=-1) if n > 1 else r.ones_like()
    return (r + r.eye(n, dtype=r.dtype, device=r.device)) * before

  def _inverse(self, y: Tensor) -> Tensor:
    left = (1 - y.square().cumsum(-1))[..., :-1]
    before = left[..., :1].ones_like().cat(left, dim=-1) if sizes(y)[-1] > 1 else y.ones_like()
    t = _below(y) / _below(before).sqrt()
    return (log1p(t) - log1p(-t)) * 0.5

  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    left = _below(1 - y.square().cumsum(-1), 2).log().sum(-1) * 0.5
    return left - (x + (x * -2).softplus() - math.log(2)).sum(-1) * 2

  def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of results for a shape. Raises ShapeError for a count that is not D (D - 1) / 2."""
    count = shape[-1]
    n = round((0.25 + 2 * count) ** 0.5 + 0.5)
    if n * (n - 1) // 2 != count: raise ShapeError(f"{count} numbers are not those below the diagonal of a matrix")
    return (*tuple(shape)[:-1], n, n)

  def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of arguments for a shape of results."""
    return (*tuple(shape)[:-2], shape[-1] * (shape[-1] - 1) // 2)

class LowerCholeskyTransform(Transform):
  """Any square matrix becomes a lower factor: the diagonal is the exponential, and what is above it is dropped."""
  domain_dims = codomain_dims = 2
  def _call(self, x: Tensor) -> Tensor: return x.tril(-1) + _on_diagonal(_diagonal(x).exp())
  def _inverse(self, y: Tensor) -> Tensor: return y.tril(-1) + _on_diagonal(_diagonal(y).log())

class PositiveDefiniteTransform(LowerCholeskyTransform):
  """Any square matrix becomes a positive definite one: the product of its lower factor with the transpose."""
  def _call(self, x: Tensor) -> Tensor:
    low = super()._call(x)
    return low.matmul(low.transpose(-2, -1))

  def _inverse(self, y: Tensor) -> Tensor: return super()._inverse(linalg_cholesky(y))

class CumulativeDistributionTransform(Transform):
  """The probability of at most x, by a distribution of numbers."""
  def __init__(self, distribution: Distribution, cache_size: int = 0):
    super().__init__(cache_size)
    self.distribution = distribution

  def _call(self, x: Tensor) -> Tensor: return self.distribution._cdf(x)
  def _inverse(self, y: Tensor) -> Tensor: return self.distribution._icdf(y)
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor: return self.distribution._log_prob(x)

class CatTransform(Transform):
  """A transform for each of some parts along an axis. lengths: those of the parts, 1 if not given."""
  def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
               cache_size: int = 0):
    super().__init__(cache_size)
    self.transforms, self.dim, self.lengths = list(tseq), dim, list(lengths or [1] * len(tseq))
    if len(self.lengths) != len(self.transforms):
      raise ArgumentError(f"{len(self.lengths)} lengths for {len(self.transforms)} transforms")
    self.domain_dims = max([t.domain_dims for t in self.transforms])
    self.codomain_dims = max([t.codomain_dims for t in self.transforms])
    self.bijective = all(t.bijective for t in self.transforms)

  def _parts(self, x: Tensor) -> list[Tensor]: return list(x.split(self.lengths, self.dim))
  def _join(self, parts: list[Tensor]) -> Tensor: return parts[0].cat(*parts[1:], dim=self.dim)
  def _call(self, x: Tensor) -> Tensor:
    return self._join([t._call(part) for t, part in zip(self.transforms, self._parts(x))])

  def _inverse(self, y: Tensor) -> Tensor:
    return self._join([t._inverse(part) for t, part in zip(self.transforms, self._parts(y))])

  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    slopes = [t._log_slope(a, b) for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))]
    slopes = [s if t.domain_dims == self.domain_dims else s.sum(tuple(range(t.domain_dims - self.domain_dims, 0)))
              for t, s in zip(self.transforms, slopes)]
    axis = self.dim if self.dim >= 0 else self.dim + self.domain_dims
    if axis < 0 or self.dim >= 0: return slopes[0].cat(*slopes[1:], dim=axis)
    total = slopes[0]
    for s in slopes[1:]: total = total + s
    return total

class StackTransform(CatTransform):
  """A transform for each element along an axis."""
  def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
    super().__init__(tseq, dim, None, cache_size)

  def _parts(self, x: Tensor) -> list[Tensor]: return [part.squeeze(self.dim) for part in super()._parts(x)]
  def _join(self, parts: list[Tensor]) -> Tensor: return parts[0].stack(*parts[1:], dim=self.dim)
  def _log_slope(self, x: Tensor, y: Tensor) -> Tensor:
    return self._join([t._log_slope(a, b) for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))])
