"""In-place writes in program order: every value is as it was at the line of the program that expressed it.

A BUFFER's contents change, but nodes are interned, and are computed later. So a BUFFER node stands for one state of its
memory, and a write does three things (docs/design/writes.md):
- before: The schedule that writes also computes `outdated` values: live values that were expressed through the old
  contents. Its kernels are ordered: readers of a state run before the write into it.
- after: The memory gets a new node. The old node is retired (it has no storage), so that the new contents are never
  taken for the old ones. Tensors that are views of the memory (movements of it, BITCAST, DETACH) get the new node.
  They see the write, as views in NumPy do.
- cut: The values of "before" become buffers and lose their graphs. Gradients do not flow through overwritten memory.

A pending write is an ASSIGN in the graph of the tensor that was assigned to. That is enough as long as no other tensor
is a view of the memory. If another one is (`seen_by_others`), `Tensor.assign` writes at once.

To find values, views and leaves, every tensor is noted here when it is made (0.15 us). Tensors are classified when the
first write or backward() needs them: most are dead by then. A write walks the graphs of all live values once. Cost:
linear in their nodes, and nothing if no buffer is written.
"""
from __future__ import annotations
import itertools
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterable
from typing import Protocol

from tinyhw.engine.memory.buffers import Storage, buffer_of, buffers_in, new_buffer, overlap, renewed
from tinyhw.engine.thread import this_thread
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Holder(Protocol):
  """The attributes of a Tensor that this module uses."""
  uop: UOp
  _is_leaf: bool      # was it made, not computed? Then backward() may find it
  _requires_grad: bool | None
  _alias: Alias | None
  _thread: int        # the thread that expressed its current value
  def hold(self, u: UOp) -> None:
    """Make the storage u the contents of this tensor."""

Reference = weakref.ref["Holder"]

class Alias(NamedTuple):
  """The value that a tensor shares with others (methods/graph/memory.py). These tensors have one family, identified by
  the reference to the first of them.

  root: the value of which all of them are movements. For a tensor that has storage it is a blank of its shape. view:
  movements of root for a tensor with storage; None if the tensor's node is such a movement already.
  """
  family: Reference
  root: UOp
  view: UOp | None

# these operations, applied to memory, give memory
_VIEWS = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.EXPAND, Ops.DETACH, Ops.MULTI, Ops.BITCAST})
_BUFFER, _ASSIGN, _PAD = Ops.BUFFER, Ops.ASSIGN, Ops.PAD
MAYBE_MEMORY = _VIEWS | {Ops.BUFFER, Ops.ASSIGN, Ops.PAD}     # all other operations give values
# The tag of a PAD whose zeros are cut off again, as a slice with a step does. Such a PAD of memory is memory.
ROOM = "room"
_MOST_UNCLASSIFIED = 1 << 14

_unclassified: list[Reference] = []
_values: list[Reference] = []       # tensors to compute, or with a pending ASSIGN
_leaves: dict[int, Reference] = {}  # by the identity of each tensor's one reference
_marked: dict[int, Reference] = {}  # leaves that had requires_grad=True when they were noted
_families: dict[int, list[Reference]] = {}  # views of values, by the identity of their family
_kept_families = 0
# BUFFERs of values whose graphs are gone because their operands were overwritten
lost: weakref.WeakSet[UOp] = weakref.WeakSet()
# values that do not depend on storage
_strangers: weakref.WeakKeyDictionary[Storage, weakref.WeakSet[UOp]] = weakref.WeakKeyDictionary()
_kept = 0                           # live _values at the last count
_kept_leaves = 0
_tags = itertools.count(1)

def fresh_tag() -> int:
  """Return a tag that makes a node differ from all others."""
  return next(_tags)

def unique(u: UOp) -> UOp:
  """Return a copy of u that equals no other node, so that it gets storage of its own."""
  return UOp(Ops.CONTIGUOUS, u.dtype, (u,), None, fresh_tag())

def assigned(target: UOp, value: UOp) -> UOp:
  """Return a unique ASSIGN. An ASSIGN that is done twice has two effects, so none may equal another."""
  found = UOp(Ops.ASSIGN, target.dtype, (target, value), None, fresh_tag())
  if this_thread.capture is not None: this_thread.capture.assigns.add(found)
  return found

# ***** live tensors *****

