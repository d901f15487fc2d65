"""Gradients of rows that were read by indices, summed by sorting: against sums in Python."""
from __future__ import annotations
import random

import pytest

from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.methods import indexing
from tinyhw.methods.graph.rows import BLOCK
from tinyhw.tensor import Tensor

@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
  """Sort tables of every size."""
  monkeypatch.setattr(indexing, "LEAST_WORK", 0)
  monkeypatch.setattr(indexing, "SORTING_GAIN", 0)

def whole(rng: random.Random, *shape: int) -> list[list[float]]:
  """Return a matrix of whole numbers, whose sums are exact."""
  return [[float(rng.randrange(-50, 50)) for _ in range(shape[1])] for _ in range(shape[0])]

def compare(index: list[int], rows: int, columns: int, dtype: str = "int32", kind: str = "float32") -> None:
  rng = random.Random(len(index))
  table = Tensor(whole(rng, rows, columns)).cast(kind).contiguous().requires_grad_()
  given = whole(rng, len(index), columns)
  found = (table[Tensor(index, dtype=dtype)] * Tensor(given)).sum().gradient(table)[0]
  wanted = [[0.0] * columns for _ in range(rows)]
  for i, row in zip(index, given):
    if -rows <= i < rows: wanted[i] = [a + b for a, b in zip(wanted[i], row)]
  assert found.tolist() == wanted

@pytest.mark.parametrize("n", (1, 2, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK, 100))
def test_any_number_of_indices(n: int, always: None) -> None:
  rng = random.Random(n)
  compare([rng.randrange(9) for _ in range(n)], 9, 3)

@pytest.mark.parametrize("high", (1, 2, 3, 40))
def test_rows_that_go_on_over_blocks(high: int, always: None) -> None:
  rng = random.Random(high)
  compare([rng.randrange(high) for _ in range(150)], 40, 2)

@pytest.mark.slow
def test_three_levels_of_blocks(always: None) -> None:
  """More than 2 * BLOCK blocks have blocks themselves. One row has nearly all indices."""
  rng = random.Random(0)
  compare([0 if rng.random() < 0.9 else rng.randrange(30) for _ in range(BLOCK * BLOCK * 3 + 5)], 30, 1)

def test_indices_from_the_end_and_outside(always: None) -> None:
  """Where nothing was read, no gradient arrives."""
  compare([-1, 5, -7, 0, 7, 100, -100, 3, -1], 7, 2)
  compare([250, 3, 255, 250], 260, 1, "uint8")

def test_half_floats_are_summed_in_float32(always: None) -> None:
  compare([0] * 40 + [1], 2, 2, kind="float16")

def test_several_axes_of_indices(always: None) -> None:
  table = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).requires_grad_()
  out = table[Tensor([[0, 2], [2, 2]])]
  assert out.sum().gradient(table)[0].tolist() == [[1.0, 1.0], [0.0, 0.0], [3.0, 3.0]]

def test_a_second_derivative(always: None) -> None:
  table, weight = Tensor([[1.0], [2.0]]).requires_grad_(), Tensor([[3.0], [4.0], [5.0]]).requires_grad_()
  first = (table[Tensor([1, 0, 1])] * weight).sum().gradient(table)[0]
  assert (first * first).sum().gradient(weight)[0].tolist() == [[16.0], [8.0], [16.0]]

def largest_sum(n: int, rows: int, columns: int) -> int:
  """Return the most terms of any reduction in the gradient of a table."""
  table = Tensor.empty(rows, columns, device="NULL").requires_grad_()
  out = table[Tensor.empty(n, dtype="int32", device="NULL")]
  found = out.gradient(table, gradient=Tensor.empty(n, columns, device="NULL"))[0]
  return max(u.src[0].size for k in schedule(canonicalize([found.uop])).kernels for u in k.node.toposort()
             if u.op.name == "REDUCE_AXIS")

def test_large_tables_are_sorted_and_small_ones_are_not() -> None:
  """A vocabulary of 32,000 rows would cost 2^36 multiplications; one of 65 rows is a small product."""
  assert largest_sum(2048, 32000, 512) <= 1 << 25
  assert largest_sum(256, 65, 64) == 256 * 65 * 64
