"""Distributions of matrices, and of vectors with a covariance: MultivariateNormal, LowRankMultivariateNormal, Wishart,
LKJCholesky."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.distributions import constraints
from tinyhw.distributions.distribution import HALF_LOG_2PI, Distribution, Shape
from tinyhw.distributions.gammas import standard_gamma
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import common_shape, sizes
from tinyhw.linalg.factors import linalg_cholesky, solve_triangular
from tinyhw.linalg.solving import inv
from tinyhw.special.gamma import digamma, lgamma, mvlgamma
from tinyhw.tensor import Tensor

def _transposed(x: Tensor) -> Tensor: return x.transpose(-2, -1)
def _diagonal(x: Tensor) -> Tensor: return x.diagonal(dim1=-2, dim2=-1)
def _on_diagonal(x: Tensor) -> Tensor:
  return x.unsqueeze(-1) * x.eye(sizes(x)[-1], dtype=x.dtype, device=x.device)

class WithCovariance(Distribution):
  """A distribution whose covariance is low @ low^T for a lower factor, or another one by `_covariance`."""
  @property
  def covariance_matrix(self) -> Any:
    """The covariance of the vectors."""
    return self._give(self._covariance())

  @property
  def precision_matrix(self) -> Any:
    """The inverse of the covariance."""
    return self._give(inv(self._covariance()))

  def _covariance(self) -> Tensor: return self.p.scale_tril.matmul(_transposed(self.p.scale_tril))

  def _lower(self, covariance: Any, precision: Any, low: Any) -> Tensor:
    """Return the lower factor of the covariance, of which the user gave one form."""
    if sum([x is not None for x in (covariance, precision, low)]) != 1:
      raise ArgumentError("give one of covariance_matrix, precision_matrix and scale_tril")
    if covariance is not None: return linalg_cholesky(self._take(covariance))
    return linalg_cholesky(inv(self._take(precision))) if precision is not None else self._take(low)

class MultivariateNormal(WithCovariance):
  """Normal vectors. Give covariance_matrix, precision_matrix or scale_tril, the lower factor of the covariance."""
  arg_constraints = {"loc": constraints.real, "scale_tril": constraints.lower_cholesky}
  event_axes, _event_dims = {"loc": 1, "scale_tril": 2}, 1
  support, has_rsample = constraints.real_vector, True

  def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
               validate_args: bool | None = None):
    low = self._lower(covariance_matrix, precision_matrix, scale_tril)
    if low.ndim < 2 or not loc.ndim: raise ArgumentError("loc is a vector, and the others matrices")
    self._keep(validate_args, loc=self._take(loc), scale_tril=low)

  def _draw(self, shape: Shape) -> Tensor:
    return self.p.loc + self.p.scale_tril.matmul(self._gaussian(shape).unsqueeze(-1)).squeeze(-1)

  def _log_size(self) -> Tensor: return self.p.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

  def _log_prob(self, x: Tensor) -> Tensor:
    z = (x - self.p.loc).unsqueeze(-1)
    low = self.p.scale_tril.expand(*sizes(z)[:-2], *sizes(self.p.scale_tril)[-2:])
    unit = solve_triangular(low, z, upper=False).squeeze(-1)
    return unit.square().sum(-1) * -0.5 - float(self._event_shape[0]) * HALF_LOG_2PI - self._log_size()

  def _entropy(self) -> Tensor: return self._log_size() + float(self._event_shape[0]) * (0.5 + HALF_LOG_2PI)
  def _mean(self) -> Tensor: return self._parts["loc"]
  def _mode(self) -> Tensor: return self._parts["loc"]
  def _variance(self) -> Tensor: return self.p.scale_tril.square().sum(-1)

class LowRankMultivariateNormal(WithCovariance):
  """Normal vectors whose covariance is cov_factor @ cov_factor^T + diag(cov_diag), for a narrow factor.

  Densities need a factorization of the factor's width only. Source: the matrix determinant and inversion lemmas.
  """
  arg_constraints = {"loc": constraints.real, "cov_factor": constraints.real, "cov_diag": constraints.positive}
  event_axes, _event_dims = {"loc": 1, "cov_factor": 2, "cov_diag": 1}, 1
  support, has_rsample = constraints.real_vector, True

  def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None):
    loc, factor, diagonal = (self._take(x) for x in (loc, cov_factor, cov_diag))
    rows = sizes(loc)[-1:]
    if not rows or factor.ndim < 2 or sizes(factor)[-2:-1] != rows or sizes(diagonal)[-1:] != rows:
      raise ArgumentError(f"loc and cov_diag are vectors, cov_factor a matrix with as many rows, not {loc.shape}, "
                          f"{diagonal.shape}, {factor.shape}")
    self._keep(validate_args, loc=loc, cov_factor=factor, cov_diag=diagonal)

  def _capacity(self) -> Tensor:
    """Return the lower factor of I + W^T D^-1 W."""
    w = self.p.cov_factor
    inner = _transposed(w).matmul(w / self.p.cov_diag.unsqueeze(-1))
    return linalg_cholesky(inner + inner.eye(sizes(w)[-1], dtype=w.dtype, device=w.device))

  def _covariance(self) -> Tensor:
    return self.p.cov_factor.matmul(_transposed(self.p.cov_factor)) + _on_diagonal(self.p.cov_diag)

  @property
  def scale_tril(self) -> Any:
    """The lower factor of the covariance."""
    return self._give(linalg_cholesky(self._covariance()))

  def _draw(self, shape: Shape) -> Tensor:
    narrow = self._gaussian((*shape[:-1], sizes(self.p.cov_factor)[-1]))
    return (self.p.loc + self.p.cov_factor.matmul(narrow.unsqueeze(-1)).squeeze(-1)
            + self.p.cov_diag.sqrt() * self._gaussian(shape))

  def _log_size(self, low: Tensor) -> Tensor:
    """Return half the logarithm of the covariance's determinant."""
    return _diagonal(low).log().sum(-1) + self.p.cov_diag.log().sum(-1) * 0.5

  def _log_prob(self, x: Tensor) -> Tensor:
    low, gap = self._capacity(), x - self.p.loc
    inner = _transposed(self.p.cov_factor).matmul((gap / self.p.cov_diag).unsqueeze(-1))
    part = solve_triangular(low.expand(*sizes(inner)[:-2], *sizes(low)[-2:]), inner, upper=False).square().sum((-2, -1))
    length = (gap.square() / self.p.cov_diag).sum(-1) - part
    return length * -0.5 - float(self._event_shape[0]) * HALF_LOG_2PI - self._log_size(low)

  def _entropy(self) -> Tensor:
    return self._log_size(self._capacity()) + float(self._event_shape[0]) * (0.5 + HALF_LOG_2PI)

  def _mean(self) -> Tensor: return self._parts["loc"]
  def _mode(self) -> Tensor: return self._parts["loc"]
  def _variance(self) -> Tensor: return self.p.cov_factor.square().sum(-1) + self.p.cov_diag

