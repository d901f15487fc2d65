"""In-place writes in program order: every value is what it was where the program expressed it.

A BUFFER's contents change, while nodes are interned and computed when they are wanted. So a BUFFER node stands for one
state of its memory, and a write does three things (docs/design/writes.md):
  before  The values that are still alive and were expressed through the old contents (`outdated`) are computed in the
          schedule that writes, whose
          kernels are ordered: readers of a state before the write into it.
  after   The memory gets a new node; the old one is retired (no storage), so that nothing can take the new contents for
          the old ones. Tensors that look at the memory (movements of it, BITCAST, DETACH) get the new node: they see
          the write, as views in NumPy do.
  cut     The values of "before" are buffers from then on, and no longer graphs: gradients do not flow through what was
          overwritten.
A write that is not done yet is an ASSIGN in the graph of the tensor that was assigned to. That is enough as long as
nobody else looks at the memory; where somebody does (`seen_by_others`), `Tensor.assign` writes at once.

To find values, views and leaves, every tensor is noted here when it is made (0.15 us). They are sorted later, when the
first write or backward()
wants to know: most are dead by then. A write walks the graphs of all values that are alive once: linear in their nodes,
and nothing where no buffer is written.
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
  """A Tensor, as it is seen from here."""
  uop: UOp
  _is_leaf: bool      # made by somebody rather than computed: backward() may find it
  _requires_grad: bool | None
  _alias: Alias | None
  _thread: int        # that expressed what it is now
  def hold(self, u: UOp) -> None:
    """Take the storage u as what this tensor is."""

Reference = weakref.ref["Holder"]

class Alias(NamedTuple):
  """How a tensor shares a value with others (methods/graph/memory.py): they have one family, by identity, the reference
  to the first of them.

  root: the value of which all of them are movements; of a tensor that has storage a blank of its shape. view: a tensor
  with storage as movements of root; None where its node is that.
  """
  family: Reference
  root: UOp
  view: UOp | None

# what these make of memory is that memory
_LOOKS = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.EXPAND, Ops.DETACH, Ops.MULTI, Ops.BITCAST})
MAYBE_MEMORY = _LOOKS | {Ops.BUFFER, Ops.ASSIGN, Ops.PAD}     # nodes of other operations are values
ROOM = "room"   # the tag of a PAD whose zeros are cut off again, as a slice with a step does: it keeps memory memory,
                # too
_MOST_UNSORTED = 1 << 14

_unsorted: list[Reference] = []
_values: list[Reference] = []       # tensors that have to be computed, or have an ASSIGN that was not done
_leaves: dict[int, Reference] = {}  # by the identity of the reference, of which each tensor has one
_marked: dict[int, Reference] = {}  # of these, those with requires_grad=True, when they were noted
_families: dict[int, list[Reference]] = {}  # views of values, by the identity of their family
_kept_families = 0
lost: weakref.WeakSet[UOp] = weakref.WeakSet()      # BUFFERs of values whose graphs are gone, since what they read was
                                                    # overwritten
# values that do not depend on storage
_strangers: weakref.WeakKeyDictionary[Storage, weakref.WeakSet[UOp]] = weakref.WeakKeyDictionary()
_kept = 0                           # how many of _values were alive when last counted
_kept_leaves = 0
_tags = itertools.count(1)

def fresh_tag() -> int:
  """A tag that makes a node unlike all others."""
  return next(_tags)

def unique(u: UOp) -> UOp:
  """A copy of u that is no other node's equal, so that it gets storage of its own."""
  return UOp(Ops.CONTIGUOUS, u.dtype, (u,), None, fresh_tag())

def assigned(target: UOp, value: UOp) -> UOp:
  """An ASSIGN, unlike any other: done twice, it does something twice."""
  found = UOp(Ops.ASSIGN, target.dtype, (target, value), None, fresh_tag())
  if this_thread.capture is not None: this_thread.capture.assigns.add(found)
  return found

# ***** who is alive *****

