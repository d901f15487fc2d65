"""Rules for comparisons of integers and for conjunctions of them, and the constraints that true conditions put on other
expressions.

A comparison is the sign of a difference. Terms that both sides share cancel, and common divisors are removed. Terms
that stay within one multiple of a divisor are dropped. A division by a number is undone (`x // 4 < 3` is `x < 12`).

In canonical form each side has positive coefficients. A constant is the last term of the right side, or the only term
of the left side. An integer comparison is never negated.
"""
from __future__ import annotations
import itertools
import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import rule
from tinyhw.uop.symbolic.divmod import INTEGERS, is_below, is_by_number
from tinyhw.uop.symbolic.linear import (
  Linear, Terms, build, exact, fits, linear, number, order, plus, span, term_order, weakint, whole_variables)
from tinyhw.uop.upat import UPat

def truth(value: bool, like: UOp) -> UOp: return like.const_like(value)

def _difference(u: UOp) -> tuple[Terms, int] | None:
  """left - right of a comparison, if nothing wraps."""
  left, right = exact(u.src[0]), exact(u.src[1])
  if left is None or right is None: return None
  terms = dict(left[0])
  return terms, left[1] + plus(terms, right, -1)

def _sides(terms: Terms, constant: int, dtype: DType) -> tuple[UOp, UOp] | None:
  """Split a difference into two sides, each with positive coefficients. None if a type that wraps cannot hold them."""
  positive = {t: k for t, k in terms.items() if k > 0}
  negative = {t: -k for t, k in terms.items() if k < 0}
  left, right = (0, -constant) if positive else (constant, 0)
  if not fits(dtype, positive, left) or not fits(dtype, negative, right): return None
  return build(positive, left, dtype), build(negative, right, dtype)

def _drop_low_terms(terms: Terms, constant: int) -> Linear:
  """f*high + low < 0 is high + low//f < 0, if low // f is one number."""
  for f in sorted({abs(k) for k in terms.values()} | {math.gcd(*terms.values())}, reverse=True):
    if f == 1: break
    low_least, low_most = span({t: k for t, k in terms.items() if k % f}, constant)
    if low_least // f == low_most // f: return {t: k // f for t, k in terms.items() if k % f == 0}, low_least // f
  return terms, constant

def _undo_division(left: UOp, right: UOp) -> tuple[UOp, UOp] | None:
  """x // n < b is x < b*n. a < x // n is (a+1)*n - 1 < x."""
  if is_by_number(left, Ops.IDIV) and right.op is Ops.CONST:
    bound, x = right.arg * left.src[1].arg, left.src[0]
    return (x, number(x.dtype, bound)) if x.dtype.min <= bound <= x.dtype.max else None
  if is_by_number(right, Ops.IDIV) and left.op is Ops.CONST:
    bound, x = (left.arg + 1) * right.src[1].arg - 1, right.src[0]
    return (number(x.dtype, bound), x) if x.dtype.min <= bound <= x.dtype.max else None
  return None

def _rebuilt(u: UOp, sides: tuple[UOp, UOp] | None) -> UOp | None:
  """The comparison with new sides, or None if they are its own."""
  if sides is None or sides == u.src: return None
  return UOp(u.op, u.dtype, sides)

@rule(UPat(Ops.CMPLT, src=(UPat.var("x", INTEGERS), UPat.var("y")), name="u"))
def less(u: UOp, x: UOp, y: UOp) -> UOp | None:
  """Simplify x < y, to true or false if the bounds decide it.

  - x + 3 < y + 5 -> x < y + 2
  - (a*4 + b) < 16 -> a < 4 for 0 <= b < 4
  - x // 4 < 3 -> x < 12
  """
  found = _difference(u)
  if found is None: return None
  found = whole_variables(found[0]), found[1]
  low, high = span(*found)
  if high < 0 or low >= 0: return truth(high < 0, u)
  if x.dtype is weakint and y.op is not Ops.CONST:
    form = linear(x)
    if form is not None and is_below(form, y): return truth(True, u)
  undone = _undo_division(x, y)
  if undone is not None: return _rebuilt(u, undone)
  return _rebuilt(u, _sides(*_drop_low_terms(*found), x.dtype))

