"""Follow the masks of attention through buffers, so that kernels may leave out what a mask hides.

    scores  = where(i < j, -inf, q @ k.T)       -inf where j is hidden from i
    weights = exp(scores - largest) / sum       0 there
    d       = where(i < j, 0, g @ v.T)          only products with weights need it, so it may be 0 there

A condition is *of indices* if it compares the positions of an element along axes. `hidden_values` finds scores and
weights: nodes that are -inf or 0 wherever such a condition holds. A kernel that reads their buffer states it
(`stated`), by a WHERE that changes no value. So codegen ends or begins loops where nothing is hidden
(codegen/transform/shorten.py).

`hide_products` adds a WHERE to a product whose hidden elements no result depends on. So its kernel need not compute
them.

A hidden weight is exp(-inf - largest), which is 0 if each row sees some score. The positions must show that. A row may
still be NaN: one of its scores is, or all that it sees are -inf. Then what is hidden counts as 0, and the rest is NaN
(docs/numerics.md). Other products with 0 keep the rules of IEEE 754, by which 0 * inf is NaN.
"""
from __future__ import annotations
import itertools
import math

from tinyhw.dtype import ConstType, dtypes
from tinyhw.engine.schedule.fuse import extents, is_large_product
from tinyhw.engine.schedule.indexing import GatedIndex, move
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import STATED, AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp, sint, to_indices

MOST_NODES = 32      # of a condition: comparisons of arange have fewer
_MOVES = GroupOp.Movement - {Ops.PAD}
_AFFINE = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.CONST, Ops.RANGE})

class Hidden(NamedTuple):
  """A node is `constant` where a condition of indices is `holds`: -inf for scores, 0 for weights."""
  condition: UOp
  holds: bool
  constant: ConstType

def is_of_indices(condition: UOp) -> bool:
  """Does a node compare two numbers that depend on positions alone?"""
  seen: set[UOp] = set()
  stack = [condition]
  while stack:
    u = stack.pop()
    if u in seen: continue
    seen.add(u)
    compares = u.op is Ops.CMPLT and not any(v.op is Ops.CMPLT for v in seen if v is not u)
    if len(seen) > MOST_NODES or not compares and u.op not in _MOVES and not (
        dtypes.is_int(u.dtype) and u.op in (Ops.CAST, Ops.ADD, Ops.SUB, Ops.IOTA, Ops.CONST)):
      return False
    if u.op not in (Ops.IOTA, Ops.CONST): stack += u.src if u.op not in _MOVES else u.src[:1]
  ops = {u.op for u in seen}
  return Ops.CMPLT in ops and Ops.IOTA in ops

def sides_at(condition: UOp, gated: GatedIndex) -> tuple[UOp, UOp] | None:
  """Return the two numbers that a condition of indices compares at an index; None where a type might not hold one."""
  while condition.op in GroupOp.Movement: condition, gated = condition.src[0], move(condition, gated)
  known: dict[tuple[UOp, GatedIndex], UOp | None] = {}
  low, high = (_position_at(s, gated, known) for s in condition.src)
  return None if low is None or high is None else (low, high)

def _position_at(u: UOp, gated: GatedIndex, known: dict[tuple[UOp, GatedIndex], UOp | None]) -> UOp | None:
  if (u, gated) not in known: known[u, gated] = _position(u, gated, known)
  return known[u, gated]

def _position(u: UOp, gated: GatedIndex, known: dict[tuple[UOp, GatedIndex], UOp | None]) -> UOp | None:
  if u.op is Ops.CONST: return UOp.const(dtypes.weakint, u.arg)
  if u.op in GroupOp.Movement: return _position_at(u.src[0], move(u, gated), known)
  if u.op is Ops.IOTA: found: UOp | None = gated.index[0]
  elif u.op is Ops.CAST: found = _position_at(u.src[0], gated, known)
  else:
    a, b = (_position_at(s, gated, known) for s in u.src)
    found = None if a is None or b is None else a + b if u.op is Ops.ADD else a - b
  if found is None: return None
  limits = u.dtype if u.dtype is not dtypes.weakint else dtypes.int64
  return found if limits.min <= found.vmin and found.vmax <= limits.max else None

# ***** scores and weights *****

def hidden_values(nodes: list[UOp]) -> dict[UOp, Hidden]:
  """Return the scores and weights of which a mask hides a part. nodes: sources first."""
  found: dict[UOp, Hidden] = {}
  for u in nodes:
    if u.op not in GroupOp.Elementwise or not dtypes.is_float(u.dtype): continue
    value = _masked(u, found) if u.op is Ops.WHERE else _computed(u, found)
    if value is not None: found[u] = value
  return found

def _masked(u: UOp, found: dict[UOp, Hidden]) -> Hidden | None:
  """Return what is hidden in scores to which a mask is applied, or in weights that are hidden again."""
  condition, chosen, other = u.src
  for value, left, holds in ((chosen, other, True), (other, chosen, False)):
    while value.op in _MOVES: value = value.src[0]
    if value.op is not Ops.CONST: continue
    known = found.get(left)
    if value.arg == 0: return known if known is not None and known[:2] == (condition, holds) else None
    # scores with two masks may have rows that see nothing
    if value.arg == -math.inf and known is None and is_of_indices(condition): return Hidden(condition, holds, value.arg)
  return None

def _computed(u: UOp, found: dict[UOp, Hidden]) -> Hidden | None:
  """Return what is hidden in the result of an operation on scores or weights."""
  known = next((found[s] for s in u.src if s in found), None)
  if known is None: return None
  if known.constant == 0: return known if u.op in (Ops.MUL, Ops.CAST) else None
  if u.op is Ops.SUB: return known if u.src[0] in found and _is_largest(u.src[1], u.src[0], known) else None
  if u.op in (Ops.EXP, Ops.EXP2): return known._replace(constant=0.0)
  return known if u.op is Ops.CAST else None

