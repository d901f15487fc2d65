"""Unroll UPCAST and UNROLL ranges: copy each node once for each combination of those of them that it depends on.

Input: a kernel without STAGE. Output: the same without UPCAST and UNROLL. A node that depends on no such range stays
one node. A node that depends on some is a list of copies. Copy (i, j) of an operation takes copy (i) of an operand that
does not depend on j. Nothing is expanded and merged again: the cost is one constructor call per copy.

A REDUCE with a tile's copies becomes several accumulators over one loop. Iterations that UNROLL makes go into the same
accumulator one after the other. If there are too few accumulators to hide the latency of an addition (CHAINS), the
iterations are dealt to several, which are folded after the loop. REDUCE(GROUP(first, second, …), *loops) means: each
iteration folds in first, then second, ….
"""
from __future__ import annotations
import functools
import itertools

from tinyhw import trace
from tinyhw.arithmetic import operation
from tinyhw.codegen.kernel.affine import NOTHING, make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.fold import START, accumulate, begun, fold_tree
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

CHAINS = 8  # independent additions in flight: 4 cycles of latency, 2 a cycle

UNROLLED = frozenset({AxisType.UPCAST, AxisType.UNROLL})
_OF_POSITIONS = frozenset({Ops.CAST, Ops.ADD, Ops.SUB, Ops.MUL})
_FOLDED = frozenset({Ops.WHERE, Ops.LOAD, Ops.STORE, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})

def deal(terms: list[UOp], accumulators: int) -> list[list[UOp]]:
  """Deal terms to the accumulators of a REDUCE, of which there are `accumulators` copies already."""
  chains = 1
  while chains * accumulators < CHAINS and chains * 2 <= len(terms): chains *= 2
  return [terms[k::chains] for k in range(chains)]

def is_identity(op: Ops, term: UOp) -> bool:
  """Is a term hidden by a mask, so that folding it changes nothing? A sum begins at 0.0, so it never is -0.0."""
  return term.op is Ops.CONST and op in START and bool(term.arg == START[op](term.dtype.scalar()))

def reduce_terms(op: Ops, terms: list[UOp], ranges: list[UOp], accumulators: int) -> UOp:
  """Return a REDUCE of the sum of terms over ranges, as independent accumulators. Lanes are folded last."""
  loops = [r for r in ranges if r.arg[1] is not AxisType.VECTOR]
  lanes = [r for r in ranges if r.arg[1] is AxisType.VECTOR]
  parts: list[UOp] = []
  terms = [term for term in terms if not is_identity(op, term)] or terms[:1]
  # products of matrices have enough sums; they are done step by step, so that few operands are live
  matrices = terms[0].op is Ops.MMA
  for chain in [terms] if matrices else deal(terms, accumulators):
    if loops or matrices and len(terms) > 1:
      value = chain[0] if len(chain) == 1 else UOp(Ops.GROUP, chain[0].dtype, tuple(chain))
      parts.append(UOp(Ops.REDUCE, chain[0].dtype, (value, *loops), op))
      continue
    parts.append(functools.reduce(lambda total, term: accumulate(op, total, term), chain[1:],
                                  chain[0] if parts else begun(op, chain[0])))
  result = fold_tree(op, parts)
  return UOp(Ops.REDUCE, result.dtype, (result, *lanes), op) if lanes else result

def folded(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: object, tag: object) -> UOp:
  """Build an integer operation. On constants, such as the positions that a mask compares, it is its value."""
  if all(s.op is Ops.CONST and dtypes.is_int(s.dtype) for s in src):
    value = src[0].arg if op is Ops.CAST else operation(op.name, dtype)(*[s.arg for s in src])
    if dtype.min <= value <= dtype.max: return UOp(Ops.CONST, dtype, (), value)
  return UOp(op, dtype, src, arg, tag)

