"""Split vectors that the target cannot compute whole into narrower ones, down to scalars.

Input: a decomposed kernel. Output: the same kernel with legal vectors. Each vector operation is one that the target
lists for its type and lanes. Each vector in memory is at most as wide as a register.

Each node becomes a list of parts of equal width, lane 0 first. A user asks for the parts in its own width (`parts`). It
gets lanes extracted from wider parts or joined from narrower ones. Broadcasts, constants and vectors of scalars are
made in any width. A kernel without anything to split is returned unchanged, after one look at each node.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.lower.indices import const, fits
from tinyhw.codegen.lower.vectorize import lane_of, run_of
from tinyhw.codegen.math.casts import lanewise
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

_ANY_WIDTH = frozenset({Ops.CONST, Ops.BROADCAST, Ops.VECTORIZE})
# never split: operations of all lanes of a wave together, and shuffles, whose vectors are those of memory
_TOGETHER = frozenset({Ops.MMA, Ops.FRAGMENT, Ops.SHARED_OPERAND, Ops.SHUFFLE})
_WHOLE = frozenset({Ops.ACC, Ops.REDUCE, Ops.LOAD})  # for a lane's part of a matrix
_MEMORY = frozenset({Ops.LOAD, Ops.GEP})  # where lanes are threads, vectors are only loaded, stored and taken apart
_STRUCTURE = frozenset({Ops.GROUP, Ops.ACC, Ops.REDUCE, Ops.LOAD, Ops.GEP})  # limited only by the size of a register

class Legalizer:
  """The state of the walk. `new[u]`: the parts of u; scalars and nodes without a value have one."""
  def __init__(self, capabilities: Capabilities):
    self.capabilities = capabilities
    self.new: dict[UOp, list[UOp]] = {}
    self.width: dict[UOp, int] = {}
    self._parts: dict[tuple[UOp, int], list[UOp]] = {}
    self._widest: dict[tuple[Ops, DType], int] = {}
    self.shares = {dtype.vec(layout.count) for x in capabilities.matrix
                   # a lane's part of a matrix stays whole
                   for dtype, layout in ((x.operand, x.a), (x.operand, x.b), (x.result, x.c)) if layout}
    self.shares.update(x.result.vec(x.m * x.n) for x in capabilities.matrix if x.lanes == 1)

  # ***** widths *****

  def widest(self, op: Ops, dtype: DType) -> int:
    """Return how many lanes of this vector type op can do at once. The number divides the lanes of the type."""
    found = self._widest.get((op, dtype))
    if found is None: found = self._widest[op, dtype] = self._find_widest(op, dtype)
    return found

  def _find_widest(self, op: Ops, dtype: DType) -> int:
    scalar, n = dtype.scalar(), dtype.count
    if dtype in self.shares and op in _WHOLE and (op is not Ops.LOAD or self.capabilities.vector_bytes): return n
    lanes = self.capabilities.lanes
    for width in range(n, 1, -1):
      if n % width or lanes and width & width - 1: continue   # lanes that are threads load powers of two
      if op in (_MEMORY if lanes else _STRUCTURE) or op in _ANY_WIDTH:
        if self.capabilities.fits(scalar.vec(width)): return width
      elif self.capabilities.supports(op, scalar.vec(width)): return width
    return 1

  def width_of(self, u: UOp) -> int:
    """Return the lanes of one part of u."""
    op, dtype = u.op, u.dtype
    if op is Ops.STORE: dtype = u.src[1].dtype
    if dtype.count == 1: return 1
    if op is Ops.STORE and u.arg is not None: return self.width_of_pieces(u)
    if op in _ANY_WIDTH or is_whole(u): return dtype.count
    if op is Ops.STORE or op is Ops.LOAD:
      width = self.widest(Ops.LOAD, dtype)
      index = u.src[0].src[1].dtype
      return width if index.count == 1 else min(width, self.widest(Ops.LOAD, index))
    if op is Ops.GEP and self.capabilities.lanes and u.src[0].dtype in self.shares: return dtype.count
    if op in _STRUCTURE: return self.widest(op, dtype)
    if op in GroupOp.ALU and dtypes.is_bool(u.src[-1].dtype):  # masks are as wide as the compared values
      fixed = [self.width[s] for s in u.src if s.op not in _ANY_WIDTH]
      return min(fixed + [self.widest(op, dtype)])
    if op in GroupOp.Comparison: return self.widest(op, u.src[0].dtype)
    if op is Ops.CAST or op is Ops.BITCAST:
      source = u.src[0].dtype
      if op is Ops.CAST and lanewise(source.scalar(), dtype.scalar(), self.capabilities.wide_casts): return 1
      resized = op is Ops.CAST and dtypes.is_int(source) and dtypes.is_int(dtype) and not self.capabilities.lanes
      if resized: op = Ops.LOAD  # every target resizes the integers of a vector
      if op is Ops.CAST and self.capabilities.lanes: return self.widest(op, dtype)
      return min(self.widest(op, dtype), self.widest(op, source))
    return self.widest(op, dtype)

  # ***** parts *****

  def parts(self, u: UOp, width: int) -> list[UOp]:
    """Return u as vectors of `width` lanes (scalars when it is 1). A scalar is one part."""
    if u.dtype.count == 1: return self.new[u]
    own = self.width[u]
    if own == width and u.op not in _ANY_WIDTH: return self.new[u]
    found = self._parts.get((u, width))
    if found is None: found = self._parts[u, width] = self._resize(u, own, width)
    return found

  def _resize(self, u: UOp, own: int, width: int) -> list[UOp]:
    scalar, count = u.dtype.scalar(), u.dtype.count // width
    if u.op is Ops.CONST: return [UOp(Ops.CONST, scalar.vec(width), (), u.arg)] * count
    if u.op is Ops.BROADCAST:
      x = self.new[u.src[0]][0]
      return [x if width == 1 else UOp(Ops.BROADCAST, scalar.vec(width), (x,))] * count
    if u.op is Ops.VECTORIZE:
      lanes = [self.new[s][0] for s in u.src]
      return lanes if width == 1 else [_joined(lanes[k * width:(k + 1) * width]) for k in range(count)]
    pieces = self.new[u]
    if own > width:
      starts = range(0, own, width)
      return [lane_of(p, k) if width == 1 else run_of(p, k, width) for p in pieces for k in starts]
    ratio = width // own
    return [_joined([lane_of(p, k) for p in pieces[j * ratio:(j + 1) * ratio] for k in range(own)])
            for j in range(count)]

  def value(self, u: UOp) -> UOp:
    """Return a value whole."""
    return self.parts(u, u.dtype.count)[0]

  # ***** the walk *****

  def visit(self, u: UOp) -> None:
    width = self.width[u]
    dtype = u.src[1].dtype if u.op is Ops.STORE else u.dtype
    if u.op is Ops.STORE and u.arg is not None: self.new[u] = self.pieces(u, width)
    elif dtype.count == 1 or u.op in _ANY_WIDTH and u.op is not Ops.VECTORIZE and u.op is not Ops.BROADCAST:
      self.new[u] = [self.scalar(u)]
    elif u.op in _ANY_WIDTH: return
    elif is_whole(u): self.new[u] = [UOp(u.op, dtype, tuple([self.value(s) for s in u.src]), u.arg)]
    elif u.op is Ops.GEP:
      self.new[u] = [self.lanes(u.src[0], k, width) for k in range(u.arg, u.arg + dtype.count, width)]
    elif u.op is Ops.LOAD or u.op is Ops.STORE: self.new[u] = self.memory(u, dtype, width)
    elif u.op is Ops.ACC:
      self.new[u] = [UOp(Ops.ACC, p.dtype, (p,), (u.arg[0], k, u.arg[2]))
                     for k, p in enumerate(self.parts(u.src[0], width))]
    else: self.new[u] = self.split(u, width)

  def scalar(self, u: UOp) -> UOp:
    """Rebuild a node without lanes, or a scalar that is made from a vector."""
    if u.op is Ops.GEP: return self.lanes(u.src[0], u.arg, 1)
    if u.op is Ops.GROUP or u.op is Ops.SINK or u.op is Ops.AFTER: src = tuple([p for s in u.src for p in self.new[s]])
    else: src = tuple([self.value(s) for s in u.src])
    return u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)

  def lanes(self, x: UOp, start: int, count: int) -> UOp:
    """Return adjacent lanes of x, out of the parts of x that hold them."""
    own = count if x.op in _ANY_WIDTH else self.width[x]
    pieces = self.parts(x, own)
    if count > 1 and start % own + count <= own: return run_of(pieces[start // own], start % own, count)
    found = [lane_of(pieces[k // own], k % own) for k in range(start, start + count)]
    return found[0] if count == 1 else _joined(found)

  def split(self, u: UOp, width: int) -> list[UOp]:
    columns = [self.parts(s, width if s.dtype.count > 1 else 1) for s in u.src]
    count = u.dtype.count // width
    rows = zip(*[c * count if len(c) == 1 else c for c in columns])
    return [UOp(u.op, u.dtype.scalar().vec(width), src, u.arg, u.tag) for src in rows]

  def memory(self, u: UOp, dtype: DType, width: int) -> list[UOp]:
    """Split a load or store into parts. Scalar sources after the value of a store (gate, ranges) go to each part."""
    place, count = u.src[0], dtype.count // width
    buffer, i = self.new[place.src[0]][0], place.src[1]
    indices = self.parts(i, width) if i.dtype.count > 1 else [_offset(self.new[i][0], k * width) for k in range(count)]
    columns = [self.parts(s, width if s.dtype.count > 1 else 1) for s in u.src[1:]]
    made = []
    for k, index in enumerate(indices):
      rest = [c[k] if len(c) > 1 else c[0] for c in columns]
      made.append(UOp(u.op, u.dtype if u.op is Ops.STORE else dtype.scalar().vec(width),
                      (UOp(Ops.INDEX, place.dtype, (buffer, index)), *rest), None, u.tag))
    return made

  def width_of_pieces(self, store: UOp) -> int:
    """Return the elements of one part of a STORE of pieces (`Scattered`), which are cast and stored at once."""
    memory, value = store.src[0].dtype.vec(store.arg.length), store.src[1].dtype
    wide = self.widest(Ops.LOAD, memory)
    return wide if memory.scalar() is value.scalar() else min(wide, self.widest(Ops.CAST, memory))

  def pieces(self, store: UOp, width: int) -> list[UOp]:
    """Return stores of the parts of all pieces.

    No other pass sees these stores. A product has up to 64, which differ in a constant.
    """
    place, value, rest = store.src[0], store.src[1], [self.value(s) for s in store.src[2:]]
    (buffer,), (index,), made = self.new[place.src[0]], self.new[place.src[1]], []
    for first, offset in store.arg.places:
      for k in range(0, store.arg.length, width):
        part = self.lanes(value, first + k, width)
        if part.dtype.scalar() is not place.dtype: part = UOp(Ops.CAST, place.dtype.vec(width), (part,))
        made.append(UOp(Ops.STORE, store.dtype, (UOp(Ops.INDEX, place.dtype, (buffer, _offset(index, offset + k))),
                                                 part, *rest)))
    return made

def is_whole(u: UOp) -> bool:
  """Is a node never split? So it is with the load of a matrix (uop/matrix.MatrixRows)."""
  return u.op in _TOGETHER or u.op is Ops.LOAD and u.arg is not None

def _joined(lanes: list[UOp]) -> UOp: return UOp(Ops.VECTORIZE, lanes[0].dtype.vec(len(lanes)), tuple(lanes))

def _offset(i: UOp, lanes: int) -> UOp:
  """Return an index some elements further."""
  if lanes == 0: return i
  if i.op is Ops.CONST: return const(i.dtype, i.arg + lanes)
  base, more = (i.src[0], i.src[1].arg) if i.op is Ops.ADD and i.src[1].op is Ops.CONST else (i, 0)
  if i.dtype is dtypes.int32 and not fits(int(i.vmin), int(i.vmax) + lanes): base = UOp(Ops.CAST, dtypes.int64, (base,))
  return UOp(Ops.ADD, base.dtype, (base, const(base.dtype, more + lanes)))

def legalize(sink: UOp, capabilities: Capabilities) -> UOp:
  """Split vectors that are wider than the target's operations."""
  walk = Legalizer(capabilities)
  order = sink.toposort()
  wide = False
  for u in order:
    walk.width[u] = width = walk.width_of(u)
    lanes = u.src[1].dtype.count if u.op is Ops.STORE else u.dtype.count
    wide = wide or width != lanes
  if not wide and not any(u.op in _ANY_WIDTH and u.dtype.count > walk.widest(u.op, u.dtype) for u in order): return sink
  for u in order: walk.visit(u)
  if trace.follows():
    for u, made in walk.new.items():
      for part in made: trace.inherit(part, u)
  return walk.new[sink][0]
