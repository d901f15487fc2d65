"""Constraints: which values a parameter or a sample may have."""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.linalg.spectra import eigvalsh
from tinyhw.tensor import Tensor

class Constraint:
  """A set of values. `check` returns a bool for each element, or for each event of event_dim axes.

  kind: the name without bounds or parts. parts: bounds, or the constraints of which it is made.
  """
  is_discrete = False

  def __init__(self, name: str, test: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False,
               kind: str | None = None, parts: tuple[Any, ...] = ()):
    self.name, self.test, self.event_dim, self.is_discrete = name, test, event_dim, is_discrete
    self.kind, self.parts = kind or name, parts

  @property
  def lower_bound(self) -> Any:
    """The lower bound of an interval."""
    return self._bound("lower_bound", ("greater_than", "greater_than_eq", "interval", "half_open_interval",
                                       "integer_interval"), 0)

  @property
  def upper_bound(self) -> Any:
    """The upper bound of an interval."""
    return self._bound("upper_bound", ("less_than", "interval", "half_open_interval", "integer_interval"), -1)

  def _bound(self, name: str, kinds: tuple[str, ...], place: int) -> Any:
    if self.kind not in kinds: raise AttributeError(f"{self.name} has no {name}")
    return self.parts[place]

  def check(self, value: Any) -> Any:
    """Return where a value is inside."""
    return self.test(value)

  def __repr__(self) -> str: return self.name

def _whole(x: Tensor) -> Tensor: return x.floor().eq(x)

real = Constraint("real", lambda x: x.eq(x))
positive = Constraint("positive", lambda x: x > 0)
nonnegative = Constraint("nonnegative", lambda x: x >= 0)
unit_interval = Constraint("unit_interval", lambda x: (x >= 0) & (x <= 1))
boolean = Constraint("boolean", lambda x: x.eq(0) | x.eq(1), is_discrete=True)
nonnegative_integer = Constraint("nonnegative_integer", lambda x: _whole(x) & (x >= 0), is_discrete=True)
positive_integer = Constraint("positive_integer", lambda x: _whole(x) & (x >= 1), is_discrete=True)
real_vector = Constraint("real_vector", lambda x: x.eq(x).all(-1), 1)
simplex = Constraint("simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = Constraint("one_hot", lambda x: (x.eq(0) | x.eq(1)).all(-1) & x.sum(-1).eq(1), 1, True)
lower_cholesky = Constraint("lower_cholesky", lambda x: x.tril().eq(x).all(-1).all(-1) & (x.diagonal(
  dim1=-2, dim2=-1) > 0).all(-1), 2)
lower_triangular = Constraint("lower_triangular", lambda x: x.tril().eq(x).all(-1).all(-1), 2)

def _on_sphere(x: Tensor) -> Tensor:
  """Are rows of length 1, up to rounding?"""
  least = 2.0 ** -dtypes.finfo(x.dtype)[1] * int(x.shape[-1]) * 10
  return ((x.square().sum(-1).sqrt() - 1).abs() < least).all(-1)

def _least(x: Tensor) -> Tensor:
  """Return the least eigenvalue. x may be of the user's class."""
  return eigvalsh(Tensor(x))[..., 0]

corr_cholesky = Constraint("corr_cholesky", lambda x: lower_cholesky.check(x) & _on_sphere(x), 2)
square = Constraint("square", lambda x: x[..., 0, 0].const_like(x.shape[-1] == x.shape[-2]).bool(), 2)
symmetric = Constraint("symmetric", lambda x: (x - x.transpose(-2, -1)).abs().lt(1e-6).all(-1).all(-1), 2)
positive_definite = Constraint("positive_definite", lambda x: symmetric.check(x) & _least(x).gt(0), 2)
positive_semidefinite = Constraint("positive_semidefinite", lambda x: symmetric.check(x) & _least(x).ge(0), 2)

def greater_than(lower_bound: Any) -> Constraint:
  """Return the values above a bound."""
  return Constraint(f"greater_than({lower_bound})", lambda x: x > lower_bound, kind="greater_than",
                    parts=(lower_bound,))

def greater_than_eq(lower_bound: Any) -> Constraint:
  """Return the values from a bound on."""
  return Constraint(f"greater_than_eq({lower_bound})", lambda x: x >= lower_bound, kind="greater_than_eq",
                    parts=(lower_bound,))

def less_than(upper_bound: Any) -> Constraint:
  """Return the values below a bound."""
  return Constraint(f"less_than({upper_bound})", lambda x: x < upper_bound, kind="less_than",
                    parts=(upper_bound,))

def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
  """Return the values between bounds."""
  return Constraint("interval", lambda x: (x >= lower_bound) & (x <= upper_bound), parts=(lower_bound, upper_bound))

def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
  """Return the values from a bound on, and below another."""
  return Constraint("half_open_interval", lambda x: (x >= lower_bound) & (x < upper_bound),
                    parts=(lower_bound, upper_bound))

def multinomial(upper_bound: Any) -> Constraint:
  """Return the vectors of counts whose sum is a number."""
  return Constraint("multinomial", lambda x: (_whole(x) & (x >= 0)).all(-1) & x.sum(-1).eq(upper_bound), 1, True,
                    parts=(upper_bound,))

def cat(cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> Constraint:
  """Return a constraint for each of some parts along an axis. lengths: those of the parts, 1 if not given."""
  many, ends = list(cseq), list(lengths or [1] * len(cseq))
  def test(x: Tensor) -> Tensor:
    parts = x.split(ends, dim)
    found = [c.check(part) for c, part in zip(many, parts)]
    joined: Tensor = found[0].cat(*found[1:], dim=dim)
    return joined
  return Constraint("cat", test, max([c.event_dim for c in many]), any(c.is_discrete for c in many),
                    parts=(many, dim, ends))

def stack(cseq: Sequence[Constraint], dim: int = 0) -> Constraint:
  """Return a constraint for each element along an axis."""
  many = list(cseq)
  def test(x: Tensor) -> Tensor:
    found = [c.check(part.squeeze(dim)) for c, part in zip(many, x.split(1, dim))]
    joined: Tensor = found[0].stack(*found[1:], dim=dim)
    return joined
  return Constraint("stack", test, max([c.event_dim for c in many]) + (dim < 0), any(c.is_discrete for c in many),
                    parts=(many, dim))

def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
  """Return the whole numbers between bounds."""
  return Constraint("integer_interval", lambda x: _whole(x) & (x >= lower_bound) & (x <= upper_bound),
                    is_discrete=True, parts=(lower_bound, upper_bound))

def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
  """Return a constraint whose last axes are one event."""
  def test(x: Tensor) -> Tensor:
    found = base_constraint.check(x)
    for _ in range(reinterpreted_batch_ndims): found = found.all(-1)
    return found  # type: ignore[no-any-return]
  return Constraint(f"independent({base_constraint})", test, base_constraint.event_dim + reinterpreted_batch_ndims,
                    base_constraint.is_discrete, "independent", (base_constraint, reinterpreted_batch_ndims))
