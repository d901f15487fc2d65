"""Accesses that leave the loop, byte by byte, before anything has changed; and the marks of a plain access."""
from __future__ import annotations
import random
from array import array

import pytest
from windowed import SIZE, START, Machine

from tinyhw.emulator.memory.cache import LINE
from tinyhw.emulator.memory.lds import LocalMemory
from tinyhw.emulator.native import threaded
from tinyhw.emulator.native.threaded import AT

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

def test_the_first_read_fills_the_caches() -> None:
  machine = Machine()
  assert machine.run("load4", [START + i for i in (0, 4, 128, 900)])
  for line in range(SIZE // LINE):
    assert [held[line] for held in machine.held] + [machine.seen[line]] == [int(line in (0, 1, 7))] * 4
  assert [i for i, mark in enumerate(machine.readers) if mark == 9] == [*range(8), *range(128, 132), *range(900, 904)]
  machine = Machine()
  machine.held[1][0] = 1  # the nearest cache is filled from the next one, which asks no further
  assert machine.run("load4", [START] * 4) and [held[0] for held in machine.held] == [1, 1, 0]

@pytest.mark.parametrize("spoil", ["written", "held0", "held1", "held2", "dirty", "writers", "readers", "line", "end",
                                   "nowhere"])
def test_what_is_not_plain_changes_nothing(spoil: str) -> None:
  """The last lane is not plain. No register has changed then."""
  machine, places = Machine(), [START, START + 4, START + 8, START + 300]
  if spoil == "written": machine.written[303] = 0
  elif spoil.startswith("held"): machine.held[int(spoil[4])][2] = 2
  elif spoil == "dirty": machine.dirty[2] = 4
  elif spoil == "writers": machine.writers[302] = 5
  elif spoil == "readers": machine.readers[300] = 5
  elif spoil == "line": places[3] = START + 254
  elif spoil == "end": places[3] = START + SIZE - 2
  else: places[3] = START - 4
  assert not machine.run("load4", places) and machine.words() == [0] * 4
  assert machine.run("load4", places[:3] + [START + 12])

def test_others_that_have_read_too() -> None:
  machine = Machine()
  machine.readers[:4] = array("H", [5] * 4)
  machine.writers[4:8] = array("H", [9] * 4)
  machine.dirty[0] = 3
  assert (machine.run("load4", [START, START + 4, START, START]) and machine.readers[:8].tolist() == [0xffff] * 4 + [9]
          * 4)
  assert machine.run("load4", [START] * 4) and machine.readers[:4].tolist() == [0xffff] * 4

class Local(Machine):
  """The LDS of two waves. Translated code of the first one accesses it."""
  def __init__(self) -> None:
    super().__init__()
    self.lds = LocalMemory(64, random.Random(1))
    self.reached = self.lds.reach(0)
    self.context[AT["LOCAL"]] = self.reached.address
    for address in range(0, 64, 4): self.lds.store(0, address, address.to_bytes(4, "little"))
    self.lds.barrier(())

def test_the_lds_is_read_and_noted() -> None:
  machine = Local()
  assert machine.run("local_load4", [0, 8, 60, 8]) and machine.words() == [0, 8, 60, 8]
  assert list(machine.reached.noted(64)) == [[(address, 4, 0) for address in (0, 8, 60, 8)]]
  assert machine.run("local_store2", [4, 6, 8, 10]) and machine.lds.data[4:12] == b"\0\0\x08\0\x3c\0\x08\0"
  assert list(machine.reached.noted(64)) == [[(address, 2, 1) for address in (4, 6, 8, 10)]], (
    "those before are told once")

@pytest.mark.parametrize("spoil", ["unwritten", "written by another", "read by another", "on its way", "beyond"])
def test_what_is_not_plain_in_the_lds(spoil: str) -> None:
  machine, places = Local(), [0, 4, 8, 32]
  if spoil == "unwritten": machine.lds.written[33] = 0
  elif spoil == "written by another": machine.lds.store(1, 32, bytes(4))
  elif spoil == "read by another": machine.lds.load(1, 32, 4)
  elif spoil == "on its way": machine.lds.start(0, 32, 4)
  else: places[3] = 62
  plain = {"load": spoil == "read by another", "store": spoil == "unwritten"}
  for action, wanted in plain.items(): assert machine.run(f"local_{action}4", places) is wanted, action
