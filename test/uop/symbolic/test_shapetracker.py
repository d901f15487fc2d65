"""ShapeTracker and View: the documented walk-through, and random movements against index lists."""
from __future__ import annotations
import itertools
import random

import pytest

from tinyhw.errors import ShapeError
from tinyhw.uop.symbolic.shapetracker import ShapeTracker, View

from generators.expressions import value_at

def test_two_views() -> None:
  """Reshape and permute the two views from the walk-through of test/whole/test_older_names.py back."""
  tracker = ShapeTracker.from_shape((10, 10)).permute((1, 0)).reshape((100,))
  assert len(tracker.views) == 2 and tracker.expr_idxs()[1].arg is True
  assert tracker.simplify() is tracker
  back = tracker.reshape((10, 10)).permute((1, 0)).simplify()
  assert back.contiguous and back == ShapeTracker.from_shape((10, 10))
  assert tracker.reshape((10, 10)).permute((1, 0)).reshape((100,)).simplify().contiguous

def test_real_strides() -> None:
  assert ShapeTracker.from_shape((4, 6)).reshape((4, 3, 2)).real_strides() == (6, 2, 1)
  assert ShapeTracker.from_shape((4, 6)).permute((1, 0)).reshape((24,)).real_strides() == (None,)

def positions(tracker: ShapeTracker) -> list[int | None]:
  """The position of each element, or None if it is not valid."""
  index, valid = tracker.expr_idxs()
  leaves = {v.arg[0]: v for e in (index, valid) for v in e.variables()}
  out: list[int | None] = []
  for at in itertools.product(*[range(n) for n in tracker.shape]):
    point = {leaves[f"idx{i}"]: k for i, k in enumerate(at) if f"idx{i}" in leaves}
    out.append(value_at(index, point) if value_at(valid, point) else None)
  return out

def oracle(shape: tuple[int, ...], values: dict[tuple[int, ...], int | None], op: str,
           arg: tuple) -> tuple[tuple[int, ...], dict]:
  """The same movement on a dict from indices to positions."""
  every = lambda s: itertools.product(*[range(n) for n in s])
  if op == "permute":
    new = tuple(shape[a] for a in arg)
    return new, {at: values[tuple(at[arg.index(a)] for a in range(len(shape)))] for at in every(new)}
  if op == "reshape": return arg, dict(zip(every(arg), [values[at] for at in every(shape)]))
  if op == "expand": return arg, {at: values[tuple(0 if n == 1 else k for k, n in zip(at, shape))] for at in every(arg)}
  if op == "flip":
    return shape, {at: values[tuple(n - 1 - k if a in arg else k for a, (k, n) in enumerate(zip(at, shape)))]
                   for at in every(shape)}
  if op == "shrink":
    new = tuple(e - b for b, e in arg)
    return new, {at: values[tuple(k + b for k, (b, _) in zip(at, arg))] for at in every(new)}
  new = tuple(n + b + e for n, (b, e) in zip(shape, arg))
  return new, {at: values.get(tuple(k - b for k, (b, _) in zip(at, arg))) for at in every(new)}

def movement(rng: random.Random, shape: tuple[int, ...]) -> tuple[str, tuple]:
  op = rng.choice(["permute", "reshape", "reshape", "expand", "flip", "shrink", "pad"])
  axes = range(len(shape))
  if op == "permute": return op, tuple(rng.sample(list(axes), len(shape)))
  if op == "flip": return op, tuple(a for a in axes if rng.random() < 0.5)
  if op == "expand": return op, tuple(rng.choice([1, 2, 3]) if n == 1 else n for n in shape)
  if op == "shrink": return op, tuple((b := rng.randint(0, n - 1), rng.randint(b + 1, n)) for n in shape)
  if op == "pad": return op, tuple((rng.choice([0, 0, 1]), rng.choice([0, 0, 1])) for _ in shape)
  left, new = 1, []
  for n in shape: left *= n
  while len(new) < 3 and left > 1:
    new.append(rng.choice([d for d in range(1, left + 1) if left % d == 0]))
    left //= new[-1]
  return op, tuple(new) + ((left,) if left > 1 or not new else ()) + ((1,) if rng.random() < 0.2 else ())

@pytest.mark.parametrize("seed", range(120))
def test_random_movements(seed: int) -> None:
  rng = random.Random(seed)
  shape: tuple[int, ...] = rng.choice([(4, 3), (2, 3, 2), (6,), (2, 1, 4), (3, 2)])
  tracker = ShapeTracker.from_shape(shape)
  values: dict[tuple[int, ...], int | None] = {at: i
                                               for i, at in enumerate(itertools.product(*[range(n) for n in shape]))}
  for _ in range(rng.randint(1, 5)):
    op, arg = movement(rng, shape)
    tracker = getattr(tracker, op)(arg)
    shape, values = oracle(shape, values, op, arg)
    if len(values) > 400: break
  expected = [values[at] for at in itertools.product(*[range(n) for n in shape])]
  assert tracker.shape == shape
  assert positions(tracker) == expected
  assert positions(tracker.simplify()) == expected

def test_refusals() -> None:
  tracker = ShapeTracker.from_shape((4, 6))
  with pytest.raises(ShapeError, match="24 and 25 elements"): tracker.reshape((5, 5))
  with pytest.raises(ShapeError, match="only axes of size 1 grow"): tracker.expand((8, 6))
  with pytest.raises(ShapeError, match="begin <= end"): tracker.shrink(((2, 1), (0, 6)))
  with pytest.raises(ShapeError, match="cannot pad"): tracker.pad(((-1, 0), (0, 0)))
  with pytest.raises(ShapeError, match="each axis"): tracker.permute((0, 0))
  with pytest.raises(ShapeError, match="strides"): View.create((2, 2), (1,))
  with pytest.raises(ShapeError, match="at least 0"): View.create((-1,))

def test_empty() -> None:
  assert ShapeTracker.from_shape((0, 3)).reshape((3, 0)).size == 0
