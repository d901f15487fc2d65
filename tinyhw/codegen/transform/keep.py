"""Keep values of a reduction that the kernel needs again in shared memory, instead of computing them twice.

A softmax folds exp(x[k] - max) over k, and then divides exp(x[j] - max) by that sum. These are the same values, by
another range of the same size. Where registers hold a whole row, they are the same nodes once loops are unrolled. A
longer row would compute its exponentials twice. Here a loop before the sum stores them to a shared array,
AFTER(DEFINE_LOCAL, STORE(...)), and both users read them from there.

Opt(KEEP, axis, copies) does that for the reduction over the range `axis`. The loop that fills the array has the lanes
of that range, and this many copies of them. Cost: a walk over the kernel for each range of the same size.
"""
from __future__ import annotations

from tinyhw.codegen.kernel.affine import make
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.stage import next_array
from tinyhw.codegen.transform.tiling import OF_TILES, Opt, OptOps, is_reduce, lanes_along, size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

class ReusedValue(NamedTuple):
  """A value in a reduction's body that the kernel needs again.

  `range`: the reduction's. `uses`: ranges, and the value by each, its own included.
  """
  value: UOp
  range: UOp
  uses: tuple[tuple[UOp, UOp], ...]

  @property
  def bytes(self) -> int: return size_of(self.range) * self.value.dtype.itemsize

def kept_terms(nodes: dict[UOp, None], r: UOp) -> list[ReusedValue]:
  """Return the values worth keeping of the reductions over this range alone, in a kernel of these nodes.

  These are the largest values that compute a function (an exponential, say), since storing and loading cost less.
  """
  stack = [u.src[0] for u in nodes if u.op is Ops.REDUCE and ranges_of(u) == (r,)]
  worth = _functions_of(nodes, r)
  if not worth: return []
  moved = [(p, _moved(nodes, r, p)) for p in nodes if p.op is Ops.RANGE and p is not r and size_of(p) == size_of(r) > 0]
  found: dict[UOp, ReusedValue] = {}
  seen: set[UOp] = set()
  while stack:
    u = stack.pop()
    if u in seen or u not in worth: continue
    seen.add(u)
    # it is inside of another reduction, and would be stored again in each of its steps
    inner = any(is_reduce(q) for q in u.ranges if q is not r)
    again = () if inner else tuple([(p, other) for p, new in moved if (other := new[u]) is not None and other in nodes])
    if again and u.op in GroupOp.Elementwise and u.dtype not in (dtypes.weakint, dtypes.bool):
      found[u] = ReusedValue(u, r, ((r, u), *again))
    else: stack += u.src
  return list(found.values())

def _functions_of(nodes: dict[UOp, None], r: UOp) -> set[UOp]:
  """Return the nodes that depend on a range and compute a function of something that does."""
  found: set[UOp] = set()
  for u in nodes:
    if (u.op in GroupOp.Transcendental or not found.isdisjoint(u.src)) and r in u.ranges: found.add(u)
  return found

def _moved(nodes: dict[UOp, None], r: UOp, p: UOp) -> dict[UOp, UOp | None]:
  """Return the nodes with p in the place of r; nodes inside of a reduction over r stay.

  None for nodes with a reduction over p inside, which would capture p.
  """
  new: dict[UOp, UOp | None] = {}
  for u in nodes:
    if u is r: new[u] = p
    elif r not in u.ranges: new[u] = u
    else:
      src = [s for s in map(new.get, u.src) if s is not None]
      caught = len(src) < len(u.src) or u.op is Ops.REDUCE and p in ranges_of(u)
      new[u] = None if caught else make(u.op, u.dtype, tuple(src), u.arg)
  return new

def keep_terms(sink: UOp, opts: tuple[Opt, ...]) -> tuple[UOp, tuple[Opt, ...]]:
  """Return the kernel under KEEP opts, and the opts of the loops that fill shared arrays.

  A value that depends on a range with a tile is not kept, as each row of the tile would have its own.
  """
  tiled = {o.axis for o in opts if o.op in OF_TILES}
  filling: list[Opt] = []
  for keep in dict.fromkeys(o for o in opts if o.op is OptOps.KEEP):
    r = next(u for u in sink.toposort() if u.op is Ops.RANGE and u.arg[0] == keep.axis)
    while True:
      nodes = sink.toposort()
      terms = [t for t in kept_terms(nodes, r) if not any(p.arg[0] in tiled for p in t.value.ranges if p is not r)]
      if not terms: break
      # a value inside of another comes first, and is read there
      term = min(terms, key=lambda t: len(t.value.toposort()))
      fresh = 1 + max(u.arg[0] for u in nodes if u.op is Ops.RANGE)
      kept = _kept(term, fresh, next_array(nodes))
      sink = sink.substitute({u: UOp(Ops.LOAD, kept.dtype, (UOp(Ops.INDEX, kept.dtype, (kept, p)),))
                              for p, u in term.uses})
      filling += [Opt(op, fresh, n) for op, n in ((OptOps.VECTOR, lanes_along(r, opts)), (OptOps.UPCAST, keep.amount))
                  if n > 1]
  return sink, tuple(filling)

def _kept(term: ReusedValue, fresh: int, array: int) -> UOp:
  """Return a shared array after the loop that fills it. fresh: the id of its range."""
  k = UOp(Ops.RANGE, dtypes.weakint, term.range.src, (fresh, AxisType.STAGE))
  local = UOp(Ops.DEFINE_LOCAL, term.value.dtype, (), (array, size_of(k)))
  store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, local.dtype, (local, k)), substitute(term.value, {term.range: k}),
                                       k))
  return UOp(Ops.AFTER, local.dtype, (local, store))
