"""Simplification of an index under the condition of its gate."""
from __future__ import annotations
import random

import pytest

from generators.expressions import condition, integer, random_point, same, value_at, variables
from tinyhw.uop.ops import UOp, Variable
from tinyhw.uop.symbolic.symbolic import simplify
from tinyhw.uop.symbolic.valid import simplify_valid, uop_given_valid
from tinyhw.uop.text import render

i, j = Variable("i", 0, 15), Variable("j", 0, 7)

def test_index_behind_a_gate() -> None:
  assert uop_given_valid((i >= 2) & (i < 10), (i - 2) % 8) is simplify(i - 2)
  assert uop_given_valid(i < 4, i // 4) is i.const_like(0) and uop_given_valid(i.eq(5),
                                                                               (i * 3) % 7 + j) is simplify(j + 1)
  assert uop_given_valid(i + j < 8, (i + j) // 8 + j) is j and uop_given_valid((i + j < 8),
                                                                               (i + j + 1) % 9) is simplify(i + j + 1)
  assert uop_given_valid(i < 8, (i < 9).where(i, j)) is i
  assert uop_given_valid(i < 20, i % 4) is i % 4 and uop_given_valid((i < 2) & (i > 5), i % 4) is i % 4

def test_gate_loses_what_is_implied() -> None:
  gate, index = simplify_valid((i < 16) & (j >= 0) & (i < 5) & (i < 9), i * 8 + j)
  assert gate is (i < 5) and index is simplify(i * 8 + j)
  gate, index = simplify_valid((i < 4) & (i // 4 + j < 3), i % 4)
  assert {render(p) for p in gate.toposort() if p.dtype is gate.dtype and p.src} >= {"(i<4)", "(j<3)"} and index is i
  gate, _ = simplify_valid((i < 40) & (j < 9), i)
  assert gate.arg is True

@pytest.mark.parametrize("seed", range(150))
def test_random_gates(seed: int) -> None:
  rng = random.Random(seed)
  leaves = variables(rng, rng.randint(1, 3))
  index, gate = integer(rng, leaves, rng.randint(1, 4)), condition(rng, leaves, rng.randint(1, 3))
  if rng.random() < 0.6:
    gate = gate & (rng.choice(leaves) >= rng.randint(-3, 5)) & (rng.choice(leaves) + rng.choice(leaves)
                                                                < rng.randint(3, 20))
  new_gate, new_index = simplify_valid(gate, index)
  for _ in range(20):
    point = random_point(rng, leaves)
    is_open = value_at(gate, point)
    assert same(is_open, value_at(new_gate, point))
    if is_open: assert same(value_at(index, point), value_at(new_index, point))

def test_unbounded_things_are_left() -> None:
  u = UOp.range(9, 0) * 5
  assert uop_given_valid(u.ne(5), u) is u
