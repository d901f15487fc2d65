"""What waits for what: work that touches memory which earlier work writes, or writes what earlier work reads. The rest
runs at the same time.

`Flight` is about the launches of a submission: one that waits does so for all before it, so what is known of them is
forgotten then. `Queues` is about submissions of a device's two queues: one waits for the last one of the other queue
that it needs, before its work; all of them are done in the order of their numbers, so one that ran at the same time as
the one before waits for that before it says that it is done.
"""
from __future__ import annotations
import collections
from collections.abc import Iterable, Sequence

from tinyhw.device import Launch
from tinyhw.named_tuple import NamedTuple

Place = tuple[int, int]     # bytes from the first address to before the second
ANYWHERE = (0, 1 << 64)
SCRATCH = (-2, -1)          # what all kernels that spill share
MOST = 64                   # places that are looked at for one launch; where there are more, it waits

def place(buffer: object) -> Place:
  """Where a launch's buffer is; anywhere, if it does not tell its size."""
  address, size = getattr(buffer, "address", None), getattr(buffer, "size", None)
  return (address, address + size) if isinstance(address, int) and isinstance(size, int) else ANYWHERE

def written(launch: Launch) -> frozenset[int]:
  """The positions of the buffers that it may write: all of them, where nobody says."""
  return frozenset(range(len(launch.buffers)) if launch.written is None else launch.written)

def meet(one: Sequence[Place], two: Iterable[Place]) -> bool:
  """Does a place of the one have a byte with a place of the other in common?"""
  return any(start < high and low < end for low, high in two for start, end in one)

class Flight:
  """What launches read and write that may run at the same time."""
  def __init__(self) -> None:
    self.reads: list[Place] = []
    self.writes: list[Place] = []

  def take(self, places: Sequence[Place], writes: frozenset[int], spills: bool = False) -> bool:
    """Add a launch with buffers at these places. Must it wait for those before?"""
    stores = [p for i, p in enumerate(places) if i in writes] + ([SCRATCH] if spills else [])
    loads = [p for i, p in enumerate(places) if i not in writes]
    waits = (len(self.reads) + len(self.writes) > MOST or meet(stores, self.writes) or meet(stores, self.reads)
             or meet(loads, self.writes))
    if waits: self.reads, self.writes = [], []
    self.reads += loads
    self.writes += stores
    return waits

class Touched(NamedTuple):
  """What a submission reads, and what it writes."""
  reads: Sequence[Place]
  writes: Sequence[Place]

  def needs(self, earlier: Touched) -> bool:
    return meet(self.writes, earlier.writes) or meet(self.writes, earlier.reads) or meet(self.reads, earlier.writes)

EVERYTHING = Touched((), (ANYWHERE,))

def joined(places: Iterable[Place]) -> list[Place]:
  """The same bytes in as few places as there can be, in order."""
  found: list[Place] = []
  for start, end in sorted(places):
    if found and start <= found[-1][1]: found[-1] = found[-1][0], max(found[-1][1], end)
    else: found.append((start, end))
  return found

def touched(buffers: Iterable[tuple[Sequence[Place], frozenset[int]]], code: Iterable[object]) -> Touched:
  """What launches touch together. buffers: of each launch where they are, and which are written; code: of each, the
  buffer that its kernel is in."""
  reads, writes = [place(part) for part in code], list[Place]()
  for places, stores in buffers:
    for i, where in enumerate(places): (writes if i in stores else reads).append(where)
  return Touched(joined(reads), joined(writes))

class Queues:
  """What submissions of each queue touch, until they are done.

  A number that comes again was interrupted, and taken back.
  """
  def __init__(self) -> None:
    self.flying: dict[str, collections.deque[tuple[int, Touched]]] = {}
    self.forgotten: dict[str, int] = {}   # the last submission of a queue of which nothing is known any more
    self.waited: dict[str, int] = {}      # what a queue has waited for, and with it all that comes behind
    self.latest = 0

  def take(self, queue: str, number: int, what: Touched, completed: int) -> int:
    """Add a submission.

    The last one of other queues that it waits for before it begins; 0 for none. completed: the last one that is done.
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
  """Which launches of a submission wait for those before. Their programs are Kernels (launch.py)."""
  if len(launches) < 2: return [False] * len(launches)
  flight = Flight()
  return [flight.take(list(map(place, x.buffers)), written(x), x.program.code.private_bytes > 0) for x in launches]
