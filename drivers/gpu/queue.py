"""Parts of the queues of GPUs: waits with a deadline, a timeline, a ring that a device reads, and memory for a
submission.

Nothing here knows a vendor. A driver provides the signal to its device and the device's read position. `wait_until`
does all waiting, so nothing waits for ever.
"""
from __future__ import annotations
import collections
import struct
import time
from collections.abc import Callable, Sequence

from tinyhw.drivers.gpu.polling import SPIN_SECONDS
from tinyhw.drivers.linux.files import Mapping

# polls of a wait for a virtual GPU before it sleeps. Each poll advances the GPU, so their count must not depend on time
VIRTUAL_LOOKS = 32

def wait_until(done: Callable[[], bool], timeout_ms: int, sleep: Callable[[int], None],
               looks: int | None = None) -> bool:
  """Wait until done(). Return False after timeout_ms.

  sleep(ms) yields the processor for at most that time; it may return earlier. looks: the count of polls before it
  sleeps. None: as many as fit into SPIN_SECONDS.
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
  """A 32-bit number in memory that the device raises as it completes submissions. Submission n is done when it is n or
  more.

  Devices compare 32 bits, so it must not wrap. At LIMIT, when all is done, `restart` resets it.
  """
  LIMIT = 1 << 31

  def __init__(self, memory: Mapping, offset: int):
    self.memory, self.offset, self.address = memory, offset, memory.address + offset
    self.submitted = 0
    self.restart()

  def restart(self) -> None:
    """Reset to 0. Nothing may be running."""
    self.submitted = 0
    self.memory.store64(self.offset, 0)

  @property
  def completed(self) -> int:
    """The last completed submission."""
    return self.memory.load32(self.offset)

  def reached(self, number: int) -> bool: return self.completed >= number

class Ring:
  """A ring buffer of words. The count of words starts at the first one ever written. The device reads after the driver.

  consumed: returns the position of the next word that the device reads, modulo the ring's words. publish: signals the
  count of written words to the device. wait: waits until a condition holds, or raises. whole: a piece may not cross the
  end, so the rest of the ring is filled with `filler`.
  """
  def __init__(self, memory: Mapping, words: int, consumed: Callable[[], int], publish: Callable[[int], None],
               wait: Callable[[Callable[[], bool]], None], whole: bool = False, filler: int = 0):
    assert words & (words - 1) == 0, "a ring has a power of two words"
    self.memory, self.words, self.consumed, self.publish, self.wait = memory, words, consumed, publish, wait
    self.whole, self.filler = whole, filler
    self.written = self.published = 0  # in words; `telling`: those that are being signalled
    self.telling = 0
    self.seen = 0                      # the last known position of the device: a read of it may go over the bus

  def room(self) -> int:
    """Return the words that can be written now. One stays free: a full ring would look empty."""
    self.seen = self.consumed()
    return self._room_seen()

  def _room_seen(self) -> int:
    """Return the room by the last known position. The device may be further."""
    return self.words - 1 - (self.written - self.seen & self.words - 1)

  def put(self, words: Sequence[int]) -> None:
    """Write a piece, after a wait for room if necessary.

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
    """Signal all written words to the device."""
    if self.published == self.written: return
    self.telling = self.written
    self.publish(self.written)
    self.published = self.written

  def cancel(self, begin: int) -> bool:
    """After an interruption, discard the words from word `begin` on.

    Return False if the device may have seen some of them.
    """
    if self.telling > begin: return False
    self.written = begin
    return True

  def recent(self, count: int) -> list[int]:
    """Return up to `count` words before the read position, and as many from there on, for error reports."""
    place = self.consumed()
    ahead = self.written - place & self.words - 1
    earlier = min(count, self.written - ahead, self.words - 1 - ahead)
    return [self.memory.load32((place + i) % self.words * 4) for i in range(-earlier, min(count, ahead))]

class Transient:
  """A ring of memory for submissions. The memory of a submission is free again when the timeline has reached its
  number."""
  def __init__(self, memory: Mapping, address: int, timeline: Timeline, wait: Callable[[int], None],
               alignment: int = 256):
    self.memory, self.address, self.timeline, self.wait, self.alignment = memory, address, timeline, wait, alignment
    self.size = memory.size
    # never wrap; the bytes between them are in use
    self.head = self.tail = 0
    # (head, the submission that uses the memory before it)
    self.sealed: collections.deque[tuple[int, int]] = collections.deque()

  def take(self, size: int) -> int:
    """Return the offset of `size` bytes. They belong to the next submission, whose number `seal` sets."""
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
    """Copy data for the next submission. Return its address."""
    offset = self.take(len(data))
    self.memory.copyin(offset, data)
    return self.address + offset

  def seal(self, number: int) -> None:
    """Assign the memory that was taken since the last call to submission `number`."""
    if not self.sealed or self.sealed[-1][0] != self.head: self.sealed.append((self.head, number))

  def restart(self) -> None:
    """Reset for a new timeline. Nothing is running.

    Memory that was taken since the last `seal` still belongs to the next submission.
    """
    if self.sealed: self.tail = self.sealed[-1][0]
    self.sealed.clear()
