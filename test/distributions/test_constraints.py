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
  (c.positive_definite, [[[1.0, 0.5], [0.5, 1.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
  (c.positive_semidefinite, [[[1.0, 0.5], [0.5, 1.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
  (c.symmetric, [[[1.0, 0.5], [0.5, 1.0]]], [[[1.0, 2.0], [0.0, 1.0]]]), (c.square, [[[1.0]]], [[[1.0, 2.0]]]),
  (c.lower_triangular, [[[1.0, 0.0], [0.5, 1.0]]], [[[1.0, 2.0], [0.0, 1.0]]]),
  (c.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 1.0]]]),
  (c.half_open_interval(0, 2), [0.0], [2.0]), (c.multinomial(3), [[1.0, 2.0]], [[1.0, 1.0]]),
  (c.cat([c.positive, c.less_than(0)], 0, [2, 1]), [1.0, 2.0, -1.0], [0.0, -1.0, 1.0]),
  (c.stack([c.positive, c.less_than(0)]), [1.0, -1.0], [0.0, 1.0]),
  (c.independent(c.positive, 1), [[1.0, 2.0]], [[1.0, -2.0]])], ids=str)
def test_values(constraint: c.Constraint, inside: list[float], outside: list[float]) -> None:
  assert constraint.check(Tensor(inside)).all().item() and not constraint.check(Tensor(outside)).any().item()

def test_events() -> None:
  assert c.independent(c.boolean, 2).event_dim == 2 and c.independent(c.boolean, 2).is_discrete
  assert c.simplex.event_dim == 1 and not c.real.is_discrete

def test_bounds() -> None:
  assert c.greater_than(2).lower_bound == 2 and c.interval(1, 3).upper_bound == 3 and c.less_than(4).upper_bound == 4
  with pytest.raises(AttributeError, match="less_than.* has no lower_bound"): _ = c.less_than(4).lower_bound