def note(holder: Holder) -> None:
  """Note a tensor.

  Call it when a tensor is made, when it becomes a leaf, and when an ASSIGN changes it or its value becomes storage.
  """
  holder._thread = get_ident()
  _unclassified.append(weakref.ref(holder))
  if len(_unclassified) > _MOST_UNCLASSIFIED: classify()

def classify() -> None:
  """Classify the tensors noted since the last call.

  Views go to their Buffers or families, values to _values, leaves to _leaves.
  """
  global _kept, _kept_leaves, _kept_families
  with lock:
    taken = _unclassified[:]
    del _unclassified[:len(taken)]
    for reference in taken:
      holder = reference()
      if holder is None: continue
      if holder._is_leaf: _leaves[id(reference)] = reference
      if holder._requires_grad: _marked[id(reference)] = reference
      if holder._alias is not None: _families.setdefault(id(holder._alias.family), []).append(reference)
      node, pending = memory_of(holder.uop)
      if node is not None and node.storage is not None:
        buffer = node.storage
        if buffer.viewers is None: buffer.viewers = []
        buffer.viewers.append(reference)
      if node is None and holder.uop.base.op is not Ops.CONST or pending: _values.append(reference)
    if len(_values) > 2 * _kept + _MOST_UNCLASSIFIED:
      _values[:] = [r for r in _values if r() is not None]
      _kept = len(_values)
    if len(_leaves) > 2 * _kept_leaves + _MOST_UNCLASSIFIED: _living_leaves()
    if len(_families) > 2 * _kept_families + _MOST_UNCLASSIFIED:
      for key in [key for key, found in _families.items() if all(r() is None for r in found)]: del _families[key]
      _kept_families = len(_families)

def leaves() -> list[Holder]:
  """Return the live tensors that were made, not computed."""
  with lock:
    classify()
    return _living_leaves()

def sharers(alias: Alias) -> list[Holder]:
  """Return the live tensors that share a value, in creation order."""
  with lock:
    classify()
    found: dict[int, tuple[Reference, Holder]] = {}
    for reference in (alias.family, *_families.get(id(alias.family), ())):
      holder = reference()
      if holder is not None and holder._alias is not None and holder._alias.family is alias.family:
        found[id(holder)] = reference, holder
    _families[id(alias.family)] = [reference for reference, _ in found.values()]
    return [holder for _, holder in found.values()]

def leave(holder: Holder) -> None:
  """Take a tensor out of the family that shares its value. If it was the first, the family gets a new identity."""
  with lock:
    alias, holder._alias = holder._alias, None
    if alias is None or alias.family() is not holder: return
    others = sharers(alias)
    references = [weakref.ref(other) for other in others]
    for other in others:
      assert other._alias is not None
      other._alias = other._alias._replace(family=references[0])
    if references: _families[id(references[0])] = references

def marked() -> list[Holder]:
  """Return the live tensors with requires_grad=True. Call classify() first."""
  found = {key: (reference, holder) for key, reference in _marked.items() if (holder := reference()) is not None
           and holder._requires_grad}
  for key in _marked.keys() - found.keys(): del _marked[key]
  return [holder for _, holder in found.values()]

def _living_leaves() -> list[Holder]:
  global _kept_leaves
  found = [(reference, holder) for reference in _leaves.values() if (holder := reference()) is not None]
  _kept_leaves = len(found)
  if _kept_leaves < len(_leaves):
    _leaves.clear()
    _leaves.update((id(reference), reference) for reference, _ in found)
  return [holder for _, holder in found]

def values() -> dict[int, tuple[Reference, UOp]]:
  """Return the live tensors that have yet to be computed, and their nodes, by the identity of the reference."""
  with lock:
    classify()
    return {id(r): (r, holder.uop) for r in _values if (holder := r()) is not None}

def is_own(holder: Holder) -> bool:
  """Did this thread express the current value of a tensor?

  Then this thread does its pending writes. Other threads do these only where they need the value.
  """
  return holder._thread == get_ident()

def waiting_writes() -> list[UOp]:
  """Return the last pending ASSIGNs of the live tensors that this thread expressed."""
  with lock:
    found = [u for reference, u in values().values() if memory_of(u)[1] and (holder := reference()) is not None
             and is_own(holder)]
    return list(dict.fromkeys(map(assign_of, found)))

def assign_of(u: UOp) -> UOp:
  """Return the ASSIGN of which u is a view."""
  while u.op is not Ops.ASSIGN: u = u.src[0]
  return u

