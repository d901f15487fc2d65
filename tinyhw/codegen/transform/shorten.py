"""Leave out the ends of rows that a mask makes neutral: a causal attention computes half of its scores.

    scores[j] = -inf where i < j       all scores above the diagonal
    largest   = max of scores[j]       -inf changes no maximum
    e[j]      = exp(scores[j] - largest)      0 there
    sum of e[j] * v[j]                 0 changes no sum

A loop over j may then end after i. Loops that fill an array of shared memory may, too, if all loops that read it do.
In the gradient of v a loop over i may begin at j. `limits_of` finds the last index that each loop needs, or the first
one. `shorten` ends the loops of the tiled kernel after the last index that any element of the tile needs, or begins
them at the first one.

The scores themselves may be results, as in a training step. A tile of them that is above the diagonal throughout needs
no sum: `skip` gives its loops no iterations.

Scores, powers and weights may come from buffers. Then the scheduler states what is known of them
(engine/schedule/masks.py): a WHERE with the tag STATED gives what its operand has anyway. `without_statements` of
tiling.py drops these before a tile is chosen.

Elements behind a mask are not read. So inf and NaN there change no result, where 0 * inf would be NaN. That holds for
masks of -inf and what is stated, not for products with other zeros.
"""
from __future__ import annotations
import math

from tinyhw.arithmetic import whatever_others_are
from tinyhw.codegen.kernel.affine import linear, make, number, total
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.stage import TILE
from tinyhw.codegen.transform.tiling import (
  Opt, SplitKernel, at_most, factor_of, rebuilt, size_of, substitute)
from tinyhw.dtype import ConstType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import STATED, AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

_LOOPS = frozenset({AxisType.REDUCE, AxisType.STAGE})

class LoopLimit(NamedTuple):
  """The last iteration that a loop needs, or the first one if `begins`: an index that depends on other loops."""
  index: UOp  # type: ignore[assignment]  # hides tuple.index, which nobody wants here
  begins: bool = False

class Neutral(NamedTuple):
  """A value is `constant` for all iterations of `loop` outside of a limit."""
  loop: UOp
  limit: LoopLimit
  constant: ConstType

class _Rows:
  """The values of a kernel that are constant after some index of a loop."""
  def __init__(self, nodes: dict[UOp, None]):
    self.found: dict[UOp, Neutral] = {}
    self.loops: dict[UOp, Neutral] = {}    # a loop -> the values that it stores or folds
    self.whole: set[UOp] = set()           # loops that also store or fold other values
    for u in nodes:
      value = self._of(u)
      if value is not None: self.found[u] = value

  def _of(self, u: UOp) -> Neutral | None:
    if u.op is Ops.STAGE or u.op is Ops.REDUCE: return self._closed(u)
    if u.op is Ops.INDEX: return self._read(u)
    if u.op is Ops.LOAD: return self.found.get(u.src[0]) if len(u.src) == 1 else None
    if u.op is Ops.WHERE: return _masked(u)
    return self._computed(u) if u.op in GroupOp.Elementwise and dtypes.is_float(u.dtype) else None

  def _read(self, u: UOp) -> Neutral | None:
    """Return the value of an array's element: it is known along the loop that reads."""
    known, at = self.found.get(u.src[0]), u.src[1]
    return known._replace(loop=at) if known is not None and at.op is Ops.RANGE else None

  def _closed(self, u: UOp) -> Neutral | None:
    known, loops = self.found.get(u.src[0]), ranges_of(u)
    alone = known is not None and loops == (known.loop,) and known.loop not in known.limit.index.ranges
    if known is None or not alone or not _is_neutral(u, known):
      self.whole.update(loops)
      return None
    if self.loops.setdefault(known.loop, known).limit != known.limit: self.whole.add(known.loop)
    return known if u.op is Ops.STAGE else None

  def _computed(self, u: UOp) -> Neutral | None:
    """Return the result of an operation with one known operand, if the other operands cannot change it."""
    known = [(k, self.found[s]) for k, s in enumerate(u.src) if s in self.found]
    if len(known) != 1: return None
    k, neutral = known[0]
    constant = whatever_others_are(u.op.name, u.dtype, len(u.src), k, neutral.constant)
    return None if constant is None else neutral._replace(constant=constant)

