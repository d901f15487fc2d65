"""tinyhw/emulator/checks/races.py: accesses that race between workgroups, and accesses that do not."""
from collections.abc import Callable, Iterator

import pytest

from test.support.amd.virtual import DEVICE_MEMORY, PAGE, Group, Program, kernels, split
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.checks.races import Races, SharedRaces, mark
from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.memory.memory import AccessKind, MemoryInterface, Scope, AccessUnit
from tinyhw.emulator.memory.pages import Range
from tinyhw.emulator.memory.physical import Frames

BASE = 0x10000

class Bytes:
  """Two pages, and accesses of workgroups to them."""
  def __init__(self) -> None:
    self.entry = Range(BASE, Frames(0, 2 * PAGE, memoryview(bytearray(2 * PAGE))), 0, 2 * PAGE, True, False, False,
                       False, "a buffer")
    self.races = Races()

  def read(self, group: int, offset: int, size: int = 4) -> None:
    self.races.read(self.entry, offset, size, mark(group), f"group {group}")

  def write(self, group: int, offset: int, data: bytes, atomic: bool = False) -> None:
    self.races.write(self.entry, offset, data, mark(group), f"group {group}", atomic)
    self.entry.view[offset:offset + len(data)] = data

def test_reading_what_another_one_writes() -> None:
  it = Bytes()
  it.write(1, PAGE - 2, b"abcd")
  it.read(1, PAGE - 2)
  it.read(2, PAGE - 4, 2)
  with pytest.raises(DataRace, match=f"group 2 reads {BASE + PAGE:#x} .*, which workgroup number 1 of the same "
                     f"dispatch writes"):
    it.read(2, PAGE)

def test_writing_what_others_read() -> None:
  it = Bytes()
  it.read(1, 8)
  it.write(1, 8, b"mine")
  it.read(2, 12)
  with pytest.raises(DataRace, match="which workgroup number 2 of the same dispatch reads"): it.write(1, 10, b"mine!!")
  it.read(3, 12)
  with pytest.raises(DataRace, match="more than one workgroup of the same dispatch reads"): it.write(2, 12, b"2")

def test_two_writes_race_unless_they_write_the_same() -> None:
  it = Bytes()
  it.write(1, 0, b"same")
  it.write(2, 2, b"me, and more")
  with pytest.raises(DataRace, match="which workgroup number 2 of the same dispatch writes"):
    it.write(1, 4, b"not the same")

def test_atomics_race_with_others_only() -> None:
  it = Bytes()
  for group in (1, 2, 3): it.write(group, 0, bytes([group, 0, 0, 0]), atomic=True)
  with pytest.raises(DataRace, match="an atomic operation of another workgroup"): it.read(1, 0)
  with pytest.raises(DataRace, match="an atomic operation"): it.write(4, 0, b"plain")

def test_groups_that_do_not_meet() -> None:
  it = Bytes()
  for group in range(64):
    it.read(group, 64 * group, 64)
    it.write(group, 64 * group, bytes([group]) * 64)

def test_the_xccs_of_a_dispatch_share_what_they_know() -> None:
  shared = SharedRaces(3)
  first = [shared.begin(part, 0) for part in range(3)]
  assert first[0] is first[1] is first[2] is not shared.begin(0, 1) and shared.begin(1, 1) is shared.begin(0, 1)
  assert list(shared.open) == [0, 1] and shared.begin(2, 2) and list(shared.open) == [1, 2]

@pytest.mark.parametrize("card", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "one after the other"])
def test_dispatches_that_nothing_orders(card: str, waits: bool) -> None:
  program = Program(card)
  def kernel(value: int) -> Callable[[MemoryInterface, DispatchRegisters, Group], Iterator[None]]:
    def run(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
      yield
      memory.store((registers.user_data[0] | registers.user_data[1] << 32) + 4 * group[0], bytes([value] * 4))
    return run
  kernels(program.computer, {0x1000: kernel(1), 0x2000: kernel(2)})
  data, queue = program.allocate(PAGE, DEVICE_MEMORY), program.queue()
  first, second = (program.kernel_registers(code=code, user_data=split(data.address)) + program.dispatch(4)
                   for code in (0x1000, 0x2000))
  queue.submit(first, program.partial_flush() if waits else [], second)
  if waits: return program.settle()
  with pytest.raises(DataRace, match=r"workgroup number \d of the kernel at 0x[12]000 .*, for which the command "
                     r"processor has not waited, writes"):
    program.settle()

DEVICE = AccessKind(AccessUnit.VECTOR, Scope.DEVICE)
RACY: dict[str, tuple[bool, Callable[[MemoryInterface, int, int], None]]] = {
  "the neighbour's word": (True, lambda memory, data,
                           group: (memory.store(data + 4 * group, b"mine"), memory.load(data + 4 * (group ^ 1), 4))),
  "the device's scope": (False, lambda memory, data, group: (memory.store(data + 4 * group, b"mine", DEVICE),
                                                             memory.load(data + 4 * (group ^ 1), 4, DEVICE))),
  "a common word": (True, lambda memory, data, group: memory.store(data, bytes([group + 1, 0, 0, 0]))),
  "a common value": (False, lambda memory, data, group: memory.store(data, b"same")),
  "a counter": (False, lambda memory, data, group: memory.atomic(data, 4, lambda word: word + 1)),
}

@pytest.mark.parametrize("card", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("name", RACY)
def test_kernels(card: str, name: str) -> None:
  program = Program(card)
  races, act = RACY[name]
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    yield
    act(memory, registers.user_data[0] | registers.user_data[1] << 32, group[0])
  kernels(program.computer, {0x1000: kernel})
  data, queue = program.allocate(PAGE, DEVICE_MEMORY), program.queue()
  data.mapping.copyin(0, bytes(PAGE))
  program.gpu.host_writes.flush()
  queue.submit(program.kernel_registers(user_data=split(data.address)), program.dispatch(16))
  if races:
    with pytest.raises(DataRace, match="of the same dispatch"): program.settle()
  else: program.settle()

def test_what_rivals_have_left_alone() -> None:
  """Windows of translated code cover only bytes that rivals have not written."""
  one, other = Bytes(), Bytes()
  one.races.rivals.append(other.races)
  base = one.entry.frames.physical + one.entry.offset
  assert one.races.changes() == 0 and one.races.unchanged(base, base, base + 2 * PAGE) == (base, base + 2 * PAGE)
  other.write(5, PAGE, b"abcd")
  assert one.races.changes() == 1
  assert one.races.unchanged(base + 8, base, base + 2 * PAGE) == (base, base + PAGE)
  assert one.races.unchanged(base + PAGE, base, base + 2 * PAGE) == (0, 0)

def test_marks_stay_where_they_are() -> None:
  it = Bytes()
  places = it.races.addresses(0)
  it.write(1, 0, b"abcd")
  it.races.forget(it.entry.frames.physical, PAGE)
  assert (it.races.addresses(0) == places and it.races.touched(0, 0, PAGE, False) is None and it.races.changes() == 0
          and not it.races.changed)