def note(holder: Holder) -> None:
  """To be called when a tensor is made, when it becomes a leaf, and when what it holds changes from a value to
  storage, or by an ASSIGN."""
  holder._thread = get_ident()
  _unsorted.append(weakref.ref(holder))
  if len(_unsorted) > _MOST_UNSORTED: sort()

def sort() -> None:
  """Sort the tensors that were noted since the last time: views to their Buffers or families, values to _values,
  leaves to _leaves."""
  global _kept, _kept_leaves, _kept_families
  with lock:
    taken = _unsorted[:]
    del _unsorted[:len(taken)]
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
    if len(_values) > 2 * _kept + _MOST_UNSORTED:
      _values[:] = [r for r in _values if r() is not None]
      _kept = len(_values)
    if len(_leaves) > 2 * _kept_leaves + _MOST_UNSORTED: _living_leaves()
    if len(_families) > 2 * _kept_families + _MOST_UNSORTED:
      for key in [key for key, found in _families.items() if all(r() is None for r in found)]: del _families[key]
      _kept_families = len(_families)

def leaves() -> list[Holder]:
  """The living tensors that were made rather than computed."""
  with lock:
    sort()
    return _living_leaves()

def sharers(alias: Alias) -> list[Holder]:
  """The living tensors that share a value, in the order of their making."""
  with lock:
    sort()
    found: dict[int, tuple[Reference, Holder]] = {}
    for reference in (alias.family, *_families.get(id(alias.family), ())):
      holder = reference()
      if holder is not None and holder._alias is not None and holder._alias.family is alias.family:
        found[id(holder)] = reference, holder
    _families[id(alias.family)] = [reference for reference, _ in found.values()]
    return [holder for _, holder in found.values()]

def leave(holder: Holder) -> None:
  """Let a tensor share its value with others no more. The family of those is another one if it was the first."""
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
  """The living tensors with requires_grad=True. To be called after sort()."""
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
  """The living tensors that have to be computed, and their nodes, by the identity of the reference."""
  with lock:
    sort()
    return {id(r): (r, holder.uop) for r in _values if (holder := r()) is not None}

def is_own(holder: Holder) -> bool:
  """Did this thread express what a tensor is now?

  Then what waits there is its own: other threads do it where they need it, and nowhere else.
  """
  return holder._thread == get_ident()

def waiting_writes() -> list[UOp]:
  """The last ASSIGNs, not done yet, of the living tensors: those that this thread expressed."""
  with lock:
    found = [u for reference, u in values().values() if memory_of(u)[1] and (holder := reference()) is not None
             and is_own(holder)]
    return list(dict.fromkeys(map(assign_of, found)))

def assign_of(u: UOp) -> UOp:
  """The ASSIGN that u looks at."""
  while u.op is not Ops.ASSIGN: u = u.src[0]
  return u

def is_room(u: UOp) -> bool:
  """Is u a PAD of which nothing but its source is read?"""
  return u.op is Ops.PAD and u.tag == ROOM

def memory_of(u: UOp) -> tuple[UOp | None, bool]:
  """The BUFFER node of the memory that u looks at, or None if u is a value; is there an ASSIGN on the way that was not
  done?"""
  pending = False
  while u.op is not Ops.BUFFER:
    if u.op is Ops.ASSIGN:
      pending = pending or u.realized is None
      u = u.src[0] if u.realized is None else u.realized
    elif u.op in _LOOKS or u.op is Ops.PAD and is_room(u): u = u.src[0]
    else: return None, False
  return u, pending

def is_detached(u: UOp) -> bool:
  """Does u look at memory through detach()?"""
  while u.op is not Ops.BUFFER and u.op is not Ops.DETACH: u = u.src[0]
  return u.op is Ops.DETACH

def viewers(buffer: Storage) -> list[Holder]:
  """The living tensors that look at a Buffer."""
  with lock:
    sort()
    found: dict[int, tuple[Reference, Holder]] = {}
    for reference in buffer.viewers or ():
      holder = reference()
      if holder is None: continue
      node = memory_of(holder.uop)[0]
      if node is not None and node.storage is buffer: found[id(holder)] = reference, holder
    buffer.viewers = [reference for reference, _ in found.values()]
    return [holder for _, holder in found.values()]

