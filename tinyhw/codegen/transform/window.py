"""Windows: copy the elements that a reduction and some loops around it read of a buffer to shared memory once, gates
applied.

A convolution reads x[h*s + i, w*s + j]. Neighbouring outputs (h, w) share most of their inputs. Where x is padded, each
read has a gate. `window_of` finds pairs of loops, one of the output and one of the reduction, that an index uses only
by their weighted sum (w*s + j). Such a pair becomes one dimension of a shared array, which runs over all values of the
sum. The reduction's other loops are dimensions as they are. So the array holds a tile of the input with its halo: the
elements around the tile that its outputs read, too.

The copy is a STAGE (stage.py) outside of the pair's loops. Reads of the array need no gate, and never leave it. Values
that are computed of the element alone (a fused producer, the zeros of padding) are computed while copying.

Opt(WINDOW, slot, n) stages loads of that buffer. The window closes at most n loops of the output, those with the
smallest strides.
"""
from __future__ import annotations

from tinyhw.codegen.kernel.access import StridedAccess, access_of
from tinyhw.codegen.kernel.affine import linear, make, number
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.transform.stage import next_array, values_from
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of, substitute
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

class LoopPair(NamedTuple):
  """Loops of the output and of the reduction in an access as `output * step + inner * dilation`; one of both factors is
  1."""
  output: UOp
  inner: UOp
  step: int
  dilation: int

  @property
  def size(self) -> int:
    """Return the number of values of the sum, which are contiguous from 0 on."""
    return (size_of(self.output) - 1) * self.step + (size_of(self.inner) - 1) * self.dilation + 1

