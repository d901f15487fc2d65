"""Threads of a dispatch: memory with checks, threads that meet, and the order in which they run.

Each access to memory is checked: its bounds, its alignment, that the bytes were written before, and that no other
thread touches the element without an order between the two, where one of them writes. A write of the value that is
already there is not counted, since overlapping tiles store some elements twice. Barriers order threadgroup memory of a
group. Nothing orders device memory of a dispatch, since the barriers of kernels do not.

Threads run one after the other, in a seeded random order, each until it meets others: at a barrier all of a
threadgroup, at shuffles and products all of a SIMD-group. If some wait elsewhere or have ended, the kernel diverges.
"""
from __future__ import annotations
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyhw.emulator.errors import DataRace, Hang, OutOfBounds, StrictError, UninitialisedRead
from tinyhw.emulator.metal.numbers import CODES, SIZES, rounded
from tinyhw.emulator.metal.translate import FILE, MslKernel
from tinyhw.emulator.metal.types import Accessor

LANES = 32
SEVERAL = -1     # in the place of a thread: more than one has read

class MisalignedAccess(StrictError):
  """An access at an address that is no multiple of its type."""

class MslRegion:
  """Memory as the threads of a dispatch see it. start, end: the part that an argument may reach.

  written: 1 for each byte that has a value. readers, writers: by the offset of a granule, the thread that touched it.
  """
  def __init__(self, name: str, data: bytearray, written: bytearray, start: int = 0, end: int | None = None):
    self.name, self.data, self.written, self.start = name, data, written, start
    self.end = len(data) if end is None else end
    self.readers: dict[int, int] = {}
    self.writers: dict[int, int] = {}
    self.granule = 1     # bytes of the smallest element that the kernel touches here

  def order(self) -> None:
    """Let later accesses come after all earlier ones."""
    self.readers.clear()
    self.writers.clear()

  def forget(self) -> None:
    """Begin with memory that nothing has written."""
    self.order()
    self.written[:] = bytes(len(self.written))

  def check(self, at: int, size: int, unit: int) -> None:
    """Raise an error for an access outside of the memory, or at an odd address."""
    if at < self.start or at + size > self.end:
      raise OutOfBounds(f"{size} bytes at offset {at - self.start} of {self.name}, which has {self.end - self.start}")
    if at % unit:
      raise MisalignedAccess(f"{size} bytes at offset {at - self.start} of {self.name}, no multiple of {unit}")

  def race(self, at: int, one: int, other: int, what: str) -> DataRace:
    who = "several threads" if other == SEVERAL else f"thread {other}"
    return DataRace(f"thread {one} {what} offset {at - self.start} of {self.name}, which {who} touched; nothing orders "
                    f"the two: a barrier is missing, or two threads have one element")

def loader(region: MslRegion, way: Accessor) -> Callable[[int, int], Any]:
  """Return a function that loads for a thread at an index in elements."""
  size, count, start = SIZES[way.name], way.lanes, region.start + way.base
  unpack = struct.Struct(f"<{count}{CODES[way.name]}").unpack_from
  width, data, written, readers, writers = size * count, region.data, region.written, region.readers, region.writers
  low, high, granule = region.start, region.end, region.granule
  def load(t: int, index: int) -> Any:
    at = start + index * size
    if at < low or at + width > high or at % width: region.check(at, width, width)
    if written.find(0, at, at + width) >= 0:
      raise UninitialisedRead(f"thread {t} reads offset {at - low} of {region.name}, which nothing has written")
    for k in range(at, at + width, granule):
      other = writers.get(k, t)
      if other != t: raise region.race(k, t, other, "reads")
      if readers.setdefault(k, t) != t: readers[k] = SEVERAL
    found = unpack(data, at)
    return found if count > 1 else found[0]
  return load

def storer(region: MslRegion, way: Accessor) -> Callable[[int, int, Any], None]:
  """Return a function that stores for a thread at an index in elements."""
  size, count, start = SIZES[way.name], way.lanes, region.start + way.base
  pack = struct.Struct(f"<{count}{CODES[way.name]}").pack_into
  width, data, written, readers, writers = size * count, region.data, region.written, region.readers, region.writers
  low, high, granule, ones = region.start, region.end, region.granule, bytes([1]) * width
  def store(t: int, index: int, value: Any) -> None:
    at = start + index * size
    if at < low or at + width > high or at % width: region.check(at, width, width)
    before = None
    for k in range(at, at + width, granule):
      other = writers.setdefault(k, t)
      if other == t: other = readers.get(k, t)
      if other == t: continue
      before = before or (k, other, data[at:at + width])
    if count > 1: pack(data, at, *value)
    else: pack(data, at, value)
    if before and before[2] != data[at:at + width]: raise region.race(before[0], t, before[1], "writes")
    written[at:at + width] = ones
  return store

