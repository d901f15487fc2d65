"""Which launches of a submission wait for those before them: those that touch memory which an earlier one writes, or write what an earlier one reads.

Others run at the same time. A launch that waits does so for all before it, so what is known of them is forgotten then.
"""
from __future__ import annotations
from collections.abc import Iterable, Sequence

from tinyhw.device import Launch

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
    waits = len(self.reads) + len(self.writes) > MOST or meet(stores, self.writes) or meet(stores, self.reads) or meet(loads, self.writes)
    if waits: self.reads, self.writes = [], []
    self.reads += loads
    self.writes += stores
    return waits

def order(launches: Sequence[Launch]) -> list[bool]:
  """Which launches of a submission wait for those before. Their programs are Kernels (launch.py)."""
  if len(launches) < 2: return [False] * len(launches)
  flight = Flight()
  return [flight.take(list(map(place, x.buffers)), written(x), x.program.code.private_bytes > 0) for x in launches]
