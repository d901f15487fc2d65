"""Leave out the ends of rows that a mask makes neutral: a causal attention computes half of its scores.

    scores[j] = -inf where i < j       all scores above the diagonal
    largest   = max of scores[j]       -inf changes no maximum
    e[j]      = exp(scores[j] - largest)      0 there
    sum of e[j] * v[j]                 0 changes no sum

A loop over j may then end after i. Loops that fill an array of shared memory may, too, if all loops that read it do.
`limits_of` finds the last index that each loop needs, and `shorten` ends the loops of the tiled kernel after the last
index that any element of the tile needs.

Elements behind a mask are not read. So inf and NaN there change no result, where 0 * inf would be NaN.
"""
from __future__ import annotations
import math

from tinyhw.arithmetic import operation
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.stage import TILE
from tinyhw.codegen.transform.tiling import Opt, SplitKernel, at_most, factor_of, size_of, substitute
from tinyhw.dtype import ConstType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

class Neutral(NamedTuple):
  """A value is `constant` for all iterations of `loop` after `last`, an index that depends on other loops."""
  loop: UOp
  last: UOp
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
    if known is None or loops != (known.loop,) or known.loop in known.last.ranges or not (
        u.op is Ops.STAGE or known.constant == {Ops.ADD: 0, Ops.MAX: -math.inf}.get(u.arg)):
      self.whole.update(loops)
      return None
    if self.loops.setdefault(known.loop, known).last is not known.last: self.whole.add(known.loop)
    return known if u.op is Ops.STAGE else None

  def _computed(self, u: UOp) -> Neutral | None:
    """Return the result of an operation with one known operand, if the other operands cannot change it."""
    known = [self.found[s] for s in u.src if s in self.found]
    if len(known) != 1: return None
    constant = known[0].constant
    if u.op is Ops.MUL and constant == 0: return known[0]
    if u.op in (Ops.ADD, Ops.SUB) and u.src[0] in self.found and constant == -math.inf: return known[0]
    if len(u.src) == 1 and u.op is not Ops.BITCAST:
      if u.op is Ops.CAST: return known[0] if constant in (0, -math.inf) else None
      return known[0]._replace(constant=operation(u.op.name, u.dtype)(constant))
    return None

def _masked(u: UOp) -> Neutral | None:
  """Return the value of a WHERE whose condition compares a loop with an index of other loops."""
  condition, chosen, other = u.src
  if condition.op is not Ops.CMPLT: return None
  low, high = map(_index, condition.src)
  for loop, limit, value, extra in ((high, low, chosen, 0), (low, high, other, -1)):
    if loop is None or limit is None or loop.op is not Ops.RANGE or loop in limit.ranges: continue
    if value.op is Ops.CONST and limit.vmin + extra >= 0:
      return Neutral(loop, make(Ops.ADD, dtypes.weakint, (limit, number(extra))), value.arg)
  return None

def _index(u: UOp) -> UOp | None:
  """Return the index expression that a number is; None for other numbers."""
  while u.op is Ops.CAST and dtypes.is_int(u.dtype) and int(u.src[0].vmax) <= u.dtype.max: u = u.src[0]
  return u if u.dtype is dtypes.weakint else None

def limits_of(sink: UOp, opts: tuple[Opt, ...]) -> dict[UOp, UOp]:
  """Return, for each loop that may end early, the last index that it needs.

  Only loops over whole tiles may. A loop that reads an array is not peeled, since its second loop would read the rest.
  """
  nodes = sink.toposort()
  if not any(u.op is Ops.STAGE for u in nodes): return {}
  rows = _Rows(nodes)
  loops = {r: known.last for r, known in rows.loops.items() if r not in rows.whole
           and all(c > 0 and t.op is Ops.RANGE for t, c in linear(known.last)[0].items())}
  reads = [(u.src[0], u.src[1]) for u in nodes if u.op is Ops.INDEX and u.src[0].op is Ops.STAGE]
  readers = {at for _, at in reads}
  loops = {r: last for r, last in loops.items() if size_of(r) > factor_of(r, opts)
           and not (r in readers and size_of(r) % factor_of(r, opts))}
  while True:
    wrong = {r for stage, at in reads for r in ranges_of(stage) if r in loops and loops.get(at) is not loops[r]}
    if not wrong: return loops
    for r in wrong: del loops[r]

def shorten(split: SplitKernel, limits: dict[UOp, UOp]) -> UOp:
  """Return the tiled kernel with shorter loops. limits: of the ranges before they were split.

  Loops with the same limit end at the same element, a multiple of their steps. Otherwise one would read what another
  has not stored. A loop that only fills an array may have a step that does not divide its size: its last step overlaps
  the one before.
  """
  together: dict[UOp, list[UOp]] = {}
  for r, last in limits.items(): together.setdefault(last, []).append(r)
  changes: dict[UOp, UOp] = {}
  for last, ranges in together.items():
    steps = {r: math.prod(map(size_of, split.pieces[r][1:])) for r in ranges}
    common = math.lcm(*[n for r, n in steps.items() if size_of(r) % n == 0])
    parts = make(Ops.ADD, dtypes.weakint, (divided(_largest(last, split), common), number(1)))
    end = make(Ops.MUL, dtypes.weakint, (parts, number(common)))
    for r, step in steps.items():
      outer = split.pieces[r][0]
      iterations = divided(make(Ops.ADD, dtypes.weakint, (end, number(step - 1))), step)
      changes[outer] = outer.replace(src=(at_most(iterations, size_of(outer)),))
  return split.sink.substitute(changes)

def divided(u: UOp, n: int) -> UOp: return make(Ops.IDIV, dtypes.weakint, (u, number(n)))

def _largest(last: UOp, split: SplitKernel) -> UOp:
  """Return the largest value of an index for all elements of a tile. All its factors are positive."""
  terms, constant = linear(last)
  found = number(constant)
  for r, factor in terms.items():
    inner = {p: number(size_of(p) - 1) for p in split.pieces[r] if p.arg[1] in TILE}
    most = make(Ops.MUL, dtypes.weakint, (substitute(split.values[r], inner), number(factor)))
    found = make(Ops.ADD, dtypes.weakint, (found, most))
  return found
