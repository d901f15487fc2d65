"""Let an array of scratch memory have the memory of another one that is not read any more.

Attention fills two arrays with the same shape, one after the other: scores, and their powers. Each element of the
second is computed from the same element of the first. So it may be stored in its place:

    for s in range(n): local0[s] = ...           scores
    for r in range(n): acc0 = max(acc0, local0[r])
    for s in range(n): local1[s] = exp(local0[s] - acc0)      local1 becomes local0

Input and output are the uops of a Program, for targets where a worker has its own scratch memory. The conditions are in
`takes_over`. Cost: linear in the uops for each pair of arrays with the same size and type.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class ArrayAccess(NamedTuple):
  """An access of an array: its number in the list, the element, and the loops around it, outermost first."""
  at: int
  element: UOp
  loops: tuple[UOp, ...]
  is_store: bool

def reuse_arrays(uops: list[UOp]) -> list[UOp]:
  """Return the uops of a Program with fewer arrays."""
  while True:
    arrays = [u for u in uops if u.op is Ops.DEFINE_LOCAL]
    if len(arrays) < 2: return uops
    accesses, ends = accesses_of(uops)
    pair = next(((old, new) for new in arrays for old in arrays if old is not new and old.dtype is new.dtype
                 and old.arg[1] == new.arg[1] and takes_over(accesses[old], accesses[new], ends)), None)
    if pair is None: return uops
    uops = renamed(uops, *pair)

def accesses_of(uops: list[UOp]) -> tuple[dict[UOp, list[ArrayAccess]], dict[UOp, tuple[int, int]]]:
  """Return the accesses of each array, in order, and the numbers of the first and last uop of each loop."""
  found: dict[UOp, list[ArrayAccess]] = {u: [] for u in uops if u.op is Ops.DEFINE_LOCAL}
  ends: dict[UOp, tuple[int, int]] = {}
  loops: tuple[UOp, ...] = ()
  for at, u in enumerate(uops):
    if u.op is Ops.RANGE:
      loops += (u,)
      ends[u] = at, len(uops)
    elif u.op is Ops.END:
      ends[loops[-1]] = ends[loops[-1]][0], at
      loops = loops[:-1]
    elif u.op in (Ops.LOAD, Ops.STORE) and u.src[0].src[0] in found:
      found[u.src[0].src[0]].append(ArrayAccess(at, u.src[0].src[1], loops, u.op is Ops.STORE))
  return found, ends

def takes_over(old: list[ArrayAccess], new: list[ArrayAccess], ends: dict[UOp, tuple[int, int]]) -> bool:
  """May an array have the memory of an older one?

  Both are used in the same iterations of outer loops. The new one is stored in one loop, after the older one was stored
  and read. If that loop also reads the older one, it reads only elements that it stores later in the same iteration. No
  iteration stores an element of another one.
  """
  around = common(old)
  stored = [a for a in new if a.is_store]
  if common(new) != around or not stored or len(stored[0].loops) <= len(around): return False
  loop = stored[0].loops[len(around)]
  first, last = ends[loop]
  if any(not first < a.at < last for a in stored) or any(a.at < last for a in new if not a.is_store): return False
  if any(a.at > (last if not a.is_store else first) for a in old): return False
  inside = [a for a in old if a.at > first]
  if any(a.loops != (*around, loop) for a in (*inside, *(stored if inside else ()))): return False
  once = {a.element: a.at for a in stored if not overlaps(a.element)}
  return all(a.at < once.get(a.element, 0) for a in inside)

def common(accesses: list[ArrayAccess]) -> tuple[UOp, ...]:
  """Return the loops around all accesses."""
  loops = accesses[0].loops if accesses else ()
  for a in accesses:
    same = next((k for k, (one, other) in enumerate(zip(loops, a.loops)) if one is not other),
                min(len(loops), len(a.loops)))
    loops = loops[:same]
  return loops

def overlaps(element: UOp) -> bool:
  """May two iterations have the same element? So it is if the last step of a tile begins early, at a maximum."""
  return any(u.op is Ops.MAX for u in element.toposort(lambda u: u.op is not Ops.RANGE))

def renamed(uops: list[UOp], old: UOp, new: UOp) -> list[UOp]:
  """Return the uops with one array instead of two. Loads that become equal, of earlier and later contents, get tags."""
  changed: dict[UOp, UOp] = {new: old}
  made: set[UOp] = set()
  out: list[UOp] = []
  for u in uops:
    if u is new: continue
    src = tuple([changed.get(s, s) for s in u.src])
    v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if v in made and v.src: v = UOp(v.op, v.dtype, src, v.arg, ("again", len(out)))
    made.add(v)
    changed[u] = v
    out.append(v)
  trace.hand_on(changed)
  return out