class Expansion:
  """The state of the walk.

  `copies[u]` has one node per combination of the ranges in `mask[u]` (a bitset), the last of them varying fastest.
  """
  def __init__(self, unrolled: list[UOp]):
    self.bit = {r: 1 << k for k, r in enumerate(unrolled)}
    self.sizes = [int(r.src[0].arg) for r in unrolled]
    self.mask: dict[UOp, int] = {}
    self.copies: dict[UOp, list[UOp]] = {}
    self._projections: dict[tuple[int, int], list[int]] = {}
    self.inherit = trace.inherit if trace.follows() else None

  def combinations(self, mask: int) -> list[tuple[int, ...]]:
    """Return the indices of all ranges (0 for those outside of mask), in order."""
    return list(itertools.product(*[range(n) if mask >> k & 1 else (0,) for k, n in enumerate(self.sizes)]))

  def number_of(self, combination: tuple[int, ...], mask: int) -> int:
    """Return the number of the copy that a combination means, for a node with this mask."""
    found = 0
    for k, n in enumerate(self.sizes):
      if mask >> k & 1: found = found * n + combination[k]
    return found

  def project(self, outer: int, inner: int) -> list[int]:
    """Return, for each combination of outer, the copy of a node that depends on inner only."""
    found = self._projections.get((outer, inner))
    if found is None:
      found = self._projections[outer, inner] = [self.number_of(c, inner) for c in self.combinations(outer)]
    return found

  def column(self, u: UOp, mask: int) -> list[UOp]:
    """Return the copies of u that combinations of mask use."""
    copies, own = self.copies[u], self.mask[u]
    if own == mask: return copies
    return [copies[k] for k in self.project(mask, own)]

  def visit(self, u: UOp) -> None:
    op, mask = u.op, 0
    if u in self.bit:
      self.mask[u], self.copies[u] = self.bit[u], [number(k) for k in range(self.sizes[self.bit[u].bit_length() - 1])]
      return
    for s in u.src: mask |= self.mask[s]
    if mask and op in (Ops.REDUCE, Ops.STORE): self.close(u, mask)
    else:
      self.mask[u] = mask
      assert not mask or op is not Ops.AFTER, "a stage closes the ranges of tiles"
      if op is Ops.AFTER or op is Ops.SINK or op is Ops.GROUP: self.copies[u] = [self.flatten(u)]
      elif not mask: self.copies[u] = [self.rebuild(u)]
      else: self.copies[u] = self.copy(u, mask)
    if self.inherit is not None and self.copies[u] != [u]:
      for c in self.copies[u]:
        self.inherit(c, u)
        if c.op is Ops.GROUP:
          for store in c.src: self.inherit(store, u)

  def rebuild(self, u: UOp) -> UOp:
    """Rebuild a node that depends on no unrolled range: itself, unless a source changed."""
    src = tuple([self.copies[s][0] for s in u.src])
    return u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)

  def copy(self, u: UOp, mask: int) -> list[UOp]:
    op, dtype, arg = u.op, u.dtype, u.arg
    sources = zip(*[self.column(s, mask) for s in u.src])
    if dtype is dtypes.weakint or dtype is dtypes.bool or op in _FOLDED:
      return [make(op, dtype, src, arg) for src in sources]
    if dtypes.is_int(dtype) and op in _OF_POSITIONS: return [folded(op, dtype, src, arg, u.tag) for src in sources]
    return [UOp(op, dtype, src, arg, u.tag) for src in sources]

  def flatten(self, u: UOp) -> UOp:
    """Rebuild SINK, GROUP or AFTER over the copies of its stores."""
    src: list[UOp] = []
    for s in u.src:
      for c in self.copies[s]: src += c.src if c.op is Ops.GROUP else (c,)
    return UOp(u.op, u.dtype, tuple(src), u.arg, u.tag)

  def close(self, u: UOp, mask: int) -> None:
    """Close the ranges of a REDUCE or STORE, so that its users do not depend on them."""
    ranges = ranges_of(u)
    closed = sum(self.bit[r] for r in ranges if r in self.bit)
    left = [self.copies[r][0] for r in ranges if r not in self.bit]
    outer = mask & ~closed
    inner = self.combinations(closed)
    rows = [[self.number_of(tuple(map(sum, zip(o, i))), mask) for i in inner] for o in self.combinations(outer)]
    values = [self.column(s, mask) for s in values_of(u)]
    self.mask[u] = outer
    if u.op is Ops.REDUCE:
      self.copies[u] = [reduce_terms(u.arg, [values[0][k] for k in row], left, len(rows)) for row in rows]
    else: self.copies[u] = [self.stores(u, values, row, left) for row in rows]

  def stores(self, u: UOp, values: list[list[UOp]], row: list[int], ranges: list[UOp]) -> UOp:
    made = [make(Ops.STORE, dtypes.void, (*[v[k] for v in values], *ranges), u.arg) for k in row]
    made = [s if u.tag is None else s.replace(tag=u.tag) for s in made if s is not NOTHING]
    return made[0] if len(made) == 1 else UOp(Ops.GROUP, dtypes.void, tuple(made))

def vectors_as_copies(sink: UOp) -> UOp:
  """Return sink with VECTOR ranges as UPCAST and UNROLL ones, for targets whose lanes are threads.

  Adjacent accesses of the copies are coalesced where memory allows it (coalesce.py).
  """
  order = sink.toposort()
  summed = {r for u in order if u.op is Ops.REDUCE for r in ranges_of(u)}
  vectors = [u for u in order if u.op is Ops.RANGE and u.arg[1] is AxisType.VECTOR]
  kinds = {r: AxisType.UNROLL if r in summed else AxisType.UPCAST for r in vectors}
  return sink.substitute({r: r.replace(arg=(r.arg[0], kind)) for r, kind in kinds.items()}) if vectors else sink

def unroll(sink: UOp) -> UOp:
  """Replace every UPCAST and UNROLL range by copies.

  The larger dimension of a tile varies slowest, so that fewer operands are live.
  """
  order = sink.toposort()
  unrolled = [u for u in order if u.op is Ops.RANGE and u.arg[1] in UNROLLED]
  if not unrolled: return sink
  for r in unrolled:
    if r.src[0].op is Ops.CONST: continue
    raise CompileError(f"range {r.arg[0]} is {r.arg[1].name} and its end is not a constant; only a constant can be "
                       f"unrolled")
  unrolled.sort(key=lambda r: (1, -r.src[0].arg, r.arg[0]) if r.arg[1] is AxisType.UPCAST else (0, 0, r.arg[0]))
  expansion = Expansion(unrolled)
  for u in order: expansion.visit(u)
  return expansion.copies[sink][0]
