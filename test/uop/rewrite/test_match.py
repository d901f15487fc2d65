"""Rules: the compiled matcher does the same as the interpreter, and mistakes in rules raise errors."""
from __future__ import annotations
import functools
import random
from typing import Any

import pytest

from generators.expressions import condition, integer, variables
from tinyhw.dtype import dtypes
from tinyhw.errors import PatternError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import PatternMatcher, rule
from tinyhw.uop.symbolic.symbolic import symbolic
from tinyhw.uop.upat import UPat

a, b, c = (UOp.variable(name, 0, 10) for name in "abc")

def test_documented_example() -> None:
  pm = PatternMatcher([(UPat(Ops.ADD, src=(UPat.cvar("x"), UPat.cvar("x"))), lambda x: x * 2)])
  three = UOp.const(dtypes.int32, 3)
  assert pm.rewrite(three + three) is three * 2 and pm.rewrite(three * 3) is None

def random_pattern(rng: random.Random, depth: int) -> UPat:
  """A pattern of any kind over the ops of random expressions."""
  name = rng.choice(["x", "y", "z", None, None])
  if depth == 0 or rng.random() < 0.2:
    return rng.choice([UPat.var(name), UPat.cvar(name), UPat(name=name), UPat.const(None, rng.randint(0, 4))])
  below = lambda: random_pattern(rng, depth - 1)
  ops = rng.choice([Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.CMPLT, Ops.AND, Ops.WHERE, (Ops.ADD, Ops.MUL),
                    (Ops.IDIV, Ops.MOD, Ops.MAX), None])
  arity = 3 if ops is Ops.WHERE else 2
  src = rng.choice([tuple(below() for _ in range(arity)), [below() for _ in range(arity)], below(), None, (below(),)])
  dtype = rng.choice([None, None, dtypes.weakint, dtypes.bool, (dtypes.weakint, dtypes.bool)])
  pattern = UPat(ops, dtype, src, name=name, allow_any_len=rng.random() < 0.4)
  return UPat.any(pattern, below()) if rng.random() < 0.15 else pattern

@pytest.mark.parametrize("seed", range(60))
def test_compiled_agrees_with_interpreted(seed: int) -> None:
  rng = random.Random(seed)
  log: list[tuple[int, tuple[tuple[str, UOp], ...]]] = []
  def recorder(i: int) -> Any:
    return lambda **captured: log.append((i, tuple(sorted(captured.items(), key=lambda kv: kv[0]))))
  patterns = [(p, recorder(i)) for i, p in enumerate(random_pattern(rng, rng.randint(1, 3)) for _ in range(12))]
  compiled, interpreted = PatternMatcher(patterns), PatternMatcher(patterns, compiled=False)
  leaves = variables(rng)
  for _ in range(6):
    for u in UOp.sink(integer(rng, leaves, 3), condition(rng, leaves, 2)).toposort():
      log.clear()
      assert compiled.rewrite(u) is None
      first = list(log)
      log.clear()
      assert interpreted.rewrite(u) is None
      assert first == log, u

def test_symbolic_rules_agree_with_the_interpreter() -> None:
  slow = PatternMatcher(symbolic.patterns, compiled=False)
  rng = random.Random(1)
  for _ in range(60):
    for u in condition(rng, variables(rng), 3).toposort(): assert symbolic.rewrite(u) is slow.rewrite(u), u

def test_first_rule_that_gives_something_new_wins() -> None:
  pm = PatternMatcher([(UPat(Ops.ADD, name="u"), lambda u: None), (UPat(Ops.ADD, name="u"), lambda u: u),
                       (UPat(Ops.ADD), lambda: b),
                       (UPat(Ops.ADD), lambda: c)])
  assert pm.rewrite(a + 1) is b and PatternMatcher(pm.patterns, compiled=False).rewrite(a + 1) is b

