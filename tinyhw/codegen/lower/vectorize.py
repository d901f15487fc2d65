"""Turn VECTOR ranges into lanes of vector registers.

Input: an unrolled kernel in which no node depends on two VECTOR ranges. Output: the same without them. Nodes that
depended on one have a dtype with lanes.

Memory is accessed as follows:
- Where an index is `base + lane`: one vector load or store.
- Where it does not depend on the lane: a scalar and BROADCAST.
- Where lanes are few elements apart, or copies of the access are adjacent: vectors and SHUFFLEs (strided.py).
- Else a gather if the target has them. Of stores: a scatter, where the index is linear.
- Else one scalar load or store per lane, whose addresses share their base.

A gate that depends on the lane becomes a mask (`lane < n - base`: one BROADCAST and one compare) if the target has
masked loads for elements of that size. Else there is one gated access per lane.

A REDUCE over lanes folds whole vectors in its loop, and their lanes once, after it. The parts of a REDUCE whose range
is not a multiple of its lanes are folded as vectors first. The wider ones are halved until they are as narrow as the
others.

Index expressions are analysed on demand, as `base + stride * lane` where they are linear. Only the others, and those
that are used as data, are computed in vectors. Cost: one walk.
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyhw import trace
from tinyhw.codegen.kernel.affine import linear, make, number, total
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.fold import fold_tree
from tinyhw.codegen.transform.tiling import OF_ONE
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp

if TYPE_CHECKING: from tinyhw.codegen.lower.strided import StridedLanes

weakint = dtypes.weakint
GATHERED_BYTES = (4, 8)  # element sizes that gathers and scatters know on every vector ISA
_LOGIC = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_NONE = (None, None)
_SCALARS = frozenset({Ops.CONST, Ops.BROADCAST, Ops.VECTORIZE})

def widen(x: UOp, lanes: int) -> UOp:
  """Return x in all lanes; a vector is itself."""
  if x.dtype.count > 1: return x
  if x.op is Ops.CONST: return UOp(Ops.CONST, x.dtype.vec(lanes), (), x.arg)
  return UOp(Ops.BROADCAST, x.dtype.vec(lanes), (x,))

def lane_of(x: UOp, k: int) -> UOp:
  """Return lane k of a vector; a scalar is itself."""
  if x.dtype.count == 1: return x
  if x.op is Ops.CONST: return UOp(Ops.CONST, x.dtype.scalar(), (), x.arg)
  if x.op is Ops.BROADCAST: return x.src[0]
  if x.op is Ops.VECTORIZE: return x.src[k]
  return UOp(Ops.GEP, x.dtype.scalar(), (x,), k)

def run_of(x: UOp, start: int, lanes: int) -> UOp:
  """Return adjacent lanes of x.

  They are one GEP where they are a power of two and begin at a multiple of it; for bools they are a VECTORIZE.
  """
  if lanes == x.dtype.count: return x
  dtype = x.dtype.scalar().vec(lanes)
  if x.op is Ops.CONST or x.op is Ops.BROADCAST: return UOp(x.op, dtype, x.src, x.arg)
  whole = start % lanes == 0 and lanes & lanes - 1 == 0 and not dtypes.is_bool(dtype)
  if x.op is Ops.VECTORIZE or not whole:
    return UOp(Ops.VECTORIZE, dtype, tuple([lane_of(x, k) for k in range(start, start + lanes)]))
  return UOp(Ops.GEP, dtype, (x,), start)

def halved(op: Ops, x: UOp, lanes: int) -> UOp:
  """Fold halves of x while there are more lanes than wanted and their number is even."""
  n = x.dtype.count
  while n > lanes and n % 2 == 0:
    n //= 2
    x = UOp(op, x.dtype.scalar().vec(n), (run_of(x, 0, n), run_of(x, n, n)))
  return x

def fold_lanes(op: Ops, x: UOp) -> UOp:
  """Fold all lanes of x: halves while they are vectors of four and more, then scalars in pairs."""
  x = halved(op, x, 4)
  return fold_tree(op, [lane_of(x, k) for k in range(x.dtype.count)])

def steps(stride: int, lanes: int) -> UOp:
  """Return 0, stride, 2*stride, … in lanes."""
  return UOp(Ops.VECTORIZE, weakint.vec(lanes), tuple([number(stride * k) for k in range(lanes)]))

def near(index: UOp, buffer: UOp, lanes: int) -> UOp:
  """Return the index of a masked vector's first lane; 0 where the vector is outside of its buffer, all lanes closed.

  Processors take hundreds of cycles for an access to a page that is not there, even if all lanes are closed.
  """
  if buffer.op is not Ops.PARAM: return index
  size = buffer.arg[1]
  if index.vmin <= -lanes:
    index = make(Ops.WHERE, weakint, (make(Ops.CMPLT, dtypes.bool, (number(-lanes), index)), index, number(0)))
  if index.vmax < size: return index
  return make(Ops.WHERE, weakint, (make(Ops.CMPLT, dtypes.bool, (index, number(size))), index, number(0)))

class Vectorizer:
  """The state of the walk. `new[u]`: the new scalar or vector of u. `axis[u]`: the VECTOR range that u depends on."""
  def __init__(self, capabilities: Capabilities, order: Iterable[UOp] = ()):
    self.capabilities, self.order = capabilities, order
    self._strided: StridedLanes | None = None
    self.new: dict[UOp, UOp] = {}
    self.axis: dict[UOp, UOp | None] = {}
    self._folded: dict[UOp, tuple[Ops, UOp]] = {}    # scalar -> the operation and the vector whose lanes it folds
    self._splits: dict[UOp, tuple[UOp, int] | None] = {}
    self._copies: dict[tuple[UOp, int], UOp] = {}

  # ***** the walk *****

  def visit(self, u: UOp) -> None:
    axis: UOp | None = u if u.op is Ops.RANGE and u.arg[1] is AxisType.VECTOR else None
    for s in u.src:
      other = self.axis[s]
      if other is None or other is axis: continue
      if axis is not None:
        raise CompileError(f"{u.op.name} depends on two VECTOR ranges, {axis.arg[0]} and {other.arg[0]}; make one of "
                           f"them UPCAST")
      axis = other
    self.axis[u] = axis
    if axis is None: self.new[u] = self.rebuild(u)
    elif u.op is Ops.STORE: self.close(u, self.store(u, axis))
    elif u.op is Ops.REDUCE: self.close(u, self.reduce(u, axis))
    elif u.dtype is not weakint and u.op is not Ops.INDEX: self.new[u] = self.value(u, axis)

  def close(self, u: UOp, result: UOp) -> None:
    self.new[u] = result
    if self.axis[u] in ranges_of(u): self.axis[u] = None

  def rebuild(self, u: UOp) -> UOp:
    src = tuple([self.new[s] for s in u.src])
    if src == u.src: return u
    if u.op in (Ops.SINK, Ops.GROUP, Ops.AFTER):
      flat: list[UOp] = []
      for s in src: flat += s.src if s.op is Ops.GROUP else (s,)
      src = tuple(flat)
    if u.tag == OF_ONE and all(self._folded.get(s, _NONE)[0] is u.op for s in src): return self.joined(u.op, *src)
    return UOp(u.op, u.dtype, src, u.arg, u.tag)

  def value(self, u: UOp, axis: UOp) -> UOp:
    """Build a value that depends on the lane."""
    if u.op is Ops.LOAD: return self.load(u, axis)
    if u.op in GroupOp.Comparison and u.src[0].dtype is weakint: return self.compare(u, axis)
    return self.widened(u, axis)

  def widened(self, u: UOp, axis: UOp) -> UOp:
    """Build the same operation on vectors; scalar operands go to all lanes."""
    n = axis.src[0].arg
    src = [self.vector_index(s) if s.dtype is weakint else self.new[s] for s in u.src]
    if all(s.dtype.count == 1 for s in src): return make(u.op, u.dtype, tuple(src), u.arg)
    return UOp(u.op, u.dtype.vec(n), tuple([widen(s, n) for s in src]), u.arg)

  # ***** index expressions *****

  def split(self, u: UOp) -> tuple[UOp, int] | None:
    """Return (base, stride) if the index expression u is base + stride * lane."""
    if self.axis[u] is None: return self.new[u], 0
    if u not in self._splits: self._splits[u] = self._split(u)
    return self._splits[u]

  def _split(self, u: UOp) -> tuple[UOp, int] | None:
    if u.op is Ops.RANGE: return number(0), 1
    if u.op is Ops.ADD:
      a, b = self.split(u.src[0]), self.split(u.src[1])
      return None if a is None or b is None else (make(Ops.ADD, weakint, (a[0], b[0])), a[1] + b[1])
    if u.op is not Ops.MUL or u.src[1].op is not Ops.CONST: return None
    a = self.split(u.src[0])
    return None if a is None else (make(Ops.MUL, weakint, (a[0], u.src[1])), a[1] * u.src[1].arg)

  def vector_index(self, u: UOp) -> UOp:
    """Return an index expression as a vector; a scalar if it does not depend on the lane."""
    found = self.new.get(u)
    if found is not None: return found
    axis = self.axis[u]
    assert axis is not None
    n, split = axis.src[0].arg, self.split(u)
    if split is None: result = self.widened(u, axis)
    elif split[1] == 0: result = split[0]
    elif split[0].op is Ops.CONST:
      result = UOp(Ops.VECTORIZE, weakint.vec(n), tuple([number(split[0].arg + split[1] * k) for k in range(n)]))
    else: result = UOp(Ops.ADD, weakint.vec(n), (widen(split[0], n), steps(split[1], n)))
    self.new[u] = result
    return result

  def compare(self, u: UOp, axis: UOp) -> UOp:
    """Build a comparison of indices. Where it is linear, compare the lane's multiple with one scalar."""
    a, b = self.split(u.src[0]), self.split(u.src[1])
    if a is None or b is None: return self.widened(u, axis)
    n, stride = axis.src[0].arg, a[1] - b[1]
    if stride == 0: return make(u.op, dtypes.bool, (a[0], b[0]))
    flip = stride < 0  # base + stride*lane < 0 is stride*lane < -base, or base < -stride*lane
    x, y = (a[0], b[0]) if flip else (b[0], a[0])
    base = widen(total(*linear(make(Ops.SUB, weakint, (x, y)))), n)
    moving = steps(abs(stride), n)
    return UOp(u.op, dtypes.bool.vec(n), (base, moving) if flip else (moving, base))

  def copy(self, u: UOp, k: int) -> UOp:
    """Return an index expression or gate as lane k has it."""
    if self.axis[u] is None: return self.new[u]
    found = self._copies.get((u, k))
    if found is None: found = self._copies[u, k] = self._copy(u, k)
    return found

  def _copy(self, u: UOp, k: int) -> UOp:
    if u.op is Ops.RANGE: return number(k)
    of_index = u.op in GroupOp.Comparison and u.src[0].dtype is weakint
    if u.dtype is weakint or of_index or (u.dtype is dtypes.bool and u.op in _LOGIC):
      return make(u.op, u.dtype, tuple([self.copy(s, k) for s in u.src]), u.arg)
    return lane_of(self.new[u], k)

  # ***** memory *****

  @property
  def strided(self) -> StridedLanes:
    """The accesses of the kernel whose lanes are not adjacent."""
    if self._strided is None:
      from tinyhw.codegen.lower.strided import StridedLanes  # 0.5 ms to load, for kernels that have such accesses
      self._strided = StridedLanes(self.order, self.capabilities)
    return self._strided

  def maskable(self, place: UOp) -> bool: return place.dtype.itemsize in self.capabilities.masked_bytes

  def turns(self, dtype: DType, n: int) -> bool:
    """Can a SHUFFLE reverse a vector?"""
    from tinyhw.codegen.lower.strided import fills_registers  # hidden: as `strided`
    return dtype.itemsize in self.capabilities.shuffled_bytes and fills_registers(dtype, n, self.capabilities)

  def scattered(self, place: UOp, value: UOp) -> bool:
    """Can strided lanes be one STORE? Values that are scalars already are stored as such."""
    return (self.capabilities.scatters and place.dtype.itemsize in GATHERED_BYTES and value.dtype.count > 1
            and value.op not in _SCALARS)

  def load(self, u: UOp, axis: UOp) -> UOp:
    place, n = u.src[0], axis.src[0].arg
    buffer, i = self.new[place.src[0]], place.src[1]
    split = self.split(i)
    rest = [self.new[s] for s in u.src[1:]]
    masked = bool(rest) and rest[0].dtype.count > 1
    if split is not None and split[1] == 1 and (not masked or self.maskable(place)):
      if rest: rest[1] = widen(rest[1], n)
      at = near(split[0], buffer, n) if masked else split[0]
      return UOp(Ops.LOAD, u.dtype.vec(n), (UOp(Ops.INDEX, place.dtype, (buffer, at)), *rest))
    if split is not None and split[1] == 0 and all(s.dtype.count == 1 for s in rest):
      return UOp(Ops.LOAD, u.dtype, (UOp(Ops.INDEX, place.dtype, (buffer, split[0])), *rest))
    if split is not None and self.capabilities.shuffled_bytes:
      shuffled = self.strided.load(u, buffer, split, n)
      if shuffled is not None: return shuffled
    if split is not None and split[1] == -1 and rest and self.maskable(place) and self.turns(u.dtype, n):
      from tinyhw.codegen.lower.strided import backwards  # hidden: as `strided`
      index = UOp(Ops.INDEX, place.dtype, (buffer, near(make(Ops.ADD, weakint, (split[0], number(1 - n))), buffer, n)))
      found = backwards(index, widen(rest[0], n), widen(rest[1], n))
      if found is not None: return found
    if self.capabilities.gathers and place.dtype.itemsize in GATHERED_BYTES:
      index = UOp(Ops.INDEX, place.dtype, (buffer, widen(self.vector_index(i), n)))
      return UOp(Ops.LOAD, u.dtype.vec(n), (index, *[widen(s, n) for s in rest]))
    lanes = []
    for k in range(n):
      index = UOp(Ops.INDEX, place.dtype, (buffer, self.copy(i, k)))
      gate = [self.copy(u.src[1], k), lane_of(rest[1], k)] if rest else []
      lanes.append(make(Ops.LOAD, u.dtype, (index, *gate)))
    return UOp(Ops.VECTORIZE, u.dtype.vec(n), tuple(lanes))

  def store(self, u: UOp, axis: UOp) -> UOp:
    if axis not in ranges_of(u):
      raise CompileError(f"a STORE depends on VECTOR range {axis.arg[0]} but does not run over it; add it to its "
                         f"ranges")
    place, n = u.src[0], axis.src[0].arg
    buffer, i, value = self.new[place.src[0]], place.src[1], self.new[u.src[1]]
    gates = [self.new[g] for g in values_of(u)[2:]]
    ranges = [self.new[r] for r in ranges_of(u) if r is not axis]
    split, masked = self.split(i), bool(gates) and gates[0].dtype.count > 1
    if split is not None and split[1] == 1 and (not masked or self.maskable(place)):
      index = UOp(Ops.INDEX, place.dtype, (buffer, near(split[0], buffer, n) if masked else split[0]))
      return UOp(Ops.STORE, dtypes.void, (index, widen(value, n), *gates, *ranges), None, u.tag)
    if split is not None and self.capabilities.shuffled_bytes:
      shuffled = self.strided.store(u, widen(value, n), buffer, split, n, ranges)
      if shuffled is not None: return shuffled
    if split is not None and split[1] != 0 and not masked and self.scattered(place, value):
      index = UOp(Ops.INDEX, place.dtype, (buffer, self.vector_index(i)))
      return UOp(Ops.STORE, dtypes.void, (index, value, *gates, *ranges), None, u.tag)
    lanes = range(n - 1, n) if split is not None and split[1] == 0 and not masked else range(n)
    stores = []
    for k in lanes:
      gate = [self.copy(g, k) for g in values_of(u)[2:]]
      index = UOp(Ops.INDEX, place.dtype, (buffer, self.copy(i, k)))
      stores.append(make(Ops.STORE, dtypes.void, (index, lane_of(value, k), *gate, *ranges)))
    return UOp(Ops.GROUP, dtypes.void, tuple([s.replace(tag=u.tag) for s in stores if s.op is Ops.STORE]))

  def reduce(self, u: UOp, axis: UOp) -> UOp:
    """Fold whole vectors in the loop. Fold the lanes, where they are part of the reduction, once after the loop."""
    loops = [self.new[r] for r in ranges_of(u) if r is not axis]
    value = widen(self.new[u.src[0]], axis.src[0].arg)
    if loops: value = UOp(Ops.REDUCE, value.dtype, (value, *loops), u.arg)
    return value if axis not in ranges_of(u) else self.folded(u.arg, value)

  def folded(self, op: Ops, x: UOp) -> UOp:
    """Fold all lanes of x."""
    found = fold_lanes(op, x)
    self._folded[found] = op, x
    return found

  def joined(self, op: Ops, a: UOp, b: UOp) -> UOp:
    """Fold two folded values: fold their vectors first, so that only one vector is folded lane by lane."""
    x, y = (self._folded[s][1] for s in (a, b))
    n = min(x.dtype.count, y.dtype.count)
    x, y = halved(op, x, n), halved(op, y, n)
    return UOp(op, a.dtype, (a, b)) if x.dtype != y.dtype else self.folded(op, UOp(op, x.dtype, (x, y)))

def vectorize(sink: UOp, capabilities: Capabilities) -> UOp:
  """Replace every VECTOR range by lanes."""
  order = sink.toposort()
  vectors = [u for u in order if u.op is Ops.RANGE and u.arg[1] is AxisType.VECTOR]
  if not vectors: return sink
  for r in vectors:
    if r.src[0].op is not Ops.CONST:
      raise CompileError(f"range {r.arg[0]} is VECTOR and its end is not a constant; only a constant can be lanes")
  lanes = Vectorizer(capabilities, order)
  inherit = trace.inherit if trace.follows() else None
  for u in order:
    lanes.visit(u)
    if inherit is not None and u in lanes.new and lanes.new[u] is not u: inherit(lanes.new[u], u)
  return lanes.new[sink]
