"""Memory of nodes of the tensor graph. A node is storage, a view of storage, or a value. This module writes values into
views, and lets tensors without storage share a value.

A view is a BUFFER under movements and BITCASTs. Each element of a view has its own address, unless an EXPAND repeats
some.

A write becomes an ASSIGN to the type of the BUFFER. Through a BITCAST that keeps the size, the bits of the value are
written. Through one that changes the size, the elements that hold these bits are read, changed and written back.

Views of storage share it by themselves. A tensor without storage and its views (movements, BITCAST and DETACH of its
node) are a family (`Alias`). A family consists of Python objects, since equal nodes are one object. The nodes of its
members are movements of one node, the root.

A write to a member makes a new root: the old root with that part replaced. From then on all living members are
movements of the new root (`share`). So gradients are those of this functional program. Without a write, a view costs
only a reference to its family: 0.1 us. Members do not keep each other alive.

A member that is realized gets storage of its own. It stays in the family with a note of its movements (`kept`). Before
a write to such a member, or where a member with storage is the whole value, all members become views of one storage
(`before_write`). Then the family ends.
"""
from __future__ import annotations
from collections.abc import Iterable

from tinyhw.dtype import ConstType, dtypes
from tinyhw.engine.memory import cuts
from tinyhw.engine.memory.writes import (
  Alias, Holder, assigned, fresh_tag, is_room, leave, memory_of, note, sharers, unique)
from tinyhw.engine.run.realize import realize, this_thread
from tinyhw.engine.schedule.multi import Distribution, is_multi
from tinyhw.errors import ArgumentError, JitError
from tinyhw.gradient import define_gradient, transposed
from tinyhw.helpers import ceildiv
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint

# movements under which each element still has its own address
_MOVES = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.MULTI})
_WHOLE = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP})     # movements that leave nothing out
_ENDS = frozenset({Ops.BUFFER, Ops.MULTI, Ops.ASSIGN})

def _moves(u: UOp) -> bool: return u.op in _MOVES or u.op is Ops.PAD and is_room(u)
def _is_view(u: UOp) -> bool: return _moves(u) or u.op is Ops.BITCAST

def is_storage(u: UOp) -> bool:
  """Does u name memory: a BUFFER under movements that do not repeat elements, or the result of an ASSIGN to it?"""
  while _is_view(u) or u.op is Ops.ASSIGN: u = u.src[0]
  return u.op is Ops.BUFFER

def storage_view(u: UOp) -> UOp | None:
  """Return the memory that u names, without the ASSIGNs that wrote there. None if u is a computed value, or repeats
  elements."""
  chain: list[UOp] = []
  while _is_view(u) or u.op in (Ops.ASSIGN, Ops.DETACH):
    if _is_view(u): chain.append(u)
    u = u.src[0] if u.op is not Ops.ASSIGN or u.realized is None else u.realized
  return over(u, chain) if u.op is Ops.BUFFER else None

def over(u: UOp, chain: Iterable[UOp]) -> UOp:
  """Return u under the movements and BITCASTs of another node, outermost first. Movements have u's type."""
  for x in reversed([*chain]):
    if x.src[0] is u: u = x
    else: u = x.replace(src=(u, *x.src[1:]), dtype=x.dtype if x.op is Ops.BITCAST else u.dtype)
  return u

def constant_value(u: UOp) -> ConstType | None:
  """Return the number that every element of u is, if u is a constant under movements that do not pad. Else None."""
  while _moves(u) or u.op is Ops.EXPAND: u = u.src[0]
  return u.arg if u.op is Ops.CONST else None

def in_order(u: UOp) -> UOp | None:
  """Return the BUFFER whose bytes are those of u, in the same order. Else None."""
  while u.op is Ops.RESHAPE or u.op is Ops.BITCAST: u = u.src[0]
  return u if u.op is Ops.BUFFER else None

# ***** views that repeat elements *****

def repeats(u: UOp) -> bool:
  """Is u a view of memory in which several elements may have one address?"""
  return memory_of(u)[0] is not None and storage_view(u) is None