def node_over(storage: Storage) -> UOp:
  """The BUFFER node with which tensors look at storage; a new one where there is none."""
  with lock:
    found = [node for holder in viewers(storage) for node, pending in (memory_of(holder.uop),) if not pending]
    return (new_buffer(storage.device, storage.size, storage.dtype, storage) if not found or found[0] is None
            else found[0])

def seen_by_others(holder: Holder) -> bool:
  """Does another living tensor look at the memory of this one?"""
  node = memory_of(holder.uop)[0]
  return node is not None and any(other is not holder for other in viewers(buffer_of(node)))

# ***** a write *****

def is_retired(held: UOp) -> bool:
  """Was the storage that a node was computed into written since? held: the node's `realized`."""
  node = memory_of(held)[0]
  return node is not None and node.storage is None

def base_of(assign: UOp) -> UOp:
  """The BUFFER that an ASSIGN writes into."""
  node = memory_of(assign)[0]
  assert node is not None, f"an ASSIGN into no storage: {assign}"
  return node

class Write:
  """What ASSIGNs do together: the Buffers they write, and the states that are gone afterwards.

  assigns: nodes of the graph, not done yet. others: Buffers that are written by other means, and have to be given to
  `overwrite` afterwards.
  """
  def __init__(self, assigns: Iterable[UOp], others: Iterable[Storage] = ()):
    self.assigns = list(assigns)
    self.nodes = {base_of(u): None for u in self.assigns}
    self.buffers = {id(buffer_of(node)) for node in self.nodes} | {id(b) for b in others}
    # states that another of these ASSIGNs overwrites
    self.between = {u for assign in self.assigns for u in _assigns_below(assign.src[0])}

  def outdated(self) -> list[tuple[Reference, Holder]]:
    """The living tensors whose graph, or the storage it was computed into, is of a state that is gone afterwards; in
    the order of their making."""
    only = next(iter(self.nodes)).storage if len(self.nodes) == len(self.buffers) == 1 else None
    return outdated(self.buffers, {u: u in self.between for u in self.assigns}, only)

  def finish(self, note: Callable[[Write, dict[UOp, UOp], list[tuple[UOp, Holder]]], None]) -> None:
    """Retire the nodes of the old states; done ASSIGNs and all that look at the memory get the new ones.

    note: called before, with the new nodes by old ones, and who looks at the old ones, where a tensor with
    requires_grad=True may be alive.
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
  """Let the living values that are computed from the memory of a Buffer be computed again when they are wanted: others
  have written it.

  Other Buffers may be over that memory, too, also in part.
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
  """The ASSIGNs under a target that are not done yet."""
  found = []
  while u.op is not Ops.BUFFER and u.realized is None:
    if u.op is Ops.ASSIGN: found.append(u)
    u = u.src[0]
  return found

def rebased(u: UOp, node: UOp) -> UOp:
  """What looks at memory, over the memory's new node, and without the ASSIGNs on the way."""
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
  """The living values that depend on Buffers (by id) or on ASSIGNs that are marked with True. Those marked with False
  end the search.

  only: the one storage that is written, if it is one. What does not depend on it never will, and is not walked again by
  its next write: so many writes beside many values that are none of its cost 0.5 us each, not a walk.
  """
  global _kept
  with lock:
    sort()
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
  """Does root depend on one of the Buffers? reads: what is known of nodes, added to.

  None stands above a node whose sources are known.
  """
  stack: list[UOp | None] = [root]
  while stack:
    u = stack.pop()
    if u is None:
      u = stack.pop()
      assert u is not None
      answer = u.realized is not None and reads[u.realized]
      for s in u.src: answer = answer or reads[s]
      reads[u] = answer
    elif u not in reads:
      if u.op is Ops.BUFFER: reads[u] = u.storage is not None and id(u.storage) in buffers
      elif not u.src: reads[u] = False
      else:
        stack += u, None
        stack += u.src
        if u.realized is not None: stack.append(u.realized)
  return reads[root]
