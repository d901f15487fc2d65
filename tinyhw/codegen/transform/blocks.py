"""Add long sums of floats in blocks: a variable for a block, which is then added to a variable for all blocks.

A variable to which n numbers are added one after the other has an error of up to n roundings. If the numbers are alike,
all roundings are to one side: at 2**24 a float32 no longer changes when 1 is added. REDUCE(x, r) over many iterations
becomes REDUCE(REDUCE(x, inner), outer). A term then meets about as many roundings as the length of a block plus the
number of blocks.

A loop that is longer than a block is cut in two. A loop whose length has no suitable divisor is first done in two
loops. Short sums, and sums of integers, stay as they are. Cost: one addition, and a start with 0, for each block.
"""
from __future__ import annotations
import math

from tinyhw import trace
from tinyhw.codegen.kernel.affine import make, number
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.tiling import substitute
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LONG_SUM = 2048   # additions to one variable from which they are done in blocks
BLOCK = 256       # additions of a block, about: the cost of its end is then below 1 %
STEP_BYTES = 32  # of the steps that a unit which reads shared memory adds at once

def terms_of(u: UOp) -> int:
  """Return the additions to a REDUCE's variable in one iteration: of a product of shared operands as many as its unit
  has instructions."""
  terms = u.src[0].src if u.src[0].op is Ops.GROUP else u.src[:1]
  return sum([t.arg.k * t.arg.operand.itemsize // STEP_BYTES if t.op is Ops.MMA and t.arg.shared_operands else 1
              for t in terms])

def is_long(u: UOp) -> bool:
  """Is this a sum of floats with many additions to one variable, in loops of known length?"""
  if u.op is not Ops.REDUCE or u.arg is not Ops.ADD or not dtypes.is_float(u.dtype): return False
  loops = ranges_of(u)
  return all(r.src[0].op is Ops.CONST for r in loops) and terms_of(u) * math.prod(r.src[0].arg
                                                                                  for r in loops) > LONG_SUM

def divisor(n: int, wanted: int) -> int:
  """Return the divisor of n that is nearest to a number by ratio; 1 if it is more than 4 times as far."""
  candidates = [d for d in range(max(wanted // 4, 2), min(4 * wanted, n // 2) + 1) if n % d == 0]
  return min(candidates, key=lambda d: abs(math.log(d / wanted)), default=1)

def in_blocks(sink: UOp) -> UOp:
  """Return sink with its long sums in blocks."""
  if not any(is_long(u) for u in sink.toposort()): return sink
  sink = _divisible(sink)
  order = sink.toposort()
  sums = [u for u in order if is_long(u)]
  fresh = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
  cut: dict[UOp, tuple[UOp, UOp]] = {}
  for u in sums:
    for r in ranges_of(u):
      size = (divisor(r.src[0].arg, max(BLOCK // terms_of(u), 1)) if r.src[0].arg * terms_of(u) > LONG_SUM
              and r not in cut else 1)
      if size == 1: continue
      cut[r] = UOp.range(r.src[0].arg // size, fresh, r.arg[1]), UOp.range(size, fresh + 1, r.arg[1])
      fresh += 2
  new: dict[UOp, UOp] = {}
  for u in order:
    if u in cut: new[u] = _place(*cut[u])
    elif u.op is Ops.REDUCE:
      new[u] = _reduce(u, new[u.src[0]], [part for r in ranges_of(u) for part in cut.get(r, (r,))])
    else:
      src = tuple([new[s] for s in u.src])
      if src == u.src: new[u] = u
      elif u.dtype in (dtypes.weakint, dtypes.bool): new[u] = make(u.op, u.dtype, src, u.arg)
      else: new[u] = UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.hand_on(new)
  return new[sink]

def _divisible(sink: UOp) -> UOp:
  """Return sink with a long sum whose length has no suitable divisor as two sums: over whole blocks, and over the rest.
  """
  order = sink.toposort()
  fresh = 1 + max(u.arg[0] for u in order if u.op is Ops.RANGE)
  parts: dict[UOp, tuple[UOp, UOp]] = {}
  new: dict[UOp, UOp] = {}
  for u in order:
    src = tuple([new[s] for s in u.src])
    v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    for r in ranges_of(u) if is_long(u) else ():
      n, block = r.src[0].arg, max(BLOCK // terms_of(u), 1)
      if n * terms_of(u) <= LONG_SUM or divisor(n, block) > 1: continue
      if r not in parts: parts[r] = UOp.range(n - n % block, fresh, r.arg[1]), UOp.range(n % block, fresh + 1, r.arg[1])
      fresh += 2
      main, rest = parts[r]
      later = make(Ops.ADD, dtypes.weakint, (rest, number(n - n % block)))
      pieces = [UOp(u.op, u.dtype, (substitute(v.src[0], {r: at}), *[by if s is r else s for s in v.src[1:]]), u.arg)
                for at, by in ((main, main), (later, rest))]
      v = UOp(Ops.ADD, u.dtype, tuple(pieces))
      break
    new[u] = v
  trace.hand_on(new)
  return new[sink]

def _place(outer: UOp, inner: UOp) -> UOp:
  scaled = make(Ops.MUL, dtypes.weakint, (outer, number(inner.src[0].arg)))
  return make(Ops.ADD, dtypes.weakint, (scaled, inner))

def _reduce(u: UOp, value: UOp, loops: list[UOp]) -> UOp:
  """Return a REDUCE over its new loops. A long one is nested, innermost loops first, each level with a block of
  additions or more."""
  if not is_long(u): return UOp(Ops.REDUCE, u.dtype, (value, *loops), u.arg)
  level: list[UOp] = []
  additions = terms_of(u)
  for r in reversed(loops):
    if level and additions >= BLOCK // 4:
      value, level, additions = UOp(Ops.REDUCE, u.dtype, (value, *level), u.arg), [], 1
    level.insert(0, r)
    additions *= r.src[0].arg
  return UOp(Ops.REDUCE, u.dtype, (value, *level), u.arg)
