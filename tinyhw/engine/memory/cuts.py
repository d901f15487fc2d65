"""Find gradients that in-place writes cut off.

A write may end the graph of a value. A value that is computed because its operands are overwritten becomes storage, and
so does the value that a write stores (writes.py). A gradient that should flow through that storage to a tensor with
requires_grad=True would silently be too small. So `note` records these marked tensors with the new BUFFER, and
backward() asks for them.

Two kinds of values are not recorded. Gradients end at, or never reach, the storage of a leaf that has a `requires_grad`
of its own (True or False). The user asked realize() for the others. Cost: one walk over the values that a schedule kept
or wrote; nothing if no tensor is marked.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence
import weakref

from tinyhw.dtype import dtypes
from tinyhw.engine.memory import writes
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

# The sources of a node to which a gradient may flow. Operations that are not in the table let it flow to all sources.
FLOWS_FROM = {Ops.ASSIGN: slice(1, 2), Ops.GATHER: slice(0, 1), Ops.WHERE: slice(1, 3), Ops.DETACH: slice(0, 0),
              Ops.AFTER: slice(0, 1),
              Ops.MULTI: slice(0, 0), Ops.TRUNC: slice(0, 0), Ops.MOD: slice(0, 0), Ops.IDIV: slice(0, 0)}
_ALL = slice(None)
_FLOATS = frozenset((*dtypes.floats, dtypes.weakfloat))

# Was anything ever recorded in this process? Each realize() asks.
are_any = False
_cuts: weakref.WeakKeyDictionary[UOp, tuple[writes.Reference, ...]] = weakref.WeakKeyDictionary()

def _sources(u: UOp) -> tuple[UOp, ...]:
  """Return the nodes to which a gradient of u may flow. A DETACH with further sources has its own rule for these."""
  return u.src[1:] if u.op is Ops.DETACH else u.src[FLOWS_FROM.get(u.op, _ALL)]

def note(pairs: Sequence[tuple[UOp, UOp]]) -> None:
  """Record with BUFFERs the marked tensors from which their contents were computed. pairs: BUFFERs and their values."""
  pairs = [(node, value) for node, value in pairs if dtypes.is_float(value.dtype) and value.op is not Ops.BUFFER]
  with lock:
    writes.classify()
    living = [h for h in writes.marked() if dtypes.is_float(h.uop.dtype)] if pairs else []
  if not living: return
  order = {id(h): k for k, h in enumerate(living)}
  start: dict[UOp, int] = {}
  masks: dict[UOp, int] = {}     # for each node, a bitset of the marked tensors below it
  for k, h in enumerate(living):
    for node in {h.uop, writes.memory_of(h.uop)[0]}:    # also the state before a pending write
      if node is not None: start[node] = start.get(node, 0) | 1 << k
  for u in UOp.sink(*[value for _, value in pairs]).toposort():
    mask, op = start.get(u, 0), u.op
    if op is Ops.BUFFER: mask |= sum(1 << order[id(h)] for h in _living(u) if id(h) in order)
    elif u.dtype in _FLOATS:
      for s in _sources(u) if op in FLOWS_FROM else u.src: mask |= masks[s]
    masks[u] = mask
  found: dict[int, tuple[writes.Reference, ...]] = {}
  global are_any
  are_any = are_any or any(masks[value] for _, value in pairs)
  for node, value in pairs:
    mask = masks[value]
    if mask not in found: found[mask] = tuple([weakref.ref(h) for k, h in enumerate(living) if mask >> k & 1])
    if mask: _cuts[node] = tuple({id(r): r for r in (*_cuts.get(node, ()), *found[mask])}.values())

def note_writes(write: writes.Write, changes: dict[UOp, UOp], seen: list[tuple[UOp, writes.Holder]]) -> None:
  """Record from which marked tensors written contents were computed.

  changes: BUFFERs before and after. seen: the BUFFERs and the tensors that look at them.
  """
  settled = {node for node, holder in seen if holder._requires_grad is not None}
  for u in write.assigns:
    node = writes.base_of(u)
    if node in settled: continue
    # otherwise gradients flow as before
    whole = u.src[0].size == node.size and not writes.is_detached(u.src[0])
    if whole: forget(changes[node])
    elif node in _cuts and changes[node] not in _cuts: _cuts[changes[node]] = _cuts[node]
    note([(changes[node], u.src[1])])

def forget(node: UOp) -> None:
  """Make the contents of a BUFFER a constant for gradients."""
  if are_any: _cuts.pop(node, None)

def _living(node: UOp) -> list[writes.Holder]:
  return [h for reference in _cuts.get(node, ()) if (h := reference()) is not None]

def missed(root: UOp, targets: Iterable[writes.Holder] | None = None) -> writes.Holder | None:
  """Return a tensor with requires_grad=True that gradients of root should reach but do not, since a write cut them off.

  targets: the tensors to search for; None: any.
  """
  written = _written()
  if not _cuts and not written: return None
  wanted = None if targets is None else {id(t) for t in targets}
  # A leaf's own pending write: nothing flows on from there.
  ends = {h.uop for found in written.values() for h in found}
  reached = {root}
  for u in reversed(root.toposort()):
    if u not in reached or u in ends or not dtypes.is_float(u.dtype): continue
    reached.update(_sources(u))
    if u.op is not Ops.BUFFER: continue
    for h in [*_living(u), *written.get(u, [])]:
      if h._requires_grad and (wanted is None or id(h) in wanted): return h
  return None

def _written() -> dict[UOp, list[writes.Holder]]:
  """Return the marked tensors with a pending write, by the BUFFER before the write. A consumer of that BUFFER does not
  reach them."""
  with lock:
    writes.classify()
    marked = writes.marked()
  found: dict[UOp, list[writes.Holder]] = {}
  for h in marked:
    node, waits = writes.memory_of(h.uop)
    if node is not None and waits: found.setdefault(node, []).append(h)
  return found