def _is_neutral(u: UOp, known: Neutral) -> bool:
  """May a loop that stores or folds a value leave out iterations? An array is filled from its first element."""
  if u.op is Ops.STAGE: return not known.limit.begins
  return bool(known.constant == {Ops.ADD: 0, Ops.MAX: -math.inf}.get(u.arg))

def _masked(u: UOp) -> Neutral | None:
  """Return the value of a WHERE whose condition compares a loop with an index of other loops."""
  condition, chosen, other = u.src
  if condition.op is not Ops.CMPLT: return None
  low, high = map(_index, condition.src)
  if low is None or high is None: return None
  terms, constant = linear(make(Ops.SUB, dtypes.weakint, (high, low)))
  for loop, sign in terms.items():
    if loop.op is not Ops.RANGE or loop.arg[1] not in _LOOPS or abs(sign) != 1: continue
    # the condition holds for loop > edge if the sign is 1, and for loop < edge otherwise
    edge = total({t: -sign * c for t, c in terms.items() if t is not loop}, -sign * constant)
    after, before, last, first = (chosen, other, 0, 1) if sign == 1 else (other, chosen, -1, 0)
    for value, extra, begins in ((after, last, False), (before, first, True)):
      # a 0 that is no weight of a softmax is multiplied, since 0 * inf is NaN
      if value.op is not Ops.CONST or value.arg != -math.inf and u.tag != STATED: continue
      limit = make(Ops.ADD, dtypes.weakint, (edge, number(extra)))
      if limit.vmin >= 0 and (not begins or limit.vmax < size_of(loop)):
        return Neutral(loop, LoopLimit(limit, begins), value.arg)
  return None

def _index(u: UOp) -> UOp | None:
  """Return the index expression that a number is; None for other numbers."""
  while u.op is Ops.CAST and dtypes.is_int(u.dtype) and dtypes.is_int(u.src[0].dtype) and u.src[0].vmax <= u.dtype.max:
    u = u.src[0]
  return u if u.dtype is dtypes.weakint else None

def last_seen(u: UOp, loop: UOp) -> UOp | None:
  """Return the last iteration of a loop at which a value is not -inf; None if nothing is known of it."""
  known = _Rows(u.toposort()).found.get(u)
  if known is None or known.loop is not loop or known.limit.begins or known.constant != -math.inf: return None
  return known.limit.index

def limits_of(sink: UOp, opts: tuple[Opt, ...]) -> dict[UOp, LoopLimit]:
  """Return, for each loop that may end early or begin late, the last or first index that it needs.

  Only loops over whole tiles may. A loop that reads an array is not peeled, since its second loop would read the rest.
  """
  nodes = sink.toposort()
  if not any(u.op is Ops.STAGE or u.tag == STATED for u in nodes): return {}
  rows = _Rows(nodes)
  loops = {r: known.limit for r, known in rows.loops.items() if r not in rows.whole
           and all(c > 0 and t.op is Ops.RANGE for t, c in linear(known.limit.index)[0].items())}
  reads = [(u.src[0], u.src[1]) for u in nodes if u.op is Ops.INDEX and u.src[0].op is Ops.STAGE]
  readers = {at for _, at in reads}
  loops = {r: limit for r, limit in loops.items() if size_of(r) > factor_of(r, opts)
           and not (r in readers and (limit.begins or size_of(r) % factor_of(r, opts)))}
  while True:
    wrong = {r for stage, at in reads for r in ranges_of(stage) if r in loops and loops.get(at) != loops[r]}
    if not wrong: return loops
    for r in wrong: del loops[r]