@rule(UPat((Ops.CMPEQ, Ops.CMPNE), src=(UPat.var("x", INTEGERS), UPat.var("y")), name="u"))
def equal(u: UOp, x: UOp, y: UOp) -> UOp | None:
  """x*4 + 3 == y*4 -> false; x + 3 == 5 -> x == 2; and so on. The first term in order is on the left."""
  found = _difference(u)
  if found is None: return None
  terms, constant = found
  low, high = span(terms, constant)
  if low > 0 or high < 0 or low == high: return truth((low == high == 0) is (u.op is Ops.CMPEQ), u)
  if constant % math.gcd(*terms.values()): return truth(u.op is Ops.CMPNE, u)
  terms = whole_variables(terms)
  divisor = math.gcd(*terms.values())
  if min(terms.items(), key=lambda item: term_order(*item))[1] < 0: divisor = -divisor
  return _rebuilt(u, _sides({t: k // divisor for t, k in terms.items()}, constant // divisor, x.dtype))

@rule(UPat(Ops.XOR, dtypes.bool, [UPat(Ops.CMPLT, src=(UPat.var("x", INTEGERS), UPat.var("y"))), UPat.cvar("c")]))
def not_less(x: UOp, y: UOp, c: UOp) -> UOp | None:
  """not x < y -> y - 1 < x. Only for integers: a comparison of floats with NaN is false both ways."""
  if not c.arg: return None
  form = exact(y)
  if form is None or not fits(y.dtype, form[0], form[1] - 1): return None
  return UOp(Ops.CMPLT, c.dtype, (build(form[0], form[1] - 1, y.dtype), x))

# ***** conjunctions *****

class Constraint:
  """A conjunct `least <= expression <= most`. The expression is a canonical sum without constant whose first term has a
  positive coefficient."""
  __slots__ = ("expression", "least", "most")
  def __init__(self, expression: UOp, least: float, most: float) -> None:
    self.expression, self.least, self.most = expression, least, most

_constraints: WeakKeyDictionary[UOp, Constraint] = WeakKeyDictionary()

def constraint(clause: UOp) -> Constraint | None:
  """The constraint of a comparison, if it bounds a sum of integers.

  Cached, because a clause occurs in many conjunctions.
  """
  known = _constraints.get(clause)
  if known is None:
    known = _constraint(clause)
    if known is not None: _constraints[clause] = known
  return known

def _constraint(clause: UOp) -> Constraint | None:
  if clause.op not in (Ops.CMPLT, Ops.CMPEQ) or not dtypes.is_int(clause.src[0].dtype): return None
  found = _difference(clause)
  if found is None or not found[0]: return None
  terms, constant = found
  least, most = (-math.inf, -1 - constant) if clause.op is Ops.CMPLT else (-constant, -constant)
  if min(terms.items(), key=lambda item: term_order(*item))[1] < 0:
    terms, least, most = {t: -k for t, k in terms.items()}, -most, -least
  return Constraint(build(terms, 0, clause.src[0].dtype), least, most)

def clauses(condition: UOp) -> list[UOp]:
  """The distinct operands of a conjunction, in their order."""
  return list(dict.fromkeys(condition.split(Ops.AND)))

def conjunction(parts: Iterable[UOp], like: UOp) -> UOp:
  """Combine parts with AND into a canonical chain. It is true if there are none."""
  result: UOp | None = None
  for part in parts: result = part if result is None else UOp(Ops.AND, part.dtype, (result, part))
  return truth(True, like) if result is None else result

def _opposite(says: Constraint | None) -> Constraint | None:
  """The constraint of the negation. None if that is not one bound."""
  if says is None or (says.least != -math.inf and says.most != math.inf): return None
  return (Constraint(says.expression, says.most + 1, math.inf) if says.least == -math.inf
          else Constraint(says.expression, -math.inf, says.least - 1))

def _tighten(stated: list[tuple[UOp, Constraint | None]]) -> list[UOp] | None:
  """The conjuncts without those that others imply. None if they contradict each other."""
  known: dict[UOp, list[float]] = {}
  for _, says in stated:
    if says is None: continue
    interval = known.setdefault(says.expression, [-math.inf, math.inf])
    interval[0], interval[1] = max(interval[0], says.least), min(interval[1], says.most)
    if interval[0] > interval[1]: return None
  kept: list[UOp] = []
  # equalities constrain most, so they come first
  for part, says in sorted(stated, key=lambda item: item[1] is None or item[1].least != item[1].most):
    if says is not None:
      interval = known[says.expression]
      lower, upper = says.least == interval[0], says.most == interval[1]
      if not (lower and says.least != -math.inf or upper and says.most != math.inf): continue
      # stated now: a later clause with the same bound is dropped
      if lower: interval[0] = math.nan
      if upper: interval[1] = math.nan
    kept.append(part)
  return kept

@rule(UPat((Ops.AND, Ops.OR), dtypes.bool, (UPat(), UPat()), name="u"))
def tighten(u: UOp) -> UOp | None:
  """Simplify conjunctions: x < 3 and x < 5 -> x < 3; x < 3 and 5 < x -> false. Clauses are sorted.

  "or" is treated as a conjunction of negations: x < 3 or x < 5 -> x < 5. A clause and its negation are found too.
  """
  both = u.op is Ops.AND
  operands = list(itertools.islice(u.split(u.op), MOST_CLAUSES + 1))
  if len(operands) > MOST_CLAUSES: return None
  parts = list(dict.fromkeys(operands))
  chain = set(parts)
  if any(p.op is Ops.XOR and p.src[1].op is Ops.CONST and p.src[1].arg and p.src[0] in chain for p in parts):
    return truth(not both, u)
  kept = _tighten([(p, constraint(p) if both else _opposite(constraint(p))) for p in parts])
  if kept is None: return truth(not both, u)
  result: UOp | None = None
  for part in sorted(kept, key=order): result = part if result is None else UOp(u.op, u.dtype, (result, part))
  return None if result is u else result

MOST_CLAUSES = 32

COMPARE = (less, equal, not_less, tighten)
