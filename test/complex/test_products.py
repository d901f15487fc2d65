"""complex/products.py: against sums of Python's complex numbers."""
from __future__ import annotations
import math

from tinyhw import Tensor
from tinyhw.complex import products
from tinyhw.complex.tensor import Complex, made

A = [[1 + 2j, 3 - 1j, -2j], [0.5 + 0j, -1 + 1j, 4 + 0j]]
B = [[1j, 2 + 0j], [1 - 1j, -3 + 0j], [2 + 2j, 0.25j]]
PRODUCT = [[sum(x * y for x, y in zip(row, column)) for column in zip(*B)] for row in A]

def tensor(rows: object) -> Complex: return Tensor(rows, dtype="complex128")   # type: ignore[return-value]

def test_dot_and_einsum() -> None:
  assert made(*products.dot(tensor(A).pair, tensor(B).pair)).tolist() == PRODUCT
  assert made(*products.einsum("ij,jk->ik", [tensor(A).pair, tensor(B).pair])).tolist() == PRODUCT
  three = made(*products.einsum("i,i,i->", [tensor([1j, 2j]).pair] * 3)).item()
  assert three == -9j
  assert Tensor.einsum("ij,jk->ik", tensor(A), tensor(B)).tolist() == PRODUCT

def test_products_along_an_axis() -> None:
  for n in range(1, 7):
    row = [complex(k + 1, k % 3 - 1) for k in range(n)]
    assert made(*products.prod(tensor(row).pair, 0)).tolist() == [math.prod(row, start=1 + 0j)]
    running = [math.prod(row[:k + 1], start=1 + 0j) for k in range(n)]
    assert made(*products.cumprod(tensor(row).pair, 0)).tolist() == running
  assert tensor([[]]).prod(1).tolist() == [1 + 0j]
  assert tensor(A).prod().tolist() == math.prod(x for row in A for x in row)