def is_room(u: UOp) -> bool:
  """Is u a PAD of which only the elements of its source are read?"""
  return u.op is Ops.PAD and u.tag == ROOM

def memory_of(u: UOp) -> tuple[UOp | None, bool]:
  """Return the BUFFER node of the memory of which u is a view, or None if u is a value; and whether a pending ASSIGN is
  on the way."""
  op, pending = u.op, False
  while op is not _BUFFER:
    if op not in MAYBE_MEMORY: return None, False
    if op is _ASSIGN:
      pending = pending or u.realized is None
      u = u.src[0] if u.realized is None else u.realized
    elif op is not _PAD or u.tag == ROOM: u = u.src[0]
    else: return None, False
    op = u.op
  return u, pending

def is_detached(u: UOp) -> bool:
  """Is u a view of memory through detach()?"""
  while u.op is not Ops.BUFFER and u.op is not Ops.DETACH: u = u.src[0]
  return u.op is Ops.DETACH

def viewers(buffer: Storage) -> list[Holder]:
  """Return the live tensors that are views of a Buffer."""
  with lock:
    classify()
    found: dict[int, tuple[Reference, Holder]] = {}
    for reference in buffer.viewers or ():
      holder = reference()
      if holder is None: continue
      node = memory_of(holder.uop)[0]
      if node is not None and node.storage is buffer: found[id(holder)] = reference, holder
    buffer.viewers = [reference for reference, _ in found.values()]
    return [holder for _, holder in found.values()]

def node_over(storage: Storage) -> UOp:
  """Return the BUFFER node through which tensors are views of storage; a new one if there is none."""
  with lock:
    found = [node for holder in viewers(storage) for node, pending in (memory_of(holder.uop),) if not pending]
    return (new_buffer(storage.device, storage.size, storage.dtype, storage) if not found or found[0] is None
            else found[0])

def seen_by_others(holder: Holder) -> bool:
  """Is another living tensor a view of the memory of this one?"""
  node = memory_of(holder.uop)[0]
  return node is not None and any(other is not holder for other in viewers(buffer_of(node)))

# ***** a write *****

def is_retired(held: UOp) -> bool:
  """Was the storage of a computed node written since? held: the node's `realized`."""
  node = memory_of(held)[0]
  return node is not None and node.storage is None

def is_free(held: UOp) -> bool:
  """May a Tensor take the storage of a computed node as its own? held: the node's `realized`. No other Tensor looks at
  it, and it was not written since."""
  node = memory_of(held)[0]
  return node is not None and node.storage is not None and not viewers(node.storage)

def base_of(assign: UOp) -> UOp:
  """Return the BUFFER that an ASSIGN writes into."""
  node = memory_of(assign)[0]
  assert node is not None, f"an ASSIGN into no storage: {assign}"
  return node

class Write:
  """A group of ASSIGNs that run together: the Buffers that they write, and the states that they end.

  assigns: pending nodes of the graph. others: Buffers that are written by other means. Pass these to `overwrite`
  afterwards.
  """
  def __init__(self, assigns: Iterable[UOp], others: Iterable[Storage] = ()):
    self.assigns = list(assigns)
    self.nodes = {base_of(u): None for u in self.assigns}
    self.buffers = {id(buffer_of(node)) for node in self.nodes} | {id(b) for b in others}
    # states that another ASSIGN of the group overwrites
    self.between = {u for assign in self.assigns for u in _assigns_below(assign.src[0])}

  def outdated(self) -> list[tuple[Reference, Holder]]:
    """Return the live tensors whose graph, or computed storage, uses a state that this write ends; in creation
    order."""
    only = next(iter(self.nodes)).storage if len(self.nodes) == len(self.buffers) == 1 else None
    return outdated(self.buffers, {u: u in self.between for u in self.assigns}, only)

  def finish(self, note: Callable[[Write, dict[UOp, UOp], list[tuple[UOp, Holder]]], None]) -> None:
    """Retire the nodes of the old states. Done ASSIGNs, and all views of the memory, get the new nodes.

    note: called first if a tensor with requires_grad=True may be alive. Its arguments are the new nodes by old ones,
    and the tensors that are views of the old ones.
    """
    changes = {node: renewed(node) for node in self.nodes}
    chains = [(u, memory_of(u)[0]) for u in self.assigns]
    seen = [(node, holder) for node in self.nodes for holder in viewers(buffer_of(node))]
    if _marked: note(self, changes, seen)
    for u, node in chains:
      assert node is not None
      u.realized = rebased(u, changes.get(node, node) if u not in self.between else node)
    for node, holder in seen:
      if not memory_of(holder.uop)[1]: holder.uop = rebased(holder.uop, changes[node])
    for node in changes: node.storage = None