def test_sum_of_matchers_tries_the_first_first() -> None:
  one, two = PatternMatcher([(UPat(Ops.ADD), lambda: a)]), PatternMatcher([(UPat((Ops.ADD, Ops.MUL)), lambda: b)])
  assert (one + two).rewrite(a + 1) is a and (two + one).rewrite(a + 1) is b and (one + two).rewrite(a * 2) is b

def test_context_and_kinds_of_functions() -> None:
  class Holder:
    def method(self, ctx: list[int], x: UOp) -> UOp: return x * len(ctx)
  def with_default(x: UOp, other: UOp | None = None) -> UOp: return x if other is None else other
  def scale(x: UOp, by: int) -> UOp: return x * by
  for compiled in (True, False):
    def pm(function: Any, compiled: bool = compiled) -> PatternMatcher:
      return PatternMatcher([(UPat.var("x") + 1, function)], compiled)
    assert pm(lambda ctx, x: ctx[0] + x).rewrite(a + 1, [b]) is b + a
    assert pm(lambda x, ctx: ctx[0] + x).rewrite(a + 1, [b]) is b + a
    assert pm(Holder().method).rewrite(a + 1, [1, 2]) is a * 2
    assert pm(with_default).rewrite(a + 1) is a
    assert pm(functools.partial(scale, by=5)).rewrite(a + 1) is a * 5
    assert pm(lambda **names: names["x"]).rewrite(a + 1) is a
    assert pm(lambda x, *, ctx: x * ctx).rewrite(a + 1, 7) is a * 7

def test_named_rules() -> None:
  @rule(UPat.var("x") * 0, UPat.const(None, 0) * UPat.var("x"))
  def times_zero(x: UOp) -> UOp:
    """x * 0 -> 0"""
    return x.const_like(0)
  pm = PatternMatcher([times_zero])
  assert pm.rewrite(a * 0) is a.const_like(0) and times_zero(a) is a.const_like(0)
  assert times_zero.__doc__ == "x * 0 -> 0" and repr(times_zero) == "Rule(times_zero)"
  assert pm.which(a * 0) == "times_zero" and pm.which(a * 2) is None and len(pm.patterns) == 2

def test_many_alternatives_are_left_to_the_interpreter() -> None:
  x = UPat.var()
  for _ in range(7): x = x + UPat.var()
  pm = PatternMatcher([(x.named("u"), lambda u: a)])
  u = a
  for i in range(7): u = u + (b + i if i == 3 else c)
  assert pm.rewrite(u) is a and "interpret(" in pm.source(Ops.ADD)

def test_tests_that_neighbours_share_are_made_once() -> None:
  text = PatternMatcher([(UPat.var("x") + UPat.cvar("c"), lambda x, c: None),
                         (UPat.var("x") + UPat.cvar("c"), lambda x, c: None)]).source(Ops.ADD)
  assert text.count("op_1 is CONST") == 2  # and not 2 of each rule: one for each order

def test_every_op_can_be_a_root() -> None:
  pm = PatternMatcher([(UPat(name="u"), lambda u: a)])
  for op in Ops:
    assert pm.rewrite(UOp(op, dtypes.int32, (b,) * (1 if op in GroupOp.Unary | {Ops.CAST, Ops.BITCAST} else 2),
                          "x")) is a

def test_refusals() -> None:
  with pytest.raises(PatternError, match="does not take 'y'"):
    PatternMatcher([(UPat.var("y") + 1, lambda x: x)]).rewrite(a + 1)
  with pytest.raises(PatternError, match="wants 'x'"): PatternMatcher([(UPat.var() + 1, lambda x: x)]).rewrite(a + 1)
  with pytest.raises(PatternError, match="UPat, function"):
    PatternMatcher([(a, lambda x: x)])  # type: ignore[list-item]
  with pytest.raises(PatternError, match="UPat, function"): PatternMatcher([(UPat(), 3)])  # type: ignore[list-item]
