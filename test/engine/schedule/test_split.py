"""Reductions in two steps: which of them are split, and that the results are equal."""
from __future__ import annotations

from collections.abc import Callable
import functools

import numpy as np
import pytest

from tinyhw.engine.schedule.split import MANY_TERMS, split_reductions, terms_of
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def reductions(t: Tensor) -> int:
  return sum(u.op is Ops.REDUCE_AXIS for root in split_reductions([t.uop]) for u in root.toposort())

@pytest.mark.parametrize("shape, axis, count", [((MANY_TERMS,), 0, 2), ((MANY_TERMS - 1,), 0, 1),
                                                ((4, MANY_TERMS), 1, 2), ((64, MANY_TERMS), 1, 1),
                                                ((256, 256), (0, 1), 2), ((65537,), 0, 1)])
def test_large_reductions_to_few_results_are_split(shape: tuple[int, ...], axis: int, count: int) -> None:
  assert reductions(Tensor.empty(*shape, device="PYTHON").sum(axis)) == count

@pytest.mark.parametrize("dtype, terms, count", [("float32", 4096, 1), ("float32", 6144, 2), ("bfloat16", 6144, 1),
                                                 ("bfloat16", 12288, 2), ("int8", 12288, 1)])
def test_long_products_are_split_where_a_panel_has_no_room(dtype: str, terms: int, count: int) -> None:
  """The bytes of the operands count: a row of bfloat16 has half of those of float32."""
  x, w = (Tensor.empty(256, terms, dtype=dtype, device="PYTHON") for _ in range(2))
  assert reductions(x @ w.T) == count

def test_what_is_not_split_is_the_same_object() -> None:
  roots = [Tensor.empty(64, device="PYTHON").sum().uop]
  assert split_reductions(roots) is roots

@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_results(name: str) -> None:
  a = np.random.default_rng(0).random((2, MANY_TERMS), np.float32)
  np.testing.assert_allclose(getattr(Tensor(a), name)(1).numpy(), getattr(a, name)(1), rtol=1e-5)

def partial(t: Tensor) -> tuple[int, ...]:
  """Return the arrangement of a first step's terms; () if there is one step."""
  found = [u.src[0].shape for root in split_reductions([t.uop]) for u in root.toposort() if u.op is Ops.CONTIGUOUS
           for u in u.src]
  return found[0] if found else ()

def matrix(rows: int, columns: int) -> Tensor: return Tensor.empty(rows, columns, device="PYTHON")

@pytest.mark.parametrize("columns, shape", [(2, (256, 1024, 16)), (17, (16, 256, 272)), (24, (128, 256, 48)),
                                            (64, (256, 256, 64)),
                                            (256, (256, 256, 256)), (257, ())])
def test_rows_of_few_columns_are_joined_until_registers_are_full(columns: int, shape: tuple[int, ...]) -> None:
  assert partial(matrix(1 << 16 if columns > 2 else 1 << 21, columns).sum(0)) == shape

@pytest.mark.parametrize("name, shape", [
  ("fewer", ()), ("computed", (16, 256, 272)), ("several axes", (16, 256, 272)), ("shared by rows", (256, 256, 17)),
  ("cut", (256, 256, 17)),
  ("turned", ()), ("a product", (64, 1024, 17)), ("rows", ())])
def test_where_rows_are_not_adjacent_they_are_not_joined(name: str, shape: tuple[int, ...]) -> None:
  x = matrix(1 << 16, 17)
  sums: dict[str, Callable[[], Tensor]] = {
    "fewer": lambda: matrix(1 << 13, 17).sum(0), "computed": lambda: (x * 2 + matrix(1 << 16, 17)).exp().sum(0),
    "several axes": lambda: x.reshape(64, 1024, 17).sum((0, 1)),
    "shared by rows": lambda: (x - matrix(1 << 16, 1)).sum(0),
    "cut": lambda: matrix(1 << 16, 20)[:, :17].sum(0), "turned": lambda: matrix(17, 1 << 16).permute(1, 0).sum(0),
    "a product": lambda: (matrix(1 << 16, 1) * matrix(1, 17)).sum(0), "rows": lambda: matrix(64, 1 << 16).sum(1)}
  assert partial(sums[name]()) == shape

@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("rows, columns", [(16384, 17), (16385, 17), (16639, 17), (5243, 50), (1100, 255)])
def test_columns_with_rows_left_over(name: str, rows: int, columns: int) -> None:
  a = np.random.default_rng(rows).random((rows, columns), np.float32)
  np.testing.assert_allclose(getattr(Tensor(a), name)(0).numpy(), getattr(a.astype(np.float64), name)(0), rtol=1e-6)

def sum_of_products(count: int, rows: int = 64) -> tuple[Tensor, float]:
  """Return the gradient of a common operand of several products, and its distance from numpy's."""
  random = np.random.default_rng(1)
  x, *weights = (random.random(shape, np.float32) for shape in ((rows, 64), *[(64, 96)] * count))
  outer = random.random((count, rows, 96), np.float32)
  t = Tensor(x).requires_grad_()
  sum((t @ Tensor(w) * Tensor(g) for w, g in zip(weights, outer)), Tensor(0.0)).sum().backward()
  assert t.grad is not None
  expected = sum(g @ w.T for w, g in zip(weights, outer))
  return t.grad, float(np.abs(t.grad.numpy() / expected - 1).max())

@pytest.mark.parametrize("count, rows, sums", [(1, 64, 1), (2, 64, 2), (5, 64, 5), (3, 8, 1), (16, 64, 16),
                                               (17, 64, 17), (40, 64, 40)])
def test_a_sum_of_large_products_is_as_many_sums(count: int, rows: int, sums: int) -> None:
  gradient, error = sum_of_products(count, rows)
  assert error < 1e-5 and reductions(gradient) == sums

def product(rows: int, columns: int, terms: int) -> UOp:
  """Return the elements of a matrix product before they are summed."""
  factors = [Tensor.empty(*shape, device="PYTHON").uop for shape in ((rows, 1, terms), (1, columns, terms))]
  return graph.mul(*[graph.expand(x, (rows, columns, terms)) for x in factors])

def test_a_sum_of_products_and_others_is_the_products_and_one_sum() -> None:
  others = [Tensor.empty(64, 64, 64, device="PYTHON").uop for _ in range(3)]
  terms = [product(64, 64, 64), others[0], product(64, 64, 64), *others[1:]]
  summed = functools.reduce(lambda x, y: UOp(Ops.ADD, x.dtype, (x, y)), terms)
  made, = split_reductions([graph.reduce(summed, Ops.ADD, (2,))])
  assert sorted(len(terms_of(u.src[0])) for u in made.toposort() if u.op is Ops.REDUCE_AXIS) == [1, 1, 3]

def test_a_sum_with_itself_is_one_term() -> None:
  """A sum with very many terms, of which a few are written down."""
  x = product(64, 64, 64)
  for _ in range(64): x = UOp(Ops.ADD, x.dtype, (x, x))
  roots = [graph.reduce(x, Ops.ADD, (2,))]
  assert split_reductions(roots) is roots
