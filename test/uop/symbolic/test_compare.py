"""Comparisons and conjunctions: all small values, and their canonical forms."""
from __future__ import annotations
import itertools
import math
import random

import pytest

from generators.expressions import value_at
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, Variable
from tinyhw.uop.symbolic.compare import clauses, conjunction, constraint
from tinyhw.uop.symbolic.symbolic import simplify
from tinyhw.uop.text import render

x, y = Variable("x", -7, 12), Variable("y", 0, 3)
POINTS = [{x: i, y: j} for i, j in itertools.product(range(-7, 13), range(4))]

def agree(u: UOp) -> None:
  s = simplify(u)
  for point in POINTS: assert value_at(u, point) is value_at(s, point), (render(u), render(s), point)

@pytest.mark.parametrize("seed", range(20))
def test_all_values(seed: int) -> None:
  rng = random.Random(seed)
  def side() -> UOp:
    u = x * rng.randint(-6, 6) + y * rng.choice([0, 1, 4, -3]) + rng.randint(-15, 15)
    return rng.choice([u, u, u // rng.choice([2, 3, 8]), u % 6])
  def clause() -> UOp:
    u, v = side(), side() if rng.random() < 0.4 else x.const_like(rng.randint(-20, 20))
    return rng.choice([u < v, v < u, u <= v, u >= v, u.eq(v), u.ne(v), (u < v).logical_not()])
  for _ in range(25):
    parts = [clause() for _ in range(rng.randint(1, 4))]
    for p in parts: agree(p)
    both, either = parts[0], parts[0]
    for p in parts[1:]: both, either = both & p, either | p
    agree(both)
    agree(either)
    agree(both & either.logical_not())

@pytest.mark.parametrize("u, text", [
  (x + 3 < y + 5, "(x<(y+2))"), (x * 4 + y < 16, "(x<4)"), (x * 4 + y < 17, "(((x*4)+y)<17)"), (x // 4 < 3, "(x<12)"),
  (x // 4 > 1, "(7<x)"),
  (x * 2 < 7, "(x<4)"), (x * -2 < 7, "(-4<x)"), (x < 13, "True"), (x < -7, "False"), (x - y < 0, "(x<y)"),
  (x * 2 - y * 2 < 6, "(x<(y+3))"),
  (x >= 3, "(2<x)"), (x <= 3, "(x<4)"), ((x < 3).logical_not(), "(2<x)"), ((x * 4).eq(8), "(x==2)"),
  ((x * 4).eq(7), "False"),
  ((x * 4).ne(7), "True"),
  ((x + 1).eq(x), "False"), ((y - x).eq(0), "(x==y)"), (x.eq(13), "False"), ((x < 3) & (x < 5), "(x<3)"),
  ((x < 3) | (x < 5), "(x<5)"),
  ((x < 3) & (x > 5), "False"), ((x < 6) | (x > 5), "True"), ((x < 3) & (x.eq(2)), "(x==2)"),
  ((x < 3) & x.eq(4), "False"),
])
def test_forms(u: UOp, text: str) -> None:
  agree(u)
  assert render(simplify(u)) == text

def test_both_ends_of_an_interval_stay() -> None:
  s = simplify((x > 2) & (x < 9) & (x < 20) & (x > 0))
  assert {render(p) for p in clauses(s)} == {"(2<x)", "(x<9)"}

def test_order_of_clauses_does_not_matter() -> None:
  p, q, r = x < 3, y < 2, x + y < 7
  assert simplify(p & (q & r)) is simplify((r & p) & q) and simplify(p | q) is simplify(q | p)

def test_floats_are_not_integers() -> None:
  f = UOp(Ops.DEFINE_VAR, dtypes.float32, (), ("f", -math.inf, math.inf))
  for u in ((f < 3.0).logical_not(), f + 1.0 < f.const_like(2.0), (f < 3.0) & (f < 5.0)):
      assert {s for s in simplify(u).toposort() if s.op is Ops.CMPLT} == {s for s in u.toposort() if s.op is Ops.CMPLT}

def test_constraint() -> None:
  says = constraint(x * 2 + 3 < 9)
  assert says is not None and says.expression is x * 2 and (says.least, says.most) == (-math.inf, 5)
  says = constraint(y < x)
  assert says is not None and constraint((x < y).logical_not()) is None and constraint(x.ne(3)) is None
  says = constraint(x.eq(4))
  assert says is not None and (says.least, says.most) == (4, 4)

def test_conjunction_of_nothing_is_true() -> None: assert conjunction([], x < 3) is (x < 3).const_like(True)
