"""Loads and stores of translated code: the data that they move, for which lanes, and the addresses."""
from __future__ import annotations
from array import array

import pytest
from windowed import SIZE, START, Machine, word

from tinyhw.emulator.native import threaded
from tinyhw.emulator.native.records import ScalarAccess
from tinyhw.emulator.native.threaded import AT

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

def test_addresses_that_must_be_multiples() -> None:
  machine = Machine()
  machine.context[AT["ACTIVE"]] = 0b0111
  for last, plain in ((START + 16, True), (START + 12, False)):
    assert machine.run("load4", [START, START + 8, last, 3], 2, unaligned=7) is plain
  assert machine.run("load4", [START, START + 8, START + 12, 3], 2)

def test_loads_of_each_size() -> None:
  machine = Machine()
  places = [START, START + 8, START + 242, START + 500]
  wanted = {"load4": word, "load1": lambda at: at & 0xff, "load1s": lambda at: ((at & 0xff ^ 0x80) - 0x80) & 0xffffffff,
            "load2": lambda at: word(at) & 0xffff, "load2s": lambda at: ((word(at) & 0xffff ^ 0x8000) - 0x8000)
            & 0xffffffff}
  for name, value in wanted.items():
    assert machine.run(name, places) and machine.words() == [value(at - START) for at in places], name
  machine.state[4:8] = array("I", [0xaaaabbbb] * 4)
  assert machine.run("load2low", places) and machine.words() == [0xaaaa0000 | word(at - START) & 0xffff
                                                                 for at in places]
  assert machine.run("load2high", places) and machine.words()[1] >> 16 == word(8) & 0xffff
  assert machine.run("load4", places, 3) and machine.words(12) == [word(at - START + 4 * i) for i in range(3)
                                                                   for at in places]

def test_active_lanes_only_and_a_scalar_base() -> None:
  machine = Machine()
  machine.context[AT["ACTIVE"]] = 0b1010
  machine.state[40], machine.state[41] = START, 0
  assert machine.run("load4", [1 << 30, 4, 1 << 30, 12], base=160) and machine.words() == [0, word(4), 0, word(12)]
  machine.context[AT["ACTIVE"]] = 0
  assert machine.run("load4", [0] * 4)

def test_stores() -> None:
  """Stores that need no strict check."""
  plain = dict.fromkeys(("held0", "held1", "held2", "seen", "dirty", "readers", "writers"), 0)
  machine = Machine(**plain)
  machine.written[:] = array("B", bytes(SIZE))
  machine.state[4:8] = array("I", [0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff00])
  places = [START, START + 64, START + 64, START + 900]
  assert (machine.run("store4", places) and machine.data[64:68].tobytes()
          == (0x99aabbcc).to_bytes(4, "little")), "the last lane wins"
  assert sum(machine.written) == 12 and all(machine.written[900:904])
  assert machine.run("store1", places) and machine.run("store2high",
                                                       places) and machine.data[900:902].tobytes() == b"\xee\xdd"
  assert not Machine(**plain, writable=0).run("store4", places) and not Machine().run("store4", places)

def test_loads_of_scalars() -> None:
  for offset, good in ((16, True), (2, False)):
    machine = Machine()
    machine.state[40:43] = array("I", [START, 0, 8])
    assert machine.executes("load_scalar", ScalarAccess(base=160, register=168, offset=offset, data=160,
                                                        words=4)) is good
    if good: assert machine.state[40:44].tolist() == [word(24 + 4 * i) for i in range(4)]
