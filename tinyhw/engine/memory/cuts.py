"""Where in-place writes cut gradients off: the marked tensors that contents of storage were computed from, though no
graph says so any more.

A value that is computed because what it read is overwritten, and what a write puts into storage, are storage from then
on (writes.py). A gradient that should go on from there to a tensor with requires_grad=True would be silently too small.
So these are noted with the new BUFFER, and backward() asks for them.

Not noted: what is put into storage of a leaf with a `requires_grad` of its own (True: gradients end there; False: they
never come), and what realize() was asked for. Cost: one walk over the values that a schedule kept or wrote; nothing
where none is marked.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence
import weakref

from tinyhw.dtype import dtypes
from tinyhw.engine.memory import writes
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

# The sources that a gradient may flow to; all, where nothing stands here.
FLOWS_FROM = {Ops.ASSIGN: slice(1, 2), Ops.GATHER: slice(0, 1), Ops.WHERE: slice(1, 3), Ops.DETACH: slice(0, 0),
              Ops.AFTER: slice(0, 1),
              Ops.MULTI: slice(0, 0), Ops.TRUNC: slice(0, 0), Ops.MOD: slice(0, 0), Ops.IDIV: slice(0, 0)}
_ALL = slice(None)

are_any = False   # was anything ever noted in this process? Each realize() asks
_cuts: weakref.WeakKeyDictionary[UOp, tuple[writes.Reference, ...]] = weakref.WeakKeyDictionary()

def _sources(u: UOp) -> tuple[UOp, ...]:
  """What a gradient of u may flow to; a DETACH with further sources has a rule of its own for these."""
  return u.src[1:] if u.op is Ops.DETACH else u.src[FLOWS_FROM.get(u.op, _ALL)]

def note(pairs: Sequence[tuple[UOp, UOp]]) -> None:
  """Note for BUFFERs the marked tensors that their contents were computed from. pairs: BUFFERs and these values."""
  pairs = [(node, value) for node, value in pairs if dtypes.is_float(value.dtype) and value.op is not Ops.BUFFER]
  with lock:
    writes.sort()
    living = [h for h in writes.marked() if dtypes.is_float(h.uop.dtype)] if pairs else []
  if not living: return
  order = {id(h): k for k, h in enumerate(living)}
  start: dict[UOp, int] = {}
  masks: dict[UOp, int] = {}     # of each node, the marked tensors below it, as bits
  for k, h in enumerate(living):
    for node in {h.uop, writes.memory_of(h.uop)[0]}:    # also the state before a write that waits
      if node is not None: start[node] = start.get(node, 0) | 1 << k
  for u in UOp.sink(*[value for _, value in pairs]).toposort():
    mask = start.get(u, 0)
    if u.op is Ops.BUFFER: mask |= sum(1 << order[id(h)] for h in _living(u) if id(h) in order)
    if dtypes.is_float(u.dtype):
      for s in _sources(u): mask |= masks[s]
    masks[u] = mask
  found: dict[int, tuple[writes.Reference, ...]] = {}
  global are_any
  are_any = are_any or any(masks[value] for _, value in pairs)
  for node, value in pairs:
    mask = masks[value]
    if mask not in found: found[mask] = tuple([weakref.ref(h) for k, h in enumerate(living) if mask >> k & 1])
    if mask: _cuts[node] = tuple({id(r): r for r in (*_cuts.get(node, ()), *found[mask])}.values())

def note_writes(write: writes.Write, changes: dict[UOp, UOp], seen: list[tuple[UOp, writes.Holder]]) -> None:
  """Note from which marked tensors written contents were computed. changes: BUFFERs before and after; seen: these and
  who looks at them."""
  settled = {node for node, holder in seen if holder._requires_grad is not None}
  for u in write.assigns:
    node = writes.base_of(u)
    if node in settled: continue
    # else gradients go where they went before
    whole = u.src[0].size == node.size and not writes.is_detached(u.src[0])
    if whole: forget(changes[node])
    elif node in _cuts and changes[node] not in _cuts: _cuts[changes[node]] = _cuts[node]
    note([(changes[node], u.src[1])])

def forget(node: UOp) -> None:
  """Let what a BUFFER holds be a constant, as far as gradients are concerned."""
  if are_any: _cuts.pop(node, None)

def _living(node: UOp) -> list[writes.Holder]:
  return [h for reference in _cuts.get(node, ()) if (h := reference()) is not None]

def missed(root: UOp, targets: Iterable[writes.Holder] | None = None) -> writes.Holder | None:
  """A tensor with requires_grad=True (None: any; else of the targets) that gradients of root should reach, and do not:
  a write cut them off."""
  written = _written()
  if not _cuts and not written: return None
  wanted = None if targets is None else {id(t) for t in targets}
  ends = {h.uop for found in written.values() for h in found}     # a leaf's own write: nothing flows on from there
  reached = {root}
  for u in reversed(root.toposort()):
    if u not in reached or u in ends or not dtypes.is_float(u.dtype): continue
    reached.update(_sources(u))
    if u.op is not Ops.BUFFER: continue
    for h in [*_living(u), *written.get(u, [])]:
      if h._requires_grad and (wanted is None or id(h) in wanted): return h
  return None

def _written() -> dict[UOp, list[writes.Holder]]:
  """The marked tensors with a write that waits, by the BUFFER as it is before: what reads that does not reach them."""
  with lock:
    writes.sort()
    marked = writes.marked()
  found: dict[UOp, list[writes.Holder]] = {}
  for h in marked:
    node, waits = writes.memory_of(h.uop)
    if node is not None and waits: found.setdefault(node, []).append(h)
  return found
