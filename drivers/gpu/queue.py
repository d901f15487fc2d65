"""What the queues of GPUs share: waits with a deadline, a timeline, a ring that a device reads, memory for what a
submission needs until it is done.

Nothing here knows a vendor: a driver says how its device is told of new words, and how far it has read. All waiting is
`wait_until`, so nothing waits for ever.
"""
from __future__ import annotations
import collections
import struct
import time
from collections.abc import Callable, Sequence

from tinyhw.drivers.linux.files import Mapping

SPIN_SECONDS = 0.0005  # a wait looks so long, as fast as it can, before it sleeps: most kernels take no longer
VIRTUAL_LOOKS = 32     # that a wait for a virtual GPU has before it sleeps: each moves the GPU, so their number must
                       # not depend on time

def wait_until(done: Callable[[], bool], timeout_ms: int, sleep: Callable[[int], None],
               looks: int | None = None) -> bool:
  """Wait until done(); False when timeout_ms are over. sleep(ms) gives the processor away for so long at most; it may
  return earlier.

  looks: how often it looks before it sleeps; None: as often as fits into SPIN_SECONDS.
  """
  if done(): return True
  start = time.monotonic()
  end, looked = start + timeout_ms / 1000, 0
  while not done():
    now, looked = time.monotonic(), looked + 1
    if now >= end: return False
    if now >= start + SPIN_SECONDS if looks is None else looked >= looks:
      sleep(max(1, min(1000, int((end - now) * 1000))))
  return True

class Timeline:
  """A 32-bit number in memory that the device raises as it completes submissions: number n is done when it is n or
  more.

  Devices compare 32 bits, so it must not wrap: at LIMIT, when all is done, `restart` lets it begin anew.
  """
  LIMIT = 1 << 31

  def __init__(self, memory: Mapping, offset: int):
    self.memory, self.offset, self.address = memory, offset, memory.address + offset
    self.submitted = 0
    self.restart()

  def restart(self) -> None:
    """Begin at 0. Nothing may be running."""
    self.submitted = 0
    self.memory.store64(self.offset, 0)

  @property
  def completed(self) -> int:
    """How far the device is."""
    return self.memory.load32(self.offset)

  def reached(self, number: int) -> bool: return self.completed >= number

class Ring:
  """A circle of words in memory. A word counts from the first one ever written; the device reads behind.

  consumed: the place of the next word that the device reads, modulo the ring's words. publish: tells the device how
  many words have been written.
  wait: waits until a condition holds, or raises. whole: a piece may not cross the end, so what is left there is filled
  with `filler`.
  """
  def __init__(self, memory: Mapping, words: int, consumed: Callable[[], int], publish: Callable[[int], None],
               wait: Callable[[Callable[[], bool]], None], whole: bool = False, filler: int = 0):
    assert words & (words - 1) == 0, "a ring has a power of two words"
    self.memory, self.words, self.consumed, self.publish, self.wait = memory, words, consumed, publish, wait
    self.whole, self.filler = whole, filler
    self.written = self.published = 0  # words; `telling`: those that the device is being told of
    self.telling = 0
    self.seen = 0                      # where the device was when that was looked at last: a look may go over the bus

  def room(self) -> int:
    """Words that can be written now. One stays free: a full ring would look empty."""
    self.seen = self.consumed()
    return self._room_seen()

  def _room_seen(self) -> int:
    """The same by the last look: the device may be further."""
    return self.words - 1 - (self.written - self.seen & self.words - 1)

  def put(self, words: Sequence[int]) -> None:
    """Write a piece; waits while there is no room.

    The device sees it when `ring` is called, or when a later piece needs the room.
    """
    place = self.written % self.words
    if self.whole and place + len(words) > self.words: self._write([self.filler] * (self.words - place))
    self._write(words)

  def _write(self, words: Sequence[int]) -> None:
    assert len(words) < self.words, "a piece is smaller than the ring"
    if self._room_seen() < len(words) and self.room() < len(words):
      self.ring()
      self.wait(lambda: self.room() >= len(words))
    place = self.written % self.words
    data = struct.pack(f"<{len(words)}I", *words)
    first = min(len(words), self.words - place) * 4
    self.memory.copyin(place * 4, data[:first])
    if first < len(data): self.memory.copyin(0, data[first:])
    self.written += len(words)

  def ring(self) -> None:
    """Tell the device of all that has been written."""
    if self.published == self.written: return
    self.telling = self.written
    self.publish(self.written)
    self.published = self.written

  def cancel(self, begin: int) -> bool:
    """After an interruption: take back what was written from word `begin` on.

    False if the device may have been told of some of it.
    """
    if self.telling > begin: return False
    self.written = begin
    return True

  def recent(self, count: int) -> list[int]:
    """As many words before the place that the device reads, and from there on, as there are of them: for reports of
    errors."""
    place = self.consumed()
    ahead = self.written - place & self.words - 1
    behind = min(count, self.written - ahead, self.words - 1 - ahead)
    return [self.memory.load32((place + i) % self.words * 4) for i in range(-behind, min(count, ahead))]

class Transient:
  """Memory that submissions take in a circle: what one has taken is free again when the timeline has reached its
  number."""
  def __init__(self, memory: Mapping, address: int, timeline: Timeline, wait: Callable[[int], None],
               alignment: int = 256):
    self.memory, self.address, self.timeline, self.wait, self.alignment = memory, address, timeline, wait, alignment
    self.size = memory.size
    # counted for ever; what lies between is in use
    self.head = self.tail = 0
    # (head, the submission that has what is before it)
    self.sealed: collections.deque[tuple[int, int]] = collections.deque()

  def take(self, size: int) -> int:
    """The offset of `size` bytes. They are the next submission's, until `seal` says which number it has."""
    size = -(-size // self.alignment) * self.alignment
    assert size <= self.size // 2, "a submission takes half of the memory at most"
    place = self.head % self.size
    if place + size > self.size: self.head += self.size - place            # not across the end
    while self.head + size - self.tail > self.size:
      assert self.sealed, "one submission takes less than all of the memory"
      self.tail, number = self.sealed.popleft()
      self.wait(number)
    offset = self.head % self.size
    self.head += size
    return offset

  def write(self, data: bytes) -> int:
    """A copy of data, for the next submission: its address."""
    offset = self.take(len(data))
    self.memory.copyin(offset, data)
    return self.address + offset

  def seal(self, number: int) -> None:
    """What was taken since the last call is used by submission `number`."""
    if not self.sealed or self.sealed[-1][0] != self.head: self.sealed.append((self.head, number))

  def restart(self) -> None:
    """The timeline begins anew, and nothing is running.

    What was taken since the last `seal` is still the next submission's.
    """
    if self.sealed: self.tail = self.sealed[-1][0]
    self.sealed.clear()