class Window(NamedTuple):
  """The window of a value: its pairs, smallest strides first, and the reduction's other loops that it depends on."""
  value: UOp
  pairs: tuple[LoopPair, ...]
  loops: tuple[UOp, ...]

  def closing(self, most: int) -> Window:
    """Return the window that closes at most this many loops of the output."""
    kept = self.pairs[:most]
    return Window(self.value, kept, (*self.loops, *(p.inner for p in self.pairs[most:])))

  @property
  def closed(self) -> tuple[UOp, ...]: return tuple(p.output for p in self.pairs)

  def elements(self, lanes: int) -> int:
    """Return the elements of the shared array, whose innermost dimension is a multiple of the lanes."""
    n = 1
    for k, size in enumerate(self.sizes()): n *= size if k else -(-size // lanes) * lanes
    return n

  def sizes(self) -> list[int]:
    """Return the sizes of the dimensions, innermost first: pairs, then loops, later ones further inside."""
    return [p.size for p in self.pairs] + [size_of(r) for r in sorted(self.loops, key=lambda r: r.arg, reverse=True)]

def window_of(access: StridedAccess, body: UOp, outputs: tuple[UOp, ...], inner: tuple[UOp, ...]) -> Window | None:
  """Return the window that closes most output loops, of the largest such value; None where it would close none.

  inner: ranges of the reduction.
  """
  load = access.node
  mine = [r for r in inner if r in load.ranges]
  if any(not size_of(r) for r in mine): return None
  possible = [pair for r in outputs if r in load.ranges for k in mine if (pair := pair_of(access, r, k)) is not None]
  if not possible: return None
  possible.sort(key=lambda p: (max(p.step, p.dilation), abs(access.strides[p.inner])))
  found = [(value, _pairs(value, possible)) for value in values_from(load, body)[::-1]]
  value, pairs = max(found, key=lambda item: len(item[1]))
  if not pairs: return None
  pairs.sort(key=lambda p: abs(access.strides[p.inner]))
  return Window(value, tuple(pairs), tuple(r for r in mine if all(r is not p.inner for p in pairs)))

def _pairs(value: UOp, possible: list[LoopPair]) -> list[LoopPair]:
  """Return the possible pairs, best first, that a value uses only by their sum. No loop is in two of them."""
  pairs: list[LoopPair] = []
  for pair in possible:
    if any(pair.output is p.output or pair.inner is p.inner for p in pairs): continue
    if _depends_on_sum(value, pair): pairs.append(pair)
  return pairs

def pair_of(access: StridedAccess, output: UOp, inner: UOp) -> LoopPair | None:
  """Return the factors of both loops in the index, if their sum takes every value in between, and some more than once.
  """
  a, b = access.strides.get(output), access.strides.get(inner)
  if not a or not b or not size_of(output): return None
  if a % b == 0 and 0 < a // b < size_of(inner): return LoopPair(output, inner, a // b, 1)
  if b % a == 0 and 0 < b // a < size_of(output): return LoopPair(output, inner, 1, b // a)
  return None

def _depends_on_sum(value: UOp, pair: LoopPair) -> bool:
  """Is the value the same for all values of both loops that have one sum?

  It is if each index and each operand of a gate is linear in that sum.
  """
  for u in value.toposort():
    if u.dtype is dtypes.weakint: continue
    for s in u.src:
      if s.dtype is not dtypes.weakint: continue
      terms, _ = linear(s)
      if terms.pop(pair.output, 0) * pair.dilation != terms.pop(pair.inner, 0) * pair.step: return False
      if any(r is pair.output or r is pair.inner for t in terms for r in t.ranges): return False
  return True

def stage_windows(sink: UOp, opts: tuple[Opt, ...]) -> tuple[UOp, tuple[Opt, ...]]:
  """Return the kernel whose loads go through the windows of WINDOW opts, and the opts of the loops that copy them.

  These opts are lanes, if the tile has some. If the tile's lanes run along a loop outside of a window, the window has
  an element for each lane, and is copied along them.
  """
  most = {o.axis: o.amount for o in opts if o.op is OptOps.WINDOW}
  if not most: return sink, ()
  lanes = {o.axis: o.amount for o in opts if o.op is OptOps.VECTOR}
  nodes = sink.toposort()
  fresh = 1 + max(u.arg[0] for u in nodes if u.op is Ops.RANGE)
  stored = {store.src[0].src[0] for store in sink.src}
  outputs = tuple(dict.fromkeys(r for store in sink.src for r in ranges_of(store)))
  first = next_array(nodes)
  changes: dict[UOp, UOp] = {}
  copying: list[Opt] = []
  for reduce in nodes:
    if reduce.op is not Ops.REDUCE: continue
    for load in reduce.src[0].toposort():
      if load.op is not Ops.LOAD or load.src[0].src[0].op is not Ops.PARAM or not most.get(load.src[0].src[0].arg[0]):
        continue
      window = window_of(access_of(load), reduce.src[0], outputs, ranges_of(reduce))
      if window is None: continue
      value = window.value
      if value in changes or any(u.op is Ops.LOAD and u.src[0].src[0] in stored for u in value.toposort()): continue
      window = window.closing(most[load.src[0].src[0].arg[0]])
      along = any(r.arg[0] in lanes for r in value.ranges if r not in window.closed and r not in ranges_of(reduce))
      changes[value], copied = _staged(window, 1 if along else max(lanes.values(), default=1), fresh,
                                       first + len(changes))
      copying += copied
      fresh += len(value.ranges)   # at least the number of dimensions of the window
  return (sink.substitute(changes) if changes else sink), tuple(copying)

def _staged(window: Window, lanes: int, fresh: int, count: int) -> tuple[UOp, list[Opt]]:
  """Return a load from the window, instead of its value. fresh: ids for its loops. count: of shared arrays before
  it."""
  loops = sorted(window.loops, key=lambda r: r.arg)
  pairs = window.pairs[::-1]
  real = [size_of(r) for r in loops] + [p.size for p in pairs]
  sizes = [*real[:-1], -(-real[-1] // lanes) * lanes]
  copies = [UOp(Ops.RANGE, dtypes.weakint, (number(n),), (fresh + k, AxisType.STAGE)) for k, n in enumerate(sizes)]
  changes: dict[UOp, UOp] = dict(zip(loops, copies))
  for p, copy in zip(pairs, copies[len(loops):]):
    # the loop with factor 1 becomes the sum: with the other one at 0 it reaches every value
    whole, part = (p.inner, p.output) if p.dilation == 1 else (p.output, p.inner)
    changes[whole], changes[part] = copy, number(0)
  inside = copies[-1] < number(real[-1]) if sizes[-1] != real[-1] else None
  stage = UOp(Ops.STAGE, window.value.dtype, (_gated(substitute(window.value, changes), inside), *copies),
              (count, True))
  position = number(0)
  terms: list[UOp] = [*loops, *(make(Ops.ADD, dtypes.weakint, (_times(p.output, p.step), _times(p.inner, p.dilation)))
                                for p in pairs)]
  for term, n in zip(terms, sizes): position = make(Ops.ADD, dtypes.weakint, (_times(position, n), term))
  opts = [Opt(OptOps.VECTOR, fresh + len(sizes) - 1, lanes)] if lanes > 1 else []
  return UOp(Ops.LOAD, stage.dtype, (UOp(Ops.INDEX, stage.dtype, (stage, position)),)), opts

def _times(u: UOp, factor: int) -> UOp: return make(Ops.MUL, dtypes.weakint, (u, number(factor)))

def _gated(value: UOp, condition: UOp | None) -> UOp:
  """Return the value with its loads done where a condition holds; elsewhere they give 0."""
  if condition is None: return value
  changes: dict[UOp, UOp] = {}
  for load in value.toposort():
    if load.op is not Ops.LOAD: continue
    gate = make(Ops.AND, dtypes.bool, (load.src[1], condition)) if len(load.src) > 1 else condition
    other = load.src[2] if len(load.src) > 2 else UOp.const(load.dtype, 0)
    changes[load] = UOp(Ops.LOAD, load.dtype, (load.src[0], gate, other))
  return value.substitute(changes)
