"""Follow the masks of attention through buffers, so that kernels may leave out what a mask hides.

    scores  = where(i < j, -inf, q @ k.T)       -inf where j is hidden from i
    weights = exp(scores - largest) / sum       0 there, whatever the other operands are
    d       = where(i < j, 0, g @ v.T)          only products with weights need it, so it may be 0 there

A condition is *of indices* if it compares the positions of an element along axes. `hidden_values` finds the nodes that
have one constant wherever such a condition holds. A kernel that reads their buffer states it (`stated`), by a WHERE
that changes no value. So codegen ends or begins loops where nothing is hidden (codegen/transform/shorten.py).

`hide_products` adds a WHERE to a product whose hidden elements no result depends on. So its kernel need not compute
them.

Only -inf and the weights of a softmax count: 0 where exp(-inf) is a factor. Other products with 0 keep the rules of
IEEE 754, by which 0 * inf is NaN.
"""
from __future__ import annotations
import math

from tinyhw.arithmetic import whatever_others_are
from tinyhw.dtype import ConstType, dtypes
from tinyhw.engine.schedule.fuse import extents, is_large_product
from tinyhw.engine.schedule.indexing import GatedIndex, move
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import STATED, AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp, to_indices

class Hidden(NamedTuple):
  """The value of a node is `constant` where a condition of indices is `holds`.

  weight: this is so because exp(-inf) is a factor.
  """
  condition: UOp
  holds: bool
  constant: ConstType
  weight: bool = False

def is_of_indices(condition: UOp) -> bool:
  """Does a node compare two numbers that depend on positions alone?"""
  kinds = [_position_ops(s) for s in condition.src] if condition.op is Ops.CMPLT else []
  return bool(kinds) and None not in kinds and any(ops and Ops.IOTA in ops for ops in kinds)

def _position_ops(u: UOp) -> frozenset[Ops] | None:
  """Return IOTA, CONST or both: what a number is made of by moves, casts, additions and subtractions; None for others.
  """
  while (u.op in GroupOp.Movement and u.op is not Ops.PAD or u.op is Ops.CAST) and dtypes.is_int(u.dtype): u = u.src[0]
  if not dtypes.is_int(u.dtype): return None
  if u.op in (Ops.IOTA, Ops.CONST): return frozenset({u.op})
  if u.op not in (Ops.ADD, Ops.SUB): return None
  a, b = map(_position_ops, u.src)
  return None if a is None or b is None else a | b

def position_at(u: UOp, gated: GatedIndex) -> UOp | None:
  """Return the number that a node of positions is at an index; None where its type might not hold it."""
  if u.op is Ops.CONST: return UOp.const(dtypes.weakint, u.arg)
  if u.op is Ops.IOTA: found: UOp | None = gated.index[0]
  elif u.op in GroupOp.Movement: return position_at(u.src[0], move(u, gated))
  elif u.op is Ops.CAST: found = position_at(u.src[0], gated)
  else:
    a, b = (position_at(s, gated) for s in u.src)
    found = None if a is None or b is None else a + b if u.op is Ops.ADD else a - b
  if found is None or not dtypes.is_int(u.dtype): return None
  limits = u.dtype if u.dtype is not dtypes.weakint else dtypes.int64
  return found if limits.min <= found.vmin and found.vmax <= limits.max else None

def hidden_values(nodes: list[UOp]) -> dict[UOp, Hidden]:
  """Return the nodes with one value wherever a mask hides. nodes: sources first."""
  found: dict[UOp, Hidden] = {}
  for u in nodes:
    if u.op not in GroupOp.Elementwise or not dtypes.is_float(u.dtype): continue
    value = _masked(u, found) if u.op is Ops.WHERE else _computed(u, found)
    if value is not None: found[u] = value
  return found

def _masked(u: UOp, found: dict[UOp, Hidden]) -> Hidden | None:
  condition, chosen, other = u.src
  if not is_of_indices(condition): return None
  for value, left, holds in ((chosen, other, True), (other, chosen, False)):
    while value.op in GroupOp.Movement and value.op is not Ops.PAD: value = value.src[0]
    if value.op is not Ops.CONST: continue
    known = found.get(left)
    same = known is not None and (known.condition, known.holds) == (condition, holds) and known.weight
    return Hidden(condition, holds, value.arg, same and value.arg == 0)
  return None

def _computed(u: UOp, found: dict[UOp, Hidden]) -> Hidden | None:
  """Return what is hidden in the result of an operation, if its other operands cannot change it."""
  for k, s in enumerate(u.src):
    known = found.get(s)
    constant = None if known is None else whatever_others_are(u.op.name, u.dtype, len(u.src), k, known.constant)
    if known is not None and constant is not None:
      weight = known.weight or u.op in (Ops.EXP, Ops.EXP2) and known.constant == -math.inf
      return known._replace(constant=constant, weight=weight)
  return None

def is_left_out(hidden: Hidden) -> bool:
  """May a reduction leave out hidden elements?"""
  return hidden.constant == -math.inf or hidden.weight and hidden.constant == 0

# ***** buffers *****

def stated(load: UOp, hidden: Hidden, gated: GatedIndex) -> UOp:
  """Return the read of a buffer with what is known of it. gated: the index at which a reduction reads."""
  if gated.valid is not None or not is_left_out(hidden): return load
  if not any(r.arg[1] is AxisType.REDUCE for i in gated.index for r in i.ranges): return load
  low, high = (position_at(s, gated) for s in hidden.condition.src)
  if low is None or high is None or not _leaves_some(low, high, hidden.holds): return load
  values = (UOp.const(load.dtype, hidden.constant), load)
  return UOp(Ops.WHERE, load.dtype, (low < high, *(values if hidden.holds else values[::-1])), None, STATED)

def _leaves_some(low: UOp, high: UOp, holds: bool) -> bool:
  """Does each row and each column have an element for which low < high is not `holds`?

  A softmax of hidden elements alone is NaN, which must not be left out.
  """
  if holds: return low.vmin >= high.vmin and low.vmax >= high.vmax
  return low.vmin < high.vmin and low.vmax < high.vmax

# ***** products *****

def hide_products(roots: list[UOp], came: dict[UOp, UOp]) -> list[UOp]:
  """Return the graph with WHEREs around products whose hidden elements no result depends on. came: receives, for each
  new node, the node that it replaces."""
  nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  hidden = hidden_values(nodes)
  if not any(map(is_left_out, hidden.values())): return roots
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
      new[u] = UOp(Ops.WHERE, u.dtype, (new[mask.condition], *((zero, v) if mask.holds else (v, zero))))
    if new[u] is not u: came[new[u]] = came.get(u, u)
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
      return Hidden(user.src[0], u is user.src[2], 0)
    if user.op is Ops.MUL:
      other = hidden.get(user.src[1] if user.src[0] is u else user.src[0])
      if other is not None and other.weight and other.constant == 0: return other
    return found.get(user) if user.op in GroupOp.Elementwise else None
  for u in reversed(nodes):
    if u in roots or not users[u]: continue
    masks = [by(user, u) for user in users[u]]
    first = masks[0]
    if first is not None and all(m is not None and (m.condition, m.holds) == (first.condition, first.holds)
                                 for m in masks):
      found[u] = first
  return found
