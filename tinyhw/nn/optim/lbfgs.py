"""Limited-memory BFGS: directions from the last steps, and a line search for the strong Wolfe conditions.

The direction is a combination of the gradient g and the rows s_i (steps) and y_i (changes of the gradient). So the two
loops of Nocedal's algorithm run on the host, over coefficients and inner products in float64. The device computes one
product of the rows with new vectors, and one combination. The rows are in a matrix of a capacity that doubles, so that
few kernels are compiled.

Source: Nocedal and Wright 2006, algorithms 7.4, 3.5 and 3.6, with cubic interpolation.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

_SUFFICIENT, _CURVATURE, _MOST_EVALUATIONS = 1e-4, 0.9, 25

class StepHistory:
  """The last steps and changes of the gradient: at most `most` pairs of vectors, and their inner products."""
  def __init__(self, most: int):
    self.most, self.count, self.scale = most, 0, 1.0
    self.rows: Tensor | None = None      # (2 * capacity, n): steps in even rows, changes in odd ones
    self.order: list[int] = []           # numbers of pairs, the oldest first
    self.products: dict[tuple[int, int], float] = {}

  def push(self, step: Tensor, change: Tensor) -> None:
    """Add a pair unless its curvature is too small. The oldest one makes room."""
    curvature, square = (step * change).sum().item(), change.square().sum().item()
    if curvature <= 1e-10: return
    if len(self.order) == self.most: place = self.order.pop(0)
    else: place = len(self.order)
    self._reserve(place + 1, step)
    assert self.rows is not None
    self.rows[2 * place:2 * place + 2] = step.stack(change)
    self.rows.realize()
    self.order.append(place)
    self.scale = curvature / square
    for other, (a, b) in enumerate(self._against(step, change)):
      for row, value in ((2 * place, a), (2 * place + 1, b)):
        self.products[other, row] = self.products[row, other] = value

  def _reserve(self, pairs: int, like: Tensor) -> None:
    have = 0 if self.rows is None else int(self.rows.shape[0]) // 2
    if pairs <= have: return
    more = Tensor.zeros(2 * (min(max(2 * have, 4), self.most) - have), int(like.numel()), dtype=like.dtype,
                        device=like.device)
    self.rows = (more if self.rows is None else self.rows.cat(more)).contiguous().realize()

  def _against(self, *vectors: Tensor) -> list[list[float]]:
    """Return the inner products of each row with vectors."""
    assert self.rows is not None
    return self.rows.matmul(Tensor.stack(*vectors).transpose()).tolist()  # type: ignore[no-any-return]

  def direction(self, gradient: Tensor) -> Tensor:
    """Return minus the inverse Hessian's approximation times the gradient."""
    if not self.order: return -gradient
    assert self.rows is not None
    with_gradient = [-a for a, in self._against(gradient)]
    c: dict[int, float] = {}             # coefficients of the rows; that of -gradient is `own`
    def inner(row: int, own: float) -> float:
      return own * with_gradient[row] + sum([value * self.products[other, row] for other, value in c.items()])
    steps: dict[int, float] = {}
    for k in reversed(self.order):
      steps[k] = inner(2 * k, 1.0) / self.products[2 * k, 2 * k + 1]
      c[2 * k + 1] = -steps[k]
    c = {row: value * self.scale for row, value in c.items()}
    for k in self.order: c[2 * k] = steps[k] - inner(2 * k + 1, self.scale) / self.products[2 * k, 2 * k + 1]
    weights = Tensor([c.get(row, 0.0) for row in range(int(self.rows.shape[0]))], dtype=self.rows.dtype,
                     device=self.rows.device)
    return weights.matmul(self.rows) - gradient * self.scale

# ***** line search *****

class LinePoint(NamedTuple):
  """A point of a line: its parameter, the loss, the gradient there, and the slope along the line."""
  t: float
  loss: float
  gradient: Any
  slope: float

def cubic_minimum(a: LinePoint, b: LinePoint, bounds: tuple[float, float] | None = None) -> float:
  """Return where the cubic through two points with their slopes is least, within bounds."""
  low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
  if a.t > b.t: a, b = b, a
  middle = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t) if a.t != b.t else math.nan
  inside = middle * middle - a.slope * b.slope
  if not inside >= 0: return (low + high) / 2
  root = math.sqrt(inside)
  below = b.slope - a.slope + 2 * root
  if below == 0: return (low + high) / 2
  return min(max(b.t - (b.t - a.t) * ((b.slope + root - middle) / below), low), high)

def strong_wolfe(evaluate: Callable[[float], LinePoint], start: LinePoint, t: float, largest: float,
                 tolerance: float = 1e-9) -> tuple[LinePoint, int]:
  """Return a point of the line that is low enough and flat enough, and the count of evaluations.

  largest: the largest element of the direction. Where no such point is found, the best one is returned.
  """
  def enough(x: LinePoint) -> bool: return x.loss <= start.loss + _SUFFICIENT * x.t * start.slope
  def flat(x: LinePoint) -> bool: return abs(x.slope) <= -_CURVATURE * start.slope
  before, new, count = start, evaluate(t), 0
  while count < _MOST_EVALUATIONS:
    if not enough(new) or count > 1 and new.loss >= before.loss: break
    if flat(new): return new, count + 1
    if new.slope >= 0: break
    t = cubic_minimum(before, new, (new.t + 0.01 * (new.t - before.t), new.t * 10))
    before, new, count = new, evaluate(t), count + 1
  else: before = start
  low, high = (before, new) if before.loss <= new.loss else (new, before)
  stuck = False
  while count < _MOST_EVALUATIONS and abs(high.t - low.t) * largest >= tolerance:
    t, stuck = _moved_inside(cubic_minimum(low, high), min(low.t, high.t), max(low.t, high.t), stuck)
    new, count = evaluate(t), count + 1
    if not enough(new) or new.loss >= low.loss: high = new
    elif flat(new): return new, count + 1
    elif new.slope * (high.t - low.t) >= 0: low, high = new, low
    else: low = new
    if high.loss < low.loss: low, high = high, low
  return low, count + 1

def _moved_inside(t: float, least: float, most: float, stuck: bool) -> tuple[float, bool]:
  """Keep a point away from the ends of a bracket: the second time that it comes near, or if it is outside."""
  margin = 0.1 * (most - least)
  if min(most - t, t - least) >= margin: return t, False
  if not stuck and least < t < most: return t, True
  return (most - margin if abs(t - most) < abs(t - least) else least + margin), False
