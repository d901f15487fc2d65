"""Storage for what lives only inside a schedule: buffers whose lifetimes do not overlap share one arena.

Input: kernels in execution order. Output: an offset in the arena for each temporary buffer. First fit over the free gaps, largest alignment
64 bytes; cost O(kernels x live buffers). The arena itself comes from the device's pool when the schedule runs.

`thrifty_order` chooses the order of kernels where a graph asks for little memory (checkpoints): of those that may run, always the one after which
least is held. Cost O(kernels x kernels that may run).
"""
from __future__ import annotations
from dataclasses import dataclass, field

from tinyhw.engine.lower import Kernel, storage_of
from tinyhw.helpers import round_up
from tinyhw.uop.ops import UOp

ALIGNMENT = 64

@dataclass
class Plan:
  """offsets: temporary BUFFER → byte offset in its device's arena. arena_bytes: by device. kept: BUFFERs that outlive the schedule."""
  offsets: dict[UOp, int] = field(default_factory=dict)
  arena_bytes: dict[str | tuple[str, ...], int] = field(default_factory=dict)
  kept: list[UOp] = field(default_factory=list)

def thrifty_order(kernels: list[Kernel], after: dict[int, set[int]], kept: set[UOp]) -> list[Kernel]:
  """Kernels in an order that respects `after` (by id) and holds few bytes at a time: greedily, otherwise as they came."""
  readers: dict[UOp, set[int]] = {}
  for k in kernels:
    for b in dict.fromkeys(k.buffers):
      if is_temporary(b, kept): readers.setdefault(b, set()).add(id(k))
  written = {id(k): [b for b in map(storage_of, k.writes) if b in readers] for k in kernels}
  touched = {id(k): [b for b in dict.fromkeys(k.buffers) if b in readers] for k in kernels}
  def growth(k: Kernel) -> int:
    """Bytes that are held more after k than before it."""
    made = sum(_bytes(b) for b in written[id(k)])
    return made - sum(_bytes(b) for b in touched[id(k)] if len(readers[b]) == 1)
  waiting = {i: len(needed) for i, needed in after.items()}
  before: dict[int, list[Kernel]] = {i: [] for i in after}
  for k in kernels:
    for i in after[id(k)]: before[i].append(k)
  place = {id(k): n for n, k in enumerate(kernels)}
  ready = [k for k in kernels if not waiting[id(k)]]
  out: list[Kernel] = []
  while ready:
    best = min(ready, key=lambda k: (growth(k), place[id(k)]))
    ready.remove(best)
    out.append(best)
    for b in touched[id(best)]: readers[b].discard(id(best))
    for k in before[id(best)]:
      waiting[id(k)] -= 1
      if not waiting[id(k)]: ready.append(k)
  assert len(out) == len(kernels), "kernels depend on each other in a circle"
  return out

def _bytes(b: UOp) -> int:
  size: int = round_up(max(b.arg[2] * b.dtype.itemsize, 1), ALIGNMENT)
  return size

def is_temporary(buffer: UOp, kept: set[UOp]) -> bool: return buffer.arg[0][0] != "in" and buffer not in kept

def plan_memory(kernels: list[Kernel], kept: set[UOp]) -> Plan:
  """Offsets for all buffers of the kernels that are neither inputs nor kept."""
  plan = Plan(kept=[b for k in kernels for b in dict.fromkeys(map(storage_of, k.writes)) if b in kept])
  last: dict[UOp, int] = {}
  for n, k in enumerate(kernels):
    for b in k.buffers: last[b] = n
  live: list[tuple[int, int, UOp]] = []  # (offset, end, buffer), sorted, one device at a time matters only by arena
  for n, k in enumerate(kernels):
    for b in k.buffers:
      if b in plan.offsets or not is_temporary(b, kept): continue
      size = _bytes(b)
      offset = 0
      for start, end, other in live:
        if other.arg[1] != b.arg[1]: continue
        if start - offset >= size: break
        offset = max(offset, end)
      plan.offsets[b] = offset
      plan.arena_bytes[b.arg[1]] = max(plan.arena_bytes.get(b.arg[1], 0), offset + size)
      live.append((offset, offset + size, b))
      live.sort(key=lambda item: item[0])
    live = [item for item in live if last[item[2]] > n]
  return plan
