"""Plan temporary storage inside a schedule: buffers whose lifetimes do not overlap share one arena.

Input: kernels in execution order. Output: an offset in the arena for each temporary buffer, a multiple of 64 bytes. A
buffer takes the smallest gap in which it fits, and among equal gaps the lowest. Cost: O(log(gaps)) a buffer. The arena
itself comes from the device's pool when the schedule runs.

`thrifty_order` orders kernels if a graph asks for little memory (checkpoints). Among ready kernels it takes the one
after which the fewest bytes are held. Cost: O(log(kernels)) a kernel.
"""
from __future__ import annotations
from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import Any

from tinyhw.data_class import dataclass, field
from tinyhw.engine.schedule.lower import Kernel, storage_of
from tinyhw.helpers import round_up
from tinyhw.uop.ops import UOp

ALIGNMENT = 64

@dataclass
class MemoryPlan:
  """Offsets of temporary buffers. offsets: temporary BUFFER → byte offset in its device's arena. arena_bytes: by
  device. kept: BUFFERs that outlive the schedule. places: see prepared.py; made at the first run."""
  offsets: dict[UOp, int] = field(default_factory=dict)
  arena_bytes: dict[str | tuple[str, ...], int] = field(default_factory=dict)
  kept: list[UOp] = field(default_factory=list)
  places: Any = None

def thrifty_order(kernels: list[Kernel], after: dict[int, set[int]], kept: set[UOp]) -> list[Kernel]:
  """Order kernels so that few bytes are held at a time. It is greedy, respects `after` (by id), and otherwise keeps the
  order."""
  readers: dict[UOp, set[int]] = {}
  for k in kernels:
    for b in dict.fromkeys(k.buffers):
      if is_temporary(b, kept): readers.setdefault(b, set()).add(id(k))
  written = {id(k): [b for b in map(storage_of, k.writes) if b in readers] for k in kernels}
  touched = {id(k): [b for b in dict.fromkeys(k.buffers) if b in readers] for k in kernels}
  def growth(k: Kernel) -> int:
    """Return the bytes held after k minus those held before it."""
    made = sum(_bytes(b) for b in written[id(k)])
    return made - sum(_bytes(b) for b in touched[id(k)] if len(readers[b]) == 1)
  waiting = {i: len(needed) for i, needed in after.items()}
  before: dict[int, list[Kernel]] = {i: [] for i in after}
  for k in kernels:
    for i in after[id(k)]: before[i].append(k)
  place = {id(k): n for n, k in enumerate(kernels)}
  by_id = {id(k): k for k in kernels}
  ready: list[tuple[int, int]] = []         # a kernel's growth only falls; one entry for each value
  def offer(k: Kernel) -> None: heappush(ready, (growth(k), place[id(k)]))
  for k in kernels:
    if not waiting[id(k)]: offer(k)
  done: set[int] = set()
  out: list[Kernel] = []
  while ready:
    best = kernels[heappop(ready)[1]]
    if id(best) in done: continue
    done.add(id(best))
    out.append(best)
    for b in touched[id(best)]:
      readers[b].discard(id(best))
      if len(readers[b]) != 1: continue
      last = by_id[next(iter(readers[b]))]
      if not waiting[id(last)]: offer(last)
    for k in before[id(best)]:
      waiting[id(k)] -= 1
      if not waiting[id(k)]: offer(k)
  assert len(out) == len(kernels), "kernels depend on each other in a circle"
  return out

def _bytes(b: UOp) -> int:
  size: int = round_up(max(b.arg[2] * b.dtype.itemsize, 1), ALIGNMENT)
  return size

def is_temporary(buffer: UOp, kept: set[UOp]) -> bool: return buffer.arg[0][0] != "in" and buffer not in kept

def plan_memory(kernels: list[Kernel], kept: set[UOp]) -> MemoryPlan:
  """Return offsets for all buffers of the kernels that are neither inputs nor kept."""
  written = dict.fromkeys([storage_of(w) for k in kernels for w in k.writes])     # several kernels may write to one
  plan = MemoryPlan(kept=[b for b in written if b in kept])
  last: dict[UOp, int] = {}
  for n, k in enumerate(kernels):
    for b in k.buffers: last[b] = n
  arenas: dict[str | tuple[str, ...], Arena] = {}
  for n, k in enumerate(kernels):
    buffers = [b for b in dict.fromkeys(k.buffers) if is_temporary(b, kept)]
    for b in buffers:
      if b not in plan.offsets: plan.offsets[b] = arenas.setdefault(b.arg[1], Arena()).take(_bytes(b))
    for b in buffers:
      if last[b] == n: arenas[b.arg[1]].give_back(plan.offsets[b], _bytes(b))
  plan.arena_bytes = {device: arena.most for device, arena in arenas.items()}
  return plan

class Arena:
  """Allocates offsets from 0 on.

  gaps: the free ranges below `end` as (size, offset), sorted; no two are adjacent. most: the largest end so far.
  """
  def __init__(self) -> None:
    self.end = self.most = 0
    self.gaps: list[tuple[int, int]] = []
    self.starts: dict[int, int] = {}          # offset of a gap -> its end
    self.ends: dict[int, int] = {}            # end of a gap -> its offset

  def take(self, size: int) -> int:
    """Allocate a number of bytes and return the offset."""
    found = bisect_left(self.gaps, (size, 0))
    if found < len(self.gaps):
      length, offset = self.gaps[found]
      self._remove(offset, offset + length)
      if length > size: self._add(offset + size, offset + length)
      return offset
    offset = self.end if self.end not in self.ends else self.ends[self.end]
    if offset != self.end: self._remove(offset, self.end)
    self.end = offset + size
    self.most = max(self.most, self.end)
    return offset

  def give_back(self, start: int, size: int) -> None:
    """Free bytes again, and merge them with adjacent gaps."""
    end = start + size
    if start in self.ends:
      before = self.ends[start]
      self._remove(before, start)
      start = before
    if end in self.starts:
      after = self.starts[end]
      self._remove(end, after)
      end = after
    self._add(start, end)

  def _add(self, start: int, end: int) -> None:
    insort(self.gaps, (end - start, start))
    self.starts[start], self.ends[end] = end, start

  def _remove(self, start: int, end: int) -> None:
    del self.gaps[bisect_left(self.gaps, (end - start, start))], self.starts[start], self.ends[end]