class Wishart(WithCovariance):
  """Sums of products x x^T of df normal vectors. Give covariance_matrix, precision_matrix or scale_tril.

  Source of the samples: Bartlett 1933.
  """
  arg_constraints = {"df": constraints.positive, "scale_tril": constraints.lower_cholesky}
  event_axes = {"scale_tril": 2}
  support, has_rsample = constraints.positive_definite, True

  def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
               validate_args: bool | None = None):
    low = self._lower(covariance_matrix, precision_matrix, scale_tril)
    if low.ndim < 2: raise ArgumentError(f"a matrix is needed, not {low.shape}")
    self._keep(validate_args, df=self._take(df), scale_tril=low)
    self._event_shape = tuple(sizes(low)[-2:])
    self._check_degrees()

  def _check_degrees(self) -> None:
    least = constraints.greater_than(float(self._event_shape[-1] - 1))
    if self._check_values and not least.check(self.p.df.detach()).all().item():
      raise ArgumentError(f"Wishart: df has values outside of {least}; validate_args=False allows them")

  def _df(self, axes: int) -> Tensor: return self.p.df.reshape(*sizes(self.p.df), *[1] * axes)

  def _draw(self, shape: Shape) -> Tensor:
    n = shape[-1]
    places = Tensor.arange(n, dtype=self._like.dtype, device=self._like.device)
    half = (self._df(1) - places) * 0.5
    lengths = (standard_gamma(half, shape[:-1]) * 2).sqrt()
    low = self.p.scale_tril.matmul(self._gaussian(shape).tril(-1) + _on_diagonal(lengths))
    return low.matmul(_transposed(low))

  def _log_prob(self, x: Tensor) -> Tensor:
    n, df = float(self._event_shape[-1]), self.p.df
    lead = common_shape(sizes(x)[:-2], self._batch_shape)
    low = self.p.scale_tril.expand(*lead, *self._event_shape)
    factor = linalg_cholesky(x).expand(*lead, *self._event_shape)
    trace = solve_triangular(low, factor, upper=False).square().sum((-2, -1))
    return (-df * (n * math.log(2) * 0.5 + _diagonal(self.p.scale_tril).log().sum(-1)) - mvlgamma(df * 0.5, int(n))
            + (df - n - 1) * _diagonal(factor).log().sum(-1) - trace * 0.5)

  def _entropy(self) -> Tensor:
    n, half = self._event_shape[-1], self.p.df.mul(0.5)
    slopes = digamma(half.unsqueeze(-1) - Tensor.arange(n, dtype=half.dtype, device=half.device) * 0.5).sum(-1)
    found: Tensor = (_diagonal(self.p.scale_tril).log().sum(-1) + n * math.log(2) * 0.5) * (n + 1)
    return found.add(mvlgamma(half, n)).sub(slopes.mul(half - 0.5 * (n + 1))).add(half * n)

  def _mean(self) -> Tensor: return self._df(2) * self._covariance()

  def _mode(self) -> Tensor:
    factor = self._df(2) - float(self._event_shape[-1] + 1)
    return (factor <= 0).where(math.nan, factor) * self._covariance()

  def _variance(self) -> Tensor:
    v = self._covariance()
    diagonal = _diagonal(v)
    return self._df(2) * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

