"""Build each kernel's expression from the gated indices that fuse.py found: the second sweep, from the leaves to the
results.

A kernel is SINK(STORE(INDEX(buffer, i), value, *ranges)) over BUFFER nodes. `parameters` then numbers the buffers, so
that equal kernels are one object. Reads with a false condition give 0 and do not touch memory, whatever the expression
around them does.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw import trace
from tinyhw.data_class import dataclass, field
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.writes import is_room
from tinyhw.engine.schedule.fuse import Fusion, operands, row_of
from tinyhw.engine.schedule.indexing import ZERO, GatedIndex, flatten, move
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import KernelInfo, UOp

if TYPE_CHECKING: from tinyhw.engine.schedule.masks import Hidden

@dataclass
class Kernel:
  """A kernel of a schedule.

  sink: its expression over PARAMs, or a COPY node. buffers: by slot. writes: slots stored to. node: the node that it
  computes.
  versions: by slot, the state of the buffer. Two states of one buffer have two slots until copies separate them
  (schedule.py).
  late: BUFFERs that should be written before the kernel runs, though it does not read them. origin: a node of the
  canonical graph. In each run the kernel has the line of that node.
  """
  node: UOp
  sink: UOp
  buffers: list[UOp] = field(default_factory=list)
  reads: list[UOp] = field(default_factory=list)     # BUFFERs, and AFTERs: a buffer after some ASSIGN
  writes: list[UOp] = field(default_factory=list)
  versions: list[UOp] = field(default_factory=list)
  late: list[UOp] = field(default_factory=list)
  origin: UOp | None = None

  @property
  def line(self) -> trace.Location | None:
    """The line of the operation for which the last run wants it (TRACEMETA)."""
    return None if self.origin is None else self.origin.line

_TRACED = GroupOp.Elementwise | {Ops.REDUCE}

def zero_of(u: UOp) -> UOp: return UOp.const(u.dtype, 0)

class Lowering:
  """Builds values of nodes at gated indices, and their stores. hidden: the nodes of which a mask hides a part."""
  def __init__(self, fusion: Fusion, hidden: dict[UOp, Hidden] | None = None):
    self.fusion, self.hidden = fusion, hidden or {}
    self.value: dict[tuple[UOp, GatedIndex], UOp] = {}
    self.factors: dict[UOp, UOp] = {}      # outer product of kept rows -> the factor of its results
    self.storage: dict[UOp, UOp] = {}      # realized node -> the BUFFER (or AFTER of one) that holds it
    self.places: dict[UOp, tuple[UOp, UOp]] = {}     # SCATTER -> the BUFFER of its places, before and after
    self.still: list[UOp] = []      # SCATTERs whose place is the same in all iterations
    self.inherit = trace.same_line if trace._origins else None
    for u in fusion.nodes: self._node(u)

  # ***** values *****

  def _node(self, u: UOp) -> None:
    fusion = self.fusion
    if u in fusion.realized:
      self._allocate(u)
      for _, gated in fusion.at.get(u, ()): self._read(u, gated)
      return
    wanted = dict.fromkeys(p for _, p in fusion.at.get(u, ()))
    if u in fusion.filled: self._keep(u, list(wanted))
    else:
      for gated in wanted: self.value[u, gated] = self.traced(u, gated)

  def _keep(self, u: UOp, wanted: list[GatedIndex]) -> None:
    """Compute the values of a row once, in a STAGE, and read them there.

    A row that is divided by its sum is read undivided, and the outer product is divided.
    """
    fill, rows = self.fusion.filled[u], self.fusion.kept[u]
    value = self.traced(u, fill.gated)
    divided = divided_by_sum(value, fill.range) if u is rows.values[-1] else None
    if divided is None: stage = UOp(Ops.STAGE, u.dtype, (value, fill.range), (rows.values.index(u),))
    else: stage, self.factors[rows.reductions[0]] = divided
    for gated in wanted: self.value[u, gated] = load(stage, gated.index[fill.axis], None)

  def _allocate(self, u: UOp) -> None:
    if u.op is Ops.ASSIGN: self.storage[u] = UOp(Ops.AFTER, u.dtype, (self._version_before(u),), len(self.storage))
    elif u.op is Ops.SCATTER: self._allocate_places(u)
    else: self.storage[u] = UOp(Ops.BUFFER, u.dtype, (), (("new", len(self.storage)), u.device, u.size))

  def _allocate_places(self, u: UOp) -> None:
    """Give a SCATTER a buffer of its places, in two states. Its result is the second state, or a buffer of its own."""
    count = len(self.storage) + len(self.places)
    first = UOp(Ops.BUFFER, u.dtype, (), (("places", count), u.device, u.src[0].size))
    self.places[u] = first, UOp(Ops.AFTER, u.dtype, (first,), count)
    if u.arg[1] == "after": self.storage[u] = self.places[u][1]
    elif u.arg[1] == "whole": self.storage[u] = first
    else: self.storage[u] = UOp(Ops.BUFFER, u.dtype, (), (("new", len(self.storage)), u.device, u.size))

  def _version_before(self, assign: UOp) -> UOp:
    """Return the buffer that an ASSIGN writes into, in its state before: a BUFFER, or an AFTER of an earlier ASSIGN."""
    target = assign.src[0]
    while target not in self.storage and target.op is not Ops.BUFFER: target = target.src[0]
    return self.storage.get(target, target)

  def _read(self, u: UOp, gated: GatedIndex) -> None:
    if (u, gated) in self.value: return
    there = self.position(u.src[0], gated) if u.op is Ops.ASSIGN else GatedIndex((flatten(gated.index, u.shape),),
                                                                                 gated.valid)
    value = load(self.storage[u], there.index[0], there.valid)
    if u in self.hidden:
      from tinyhw.engine.schedule.masks import stated  # loaded already
      value = stated(value, self.hidden[u], gated)
    self.value[u, gated] = value

  def position(self, target: UOp, gated: GatedIndex) -> GatedIndex:
    """Return the index, in its buffer, of an element of an ASSIGN's target, and the condition for the element to
    exist."""
    while target.op is not Ops.BUFFER:
      if target.op in GroupOp.Movement:
        gated = GatedIndex(move(target, gated).index, gated.valid) if is_room(target) else move(target, gated)
        target = target.src[0]
      elif target in self.storage and target.op is not Ops.ASSIGN:
        return GatedIndex((flatten(gated.index, target.shape),), gated.valid)
      else: target = target.src[0]
    return gated

  def at(self, u: UOp, gated: GatedIndex) -> UOp:
    """Return the value of a source, which the sweep has computed, or a constant."""
    if u in self.fusion.constant: return UOp.const(u.dtype, u.base.arg)
    return self.value[u, gated]

  def traced(self, u: UOp, gated: GatedIndex) -> UOp:
    """Return the result of `compute`, with the line of its operation.

    Loads and indices get no line: other kernels may have equal ones. They take the line of their users.
    """
    value = self.compute(u, gated)
    if self.inherit is not None and value.op in _TRACED: self.inherit(value, u)
    return value

  def compute(self, u: UOp, gated: GatedIndex) -> UOp:
    """Return the value of u at a gated index in terms of its sources' values."""
    op = u.op
    if op in GroupOp.Elementwise: return UOp(op, u.dtype, tuple([self.at(s, gated) for s in u.src]), u.arg)
    if op is Ops.BUFFER: return load(u, gated.index[0], gated.valid)
    if op in GroupOp.Movement or op is Ops.GATHER:
      moved = self.fusion.moved[u, gated]
      value = self.at(u.src[0], moved)
      return value if moved.valid is gated.valid else guarded(value, moved.valid)
    if op is Ops.REDUCE_AXIS:
      value = self.at(u.src[0], self.fusion.moved[u, gated])
      value = value.reduce(u.arg[0], *[r for r in self.fusion.reduce_ranges[u] if r is not ZERO])
      return value * self.factors[u] if u in self.factors else value
    if op is Ops.IOTA: return gated.index[0].cast(u.dtype)
    if op is Ops.DEFINE_VAR: return u if not u.src else UOp(op, u.dtype, (), u.arg)
    return self.at(u if op is Ops.CONST else u.src[0], gated)

  # ***** kernels *****

  def kernels(self) -> list[Kernel]:
    """Return one kernel per realized node, sources first."""
    out = []
    for u in self.fusion.nodes:
      if u not in self.fusion.realized: continue
      ranges = self.fusion.realized[u]
      gated = self.fusion.own[u]
      if u.op is Ops.COPY:
        value = u.src[0]
        while value.op is Ops.RESHAPE: value = value.src[0]
        source = self.storage.get(value, value)
        buffers = [self.storage[u], storage_of(source)]
        out.append(Kernel(u, u, buffers, [source], [self.storage[u]], [self.storage[u], source]))
        continue
      if u.op is Ops.SCATTER:
        out += self._scatter(u, ranges, gated)
        continue
      if u.op is Ops.ASSIGN:
        there = self.position(u.src[0], gated)
        store = self.storage[u].src[0].index(there.index[0]).store(self.at(u.src[1], gated), *ranges, gate=there.valid)
      else: store = self.storage[u].index(flatten(gated.index, u.shape)).store(self.traced(u, gated), *ranges)
      store = store.simplify()
      if self.inherit is not None: self.inherit(store, u)
      kernel = Kernel(u, UOp.sink(store, arg=KernelInfo()))
      self._finish(kernel)
      if u.op is Ops.ASSIGN: kernel.writes = [self.storage[u]]
      out.append(kernel)
    self._delay(out)
    return out

  def _scatter(self, u: UOp, ranges: tuple[UOp, ...], gated: GatedIndex) -> list[Kernel]:
    """Return the kernels of a SCATTER: one fills the places, unless each is written; another writes to them."""
    (op, kind), (first, last), out = u.arg, self.places[u], []
    if kind != "whole":
      loops, there = self.fusion.filling[u]
      fill = first.index(flatten(there.index, u.src[0].shape)).store(self.at(u.src[0], there), *loops)
      out.append(self._kernel(u, [fill], [first]))
    place = self.at(u.src[1], row_of(u, gated)).cast(dtypes.weakint)
    inside = (place >= 0) & (place < u.src[0].size)
    if len(u.src[2].shape) > len(u.src[1].shape):
      inside = (place >= 0) & (place < u.src[0].size - u.src[2].shape[-1] + 1)
      place = place + gated.index[-1]
    value, stores, writes = self.at(u.src[2], gated), [], [first if kind == "whole" else last]
    old = load(first, place, inside)
    if op is not None: value = UOp(op, u.dtype, (old, value))
    stores.append(first.index(place).store(value, *ranges, gate=inside))
    if kind == "before":
      stores.append(self.storage[u].index(flatten(gated.index, u.shape)).store(old, *ranges))
      writes.append(self.storage[u])
    kernel = self._kernel(u, stores, writes)
    written = kernel.sink.src[0]
    if any(r.op is Ops.RANGE and r.arg[1] is AxisType.ORDERED and r not in written.src[0].ranges for r in written.src):
      self.still.append(u)
    return [*out, kernel]

  def _kernel(self, u: UOp, stores: list[UOp], writes: list[UOp]) -> Kernel:
    """Return a kernel of a node, of stores. writes: the states that it leaves, by store."""
    done = [store.simplify() for store in stores]
    if self.inherit is not None:
      for store in done: self.inherit(store, u)
    kernel = Kernel(u, UOp.sink(*done, arg=KernelInfo()))
    self._finish(kernel)
    kernel.writes = writes
    return kernel

  def _delay(self, kernels: list[Kernel]) -> None:
    """Tell kernels that compute an AFTER the buffers to write before them: those on which the other sources of the
    AFTER depend."""
    by_node = {k.node: k for k in kernels}
    for u in self.fusion.nodes:
      if u.op is not Ops.AFTER: continue
      earlier = self._stored_below(u.src[1:])
      for node in dict.fromkeys(kernel for kernel, _ in self.fusion.at.get(u, ())): by_node[node].late.extend(earlier)

  def _stored_below(self, nodes: Sequence[UOp]) -> list[UOp]:
    """Return the storage of the nearest nodes with a kernel, at or below these nodes."""
    found: dict[UOp, None] = {}
    seen, stack = set(nodes), list(nodes)
    while stack:
      u = stack.pop()
      if u in self.fusion.realized: found[self.storage[u]] = None
      else:
        new = [s for s in operands(u) if s not in seen]
        seen.update(new)
        stack += new
    return list(found)

  def _with_indices(self, root: UOp) -> UOp:
    """Replace the placeholders of gathered indices in the expression.

    Each index is built once, however many indices stand below it.
    """
    if not self.fusion.gathers: return root
    new: dict[UOp, UOp] = {}
    stack: list[UOp | None] = [root]    # None precedes a node whose sources are known
    while stack:
      u = stack.pop()
      if u is None:
        u = stack.pop()
        assert u is not None
        if u.op is Ops.GATHER: new[u] = new[self._index(u)]
        else:
          src = tuple([new[s] for s in u.src])
          new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
          if self.inherit is not None: self.inherit(new[u], u)
      elif u not in new:
        stack += u, None
        stack += (self._index(u),) if u.op is Ops.GATHER else u.src[::-1]
    return new[root]

  def _index(self, placeholder: UOp) -> UOp: return self.at(*self.fusion.gathers[placeholder.arg]).cast(dtypes.weakint)

  def _finish(self, kernel: Kernel) -> None:
    """Replace gathered indices by their values, number buffers and ranges."""
    sink = self._with_indices(kernel.sink)
    changes: dict[UOp, UOp] = {}
    nodes = sink.toposort()
    written = [store.src[0].src[0] for store in sink.src]
    storage: dict[UOp, None] = dict.fromkeys(written)
    for u in nodes:
      if u.op is Ops.INDEX and u.src[0].op is not Ops.STAGE: storage.setdefault(u.src[0])
    slots: dict[UOp, int] = {}
    for u in storage:
      slot = slots.setdefault(u, len(slots))
      changes[u] = UOp.param(slot, u.dtype, storage_of(u).arg[2])
    for k, r in enumerate(loop_order(sink)): changes[r] = UOp(Ops.RANGE, r.dtype, r.src, (k, r.arg[1]))
    loaded = {u.src[0].src[0] for u in nodes if u.op is Ops.LOAD}
    kernel.sink, kernel.versions, kernel.writes = sink.substitute(changes), list(slots), written
    kernel.buffers = [storage_of(u) for u in slots]
    kernel.reads = [u for u in storage if u in loaded]

