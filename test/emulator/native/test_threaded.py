"""The loop of translated code: records in order, entries that let known states pass, jumps, checks of written
registers."""
from __future__ import annotations
from array import array

import pytest

from tinyhw.emulator.native import threaded
from tinyhw.emulator.native.records import PAIRS, WORD, Lanes, Records
from tinyhw.emulator.native.threaded import AT, CONTEXT, CONTEXT_BYTES, Engine, Exit

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

class Machine:
  """A context with four words of state, and masks of two registers."""
  def __init__(self, budget: int = 100):
    self.state, self.masks, self.context = array("q", [0] * 4), array("Q", [0, 0]), array("q", bytes(CONTEXT_BYTES))
    self["STATE"], self["WRITTEN"], self["BUDGET"] = self.state.buffer_info()[0], self.masks.buffer_info()[0], budget
    self["ACTIVE"] = self["ALL"] = 0xff

  def __getitem__(self, name: str) -> int: return self.context[AT[name]]
  def __setitem__(self, name: str, value: int) -> None: self.context[AT[name]] = value

  def run(self, records: Records) -> tuple[Exit, int]:
    """(why it ended, the place of the record in words)."""
    self["RECORD"] = records.address
    reason = Exit(loop().run(self.context.buffer_info()[0]))
    return reason, (self["RECORD"] - records.address) // WORD

def loop() -> Engine:
  found = threaded.engine()
  assert found is not None
  return found

def new() -> Records: return Records(loop().functions)

def test_a_context_has_room_for_its_words() -> None: assert len(CONTEXT) * WORD <= CONTEXT_BYTES

def test_an_entry_lets_known_states_in_and_counts() -> None:
  machine, records = Machine(10), new()
  records.entry(7)
  end = records.python()
  records.done()
  machine["KNOWN"] = 5
  assert machine.run(records) == (Exit.UNKNOWN, 0) and machine["BUDGET"] == 10
  for i in range(PAIRS): records.admit(i, i + 5, i + 50)
  for i in range(PAIRS):
    machine["KNOWN"], machine["BUDGET"] = i + 5, 10
    assert machine.run(records) == (Exit.PYTHON, end)
    assert (machine["KNOWN"], machine["ENTERED"], machine["ENTRY"],
            machine["BUDGET"]) == (i + 50, i + 5, records.address, 3)
  machine["BUDGET"] = 0
  assert machine.run(records) == (Exit.BUDGET, 0)

@pytest.mark.parametrize("value", [0, 1, 1 << 32])
def test_jumps_look_at_the_state(value: int) -> None:
  machine, records = Machine(), new()
  machine.state[2] = value
  for name, wanted in (("jump_zero", not value & 1), ("jump_set", bool(value & 1))):
    records = new()
    at = records.jump(name, 16, 0xffffffff)
    ends = [records.link(), records.python()]
    records.choose(at, *ends)
    records.done()
    assert machine.run(records) == ((Exit.LINK, ends[0]) if wanted else (Exit.PYTHON, ends[1]))

def test_links_become_jumps() -> None:
  machine, records, target = Machine(), new(), new()
  place = records.link()
  target.python()
  for made in (records, target): made.done()
  assert machine.run(records) == (Exit.LINK, place)
  records.join(place, target.address)
  assert machine.run(records)[0] == Exit.PYTHON and machine["RECORD"] == target.address

def test_some_lanes_take_the_other_function() -> None:
  functions = loop().functions
  for mask, reason in ((0xff, Exit.PYTHON), (0x7f, Exit.MAKE), (0x1ff, Exit.PYTHON)):
    machine, records = Machine(), new()
    machine.state[1] = mask
    records.activate(8)
    records.add(functions["python"], functions["make"], ())
    records.done()
    assert (machine.run(records)[0] == reason and machine["ACTIVE"] == mask & 0xff
            and machine["PARTIAL"] == (8 if reason == Exit.MAKE else 0))

def test_what_is_read_must_have_been_written() -> None:
  machine, records = Machine(), new()
  machine["ACTIVE"] = 0x0f
  first = records.written([0], [1])
  last = records.written([1], [], all_lanes=True)
  records.python()
  records.done()
  machine.masks[0] = 0x07
  assert machine.run(records) == (Exit.UNWRITTEN, first) and machine.masks[1] == 0
  machine.masks[0] = 0x0f
  assert machine.run(records) == (Exit.UNWRITTEN, last) and machine.masks[1] == 0x0f
  machine.masks[1] = 0xff
  assert machine.run(records)[0] == Exit.PYTHON

RUNNING, MASK, GUARDED = 0, 8, 16   # places in the state

@pytest.mark.parametrize("mask,inverted", [(0x0f, 0), (0xf0, 0xffffffff), (0xff, 0), (0, 0)])
def test_guards_choose_lanes(mask: int, inverted: int) -> None:
  machine, records = Machine(), new()
  machine.state[0], machine.state[1], machine.masks[1] = 0x3f, mask | 0xabc000, 0x3f
  records.guard(Lanes(MASK, inverted, RUNNING, 1), GUARDED)
  records.python()
  records.done()
  expected = (mask ^ inverted) & 0x3f
  assert machine.run(records)[0] == Exit.PYTHON
  assert (machine["ACTIVE"], machine["PARTIAL"], machine.state[2]) == (expected, 8, expected), "never all of 0xff"

def test_a_guard_that_nothing_has_written() -> None:
  machine, records = Machine(), new()
  machine.state[0], machine.masks[0] = 0x3f, 0x1f
  first = records.guard(Lanes(MASK, 0, RUNNING, 0), GUARDED)
  records.done()
  assert machine.run(records) == (Exit.UNWRITTEN, first)
  records = new()
  records.branch(Lanes(MASK, 0, RUNNING, 0))
  records.done()
  assert machine.run(records) == (Exit.UNWRITTEN, 0)

@pytest.mark.parametrize("mask,inverted,way", [(0x3f, 0, 0), (0xff, 0, 0), (0xc0, 0, 1), (0x01, 0, None),
                                               (0x3f, 0xffffffff, 1)])
def test_branches_of_all_lanes_or_none(mask: int, inverted: int, way: int | None) -> None:
  machine, records = Machine(), new()
  machine.state[0], machine.state[1], machine.masks[1] = 0x3f, mask, 0xff
  at = records.branch(Lanes(MASK, inverted, RUNNING, 1))
  ends = [records.link(), records.link()]
  records.choose(at, *ends)
  records.done()
  assert machine.run(records) == ((Exit.PYTHON, at) if way is None else (Exit.LINK, ends[way]))
