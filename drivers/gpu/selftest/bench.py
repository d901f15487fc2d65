"""Memory and queues of a GPU for self-tests, each made at first use, without an order of submissions.

Words in a page that GPU and processor see signal completion. A subclass makes the queues of its vendor.
"""
from __future__ import annotations
import contextlib
import time
from collections.abc import Callable
from typing import Any

from tinyhw.drivers.gpu.queue import VIRTUAL_LOOKS, Timeline, Transient, wait_until
from tinyhw.drivers.linux.files import PAGE
from tinyhw.selftest.frame import Wrong, short_bytes

COPIED = 64 << 10         # bytes of a copy to the GPU and back
COMMAND_BYTES = 16 * PAGE
# offsets in the page of signals: words of the steps, 64 bytes each; the rest is for the subclass
WORDS_AT, RESERVED_AT = 64, 1024

class Bench:
  """The memory and queues of a self-test.

  get: maps (bytes, kind, label) to memory of the driver. host: the kind that both sides see. own: the kind that only
  the GPU sees. virtual: the GPU is virtual, so it advances when it is polled, and waits count polls.
  """
  def __init__(self, get: Callable[[int, Any, str], Any], host: Any, own: Any, alignment: int, limit_ms: int,
               virtual: bool):
    self.get, self.host, self.own, self.limit_ms, self.virtual = get, host, own, limit_ms, virtual
    self.memories: list[Any] = []
    self.undo = contextlib.ExitStack()
    self.queues: list[Any] = []
    self.used = 0
    with contextlib.ExitStack() as failed:
      failed.callback(self.close)
      self.page = self.allocate(PAGE, host, "signals")
      self.page.mapping.copyin(0, bytes(PAGE))
      commands = self.allocate(COMMAND_BYTES, host, "commands")
      self.transient = Transient(commands.mapping, commands.address, Timeline(self.page.mapping, 0), _no_room,
                                 alignment)
      failed.pop_all()

  def allocate(self, size: int, kind: Any, label: str) -> Any:
    """Allocate memory until the end of the bench."""
    memory = self.get(size, kind, label)
    self.memories.append(memory)
    self.undo.callback(memory.close)
    return memory

  def keep(self, queue: Any) -> Any:
    """Register a new queue for reports, and for closing at the end."""
    self.queues.append(queue)
    self.undo.callback(queue.close)
    return queue

  def look(self, ms: int) -> None:
    """Pause between two polls of a wait."""
    time.sleep(0.0005)

  def look_at_clock(self) -> tuple[int, float, float]:
    """Return ticks of the GPU's clock, and the host's seconds before and after they were read."""
    raise NotImplementedError

  def converse(self, asked: int, answered: int, done: int) -> None:
    """Compute queue: write 1 to `asked`, wait for 1 at `answered`, write 1 to `done`.

    Copy engine: wait for `asked`, write `answered`.
    """
    raise NotImplementedError

  def wait_for(self, done: Callable[[], bool], what: str) -> None:
    """Poll until a condition holds. Raises Wrong, with the state of the queues."""
    if wait_until(done, self.limit_ms, self.look, VIRTUAL_LOOKS if self.virtual else None): return
    lines = [f"{what} did not come in {self.limit_ms / 1000:g} s"]
    for queue in self.queues: lines += [queue.state(), *(queue.recent() if hasattr(queue, "recent") else ())]
    raise Wrong("\n".join(lines))

  def words(self, address: int, count: int) -> list[int]: return []

  def word(self) -> int:
    """Return the offset of a zero word in the page of signals for exclusive use."""
    self.used += 1
    assert WORDS_AT * self.used < RESERVED_AT, "the page of signals is full"
    self.page.mapping.store64(WORDS_AT * self.used, 0)
    return WORDS_AT * self.used

  def wait_word(self, offset: int, value: int, what: str) -> None:
    """Wait until a word of the page has a value."""
    self.wait_for(lambda: self.page.mapping.load32(offset) == value, what)

  def there_and_back(self, copy: Callable[[int, int, int], None], finish: Callable[[], None]) -> str:
    """Copy bytes from the host's memory to the GPU's, and back to another address.

    copy: takes (dest, source, bytes). finish: waits until copies are done.
    """
    host, card = self.allocate(2 * COPIED, self.host, "copied"), self.allocate(COPIED, self.own, "copied")
    data, found = bytes(i * 7 & 0xFF for i in range(251)) * (COPIED // 251 + 1), bytearray(COPIED)
    host.mapping.copyin(0, data[:COPIED] + bytes(COPIED))
    copy(card.address, host.address, COPIED)
    copy(host.address + COPIED, card.address, COPIED)
    finish()
    host.mapping.copyout(COPIED, memoryview(found))
    wrong = [i for i in range(COPIED) if found[i] != data[i]]
    if wrong:
      raise Wrong(f"{len(wrong)} of {COPIED} bytes differ after a copy there and back; the first is number {wrong[0]}, "
                  f"{found[wrong[0]]:#04x} instead of {data[wrong[0]]:#04x}")
    return f"{short_bytes(COPIED)} there and back"

  def close(self) -> None:
    """Free everything."""
    self.undo.close()
    self.queues.clear()

def _no_room(number: int) -> None: raise Wrong("the steps sent more commands than their memory holds")
