"""Accesses of the program to memory that GPUs use. Stale lines are found, looks at signals order, and written bytes are
marked."""
from __future__ import annotations
from types import SimpleNamespace

import pytest

from tinyhw.emulator.checks.order import MOST_WATCHED, Agent, Order
from tinyhw.emulator.checks.watch import MemoryWatcher
from tinyhw.emulator.errors import StaleRead
from tinyhw.emulator.memory.cache import Coherence, WriteBuffer
from tinyhw.emulator.memory.physical import PAGE, Physical

def watcher(strict: bool = True) -> tuple[MemoryWatcher, list[str]]:
  """Return a watcher of the second of three pages, and the calls at its end."""
  computer = SimpleNamespace(coherence=Coherence() if strict else None, order=Order() if strict else None)
  ended: list[str] = []
  frames = Physical().allocate(3 * PAGE, cleared=False)
  return MemoryWatcher(computer, frames, PAGE, 0x7000, PAGE, "a buffer", lambda: ended.append("released")), ended

@pytest.mark.parametrize("strict", (True, False))
def test_what_the_program_writes_has_been_written(strict: bool) -> None:
  w, _ = watcher(strict)
  w.before_store(8, b"word")
  assert w.frames.is_written(PAGE + 8, 4) and not w.frames.is_written(PAGE + 12, 1) and not w.frames.is_written(8, 4)
  w.before_load(8, 4)
  w.after_store(8, 4)

def test_what_a_cache_has_not_written_back_is_stale() -> None:
  w, _ = watcher()
  coherence = w.computer.coherence
  assert coherence is not None
  buffer = WriteBuffer("L2", "write it back")
  coherence.write(w.entry, 16, b"\1" * 4, buffer, (), "a kernel")
  with pytest.raises(StaleRead, match="the program reads 0x7010 .*a buffer.*write it back"): w.before_load(16, 4)
  w.before_load(256, 4)

def test_a_look_at_a_signal_orders() -> None:
  w, _ = watcher()
  order = w.computer.order
  assert order is not None
  agent = Agent(order)
  agent.known = 5
  agent.publish(w.physical(32), 8)
  w.before_load(32, MOST_WATCHED + 1)
  assert order.host.known == 0, "so many bytes are no signal"
  w.before_load(32, 8)
  assert order.host.known == 5 and w.physical(0) == w.frames.physical + PAGE

def test_the_end_of_a_mapping() -> None:
  w, ended = watcher()
  w.closed()
  assert ended == ["released"]
  with pytest.raises(ValueError, match="released"): w.entry.view[0]