def _is_largest(u: UOp, scores: UOp, hidden: Hidden) -> bool:
  """Is a node the largest score of each row, and does each row see a score?"""
  while u.op in _MOVES: u = u.src[0]
  return (u.op is Ops.REDUCE_AXIS and u.arg[0] is Ops.MAX and u.src[0] is scores
          and each_row_sees(hidden, scores.shape, u.arg[1]))

def each_row_sees(hidden: Hidden, shape: tuple[sint, ...], axes: tuple[int, ...]) -> bool:
  """Is some element of each row not hidden? axes: those of a row."""
  if not all(isinstance(n, int) for n in shape): return False
  ranges = [UOp.range(n, k, AxisType.LOOP) for k, n in enumerate(shape)]
  sides = sides_at(hidden.condition, GatedIndex(tuple(ranges)))
  if sides is None: return False
  ahead = sides[1] - sides[0]     # positive where the condition holds
  if any(u.op not in _AFFINE for u in ahead.toposort()): return False
  # its extremes along a row are at the ends of the axes
  for ends in itertools.product((False, True), repeat=len(axes)):
    at = {ranges[k]: UOp.const(dtypes.weakint, int(ranges[k].vmax) if end else 0) for k, end in zip(axes, ends)}
    found = ahead.substitute(at).simplify()
    if found.vmax <= 0 if hidden.holds else found.vmin > 0: return True
  return False

# ***** buffers *****

def stated(load: UOp, hidden: Hidden, gated: GatedIndex) -> UOp:
  """Return the read of a buffer with what is known of it. gated: the index at which a reduction reads."""
  if gated.valid is not None or not any(r.arg[1] is AxisType.REDUCE for i in gated.index for r in i.ranges): return load
  sides = sides_at(hidden.condition, gated)
  if sides is None: return load
  values = (UOp.const(load.dtype, hidden.constant), load)
  return UOp(Ops.WHERE, load.dtype, (sides[0] < sides[1], *(values if hidden.holds else values[::-1])), None, STATED)

# ***** products *****

def hide_products(roots: list[UOp], came: dict[UOp, UOp], differ: set[UOp]) -> list[UOp]:
  """Return the graph with WHEREs around products whose hidden elements no result depends on.

  came: receives, for each new node, the node that it replaces. differ: receives new nodes whose hidden elements differ
  from those of the nodes that they replace.
  """
  nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  hidden = hidden_values(nodes)
  if not any(h.constant == 0 for h in hidden.values()): return roots
  users: dict[UOp, list[UOp]] = {u: [] for u in nodes}
  for u in nodes:
    for s in dict.fromkeys(u.src): users[s].append(u)
  ignored = _ignored(nodes, users, hidden, set(roots))
  extent = extents(nodes)
  wanted = {_shaped(u, users) for u in nodes if u.op is Ops.REDUCE_AXIS and is_large_product(u, extent)}
  new: dict[UOp, UOp] = {}
  for u in nodes:
    src = tuple([new[s] for s in u.src])
    v = new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    mask = ignored.get(u)
    if u in wanted and mask is not None and dtypes.is_float(u.dtype) and not _is_masked(users[u]):
      one = UOp(Ops.RESHAPE, u.dtype, (UOp.const(u.dtype, 0), *to_indices((1,) * len(u.shape))))
      zero = UOp(Ops.EXPAND, u.dtype, (one, *to_indices(u.shape)))
      # the condition depends on no product, so it is the same in the new graph
      new[u] = UOp(Ops.WHERE, u.dtype, (mask.condition, *((zero, v) if mask.holds else (v, zero))))
    if new[u] is not u:
      came[new[u]] = came.get(u, u)
      if mask is not None: differ.add(new[u])
  return [new[r] for r in roots]

def _shaped(u: UOp, users: dict[UOp, list[UOp]]) -> UOp:
  """Return a product in the shape in which it is used."""
  while len(users[u]) == 1 and users[u][0].op in (Ops.RESHAPE, Ops.PERMUTE): u = users[u][0]
  return u

def _is_masked(users: list[UOp]) -> bool: return any(u.op is Ops.WHERE and is_of_indices(u.src[0]) for u in users)

def _ignored(nodes: list[UOp], users: dict[UOp, list[UOp]], hidden: dict[UOp, Hidden], roots: set[UOp]
             ) -> dict[UOp, Hidden]:
  """Return the nodes whose elements matter to no result where a mask hides."""
  found: dict[UOp, Hidden] = {}
  def by(user: UOp, u: UOp) -> Hidden | None:
    """Return the mask under which a user does not need u."""
    if user.op is Ops.WHERE and is_of_indices(user.src[0]):
      if u is user.src[0] or user.src[1] is user.src[2]: return None
      return Hidden(user.src[0], u is user.src[2], 0)     # it takes the other one where the condition holds, or not
    if user.op is Ops.MUL:
      other = hidden.get(user.src[1] if user.src[0] is u else user.src[0])
      if other is not None and other.constant == 0: return other
    return found.get(user) if user.op in GroupOp.Elementwise else None
  for u in reversed(nodes):
    if u in roots or not users[u]: continue
    masks = [by(user, u) for user in users[u]]
    first = masks[0]
    if first is not None and all(m is not None and (m.condition, m.holds) == (first.condition, first.holds)
                                 for m in masks):
      found[u] = first
  return found
