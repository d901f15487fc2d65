"""Simplification of an expression that only matters where a condition is true: the index of a gated access.

Each clause of the condition that bounds a sum of integers narrows that sum. A variable with the narrower bounds
replaces the sum, or a term of it that is expressed by the sum. The expression is simplified, and the variable is
replaced back. `(i - 2) % 8` under the condition `2 <= i < 10` is `i - 2`.
"""
from __future__ import annotations

from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.compare import clauses, conjunction, constraint
from tinyhw.uop.symbolic.linear import Terms, build, limits, linear, number
from tinyhw.uop.symbolic.symbolic import simplify

# without one of these ops narrower bounds change nothing
_BENDS = frozenset({Ops.IDIV, Ops.MOD, Ops.MAX, Ops.WHERE, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE})

def _narrowed(condition: UOp) -> dict[UOp, tuple[int, int]] | None:
  """Map sums to the bounds that the condition gives them, if these are narrower than their own bounds.

  None if the condition can never be true.
  """
  found: dict[UOp, tuple[int, int]] = {}
  for clause in clauses(condition):
    says = constraint(clause)
    if says is None: continue
    low, high = found.get(says.expression) or limits(says.expression)
    bounds = int(max(low, says.least)), int(min(high, says.most))
    if bounds[0] > bounds[1]: return None
    found[says.expression] = bounds
  return {e: bounds for e, bounds in found.items() if bounds != tuple(limits(e))}

def _replaceable(expression: UOp, nodes: dict[UOp, None]) -> tuple[UOp, Terms] | None:
  """Find a term of a sum, with coefficient 1 or -1, that is in `nodes`. Return it and the other terms, as in: term =
  sum + others."""
  form = linear(expression)
  if form is None: return None
  for term, k in form[0].items():
    if abs(k) == 1 and term in nodes: return term, {t: -j * k for t, j in form[0].items() if t is not term}
  return None

def uop_given_valid(valid: UOp, u: UOp) -> UOp:
  """Simplify u under the assumption that valid is true. Where valid is false the result may differ."""
  u, narrowed = simplify(u), _narrowed(simplify(valid))
  for count, (expression, (low, high)) in enumerate((narrowed or {}).items()):
    nodes = u.toposort()
    if not any(n.op in _BENDS for n in nodes): break
    dtype = expression.dtype
    stand_in = number(dtype, low) if low == high else UOp(Ops.DEFINE_VAR, dtype, (), (f"given{count}", low, high))
    if expression in nodes: replaced, there = expression, stand_in
    else:
      found = _replaceable(expression, nodes)
      if found is None: continue
      replaced, others = found
      sign = 1 if (linear(expression) or ({}, 0))[0].get(replaced, 1) == 1 else -1
      there = (build({**others, stand_in: sign}, 0, dtype) if stand_in.op is not Ops.CONST
               else build(others, sign * low, dtype))
    result = simplify(simplify(u.substitute({replaced: there})).substitute({stand_in: expression}
                                                                           if stand_in.op is not Ops.CONST else {}))
    if len(result.toposort()) <= len(nodes): u = result
  return u

def simplify_valid(gate: UOp, index: UOp) -> tuple[UOp, UOp]:
  """Simplify (gate, index). The gate loses clauses that bounds or other clauses imply. The index only keeps its value
  where the gate is true."""
  gate = simplify(gate)
  parts = clauses(gate)
  for part in parts if len(parts) > 1 else ():
    if not any(n.op in (Ops.IDIV, Ops.MOD) for n in part.toposort()): continue
    rest = [p for p in parts if p is not part]
    kept = uop_given_valid(conjunction(rest, gate), part)
    if kept is not part: parts = rest + ([] if kept.op is Ops.CONST and kept.arg else clauses(kept))
  gate = simplify(conjunction(parts, gate))
  return gate, uop_given_valid(gate, index)
