"""distributions/constraints.py: what is inside."""
from __future__ import annotations

import pytest

from tinyhw import Tensor
from tinyhw.distributions import constraints as c

@pytest.mark.parametrize("constraint, inside, outside", [
  (c.real, [1.0, -1.0], [float("nan")]), (c.positive, [0.5], [0.0, -1.0]), (c.nonnegative, [0.0], [-1.0]),
  (c.unit_interval, [0.0, 1.0], [1.5]), (c.boolean, [0.0, 1.0], [0.5]),
  (c.nonnegative_integer, [0.0, 2.0], [-1.0, 0.5]),
  (c.positive_integer, [1.0], [0.0]), (c.greater_than(2), [3.0], [2.0]), (c.greater_than_eq(2), [2.0], [1.0]),
  (c.less_than(2), [1.0], [2.0]), (c.interval(0, 2), [0.0, 2.0], [3.0]), (c.integer_interval(0, 2), [1.0], [0.5, 3.0]),
  (c.simplex, [[0.2, 0.8]], [[0.2, 0.9]]), (c.one_hot, [[0.0, 1.0]], [[1.0, 1.0]]), (c.real_vector, [[1.0]], [[
    float("nan")]]), (c.lower_cholesky, [[[1.0, 0.0], [2.0, 3.0]]], [[[1.0, 1.0], [0.0, 1.0]]]),
  (c.positive_definite, [[[1.0, 0.5], [0.5, 1.0]]], [[[1.0, 0.5], [0.0, 1.0]]]),
  (c.independent(c.positive, 1), [[1.0, 2.0]], [[1.0, -2.0]])], ids=str)
def test_values(constraint: c.Constraint, inside: list[float], outside: list[float]) -> None:
  assert constraint.check(Tensor(inside)).all().item() and not constraint.check(Tensor(outside)).any().item()

def test_events() -> None:
  assert c.independent(c.boolean, 2).event_dim == 2 and c.independent(c.boolean, 2).is_discrete
  assert c.simplex.event_dim == 1 and not c.real.is_discrete
