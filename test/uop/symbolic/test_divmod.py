"""// and %: each rule against Python for all small values, and results for typical expressions."""
from __future__ import annotations
import itertools
import random

import pytest

from generators.expressions import value_at
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, Variable
from tinyhw.uop.symbolic.divmod import is_below, recombine
from tinyhw.uop.symbolic.linear import linear
from tinyhw.uop.symbolic.symbolic import simplify
from tinyhw.uop.text import render

x, y = Variable("x", -7, 12), Variable("y", 0, 5)
POINTS = [{x: i, y: j} for i, j in itertools.product(range(-7, 13), range(6))]

def agree(u: UOp) -> None:
  s = simplify(u)
  for point in POINTS: assert value_at(u, point) == value_at(s, point), (render(u), render(s), point)

@pytest.mark.parametrize("n", [-12, -5, -1, 0, 1, 2, 3, 5, 6, 8, 12, 40])
def test_all_values(n: int) -> None:
  rng = random.Random(n)
  for _ in range(60):
    j, k, constant = rng.randint(-13, 13), rng.choice([0, 1, 4, 6, 12, -6]), rng.randint(-20, 20)
    u = x * j + y * k + constant
    for v in (u // n, u % n,
              (u // 4) // n, (u // 4) % n, (u % 12) // n, (u % 12) % n, (u // n) * n + u % n, u - (u // n) * n,
              (u % 24) * 5 + y):
      agree(v)

@pytest.mark.parametrize("u, simple", [
  ((x * 40 + y) // 20, "(x*2)"), ((x + y * 10) % 10, "(x%10)"), ((x * 6) // 3, "(x*2)"), ((x * 4 + y % 4) // 4, "x"),
  ((x * 8 + y) % 4, "(y%4)"),
  ((x * 6 + y) // 12, "(x//2)"), ((x * 6 + y) % 12, "(((x%2)*6)+y)"), ((x // 3) // 4, "(x//12)"),
  ((x // 3 + 2) // 4, "((x+6)//12)"),
  ((x % 12) // 4, "((x//4)%3)"), ((x % 12) % 4, "(x%4)"), ((x % 4) % 12, "(x%4)"), ((-y + 5) % 6, "((y*-1)+5)"),
  ((x + 25) // 10, "(((x+5)//10)+2)"),
  ((x // 4) * 4 + x % 4, "x"), ((x * 4 + 2) // 6 * 6 + (x * 4 + 2) % 6, "((x*4)+2)"),
  ((x // 12) * 3 + (x // 4) % 3, "(x//4)"),
  ((x // 4 % 3) * 4 + x % 4, "(x%12)"), (x - (x // 5) * 5, "(x%5)"),
  ((x * 4 + 2) // 6, "(((x*2)+1)//3)"), ((x * 4 + 2) % 6, "((((x*2)+1)%3)*2)"), ((y * 13) // 13, "y"),
  (x // -4, "((x*-1)//4)"),
  ((x + y) * 3 // 3, "(x+y)"), ((x % 4 + y * 4) % 4, "(x%4)"), ((x % 20 + 3) % 10, "((x+3)%10)"),
])
def test_forms(u: UOp, simple: str) -> None:
  agree(u)
  assert render(simplify(u)) == simple

def test_symbolic_divisors() -> None:
  n, m = Variable("n", 1, 9), Variable("m", 2, 9)
  i, j = UOp.range(n, 0), UOp.range(m, 1)
  for u, simple in [((i * m + j) // m, i), ((i * m + j) % m, j), ((n * 4) // n, n.const_like(4)),
                    ((n * x) % n, n.const_like(0)),
                    ((x * n * 4 + n * 2) // (n * 2), x * 2 + 1), ((i + n) // n, n.const_like(1)), ((j + x * m) % m, j)]:
    assert simplify(u) is simplify(simple), render(u)
  assert simplify(x // n) is x // n and simplify((x * 2) // (y * 2)).op is Ops.IDIV

def test_is_below() -> None:
  n, m = Variable("n", 1, 9), Variable("m", 2, 9)
  i, j = UOp.range(n, 0), UOp.range(m, 1)
  below = lambda u, limit: is_below(linear(simplify(u)) or ({}, 0), simplify(limit))
  assert below(i * m + j, n * m) and below(i, n) and below(x % n, n) and below(i * 2 + 1, n * 2)
  assert not below(i + 1, n) and not below(i * m + j + 1, n * m) and not below(x, n)

def test_recombine_works_in_place() -> None:
  terms = {x % 4: 3, x // 4: 12, y: 1}
  assert recombine(terms) == 0 and terms == {x: 3, y: 1} and recombine(terms) is None
  terms = {(x + 3) % 4: 1, (x + 3) // 4: 4}
  assert recombine(terms) == 3 and terms == {x: 1}

def test_types_that_wrap() -> None:
  s = UOp.variable("s", 0, 30, dtypes.uint8)
  assert simplify((s * 6) // 3) is s * 2 and simplify((s * 10) // 5) is (s * 10) // 5  # 300 is 44
  assert simplify((s // 16) // 16) is s.const_like(0)
  full = UOp.variable("u", 0, 255, dtypes.uint8)
  assert simplify((full // 16) // 15) is simplify(full // 240) and simplify((full // 100) // 100) is full.const_like(0)

def test_a_divisor_that_may_be_0_is_the_end_of_a_range() -> None:
  """A range of 0 iterations computes nothing, so below it the divisor is above 0."""
  p, v, row = Variable("p", 1, 4), Variable("v", 1, 3), Variable("row", 0, 5)
  n = (p + 2) * (v - 1)
  r = UOp.range(n, 0)
  assert simplify((n * row + r) // n) is row and simplify((n * row + r) % n) is r
  for u in ((n * row + 1) // n, (n * row + p) % n):
    for i, j, k in itertools.product(range(1, 5), range(1, 4), range(6)):
      point = {p: i, v: j, row: k}
      assert value_at(u, point) == value_at(simplify(u), point), "1 is not below 0"
