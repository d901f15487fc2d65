"""Give every REDUCE a variable: REDUCE(value, *ranges) becomes REDUCE(ACC(start), update, …, *ranges).

Each iteration assigns its updates to ACC one after the other. An update is an ordinary expression with ACC as a leaf
(`acc + x`, or a MULACC for a product). Later passes therefore need no knowledge of reductions. The node's value is ACC
after the loops.

An ACC's arg here is (variable, part, update). Each update has a leaf of its own for the variable, so that equal terms
do not become one node. legalize.py numbers the parts. Types narrower than float32 accumulate in float32 where the
target does not have their additions, and are rounded once. A maximum of floats has two variables where all of the
target's instructions ignore NaN (maximum.py).
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.math.casts import SMALL_FLOATS
from tinyhw.codegen.math.maximum import Folded, Maxima, ignores_nan, propagates_nan, widened
from tinyhw.codegen.transform.blocks import in_blocks
from tinyhw.codegen.transform.fold import accumulate, start_of
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def accumulate_reductions(sink: UOp, capabilities: Capabilities) -> UOp:
  """Give every REDUCE an accumulator (ACC), and a long sum two (blocks.py)."""
  sink = in_blocks(sink)
  order = sink.toposort()
  maxima = Maxima(capabilities)
  if not any(u.op is Ops.REDUCE or maxima.wants(u) for u in order): return sink
  new: dict[UOp, UOp] = {}
  count = 0
  for u in order:
    src = tuple([new[s] for s in u.src])
    if u.op is Ops.REDUCE and src[0].op is Ops.ACC: new[u] = UOp(u.op, u.dtype, src, u.arg)
    elif u.op is Ops.REDUCE and u.arg is Ops.MAX and ignores_nan(capabilities, u.dtype):
      new[u] = _largest(u, src, count, maxima)
      count += 2
    elif u.op is Ops.REDUCE:
      new[u] = _reduce(u, src, count, capabilities)
      count += 1
    elif maxima.wants(u): new[u] = maxima.rebuild(u, src)
    else: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.hand_on(new)
  return new[sink]

def _reduce(u: UOp, src: tuple[UOp, ...], count: int, capabilities: Capabilities) -> UOp:
  dtype, op = u.dtype, u.arg
  terms = list(src[0].src) if src[0].op is Ops.GROUP else [src[0]]
  narrow = dtype.scalar() in SMALL_FLOATS and not capabilities.supports(op, dtype.scalar())
  if narrow:
    terms = [_widened(t) for t in terms]
    dtype = dtypes.float32.vec(dtype.count)
  start = start_of(op, dtype)
  variables = [UOp(Ops.ACC, dtype, (start,), (count, 0, k)) for k in range(len(terms))]
  updates = [accumulate(op, v, t) for v, t in zip(variables, terms)]
  result = UOp(Ops.REDUCE, dtype, (variables[0], *updates, *[r for r in src[1:] if r.op is Ops.RANGE]), op)
  return UOp(Ops.CAST, u.dtype, (result,)) if narrow else result

def _largest(u: UOp, src: tuple[UOp, ...], count: int, maxima: Maxima) -> UOp:
  """Build a maximum of floats: a variable for the largest and, where instructions ignore NaN, one for the squares."""
  dtype, loops = widened(u.dtype), [r for r in src[1:] if r.op is Ops.RANGE]
  old, new = [s.src if s.op is Ops.GROUP else (s,) for s in (u.src[0], src[0])]
  def variable(n: int, k: int, op: Ops) -> UOp: return UOp(Ops.ACC, dtype, (start_of(op, dtype),), (count + k, 0, n))
  one = propagates_nan(maxima.capabilities, dtype)
  variables = [Folded(variable(n, 0, Ops.MAX), None if one else variable(n, 1, Ops.MUL)) for n in range(len(new))]
  updates = [maxima.update(v, *terms) for v, *terms in zip(variables, old, new)]
  def reduced(k: int, op: Ops) -> UOp:
    return UOp(Ops.REDUCE, dtype,
               tuple([x for x in (variables[0][k], *[update[k] for update in updates], *loops) if x is not None]), op)
  maxima.folded[u] = folded = Folded(reduced(0, Ops.MAX), None if one else reduced(1, Ops.ADD))
  return maxima.value(folded, u.dtype)

def _widened(term: UOp) -> UOp:
  """Return a term in float32. A product is computed there, so that it can be fused with the addition."""
  if term.op is Ops.MUL:
    return UOp(Ops.MUL, dtypes.float32.vec(term.dtype.count), tuple([_widened(s) for s in term.src]))
  return UOp(Ops.CAST, dtypes.float32.vec(term.dtype.count), (term,))
