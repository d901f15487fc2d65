"""Constraints: which values a parameter or a sample may have."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.tensor import Tensor

class Constraint:
  """A set of values. `check` returns a bool for each element, or for each event of event_dim axes."""
  is_discrete = False

  def __init__(self, name: str, test: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False):
    self.name, self.test, self.event_dim, self.is_discrete = name, test, event_dim, is_discrete

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
positive_definite = Constraint("positive_definite", lambda x: (x - x.transpose(-2, -1)).abs().lt(1e-6).all(-1).all(-1),
                               2)

def greater_than(lower_bound: Any) -> Constraint:
  """Return the values above a bound."""
  return Constraint(f"greater_than({lower_bound})", lambda x: x > lower_bound)

def greater_than_eq(lower_bound: Any) -> Constraint:
  """Return the values from a bound on."""
  return Constraint(f"greater_than_eq({lower_bound})", lambda x: x >= lower_bound)

def less_than(upper_bound: Any) -> Constraint:
  """Return the values below a bound."""
  return Constraint(f"less_than({upper_bound})", lambda x: x < upper_bound)

def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
  """Return the values between bounds."""
  return Constraint("interval", lambda x: (x >= lower_bound) & (x <= upper_bound))

def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
  """Return the whole numbers between bounds."""
  return Constraint("integer_interval", lambda x: _whole(x) & (x >= lower_bound) & (x <= upper_bound),
                    is_discrete=True)

def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
  """Return a constraint whose last axes are one event."""
  def test(x: Tensor) -> Tensor:
    found = base_constraint.check(x)
    for _ in range(reinterpreted_batch_ndims): found = found.all(-1)
    return found  # type: ignore[no-any-return]
  return Constraint(f"independent({base_constraint})", test, base_constraint.event_dim + reinterpreted_batch_ndims,
                    base_constraint.is_discrete)