def place_of(lane: int, k: int) -> tuple[int, int]:
  """Return the row and column of a lane's element k of a matrix of 8 x 8."""
  return (lane // 4 & 4) + lane // 2 % 4, (lane // 4 & 2) * 2 + lane % 2 * 2 + k

def gathered(shares: Sequence[list[Any]]) -> list[list[Any]]:
  """Return the rows of a matrix whose lanes have these shares."""
  rows: list[list[Any]] = [[None] * 8 for _ in range(8)]
  for lane, share in enumerate(shares):
    for k in range(2):
      if share[k] is None: raise UninitialisedRead(f"element {k} of lane {lane} of a matrix has no value")
      row, column = place_of(lane, k)
      rows[row][column] = share[k]
  return rows

class WaitingThread:
  """A thread that has begun. lane: in its group; at: the meeting for which it waits, None when it has ended."""
  def __init__(self, lane: int, run: Iterator[Any]):
    self.lane, self.run, self.answer = lane, run, None
    self.at: Any = ()

  def go_on(self) -> None:
    """Run until the next meeting, or to the end."""
    try: self.at = self.run.send(self.answer if self.at != () else None)  # type: ignore[attr-defined]
    except StopIteration: self.at = None

class ThreadGroup:
  """A dispatch that runs group by group. regions: by argument; shared: the threadgroup memory, if there is any. steps:
  the order of a product's additions."""
  def __init__(self, kernel: MslKernel, regions: dict[str, MslRegion], shared: MslRegion | None, lanes: int,
               seed: random.Random, steps: Sequence[int] = range(8)):
    self.kernel, self.shared, self.lanes, self.random = kernel, shared, lanes, seed
    for way in kernel.accessors:   # arguments that are the same memory have the same granule
      same = [regions[w.memory] for w in kernel.accessors if regions[w.memory].writers is regions[way.memory].writers]
      sizes = [SIZES[w.name] for w in kernel.accessors if regions[w.memory] in same]
      regions[way.memory].granule = min(sizes)
    ways = [(storer if way.is_store else loader)(regions[way.memory], way) for way in kernel.accessors]
    self.thread = kernel.make(ways)
    self.met_at = 0     # the line at which threads meet now
    self.steps = steps

  def run(self, group: int) -> None:
    """Run one threadgroup. Raises StrictError, with the line of the source."""
    if self.shared is not None: self.shared.forget()
    try:
      if self.kernel.meets: self._meet(group)
      else:
        first = group * self.lanes
        for lane in self.random.sample(range(self.lanes), self.lanes): self.thread(first + lane, group, lane)
    except StrictError as error: raise error.located(f"\n  {self.where(error)}") from None

  def where(self, error: BaseException) -> str:
    """Return the kernel and the line of its source at which an error was raised."""
    line, trace = self.met_at, error.__traceback__
    while trace is not None:
      if trace.tb_frame.f_code.co_filename == FILE: line = self.kernel.lines[trace.tb_lineno - 1]
      trace = trace.tb_next
    return f"in kernel {self.kernel.name}, program_source:{line}" if line else f"in kernel {self.kernel.name}"

  def _meet(self, group: int) -> None:
    threads = [WaitingThread(lane, self.thread(group * self.lanes + lane, group, lane)) for lane in range(self.lanes)]
    simds = [threads[start:start + LANES] for start in range(0, self.lanes, LANES)]
    for thread in self.random.sample(threads, len(threads)): thread.go_on()
    while any(thread.at is not None for thread in threads):
      ready = [simd for simd in simds if self._joins(simd)]
      for simd in self.random.sample(ready, len(ready)):
        for thread in self.random.sample(simd, len(simd)): thread.go_on()
      if not ready: self._barrier(threads)

  def _joins(self, simd: list[WaitingThread]) -> bool:
    """Do the lanes of a SIMD-group meet? Then give each its answer."""
    first = simd[0].at
    if first is None or first[1] not in ("shuffle", "multiply"): return False
    for thread in simd:
      if thread.at is None or thread.at[0] != first[0]: return False
    self.met_at = first[0][0]
    if first[1] == "multiply": multiply(simd, self.steps)
    else:
      for thread in simd:
        other = thread.lane % LANES ^ thread.at[3]
        if other >= len(simd):
          raise UninitialisedRead(f"lane {thread.lane} takes the value of lane {other}, which does not exist")
        thread.answer = simd[other].at[2]
    self.met_at = 0
    return True

  def _barrier(self, threads: list[WaitingThread]) -> None:
    first = threads[0].at
    if any(thread.at is None or first is None or thread.at[0] != first[0] for thread in threads):
      raise self._divergence(threads)
    if not first[1].startswith("barrier"):
      raise self._divergence(threads)
    if self.shared is not None and first[1] == "barrier": self.shared.order()
    for thread in self.random.sample(threads, len(threads)): thread.go_on()

  def _divergence(self, threads: list[WaitingThread]) -> Hang:
    places: dict[Any, list[int]] = {}
    for thread in threads: places.setdefault(None if thread.at is None else thread.at[:2], []).append(thread.lane)
    words = [f"{len(lanes)} (lane {lanes[0]} first) " + ("have ended" if at is None else
             f"wait at the {at[1].split()[0]} of program_source:{at[0][0]}") for at, lanes in places.items()]
    return Hang(f"divergent threads: {', '.join(words)}; all have to come to a barrier, or to a shuffle")

def multiply(simd: list[WaitingThread], steps: Sequence[int]) -> None:
  """Compute d = a b + c of a SIMD-group. steps: the order of the additions."""
  if len(simd) != LANES: raise Hang(f"a product of matrices by a SIMD-group of {len(simd)} threads; it has {LANES}")
  a, b, c = (gathered([thread.at[k] for thread in simd]) for k in (3, 4, 5))
  for thread in simd:
    for k in range(2):
      row, column = place_of(thread.lane % LANES, k)
      total = c[row][column]
      for step in steps: total = rounded(total + a[row][step] * b[step][column])
      thread.at[2][k] = total