class LKJCholesky(Distribution):
  """Lower factors of correlation matrices, whose density is the determinant to the power of concentration - 1.

  Source: Lewandowski, Kurowicka and Joe 2009, the onion method.
  """
  arg_constraints = {"concentration": constraints.positive}
  support = constraints.corr_cholesky

  def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
    if not isinstance(dim, int) or dim < 2: raise ArgumentError(f"dim is {dim!r}; it must be at least 2")
    self.dim = dim
    self._keep(validate_args, concentration=self._take(concentration))
    self._event_shape = (dim, dim)

  def _draw(self, shape: Shape) -> Tensor:
    c, n = self.p.concentration, self.dim
    places = Tensor.arange(n - 1, dtype=c.dtype, device=c.device).pad(((1, 0),))
    rows = (*shape[:-1],)
    first = standard_gamma((places + 0.5).expand(*sizes(c), n), rows)
    second = standard_gamma((c + 0.5 * (n - 2)).unsqueeze(-1) - places * 0.5, rows)
    size = first / (first + second)
    normal = self._gaussian(shape).tril(-1)
    length = normal.square().sum(-1, keepdim=True)
    w = normal / length.eq(0).where(1, length).sqrt() * size.sqrt().unsqueeze(-1)
    return w + _on_diagonal((1 - w.square().sum(-1)).maximum(2.0 ** -126).sqrt())

  def _log_prob(self, x: Tensor) -> Tensor:
    c, n = self.p.concentration, self.dim
    powers = (c - 1).unsqueeze(-1) * 2 + n - Tensor.arange(2, n + 1, dtype=c.dtype, device=c.device)
    found = (powers * _diagonal(x)[..., 1:].log()).sum(-1)
    alpha = c + 0.5 * (n - 1)
    size = 0.5 * (n - 1) * math.log(math.pi) + mvlgamma(alpha - 0.5, n - 1) - lgamma(alpha) * (n - 1)
    return found - size