def loop_order(sink: UOp) -> list[UOp]:
  """Return the ranges of a kernel, outermost first: those around its reductions, then other output loops, then
  reductions."""
  nodes = sink.toposort()
  outputs = {r for store in sink.src for r in store.src[2:]}
  inside: dict[UOp, int] = {}
  for u in nodes:
    if u.op is Ops.REDUCE:
      for r in u.ranges: inside[r] = inside.get(r, 0) + 1
  return sorted((u for u in nodes if u.op is Ops.RANGE),
                key=lambda r: (r not in outputs, -inside.get(r, 0) if r in outputs else 0, r.arg))

def storage_of(version: UOp) -> UOp:
  """Return the BUFFER of a state."""
  while version.op is Ops.AFTER: version = version.src[0]
  return version

def load(buffer: UOp, position: UOp, valid: UOp | None) -> UOp:
  gated = UOp(Ops.INDEX, buffer.dtype, (buffer, position))
  if valid is None: return UOp(Ops.LOAD, buffer.dtype, (gated,))
  return UOp(Ops.LOAD, buffer.dtype, (gated, valid, zero_of(buffer)))

def divided_by_sum(value: UOp, r: UOp) -> tuple[UOp, UOp] | None:
  """Return the array whose element at r, divided by the sum of the array, is a value, and the factor that divides it.

  None for other values. The undivided product overflows only if the sum of the other operand's elements, weighted by
  powers, does.
  """
  if value.op is not Ops.MUL: return None
  for element, factor in (value.src, value.src[::-1]):
    if element.op is not Ops.LOAD or r in factor.ranges: continue
    stage, at = element.src[0].src
    sums = [u for u in factor.toposort() if u.op is Ops.REDUCE and u.arg is Ops.ADD and u.src[0].op is Ops.LOAD]
    if stage.op is Ops.STAGE and at is r and any(u.src[0].src[0].src[0] is stage for u in sums): return stage, factor
  return None

def guarded(value: UOp, valid: UOp | None) -> UOp:
  """Return value if valid, else 0. A load with the same condition gives 0 there already."""
  if valid is None: return value
  if value.op is Ops.LOAD and len(value.src) > 1 and set(valid.split(Ops.AND)) <= set(value.src[1].split(Ops.AND)):
    return value
  return valid.where(value, zero_of(value))
