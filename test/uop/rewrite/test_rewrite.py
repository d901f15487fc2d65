"""Rewriting whole graphs: fixed point, both orders, depth, cost, endless rules."""
from __future__ import annotations
import random

import pytest

from generators.expressions import integer, random_point, same, value_at, variables
from tinyhw import trace
from tinyhw.dtype import dtypes
from tinyhw.errors import PatternError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import PatternMatcher
from tinyhw.uop.rewrite.rewrite import BottomUpGate, Rewriter, Statistics, graph_rewrite, graph_rewrite_map
from tinyhw.uop.symbolic.symbolic import symbolic
from tinyhw.uop.upat import UPat

a, b = UOp.variable("a", 0, 10), UOp.variable("b", 0, 10)
FOLD = PatternMatcher([(UPat(Ops.ADD, src=(UPat.cvar("x"), UPat.cvar("y"))), lambda x, y: x.const_like(x.arg + y.arg)),
                       (UPat.var("x") * 2, lambda x: x + x)])

def constant(n: int) -> UOp: return UOp.const(dtypes.weakint, n)

@pytest.mark.parametrize("bottom_up", [False, True])
def test_documented_example_reaches_a_fixed_point(bottom_up: bool) -> None:
  pm = PatternMatcher([(UPat(Ops.ADD, src=(UPat.cvar("x"), UPat.cvar("x"))), lambda x: x * 2)])
  three = UOp.const(dtypes.int32, 3)
  assert graph_rewrite(three + three, pm, bottom_up=bottom_up) is three * 2
  assert graph_rewrite((constant(1) * 2) * 2 + a, FOLD, bottom_up=bottom_up) is constant(4) + a

def test_replacements_are_rewritten() -> None:
  chain = PatternMatcher([(UPat(Ops.CONST, name="x"), lambda x: x.const_like(x.arg - 1) if x.arg > 0 else None)])
  assert graph_rewrite(a + 50, chain) is a + 0 and graph_rewrite(a + 50, chain, bottom_up=True) is a + 0
  assert graph_rewrite(a + 50, chain, walk=True) is a + 49

def test_sources_first_and_nodes_first_differ() -> None:
  order: list[str] = []
  pm = PatternMatcher([(UPat((Ops.ADD, Ops.MUL), name="x"), lambda x: order.append(x.op.name))])
  graph_rewrite((a * 2) + b, pm)
  assert order == ["MUL", "ADD"]
  order.clear()
  graph_rewrite((a * 2) + b, pm, bottom_up=True)
  assert order == ["ADD", "MUL"]

def test_both_at_once_and_a_gate() -> None:
  def stop(x: UOp) -> None: raise BottomUpGate
  down = PatternMatcher([(UPat(Ops.MUL, name="x"), stop),
                         (UPat(Ops.DEFINE_VAR, name="x"), lambda x: b if x is a else None)])
  assert graph_rewrite(a + a * 2, down, bottom_up=True) is b + a * 2
  assert (graph_rewrite((a + 1) + (constant(5) + 2), FOLD, bpm=PatternMatcher([(UPat.var("x") + 1, lambda x: x)])) is a
          + 7)

def test_context_reaches_the_rules() -> None:
  seen: list[UOp] = []
  graph_rewrite(a + b, PatternMatcher([(UPat(Ops.DEFINE_VAR, name="x"), lambda ctx, x: ctx.append(x))]), ctx=seen)
  assert seen == [a, b]

def test_each_node_is_matched_once_and_cost_is_linear() -> None:
  def visited(n: int) -> int:
    u = a
    for i in range(n): u = u * u + i  # as a tree it has 2**n leaves
    before = Statistics.visited
    graph_rewrite(u, symbolic)
    return Statistics.visited - before
  counts = [visited(n) for n in (50, 100, 200)]
  assert counts[1] <= 2.1 * counts[0] and counts[2] <= 2.1 * counts[1]

@pytest.mark.parametrize("bottom_up", [False, True])
@pytest.mark.slow
def test_depth_does_not_matter(bottom_up: bool) -> None:
  u = a
  for i in range(100_000): u = UOp(Ops.MUL, u.dtype, (u, b))
  swapped = graph_rewrite(u, PatternMatcher([(UPat(Ops.DEFINE_VAR, name="x"), lambda x: b if x is a else None)]),
                          bottom_up=bottom_up)
  assert swapped is not u and len(swapped.toposort()) == 100_001

def test_endless_rules_are_named() -> None:
  def forth(x: UOp) -> UOp: return UOp(Ops.MUL, x.dtype, x.src)
  def back(x: UOp) -> UOp: return UOp(Ops.ADD, x.dtype, x.src)
  pm = PatternMatcher([(UPat(Ops.ADD, name="x"), forth), (UPat(Ops.MUL, name="x"), back)])
  with pytest.raises(PatternError, match="endless rewriting in loop.*(forth, back|back, forth)"):
    graph_rewrite(a + b, pm, name="loop")
  with pytest.raises(PatternError, match="endless.*(forth|back)"): graph_rewrite(a + b, pm, bottom_up=True)
  with pytest.raises(PatternError, match="lambda at .*test_rewrite.py:"):
    graph_rewrite(a + b, PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: x + 1)]))

def test_a_rule_must_return_a_node() -> None:
  with pytest.raises(PatternError, match="returned 3; return a UOp, or None"):
    graph_rewrite(a + b, PatternMatcher([(UPat(Ops.ADD), lambda: 3)]))

def test_memo_stays_with_the_rewriter() -> None:
  rewriter = Rewriter(symbolic)
  u = (a * 2 + b) % 7
  first = rewriter.rewrite(u)
  known = len(rewriter.memo)
  assert rewriter.rewrite(u) is first and len(rewriter.memo) == known
  rewriter.rewrite(u + 1)
  assert len(rewriter.memo) <= known + 3

def test_map_of_all_nodes() -> None:
  u = (a * 2) + 3
  became = graph_rewrite_map(u, FOLD)
  assert became[a * 2] is a + a and became[a] is a and became[u] is (a + a) + 3 and set(became) == set(u.toposort())

def test_origin_follows_replacements() -> None:
  u, location = (a + 77) * 2, ("model.py", 12, "forward")
  trace.follow(u, location)
  assert trace.origin(graph_rewrite(u, FOLD)) == location
  assert trace.origin(graph_rewrite(u, FOLD, bottom_up=True)) == location
  trace.unfollow()

@pytest.mark.parametrize("seed", range(40))
def test_symbolic_keeps_values(seed: int) -> None:
  rng = random.Random(seed)
  leaves = variables(rng)
  u = integer(rng, leaves, 4)
  for result in (graph_rewrite(u, symbolic), graph_rewrite(u, symbolic, bottom_up=True)):
    for _ in range(5):
      point = random_point(rng, leaves)
      assert same(value_at(u, point), value_at(result, point))
