"""Places: each movement operation's index expressions against a list of all elements."""
from __future__ import annotations
import itertools
import math
import random
from typing import Any

from hypothesis import given, strategies as st
import pytest

from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.indexing import ZERO, GatedIndex, both, flatten, move, reshape_index, unflatten
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

def ranges(shape: tuple[Any, ...]) -> tuple[UOp, ...]:
  return tuple(ZERO if n == 1 else UOp.range(n, k, AxisType.LOOP) for k, n in enumerate(shape))

def at(u: UOp, point: dict[UOp, int]) -> int:
  found = u.substitute({r: r.const_like(i) for r, i in point.items()}).simplify()
  assert found.op is Ops.CONST, f"{u} is not a number at {point}"
  return int(found.arg)

def points(shape: tuple[int, ...]) -> list[tuple[int, ...]]: return list(itertools.product(*map(range, shape)))

def bind(index: tuple[UOp, ...], point: tuple[int, ...]) -> dict[UOp, int]:
  return {r: i for r, i in zip(index, point) if r is not ZERO}

@st.composite
def shapes_of_one_size(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
  factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), min_size=1, max_size=5))
  def grouped() -> tuple[int, ...]:
    out = [1]
    for f in draw(st.permutations(factors)):
      if draw(st.booleans()): out.append(f)
      else: out[-1] *= f
    return tuple(out)
  return grouped(), grouped()

@pytest.mark.slow
@given(shapes_of_one_size())
def test_reshape_keeps_the_position(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
  shape, source = shapes
  index = ranges(shape)
  found = reshape_index(index, shape, source)
  for n, (here, there) in enumerate(zip(points(shape), points(source))):
    values = bind(index, here)
    assert tuple(at(i, values) for i in found) == there
    assert at(flatten(index, shape), values) == n

@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_unflatten_inverts_flatten(sizes: list[int]) -> None:
  shape = tuple(sizes)
  position = UOp.range(math.prod(shape), 0, AxisType.LOOP)
  found = unflatten(position, shape)
  for n, here in enumerate(points(shape)): assert tuple(at(i, {position: n}) for i in found) == here

def test_axes_that_stay_meet_no_division() -> None:
  index = ranges((6, 4, 5))
  found = reshape_index(index, (6, 4, 5), (2, 3, 4, 5))
  assert found[2] is index[1] and found[3] is index[2]
  assert reshape_index(index, (6, 4, 5), (6, 1, 4, 5)) == (index[0], ZERO, index[1], index[2])
  assert all(u.op not in (Ops.IDIV, Ops.MOD) for i in reshape_index(index, (6, 4, 5), (24, 5)) for u in i.toposort())

def test_symbolic_sizes() -> None:
  n = UOp.variable("n", 1, 8)
  index = ranges((4, n))
  found = reshape_index(index, (4, n), (2, 2, n))
  for value in (1, 3, 8):
    for i, j in points((4, value)):
      values = {**bind(index, (i, j)), n: value}
      assert tuple(at(x.substitute({index[1]: index[1].const_like(j)}), values) for x in found) == (i // 2, i % 2, j)

@pytest.mark.parametrize("seed", range(40))
def test_movement_operations(seed: int) -> None:
  """A random chain of movements, moved through from its result to the buffer, finds the element that the interpreter
  finds."""
  rng = random.Random(seed)
  shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
  size = math.prod(shape)
  t = base = Tensor([float(k + 1) for k in range(size)], device="PYTHON").reshape(*shape)
  for _ in range(rng.randint(1, 5)): t = moved(t, rng)
  want = list(evaluate(t.uop.substitute({base.uop: base.uop}),
                       {u: memory(u) for u in t.uop.toposort() if u.op is Ops.BUFFER}).values)
  index = ranges(t.shape)
  place, u = GatedIndex(index), t.uop
  while u.op is not Ops.BUFFER: place, u = move(u, place), u.src[0]
  for here, value in zip(points(t.shape), want):  # type: ignore[arg-type]
    values = bind(index, here)
    there = place.valid is None or bool(at(place.valid, values))
    assert (at(place.index[0], values) + 1.0 if there else 0.0) == value

def memory(u: UOp) -> list[float]: return [float(k + 1) for k in range(u.arg[2])]

def moved(t: Tensor, rng: random.Random) -> Tensor:
  shape: Any = t.shape
  kind = rng.choice(["permute", "flip", "pad", "shrink", "expand", "reshape"])
  axis = rng.randrange(len(shape))
  if kind == "permute": return t.permute(*rng.sample(range(len(shape)), len(shape)))
  if kind == "flip": return t.flip(axis)
  if kind == "pad" and math.prod(shape) < 60:
    counts = rng.randint(0, 1), rng.randint(0, 2)
    return t.pad(tuple(counts if k == axis else (0, 0) for k in range(len(shape)))) if any(counts) else t
  if kind == "shrink":
    return t.shrink(tuple((rng.randint(0, n - 1), n) if k == axis else (0, n) for k, n in enumerate(shape)))
  if kind == "expand": return t.reshape(*shape, 1).expand(*shape, 2) if math.prod(shape) < 60 else t
  return t.reshape(math.prod(shape))

def test_conditions() -> None:
  a, b = UOp.const(dtypes.bool, True), UOp.range(2, 0, AxisType.LOOP) < 1
  assert both(None, None) is None and both(a, None) is a and both(None, b) is b and both(b, b) is b