def shorten(split: SplitKernel, limits: dict[UOp, LoopLimit]) -> UOp:
  """Return the tiled kernel with shorter loops. limits: of the ranges before they were split.

  Loops with the same limit end, or begin, at the same element, a multiple of their steps. Otherwise one would read what
  another has not stored. A loop that only fills an array may have a step that does not divide its size: its last step
  overlaps the one before.
  """
  together: dict[LoopLimit, list[UOp]] = {}
  for r, limit in limits.items(): together.setdefault(limit, []).append(r)
  loops: dict[UOp, UOp] = {}     # the outer part of a range -> the shorter loop
  values: dict[UOp, UOp] = {}    # and its value from that loop
  for limit, ranges in together.items():
    steps = {r: math.prod(map(size_of, split.pieces[r][1:])) for r in ranges}
    common = math.lcm(*[n for r, n in steps.items() if size_of(r) % n == 0])
    at = divided(edge_of(substitute(limit.index, split.values), not limit.begins), common)
    parts = at if limit.begins else make(Ops.ADD, dtypes.weakint, (at, number(1)))
    edge = make(Ops.MUL, dtypes.weakint, (parts, number(common)))
    for r, step in steps.items():
      outer = split.pieces[r][0]
      if limit.begins:
        skipped = divided(edge, step)
        size = make(Ops.SUB, dtypes.weakint, (outer.src[0], skipped))
        loops[outer] = outer.replace(src=(size,))
        values[outer] = make(Ops.ADD, dtypes.weakint, (loops[outer], skipped))
      else:
        iterations = divided(make(Ops.ADD, dtypes.weakint, (edge, number(step - 1))), step)
        values[outer] = loops[outer] = outer.replace(src=(at_most(iterations, size_of(outer)),))
  return rebuilt(split.sink, values, {old: [new] for old, new in loops.items()}) if loops else split.sink

def skip(sink: UOp) -> UOp:
  """Return a tiled kernel whose sums have no iterations in a tile that a mask hides throughout."""
  if len(sink.src) != 1: return sink
  value = sink.src[0].src[1]
  if value.op is not Ops.WHERE or value.src[0].op is not Ops.CMPLT: return sink
  low, high = map(_index, value.src[0].src)
  if low is None or high is None: return sink
  condition, chosen, other = value.src
  sums = other if chosen.op is Ops.CONST else chosen
  # hidden throughout: the largest `low` is below the smallest `high`, or the smallest `low` is not below the largest
  hides = chosen.op is Ops.CONST
  if not hides and other.op is not Ops.CONST: return sink
  a, b = (edge_of(low, True), edge_of(high, False)) if hides else (edge_of(high, True), edge_of(low, False))
  seen = make(Ops.ADD, dtypes.weakint, (make(Ops.SUB, dtypes.weakint, (a, b)), number(1 if hides else 0)))
  if seen.vmin > 0: return sink
  needed = at_most(UOp(Ops.MAX, dtypes.weakint, (seen, number(0))), 1)
  changes: dict[UOp, UOp] = {}
  for u in sums.toposort(lambda u: u.op is not Ops.REDUCE):
    if u.op is not Ops.REDUCE: continue
    outer = next((r for r in ranges_of(u) if r.arg[1] is AxisType.REDUCE), None)
    if outer is None or not set(needed.ranges) <= set(u.ranges): continue   # another tile may need it
    changes[outer] = outer.replace(src=(make(Ops.MUL, dtypes.weakint, (needed, outer.src[0])),))
  return sink.substitute(changes) if changes else sink

def divided(u: UOp, n: int) -> UOp: return make(Ops.IDIV, dtypes.weakint, (u, number(n)))

def edge_of(index: UOp, largest: bool) -> UOp:
  """Return the largest or smallest value of an index for all elements of a tile."""
  terms, constant = linear(index)
  found = number(constant)
  for t, factor in terms.items():
    tile = [r for r in t.ranges if r.arg[1] in TILE]
    if tile and t.op is not Ops.RANGE: t = number(int(t.vmax if (factor > 0) == largest else t.vmin))
    elif tile: t = number(size_of(t) - 1 if (factor > 0) == largest else 0)
    found = make(Ops.ADD, dtypes.weakint, (found, make(Ops.MUL, dtypes.weakint, (t, number(factor)))))
  return found
