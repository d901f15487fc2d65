"""Windows onto memory: what an access meets there, byte by byte, and what makes it leave the loop before anything has changed."""
from __future__ import annotations
from array import array

import pytest

from tinyhw.emulator import threaded
from tinyhw.emulator.threaded import AT, CONTEXT_BYTES, Exit, Records
from tinyhw.emulator.windows import LINE, MOST, Window, Windows

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

START, SIZE = 0x10000, 1024
LANES = 4

class Machine:
  """Four lanes: word 0 to 3 of the state are addresses, 4 and on data. Memory of SIZE bytes with all that may be looked at."""
  def __init__(self, **more: int):
    self.state, self.context = array("I", [0] * 64), array("q", bytes(CONTEXT_BYTES))
    self.data, self.written = array("B", [i & 0xff for i in range(SIZE)]), array("B", [1] * SIZE)
    self.held = [array("B", bytes(SIZE // LINE)) for _ in range(3)]
    self.seen, self.dirty = array("B", bytes(SIZE // LINE)), array("B", bytes(SIZE // LINE))
    self.readers, self.writers = array("H", [0] * SIZE), array("H", [0] * SIZE)
    def at(memory: array[int], shift: int = 0, double: int = 1) -> int: return memory.buffer_info()[0] - (START >> shift) * double
    fields = dict(data=at(self.data), written=at(self.written), marked=at(self.written), writable=1, held0=at(self.held[0], 7), own=3,
                  held1=at(self.held[1], 7), held2=at(self.held[2], 7), seen=at(self.seen, 7), dirty=at(self.dirty, 7),
                  readers=at(self.readers, double=2), writers=at(self.writers, double=2), mark=9 * 0x1000100010001)
    self.table = Windows()
    self.table.add(Window(START, START + SIZE, **{**fields, **more}))
    for name, value in (("STATE", self.state.buffer_info()[0]), ("ACTIVE", 0xf), ("ALL", 0xf), ("VECTOR_WINDOWS", self.table.address),
                        ("SCALAR_WINDOWS", self.table.address)): self.context[AT[name]] = value

  def run(self, function: str, addresses: list[int], count: int = 1, base: int = -1, aligned: int = 0) -> bool:
    """Whether the access was plain."""
    self.state[:LANES] = array("I", addresses)
    loop = threaded.engine()
    assert loop is not None
    records = Records(loop)
    records.steer(function, 0, 0, base, 0, 16, 16, count, aligned)
    records.steer("link")
    records.done()
    self.context[AT["RECORD"]] = records.address
    return loop.run(self.context.buffer_info()[0]) == Exit.LINK

  def words(self, count: int = LANES) -> list[int]: return self.state[4:4 + count].tolist()

def word(at: int) -> int: return sum((at + i & 0xff) << 8 * i for i in range(4))

def test_addresses_that_must_be_multiples() -> None:
  machine = Machine()
  machine.context[AT["ACTIVE"]] = 0b0111
  for last, plain in ((START + 16, True), (START + 12, False)):
    assert machine.run("load4", [START, START + 8, last, 3], 2, aligned=7) is plain
  assert machine.run("load4", [START, START + 8, START + 12, 3], 2)

def test_loads_of_each_size() -> None:
  machine = Machine()
  places = [START, START + 8, START + 242, START + 500]
  wanted = {"load4": word, "load1": lambda at: at & 0xff, "load1s": lambda at: ((at & 0xff ^ 0x80) - 0x80) & 0xffffffff,
            "load2": lambda at: word(at) & 0xffff, "load2s": lambda at: ((word(at) & 0xffff ^ 0x8000) - 0x8000) & 0xffffffff}
  for name, value in wanted.items():
    assert machine.run(name, places) and machine.words() == [value(at - START) for at in places], name
  machine.state[4:8] = array("I", [0xaaaabbbb] * 4)
  assert machine.run("load2low", places) and machine.words() == [0xaaaa0000 | word(at - START) & 0xffff for at in places]
  assert machine.run("load2high", places) and machine.words()[1] >> 16 == word(8) & 0xffff
  assert machine.run("load4", places, 3) and machine.words(12) == [word(at - START + 4 * i) for i in range(3) for at in places]

def test_active_lanes_only_and_a_scalar_base() -> None:
  machine = Machine()
  machine.context[AT["ACTIVE"]] = 0b1010
  machine.state[40], machine.state[41] = START, 0
  assert machine.run("load4", [1 << 30, 4, 1 << 30, 12], base=160) and machine.words() == [0, word(4), 0, word(12)]
  machine.context[AT["ACTIVE"]] = 0
  assert machine.run("load4", [0] * 4)

def test_the_first_read_fills_the_caches() -> None:
  machine = Machine()
  assert machine.run("load4", [START + i for i in (0, 4, 128, 900)])
  for line in range(SIZE // LINE): assert [held[line] for held in machine.held] + [machine.seen[line]] == [int(line in (0, 1, 7))] * 4
  assert [i for i, mark in enumerate(machine.readers) if mark == 9] == [*range(8), *range(128, 132), *range(900, 904)]
  machine = Machine()
  machine.held[1][0] = 1  # the nearest takes it from the next one, which does not ask further
  assert machine.run("load4", [START] * 4) and [held[0] for held in machine.held] == [1, 1, 0]

@pytest.mark.parametrize("spoil", ["written", "held0", "held1", "held2", "dirty", "writers", "readers", "line", "end", "nowhere"])
def test_what_is_not_plain_changes_nothing(spoil: str) -> None:
  """The last lane meets it; no register has changed then."""
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
  assert machine.run("load4", [START, START + 4, START, START]) and machine.readers[:8].tolist() == [0xffff] * 4 + [9] * 4
  assert machine.run("load4", [START] * 4) and machine.readers[:4].tolist() == [0xffff] * 4

def test_stores() -> None:
  """Those that no strict check concerns."""
  plain = dict.fromkeys(("held0", "held1", "held2", "seen", "dirty", "readers", "writers"), 0)
  machine = Machine(**plain)
  machine.written[:] = array("B", bytes(SIZE))
  machine.state[4:8] = array("I", [0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff00])
  places = [START, START + 64, START + 64, START + 900]
  assert machine.run("store4", places) and machine.data[64:68].tobytes() == (0x99aabbcc).to_bytes(4, "little"), "the last lane wins"
  assert sum(machine.written) == 12 and all(machine.written[900:904])
  assert machine.run("store1", places) and machine.run("store2high", places) and machine.data[900:902].tobytes() == b"\xee\xdd"
  assert not Machine(**plain, writable=0).run("store4", places) and not Machine().run("store4", places)

def test_loads_of_scalars() -> None:
  machine = Machine()
  machine.state[40], machine.state[41], machine.state[42] = START, 0, 8
  loop = threaded.engine()
  assert loop is not None
  for offset, good in ((16, True), (2, False)):
    records = Records(loop)
    records.steer("load_scalar", 160, 168, offset, 160, 4)
    records.steer("link")
    records.done()
    machine.context[AT["RECORD"]] = records.address
    assert (loop.run(machine.context.buffer_info()[0]) == Exit.LINK) == good
    if good: assert machine.state[40:44].tolist() == [word(24 + 4 * i) for i in range(4)]
    machine.state[40:43] = array("I", [START, 0, 8])

def test_a_full_table_gives_up_the_oldest() -> None:
  machine = Machine()
  for i in range(MOST - 1): machine.table.add(Window(0x100000 * (i + 1), 0x100000 * (i + 1) + 4, 0))
  assert machine.run("load4", [START] * 4)
  machine.table.add(Window(8, 12, 0))
  assert not machine.run("load4", [START] * 4) and machine.table.count == MOST
  machine.table.clear()
  assert machine.table.count == 0 and not any(machine.table.words)
