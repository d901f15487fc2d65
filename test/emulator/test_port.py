"""Ports of all families: one access that crosses pages, and windows. A window opens for lanes, and closes at changes
that translated code would not see."""
from __future__ import annotations

import pytest

from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.cache import Coherence, HostWrites, ReadCache
from tinyhw.emulator.memory.memory import VECTOR, AccessKind
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import PAGE, Frames
from tinyhw.emulator.port import Port

BASE = 0x10000

class Lanes(Port):
  """Lanes with one cache before memory."""
  def __init__(self, coherence: Coherence | None):
    super().__init__(table(), coherence, "a wave")
    self.cache = ReadCache("the cache", "was not invalidated")

  def _chain(self, kind: AccessKind, uncached: bool) -> tuple[ReadCache, ...]: return (self.cache,)
  def _is_of_lanes(self) -> bool: return True

def table() -> PageTable:
  found = PageTable()
  for i in range(2):
    found.map(Range(BASE + i * PAGE, Frames(i * PAGE, PAGE, memoryview(bytearray(PAGE))), 0, PAGE, True, True, False,
                    False, f"page {i}"))
  return found

@pytest.mark.parametrize("strict", (True, False))
def test_neighbours_are_one_access(strict: bool) -> None:
  port = Lanes(Coherence() if strict else None)
  places = [BASE + PAGE - 8 + 4 * i for i in range(4)]
  port.scatter(places, [bytes([i] * 4) for i in range(4)])
  assert port.gather(places, 4) == [bytes([i] * 4) for i in range(4)] == port.gather(places[::-1], 4)[::-1]
  with pytest.raises(PageFault): port.gather([BASE + 2 * PAGE - 4, BASE + 2 * PAGE], 4)

def test_windows_come_and_go() -> None:
  coherence = Coherence()
  port = Lanes(coherence)
  def count() -> int:
    port.windows()
    return port._windows[VECTOR].count
  port.store(BASE, bytes(64))
  assert count() == 0
  assert port.open_window(BASE + 8, VECTOR, False) and not port.open_window(BASE, VECTOR, False), "one is enough"
  assert not port.open_window(BASE + PAGE, VECTOR, True), "strict stores go through Python"
  assert not port.open_window(BASE + 2 * PAGE, VECTOR, False), "there is nothing"
  assert count() == 1
  port.table.map(Range(BASE + 2 * PAGE, Frames(4 * PAGE, PAGE, memoryview(bytearray(PAGE))), 0, PAGE, True, True, False,
                       False, "more"))
  assert count() == 0, "addresses may mean other places"
  assert port.open_window(BASE, VECTOR, False)
  assert count() == 1
  coherence.host_writes.append(writes := HostWrites("the card"))
  writes.add(0, 4)
  assert count() == 0, "what has not been flushed is looked for by Python"
  assert not port.open_window(BASE, VECTOR, False) and count() == 0
