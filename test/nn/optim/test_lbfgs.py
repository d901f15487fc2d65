"""nn/optim/lbfgs.py: directions against the two loops in NumPy, and the line search."""
from __future__ import annotations
import math

import numpy as np
import pytest

from tinyhw.dtype import dtypes
from tinyhw.nn.optim.lbfgs import LinePoint, StepHistory, cubic_minimum, strong_wolfe
from tinyhw.tensor import Tensor

def two_loops(pairs: list[tuple[np.ndarray, np.ndarray]], g: np.ndarray) -> np.ndarray:
  q, kept = -g, []
  for s, y in reversed(pairs):
    a = s @ q / (s @ y)
    kept.append((s, y, a))
    q = q - a * y
  if pairs: q = q * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]))
  for s, y, a in reversed(kept): q = q + s * (a - y @ q / (s @ y))
  return q

def test_directions() -> None:
  rng, history, pairs = np.random.default_rng(0), StepHistory(6), list[tuple[np.ndarray, np.ndarray]]()
  for _ in range(11):
    g = rng.normal(size=9)
    assert np.allclose(history.direction(Tensor(g, dtype=dtypes.float64)).numpy(), two_loops(pairs, g), rtol=1e-9)
    s = rng.normal(size=9)
    y = s * rng.uniform(0.5, 2, size=9)
    history.push(Tensor(s, dtype=dtypes.float64), Tensor(y, dtype=dtypes.float64))
    pairs = [*pairs, (s, y)][-6:]
  count = len(history.order)
  history.push(Tensor(s, dtype=dtypes.float64), Tensor(-y, dtype=dtypes.float64))
  assert len(history.order) == count == 6, "a pair of negative curvature is left out"

def point(t: float) -> LinePoint: return LinePoint(t, (t - 3) ** 4 + t, None, 4 * (t - 3) ** 3 + 1)

@pytest.mark.parametrize("first", [1e-3, 0.5, 1.0, 4.0, 50.0])
def test_line_search(first: float) -> None:
  found, count = strong_wolfe(point, point(0.0), first, 1.0)
  assert abs(found.slope) <= 0.9 * 107 and found.loss <= 81 - 1e-4 * found.t * 107 and count <= 26

def test_cubic() -> None:
  a, b = (LinePoint(t, t ** 3 - 3 * t, None, 3 * t * t - 3) for t in (0.0, 2.0))
  assert cubic_minimum(a, b) == cubic_minimum(b, a) == pytest.approx(1.0)
  assert cubic_minimum(a, b, (1.5, 1.8)) == 1.5 and cubic_minimum(a, a) == 0.0
  assert not math.isnan(cubic_minimum(LinePoint(0, 0, None, 1), LinePoint(1, 1, None, 1)))