def unexpanded(view: UOp, end: UOp) -> UOp:
  """Return a view of memory, or of the value `end`, without its EXPANDs, if it takes one element of each repeated axis.

  Raises ArgumentError where several elements have one address.
  """
  found = _unexpanded(view, end)
  if found is not None: return found
  raise ArgumentError(f"cannot write to a tensor of shape {graph.show(view.shape)} whose elements share memory (an "
                      f"expanded view of "
                      f"{graph.show(end.shape)[1:-1].rstrip(',') or 1} elements); write to a copy: .contiguous() or "
                      f".clone(), or to the tensor that "
                      "was expanded")

def _unexpanded(u: UOp, end: UOp) -> UOp | None:
  chain: list[UOp] = []
  while u is not end and u.op not in _ENDS:
    chain.append(u)
    u = u.src[0]
  # The shape of the repeated u: from the EXPAND, after the movements that have been applied since.
  wanted: tuple[sint, ...] | None = None
  for x in reversed(chain):
    if x.op is Ops.DETACH: continue
    if x.op is Ops.EXPAND: wanted = x.shape
    elif wanted is None: u = over(u, (x,))
    elif x.op is Ops.SHRINK:
      widths = x.shape
      u = graph.shrink(u, [(0, 1) if d != n else pair for pair, d, n in zip(x.pairs, u.shape, wanted)])
      wanted = None if u.shape == widths else widths
    elif x.op is Ops.PERMUTE: u, wanted = graph.permute(u, x.arg), x.shape
    # These reshapes only add and drop axes of size 1.
    elif x.op is Ops.RESHAPE and [d for d in x.shape if d != 1] == [n for n in wanted if n != 1]:
      sizes = iter([d for d, n in zip(u.shape, wanted) if n != 1])
      u, wanted = graph.reshape(u, tuple([d if d == 1 else next(sizes) for d in x.shape])), x.shape
    elif x.op is Ops.FLIP: u = graph.flip(u, x.arg)
    elif x.op is Ops.BITCAST and u.shape[-1:] == wanted[-1:]:
      u, wanted = graph.node(Ops.BITCAST, x.dtype, (u,), None, (*u.shape[:-1], *x.shape[-1:])), x.shape
    else: return None
  return u if wanted is None else None

# ***** writes *****

def written(target: UOp, value: UOp) -> UOp:
  """Return a view of storage after a write of a value to it."""
  chain: list[UOp] = []
  u = target
  while u.op not in _ENDS and u.op is not Ops.BITCAST:
    chain.append(u)
    u = u.src[0]
  if u.op is not Ops.BITCAST: return _moved_write(target, value)
  below = u.src[0]
  if u.dtype.itemsize == below.dtype.itemsize:
    return bits_of(written(over(below, chain), bits_of(value, below)), u)
  moves = [x for x in chain if x.op is not Ops.DETACH]
  u, moves = _narrowed(u, moves)
  below, view = u.src[0], over(u, moves)
  new = transposed(value, view, u)
  if any(x.op not in _WHOLE for x in moves):
    new = graph.where(transposed(graph.full(view.shape, dtypes.bool, True), view, u), new, u)
  return over(bits_of(written(below, bits_of(new, below)), u), moves)

def bits_of(u: UOp, like: UOp) -> UOp:
  """Return the bits of u as elements of another node's type. Where the size of the type changes, the result has that
  node's shape."""
  if u.dtype is like.dtype: return u
  return graph.node(Ops.BITCAST, like.dtype, (u,), None, u.shape if u.dtype.itemsize == like.dtype.itemsize
                    else like.shape)

