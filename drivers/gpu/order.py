"""Dependences: work waits if it reads memory that earlier work writes, or writes memory that earlier work touches.

Independent work runs in parallel.

`PendingLaunches` tracks the launches of a submission. A launch that waits does so for all before it, so the earlier
state is dropped then. `Queues` tracks submissions of a device's two queues. A submission waits for the last one of the
other queue that it needs, before its work. All submissions complete in the order of their numbers. So one that ran in
parallel with the previous one waits for it before it signals its completion.
"""
from __future__ import annotations
import collections
from collections.abc import Iterable, Sequence

from tinyhw.device import Launch
from tinyhw.named_tuple import NamedTuple

AddressRange = tuple[int, int]     # the first address, and the address after the last byte
ANYWHERE = (0, 1 << 64)
SCRATCH = (-2, -1)          # memory that all spilling kernels share
MOST = 64                   # ranges that are compared for one launch; with more, it waits

def address_range(buffer: object) -> AddressRange:
  """Return the range of a launch's buffer, or ANYWHERE if its size is unknown."""
  address, size = getattr(buffer, "address", None), getattr(buffer, "size", None)
  return (address, address + size) if isinstance(address, int) and isinstance(size, int) else ANYWHERE

def written(launch: Launch) -> frozenset[int]:
  """Return the positions of the buffers that a launch may write: all of them, if they are unknown."""
  return frozenset(range(len(launch.buffers)) if launch.written is None else launch.written)

def meet(one: Sequence[AddressRange], two: Iterable[AddressRange]) -> bool:
  """Return whether two sets of ranges overlap."""
  return any(start < high and low < end for low, high in two for start, end in one)

class PendingLaunches:
  """Reads and writes of launches that may run in parallel."""
  def __init__(self) -> None:
    self.reads: list[AddressRange] = []
    self.writes: list[AddressRange] = []

  def take(self, places: Sequence[AddressRange], writes: frozenset[int], spills: bool = False) -> bool:
    """Add a launch with buffers at these ranges. Return whether it must wait for earlier ones."""
    stores = [p for i, p in enumerate(places) if i in writes] + ([SCRATCH] if spills else [])
    loads = [p for i, p in enumerate(places) if i not in writes]
    waits = (len(self.reads) + len(self.writes) > MOST or meet(stores, self.writes) or meet(stores, self.reads)
             or meet(loads, self.writes))
    if waits: self.reads, self.writes = [], []
    self.reads += loads
    self.writes += stores
    return waits

class AccessedRanges(NamedTuple):
  """Ranges that a submission reads, and ranges that it writes."""
  reads: Sequence[AddressRange]
  writes: Sequence[AddressRange]

  def needs(self, earlier: AccessedRanges) -> bool:
    return meet(self.writes, earlier.writes) or meet(self.writes, earlier.reads) or meet(self.reads, earlier.writes)

EVERYTHING = AccessedRanges((), (ANYWHERE,))

def joined(places: Iterable[AddressRange]) -> list[AddressRange]:
  """Return the same bytes in the fewest ranges, in order."""
  found: list[AddressRange] = []
  for start, end in sorted(places):
    if found and start <= found[-1][1]: found[-1] = found[-1][0], max(found[-1][1], end)
    else: found.append((start, end))
  return found

def touched(buffers: Iterable[tuple[Sequence[AddressRange], frozenset[int]]], code: Iterable[object]) -> AccessedRanges:
  """Return the memory that launches touch together.

  buffers: for each launch the ranges, and which of them it writes. code: for each launch the buffer of its kernel.
  """
  reads, writes = [address_range(part) for part in code], list[AddressRange]()
  for places, stores in buffers:
    for i, where in enumerate(places): (writes if i in stores else reads).append(where)
  return AccessedRanges(joined(reads), joined(writes))

class Queues:
  """Memory that submissions of each queue touch, until they are done.

  If a number comes again, its first submission was cancelled.
  """
  def __init__(self) -> None:
    self.flying: dict[str, collections.deque[tuple[int, AccessedRanges]]] = {}
    self.forgotten: dict[str, int] = {}   # the last dropped submission of a queue
    self.waited: dict[str, int] = {}  # the submission that a queue, and all its later work, has waited for
    self.latest = 0

  def take(self, queue: str, number: int, what: AccessedRanges, completed: int) -> int:
    """Add a submission.

    Return the last submission of other queues that it must wait for before it begins; 0 for none. completed: the last
    one that is done.
    """
    if number <= self.latest: self.waited.clear()
    needed, self.latest = 0, number
    for name, flying in self.flying.items():
      while flying and flying[0][0] <= completed: flying.popleft()
      while flying and flying[-1][0] >= number: flying.pop()
      if name == queue: continue
      needed = max(needed, next((n for n, earlier in reversed(flying) if what.needs(earlier)),
                                self.forgotten.get(name, 0)))
    mine = self.flying.setdefault(queue, collections.deque())
    mine.append((number, what))
    if len(mine) > MOST: self.forgotten[queue] = mine.popleft()[0]
    if needed <= max(completed, self.waited.get(queue, 0)): return 0
    self.waited[queue] = needed
    return needed

def order(launches: Sequence[Launch]) -> list[bool]:
  """Return which launches of a submission wait for earlier ones. Their programs are GpuPrograms (launch.py)."""
  if len(launches) < 2: return [False] * len(launches)
  flight = PendingLaunches()
  return [flight.take(list(map(address_range, x.buffers)), written(x), x.program.code.private_bytes > 0)
          for x in launches]
