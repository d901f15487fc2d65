"""Tables of windows: their number, and the window that a full table drops."""
from __future__ import annotations
import pytest
from windowed import START, Machine

from tinyhw.emulator.memory.windows import MOST, NOTES, NOWHERE, MemoryWindow, Windows
from tinyhw.emulator.native import threaded

@pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")
def test_a_full_table_gives_up_the_oldest() -> None:
  machine = Machine()
  for i in range(MOST - 1): machine.table.add(MemoryWindow(0x100000 * (i + 1), 0x100000 * (i + 1) + 4, 0))
  assert machine.run("load4", [START] * 4)
  machine.table.add(MemoryWindow(8, 12, 0))
  assert not machine.run("load4", [START] * 4) and machine.table.count == MOST
  machine.table.clear()
  assert machine.table.count == 0 and not any(machine.table.words)

def test_a_window_stands_in_a_table_once() -> None:
  table = Windows()
  assert (table.add(MemoryWindow(16, 32, 0)) and not table.add(MemoryWindow(16, 48, 5))
          and table.add(MemoryWindow(32, 48, (1 << 64) - 8)))
  assert table.count == 2 and table.words[1 + len(MemoryWindow._fields) + 2] == -8, ("numbers of 64 bits may be "
                                                                                     "negative ones")

def test_nowhere_has_no_bytes() -> None:
  assert NOWHERE.words[6] == 0 and not NOWHERE.notes and list(NOWHERE.noted(NOTES)) == []