def _narrowed(u: UOp, moves: list[UOp]) -> tuple[UOp, list[UOp]]:
  """Restrict a BITCAST that changes the size to the elements that the first movement over it needs. Return it, and the
  movements over it."""
  cut, below = moves[-1] if moves else u, u.src[0]
  if cut.op is not Ops.SHRINK or not graph.is_plain([x for pair in cut.pairs for x in pair] + [*u.shape]):
    return u, moves
  (begin, end), have, want = cut.pairs[-1], below.dtype.itemsize, u.dtype.itemsize
  group = max(want // have, 1)          # elements below that make one element
  first, last = begin * want // have, ceildiv(end * want, have)
  part = graph.shrink(below, [*cut.pairs[:-1], (first, last)])
  inner = graph.node(Ops.BITCAST, u.dtype, (part,), None, (*part.shape[:-1], part.shape[-1] * have // want))
  assert (last - first) % group == 0, "whole elements begin and end at whole groups"
  rest = graph.shrink(inner,
                      [*((0, d) for d in inner.shape[:-1]), (begin - first * have // want, end - first * have // want)])
  return inner, moves[:-1] if rest is inner else [*moves[:-1], rest]

def _moved_write(target: UOp, value: UOp) -> UOp:
  """Return a view after a write. The view consists of movements alone.

  Where it is not a view of each device's part, all parts are written anew.
  """
  if not is_multi(target) or storage_view(Distribution().of(target).node) is not None: return assigned(target, value)
  chain: list[UOp] = []
  while target.op is not Ops.MULTI and target.op is not Ops.ASSIGN:
    if target.op is not Ops.DETACH: chain.append(target)
    target = target.src[0]
  view = over(target, chain)
  inside = transposed(graph.full(view.shape, dtypes.bool, True), view, target)
  return view.substitute({target: assigned(target, graph.where(inside, transposed(value, view, target), target))})

# ***** tensors that share a value *****

def chain_of(u: UOp, end: UOp) -> list[UOp]:
  """Return the nodes from u down to `end`, without `end`."""
  found: list[UOp] = []
  while u is not end:
    found.append(u)
    u = u.src[0]
  return found

def _alias_of(holder: Holder) -> Alias:
  assert holder._alias is not None, "a tensor without a family"
  return holder._alias

def _moves_of(holder: Holder) -> list[UOp]:
  """Return the movements from the root of a family to a member."""
  alias = _alias_of(holder)
  return chain_of(holder.uop if alias.view is None else alias.view, alias.root)

def replaced(root: UOp, view: UOp, end: UOp, value: UOp) -> UOp:
  """Return root with a value written to a part of it. view: movements of `end`, which stands for root."""
  chain: list[UOp] = []
  u = view
  while u is not end and u.op is not Ops.BITCAST:
    if u.op is not Ops.DETACH: chain.append(u)
    u = u.src[0]
  view = over(u, chain)
  new = transposed(value, view, u)
  if any(x.op not in _WHOLE for x in chain):
    new = graph.where(transposed(graph.full(view.shape, dtypes.bool, True), view, u), new, over(root, chain_of(u, end)))
  return new if u is end else replaced(root, u.src[0], end, bits_of(new, u.src[0]))

def share(holder: Holder, value: UOp, view: UOp | None = None) -> None:
  """Write a value to a tensor without storage, or to a view of it, and update its family.

  The caller holds the lock, and has called `before_write`. Raises ArgumentError for a view whose elements share memory.
  """
  alias = _alias_of(holder)
  if view is None: view = holder.uop
  if value is view: return
  moves = chain_of(view, alias.root)
  target = unexpanded(view, alias.root) if any(x.op is Ops.EXPAND for x in moves) else view
  root = replaced(alias.root, target, alias.root, value)
  if any(x.op is Ops.DETACH for x in moves): root = _unnoticed(root, alias.root)
  for member in sharers(alias):
    chain = _moves_of(member)
    if memory_of(member.uop)[0] is not None and _are_disjoint(chain, moves): continue
    member.uop, member._alias = over(root, chain), Alias(alias.family, root, None)
    note(member)

def _unnoticed(u: UOp, before: UOp) -> UOp:
  """Return u, which was written through detach(). Its gradient goes to the same node as before the write."""
  found = graph.node(Ops.DETACH, u.dtype, (u, before), None, u.shape, fresh_tag())
  define_gradient(found, (before,), lambda _, g: (g,))
  return found

def before_write(holder: Holder) -> None:
  """Prepare a write to a tensor that may have a family. The caller holds the lock.

  After this the tensor has no family, or it and the whole value are without storage.
  """
  members, moves = sharers(_alias_of(holder)), _moves_of(holder)
  if all(member is holder or _are_disjoint(_moves_of(member), moves) for member in members): return leave(holder)
  whole = next((m for m in members if memory_of(m.uop)[0] is not None and all(x.op in _WHOLE or x.op is Ops.DETACH
                                                                              for x in _moves_of(m))), None)
  if whole is None and memory_of(holder.uop)[0] is None: return
  if whole is None: _check_capture(holder)
  storage = _stored(members) if whole is None else _unmoved(whole)
  for member in members:
    if member is not whole: member.uop = over(storage, _moves_of(member))
    member._alias = None
    note(member)

def _check_capture(holder: Holder) -> None:
  """Raise JitError where a member with storage from before a capture would get other storage during the capture.
  Replays would not know the first."""
  memory, capture = memory_of(holder.uop)[0], this_thread.capture
  if memory is None or capture is None or any(made is memory.storage for made in capture.made): return
  raise JitError(f"a view of shape {graph.show(holder.uop.shape)} is written while TinyJit captures, and it was "
                 f"realized without the tensor that it "
                 "is a view of, which has no storage; realize() that tensor before the function is captured")

def _stored(members: list[Holder]) -> UOp:
  """Return storage for the value of a family.

  Where no member has the graph of the value any more, the value is put together from the parts that the members hold.
  """
  root = next((_alias_of(m).root for m in members if _alias_of(m).view is None), None)
  if root is None:
    root = _alias_of(members[0]).root
    for view, end, uop in [(m._alias.view, m._alias.root, m.uop) for m in members if m._alias is not None
                           and m._alias.view is not None]:
      root = replaced(root, view, end, uop)
  root = unique(root)
  realize([root])
  storage = root.realized
  assert storage is not None, "realize left a value without storage"
  memory = memory_of(storage)[0]
  assert memory is not None, "a value in no memory"
  cuts.note([(memory, root)])
  return graph.reshape(storage, root.shape)

def _unmoved(whole: Holder) -> UOp:
  """Return the storage of a member that covers the whole value, with its movements undone."""
  end = _alias_of(whole).root
  return transposed(whole.uop, over(end, [x for x in _moves_of(whole) if x.op is not Ops.DETACH]), end)

def _are_disjoint(a: list[UOp], b: list[UOp]) -> bool:
  """Are two views, given by their movements, disjoint?

  True only for parts that were taken by the same movements up to the first difference.
  """
  for x, y in zip(reversed(a), reversed(b)):
    if x.op is not y.op: return False
    if x.op is Ops.SHRINK and any(_is_before(p, q) or _is_before(q, p) for p, q in zip(x.pairs, y.pairs)): return True
    if x.arg != y.arg or x.src[1:] != y.src[1:]: return False
  return False

def _is_before(a: tuple[sint, sint], b: tuple[sint, sint]) -> bool:
  return isinstance(a[1], int) and isinstance(b[0], int) and a[1] <= b[0]

def kept(holder: Holder) -> Alias | None:
  """Return the Alias of a member that gets storage of the same value. It holds no graph.

  None if no other member is alive.
  """
  alias = _alias_of(holder)
  if len(sharers(alias)) < 2: return None
  if alias.view is not None: return alias
  root = alias.root
  blank = unique(graph.full(root.shape, root.dtype, 0, root.device))
  return Alias(alias.family, blank, over(blank, _moves_of(holder)))

def extended(alias: Alias, u: UOp, view: UOp) -> Alias:
  """Return the Alias of a view of a member with storage. u: the member's node."""
  assert alias.view is not None, "a member without storage has its movements in its node"
  return alias._replace(view=over(alias.view, chain_of(view, u)))
