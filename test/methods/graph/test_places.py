"""methods/graph/places.py: a SCATTER writes in order, on all kinds of devices, as the interpreter says."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit
from tinyhw.methods.graph import graph
from tinyhw.errors import GradientError
from tinyhw.methods.graph.places import ScatterPoints, runs_in_order, written
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate

def scattered(base: Tensor, index: Tensor, value: Tensor, op: Ops | None, kind: str) -> Tensor:
  return base._new(written(base.uop, index.uop, value.uop, op, kind))

def expected(base: np.ndarray, index: np.ndarray, value: np.ndarray, op: Ops | None, kind: str) -> np.ndarray:
  out, before = base.copy(), np.zeros_like(value)
  fold = {None: lambda a, b: b, Ops.ADD: lambda a, b: a + b, Ops.MUL: lambda a, b: a * b, Ops.MAX: max}[op]
  for point in np.ndindex(*index.shape):
    at = index[point]
    if not 0 <= at < out.size: continue
    before[point] = out[at]
    out[at] = fold(out[at], value[point])
  return before if kind == "before" else out

@pytest.mark.parametrize("kind", ("after", "before"))
@pytest.mark.parametrize("op", (None, Ops.ADD, Ops.MUL, Ops.MAX))
@pytest.mark.parametrize("rows", (1, 3))
def test_writes_in_order(rows: int, op: Ops | None, kind: str) -> None:
  """Each of several rows has places of its own. Places outside of the base are left out."""
  draw = np.random.default_rng(rows)
  index = draw.integers(-1, 6, (rows, 11)) + 7 * np.arange(rows)[:, None]
  index[draw.random(index.shape) < 0.2] = -1
  base, value = draw.normal(size=7 * rows).astype(np.float32), draw.normal(size=(rows, 11)).astype(np.float32)
  for kind_of_index in (np.int32, np.int64):
    found = scattered(Tensor(base), Tensor(index.astype(kind_of_index)), Tensor(value), op, kind)
    np.testing.assert_allclose(found.numpy(), expected(base, index, value, op, kind), 1e-6)

def test_a_permutation_needs_no_base() -> None:
  base, index = Tensor.zeros(4, dtype="int32"), Tensor([[3, 1], [0, 2]])
  assert scattered(base, index, Tensor([[5, 6], [7, 8]]), None, "whole").tolist() == [7, 6, 8, 5]

@pytest.mark.parametrize("make", (lambda: Tensor.full((1, 5), 2), lambda: Tensor([[2]]).expand(1, 5)))
def test_an_index_may_be_the_same_for_all(make: Callable[[], Tensor]) -> None:
  """The place does not depend on the loop. Yet it is read and written in each iteration."""
  index, value = make(), Tensor([[1, 2, 3, 4, 5]])
  assert scattered(Tensor.zeros(3, dtype="int32"), index, value, Ops.ADD, "after").tolist() == [0, 0, 15]
  assert scattered(Tensor.zeros(3, dtype="int32"), index, value, Ops.ADD, "before").tolist() == [[0, 1, 3, 6, 10]]

def test_values_are_computed_in_the_loop() -> None:
  x, index = Tensor([[1.0, 2.0, 3.0]]), Tensor([[0, 1, 0]])
  found = scattered(Tensor.ones(2) * 10, index + 0, x * x + 1, Ops.ADD, "after")
  assert (found * 2).tolist() == [44.0, 30.0] and found.tolist() == [22.0, 15.0] and found.sum().item() == 37.0

def test_one_base_for_several_writes() -> None:
  """A SCATTER is a value: it does not write into its base."""
  base, index = Tensor([1, 1, 1]).realize(), Tensor([[0, 0]])
  a, b = (scattered(base, index, Tensor([[k, k]]), Ops.ADD, "after") for k in (1, 5))
  assert (a + b).tolist() == [14, 2, 2] and base.tolist() == [1, 1, 1]

def test_in_a_capture() -> None:
  step = TinyJit(lambda x, i: scattered(x, i, i.cast("float32"), Ops.ADD, "after").realize())
  for k in range(4):
    assert step(Tensor([1.0, 2.0 + k]).realize(), Tensor([[1, 1]]).realize()).tolist() == [1.0, 4.0 + k]

def test_the_interpreter_agrees() -> None:
  base, index, value = Tensor([1, 2, 3]).realize(), Tensor([[2, 0, 2, 9]]).realize(), Tensor([[4, 5, 6, 7]]).realize()
  for kind, wanted in (("after", [6, 2, 13]), ("before", [3, 1, 7, 0])):
    node = written(base.uop, index.uop, value.uop, Ops.ADD, kind)
    buffers = {u: t for u, t in zip((x.uop.base for x in (base, index, value)),
                                    (np.array(x.numpy()).reshape(-1) for x in (base, index, value)))}
    assert list(evaluate(node, {u: memoryview(a) for u, a in buffers.items()})[0]) == wanted

@pytest.mark.parametrize("shape, dim, n", (((5,), 0, 300), ((3, 4), 0, 7), ((3, 40), 1, 9), ((2, 3, 32), 1, 5)))
def test_points(shape: tuple[int, ...], dim: int, n: int) -> None:
  """Values in the form of loops, and back. Few places of many values get private copies."""
  draw = np.random.default_rng(n)
  sizes = [n if k == dim else d for k, d in enumerate(shape)]
  index, value = draw.integers(-1, shape[dim] + 1, sizes), draw.integers(0, 9, sizes)
  points = ScatterPoints(shape, dim, Tensor(index).uop)
  assert points.arranged(Tensor(value).uop).shape == (points.rows, value.size // points.rows)
  wanted = np.zeros(shape, np.int64)
  for point in np.ndindex(*sizes):
    at = list(point)
    at[dim] = index[point]
    if 0 <= at[dim] < shape[dim]: wanted[tuple(at)] += value[point]
  found = Tensor._new(points.folded(Tensor(value).uop, Ops.ADD, 0))
  np.testing.assert_array_equal(found.numpy(), wanted)

@pytest.mark.parametrize("columns", (5, 16, 40, 96, 1000))
def test_whole_rows_are_written_at_once(columns: int) -> None:
  """An index that is the same for all columns names rows. Each of them is read, changed and written by vectors."""
  draw = np.random.default_rng(columns)
  index, value = draw.integers(-1, 8, 30), draw.normal(size=(30, columns)).astype(np.float32)
  points = ScatterPoints((7, columns), 0, Tensor(index).reshape(30, 1).expand(30, columns).uop)
  assert points.whole_rows and points.place.shape == (points.rows, 30)
  base = draw.normal(size=(7, columns)).astype(np.float32)
  wanted, last = base.copy(), base.copy()
  for i, row in zip(index, value):
    if 0 <= i < 7: wanted[i], last[i] = wanted[i] + row, row
  found = points.onto(Tensor(base).uop, Tensor(value).uop, Ops.ADD)
  assert found is not None
  np.testing.assert_allclose(Tensor._new(found).numpy(), wanted, 1e-5, 1e-6)
  np.testing.assert_array_equal(Tensor._new(points.last(Tensor(value).uop, Tensor(base).uop)).numpy(), last)

def test_where_loops_are_fast() -> None:
  assert runs_in_order(Tensor.zeros(2, device="PYTHON").uop)
  assert not runs_in_order(Tensor.zeros(2, device=("CPU:0", "CPU:1")).uop)
  assert graph.is_plain(Tensor.zeros(2).shape)

@pytest.mark.parametrize("adjacent", (False, True))
def test_gradients_of_sums(adjacent: bool) -> None:
  """Each value gets the gradient of its place, also where a place stands for adjacent ones; one without a place 0."""
  base, value = Tensor.ones(6).requires_grad_(), Tensor.ones(1, 3, *[2] * adjacent).requires_grad_()
  index = Tensor([[4, -1, 0]])
  found = base._new(written(base.uop, index.uop, value.uop, Ops.ADD))
  grads = (found * Tensor.arange(6)).sum().gradient(base, value)
  assert grads[0].tolist() == [0, 1, 2, 3, 4, 5]
  assert grads[1].tolist() == ([[[4, 5], [0, 0], [0, 1]]] if adjacent else [[4, 0, 0]])

def test_other_writes_have_no_gradient_of_their_own() -> None:
  base, value = Tensor.ones(6), Tensor.ones(1, 3).requires_grad_()
  found = base._new(written(base.uop, Tensor([[4, 2, 0]]).uop, value.uop))
  with pytest.raises(GradientError, match="SCATTER"): found.sum().gradient(value)