def overwrite(buffers: Iterable[Storage]) -> None:
  """Give new nodes to Buffers that were written by other means than an ASSIGN."""
  for buffer in buffers:
    new: UOp | None = None
    for holder in viewers(buffer):
      node = memory_of(holder.uop)[0]
      assert node is not None
      if new is None: old, new = node, renewed(node)
      holder.uop = rebased(holder.uop, new)
    if new is not None: old.storage = None

def forget(buffer: Storage) -> None:
  """Let the live values that depend on the memory of a Buffer be computed again, since foreign code has written it.

  Other Buffers may overlap that memory, too.
  """
  with lock:
    roots, found, reads = [u for _, u in values().values()], dict[UOp, bool](), dict[UOp, bool]()
    for u in roots: _reads(u, found, set())
    storages = {id(u.storage): u.storage for u in found if u.op is Ops.BUFFER and u.storage is not None}
    written = {key for key, other in storages.items() if any(overlap(a, b) for a in buffers_in(other)
                                                             for b in buffers_in(buffer))}
    for u in roots: _reads(u, reads, written)
    for u, depends in reads.items():
      if depends and u.op is not Ops.BUFFER and u.op is not Ops.ASSIGN: u.realized = None

def _assigns_below(u: UOp) -> list[UOp]:
  """Return the pending ASSIGNs under a target."""
  found = []
  while u.op is not Ops.BUFFER and u.realized is None:
    if u.op is Ops.ASSIGN: found.append(u)
    u = u.src[0]
  return found

def rebased(u: UOp, node: UOp) -> UOp:
  """Return a view of memory over the memory's new node, without the ASSIGNs on the way."""
  chain: list[UOp] = []
  while u.op is not Ops.BUFFER:
    if u.op is Ops.ASSIGN: u = u.src[0] if u.realized is None else u.realized
    else:
      chain.append(u)
      u = u.src[0]
  for look in reversed(chain): node = UOp(look.op, look.dtype, (node, *look.src[1:]), look.arg, look.tag)
  return node

def outdated(buffers: set[int], assigns: dict[UOp, bool],
             only: Storage | None = None) -> list[tuple[Reference, Holder]]:
  """Return the live values that depend on Buffers (by id), or on ASSIGNs that are marked with True. ASSIGNs marked with
  False end the search.

  only: the storage that is written, if there is just one. A value that does not depend on it never will, so the next
  write of that storage does not walk the value again. Many writes next to many independent values cost 0.5 us each
  instead of a walk.
  """
  global _kept
  with lock:
    classify()
    if not _values: return []
    reads, ever = dict(assigns), dict.fromkeys(assigns, True)
    strangers: weakref.WeakSet[UOp] = (weakref.WeakSet() if only is None
                                       else _strangers.setdefault(only, weakref.WeakSet()))
    kept: dict[int, Reference] = {}
    found: list[tuple[Reference, Holder]] = []
    for reference in _values:
      holder = reference()
      if holder is None or id(holder) in kept: continue
      node, pending = memory_of(holder.uop)
      if node is not None and not pending: continue
      kept[id(holder)] = reference
      if holder.uop in strangers: continue
      if _reads(holder.uop, reads, buffers): found.append((reference, holder))
      elif only is not None and not _reads(holder.uop, ever, buffers): strangers.add(holder.uop)
    _values[:] = kept.values()
    _kept = len(kept)
    return found

def _reads(root: UOp, reads: dict[UOp, bool], buffers: set[int]) -> bool:
  """Does root depend on one of the Buffers? reads: known answers of nodes, which the call extends."""
  stack = [root]
  while stack:
    u = stack.pop()
    if u in reads: continue
    if u.op is _BUFFER or not u.src:
      reads[u] = u.storage is not None and id(u.storage) in buffers
      continue
    for s in u.src if u.realized is None else (u.realized, *u.src):
      found = reads.get(s)
      if found is None:
        if s.src or s.op is _BUFFER:
          stack += u, s     # u again, after s
          break
        found = reads[s] = False
      if found:
        reads[u] = True
        break
    else: reads[u] = False
  return reads[root]
