"""Recognize attention in a kernel: two products, and the softmax of a row between them (engine/schedule/kept_rows.py).

    scores[j]  = a function of (sum of q[d] * k[j, d]) and of positions: scale, mask, bias
    largest    = max of scores[j]
    powers[j]  = exp(scores[j] - largest)
    total      = sum of powers[j]
    weights[j] = powers[j] * a function of positions * a factor of the row, such as 1 / total
    out[e]     = sum of weights[j] * v[j, e]

All values of a row become expressions of one range, over its positions. The factor of the row is taken out of the
second sum. `build.py` then computes everything in one loop over blocks of the row.
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def _argument(name: str) -> UOp: return UOp(Ops.ACC, dtypes.float32, (UOp.const(dtypes.float32, 0),), name)

# the arguments of an attention's functions
PRODUCT, POWER, TOTAL, RESULT = map(_argument, ("product", "power", "total", "result"))

class Attention(NamedTuple):
  """The parts of a kernel. Values of a row are expressions of `position`.

  inner: the REDUCE of the inner product. score: a function of PRODUCT. power: EXP or EXP2. weight: a function of POWER,
  without the factors of the row. factors: of the row, functions of TOTAL, by which the outer product is multiplied.
  value: the other operand of the outer product. store: of a function of RESULT, which is the outer product. row,
  column: the output ranges of the outer product's operands; column is None if the second one has none.
  """
  store: UOp
  position: UOp
  inner: UOp
  score: UOp
  power: Ops
  weight: UOp
  factors: tuple[UOp, ...]
  value: UOp
  row: UOp
  column: UOp | None

def attention_in(sink: UOp) -> Attention | None:
  """Return the parts of an attention; None for another kernel."""
  if len(sink.src) != 1 or not any(u.op is Ops.STAGE for u in sink.src[0].toposort()): return None
  store = inlined(sink.src[0])
  outer = next((u for u in store.toposort() if u.op is Ops.REDUCE and u.arg is Ops.ADD
                and u in store.src[1].toposort(lambda v: v.op is not Ops.REDUCE)), None)
  if outer is None or len(ranges_of(outer)) != 1 or outer.src[0].op is not Ops.MUL: return None
  (position,) = ranges_of(outer)
  for weights, value in (outer.src[0].src, outer.src[0].src[::-1]):
    if any(u.op is Ops.REDUCE for u in value.toposort()): continue
    found = _parts(store, outer, position, weights, value)
    if found is not None: return found
  return None

def inlined(u: UOp) -> UOp:
  """Return a node whose loads from arrays are the values that were stored there."""
  new: dict[UOp, UOp] = {}
  for v in u.toposort():
    src = tuple([new[s] for s in v.src])
    if v.op is Ops.LOAD and v.src[0].src[0].op is Ops.STAGE:
      stage = v.src[0].src[0]
      (r,) = ranges_of(stage)
      new[v] = substitute(new[stage.src[0]], {r: new[v.src[0].src[1]]})
    else: new[v] = v if src == v.src else UOp(v.op, v.dtype, src, v.arg, v.tag)
  return new[u]

def _parts(store: UOp, outer: UOp, position: UOp, weights: UOp, value: UOp) -> Attention | None:
  sums = [u for u in weights.toposort() if u.op is Ops.REDUCE]
  largest = [u for u in sums if u.arg is Ops.MAX]
  if len(largest) != 1 or len(ranges_of(largest[0])) != 1: return None
  score = at(largest[0], position)
  total = [u for u in sums if u.arg is Ops.ADD and largest[0] in u.toposort()]
  if len(total) != 1 or len(ranges_of(total[0])) != 1: return None
  power = at(total[0], position)
  difference = power.src[0] if power.op in (Ops.EXP, Ops.EXP2) else power
  if difference.op is not Ops.SUB or difference.src[0] is not score or unguarded(difference.src[1]) is not largest[0]:
    return None
  found = without_factors(weights, power, position)
  inner = [u for u in score.toposort() if u.op is Ops.REDUCE]
  if found is None or len(inner) != 1 or inner[0].arg is not Ops.ADD or len(ranges_of(inner[0])) != 1: return None
  if inner[0].src[0].op is not Ops.MUL: return None
  weight, factors = found
  outputs = ranges_of(store)
  x, y = inner[0].src[0].src
  if position in x.ranges: x, y = y, x
  if position in x.ranges or position not in y.ranges: return None
  rows = [r for r in outputs if r in x.ranges and r not in y.ranges and r not in value.ranges]
  columns = [r for r in outputs if r in value.ranges and r not in weights.ranges]
  if not rows or any(not size_of(r) for r in (*outputs, position)): return None
  of_total = tuple([f.substitute({total[0]: TOTAL}) for f in factors])
  return Attention(store.substitute({outer: RESULT}), position, inner[0], score.substitute({inner[0]: PRODUCT}),
                   power.op, weight.substitute({power: POWER}), of_total, value, max(rows, key=size_of),
                   max(columns, key=size_of, default=None))

def at(reduction: UOp, position: UOp) -> UOp:
  """Return what a REDUCE folds, at another position."""
  return substitute(reduction.src[0], {ranges_of(reduction)[0]: position})

def unguarded(u: UOp) -> UOp:
  """Return x of `0 if x == -inf else x`, which keeps a row that sees nothing from becoming NaN; else the value.

  The kernel's largest score is finite from the start, so it needs no guard.
  """
  if u.op is not Ops.WHERE or u.src[0].op is not Ops.CMPEQ or u.src[0].src[0] is not u.src[2]: return u
  zero, infinity = u.src[1], u.src[0].src[1]
  return u.src[2] if zero.op is infinity.op is Ops.CONST and (zero.arg, infinity.arg) == (0, -math.inf) else u

def without_factors(u: UOp, power: UOp, position: UOp) -> tuple[UOp, tuple[UOp, ...]] | None:
  """Return a weight without the factors that do not depend on the position, and these factors.

  None if the weight is no multiple of the power.
  """
  if u is power: return u, ()
  if u.op is Ops.CAST and dtypes.is_float(u.dtype):
    found = without_factors(u.src[0], power, position)
    return None if found is None else (UOp(Ops.CAST, u.dtype, found[:1]), found[1])
  if u.op is Ops.WHERE:
    chosen = [k for k in (1, 2) if not (u.src[k].op is Ops.CONST and u.src[k].arg == 0)]
    if len(chosen) != 1 or power in u.src[0].toposort(): return None
    found = without_factors(u.src[chosen[0]], power, position)
    if found is None: return None
    return UOp(Ops.WHERE, u.dtype, tuple([found[0] if k in chosen else s for k, s in enumerate(u.src)])), found[1]
  if u.op is Ops.FDIV and position not in u.src[1].ranges:
    found = without_factors(u.src[0], power, position)
    return None if found is None else (found[0], (*found[1], UOp(Ops.RECIPROCAL, u.dtype, u.src[1:])))
  if u.op is not Ops.MUL: return None
  for x, y in (u.src, u.src[::-1]):
    if power in y.toposort(): continue
    found = without_factors(x, power, position)
    if found is None: continue
    if position not in y.ranges and any(v.op is Ops.REDUCE for v in y.toposort()): return found[0], (*found[1], y)
    if any(v.op is Ops.REDUCE for v in y.toposort()): return None
    return UOp(Ops.MUL, u.dtype, (found[0], y)), found[1]
  return None
