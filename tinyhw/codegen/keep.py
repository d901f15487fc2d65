"""Keep terms of a reduction that the kernel needs again in local memory: each is computed once.

A softmax folds exp(x[k] - max) over k, and then divides exp(x[j] - max) by that sum: the same terms, by another range of the same size. Where
registers hold a whole row, they are the same nodes once loops are unrolled. A longer row would compute its exponentials twice; here a loop before the
sum stores them to a local array, AFTER(DEFINE_LOCAL, STORE(...)), and both read them from there.

Opt(KEEP, axis, copies) does that for the reduction over the range `axis`. The loop that fills the array has the lanes of that range, and so many
copies of them.
"""
from __future__ import annotations

from tinyhw.codegen.grid import ranges_of
from tinyhw.codegen.stage import next_array
from tinyhw.codegen.tiling import OF_TILES, Opt, OptOps, lanes_along, size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

class Term(NamedTuple):
  """A value in a reduction's body that the kernel needs again. range: the reduction's; others: those by which it is needed again."""
  value: UOp
  range: UOp
  others: tuple[UOp, ...]

  @property
  def bytes(self) -> int: return size_of(self.range) * self.value.dtype.itemsize

def terms_of(nodes: dict[UOp, None], r: UOp) -> list[Term]:
  """What is worth being kept of the reductions over a range alone, in a kernel of these nodes: the largest values with a function inside."""
  others = [p for p in nodes if p.op is Ops.RANGE and p is not r and size_of(p) == size_of(r) > 0]
  found: dict[UOp, Term] = {}
  seen: set[UOp] = set()
  def look(u: UOp) -> None:
    if u in seen or r not in u.ranges or not is_worth_it(u, r): return
    seen.add(u)
    again = tuple(p for p in others if substitute(u, {r: p}) in nodes)
    if again and u.op in GroupOp.Elementwise and u.dtype not in (dtypes.weakint, dtypes.bool): found[u] = Term(u, r, again)
    else:
      for s in u.src: look(s)
  for u in nodes:
    if u.op is Ops.REDUCE and ranges_of(u) == (r,): look(u.src[0])
  return list(found.values())

def is_worth_it(value: UOp, r: UOp) -> bool:
  """Does a value compute a function (an exponential, say) that depends on a range? To store and load it costs less than that."""
  return any(u.op in GroupOp.Transcendental and r in u.ranges for u in value.toposort())

def keep_terms(sink: UOp, opts: tuple[Opt, ...]) -> tuple[UOp, tuple[Opt, ...]]:
  """The kernel under KEEP opts, and the opts of the loops that fill local arrays. A tile of rows, each with its own terms, keeps nothing."""
  tiled = {o.axis for o in opts if o.op in OF_TILES}
  filling: list[Opt] = []
  for keep in [o for o in opts if o.op is OptOps.KEEP]:
    nodes = sink.toposort()
    changes: dict[UOp, UOp] = {}
    for r in [u for u in nodes if u.op is Ops.RANGE and u.arg[0] == keep.axis]:
      fresh = 1 + max(u.arg[0] for u in nodes if u.op is Ops.RANGE)
      for k, term in enumerate(terms_of(nodes, r)):
        if any(p.arg[0] in tiled for p in term.value.ranges if p is not r): continue
        kept = _kept(term, fresh + k, next_array(nodes) + k)
        for p in (r, *term.others): changes[substitute(term.value, {r: p})] = UOp(Ops.LOAD, kept.dtype, (UOp(Ops.INDEX, kept.dtype, (kept, p)),))
        filling += [Opt(op, fresh + k, n) for op, n in ((OptOps.VECTOR, lanes_along(r, opts)), (OptOps.UPCAST, keep.amount)) if n > 1]
    if changes: sink = sink.substitute(changes)
  return sink, tuple(filling)

def _kept(term: Term, fresh: int, array: int) -> UOp:
  """A local array after the loop that fills it. fresh: the id of its range."""
  k = UOp(Ops.RANGE, dtypes.weakint, term.range.src, (fresh, AxisType.STAGE))
  local = UOp(Ops.DEFINE_LOCAL, term.value.dtype, (), (array, size_of(k)))
  store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, local.dtype, (local, k)), substitute(term.value, {term.range: k}), k))
  return UOp(Ops.AFTER, local.dtype, (local, store))
