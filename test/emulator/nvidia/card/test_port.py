"""Memory as blocks see it: page faults, uninitialised memory, stale lines in caches."""
import pytest

from tinyhw.emulator.errors import PageFault, StaleRead, UninitialisedRead
from tinyhw.emulator.memory.cache import Coherence
from tinyhw.emulator.memory.memory import ENGINE, INSTRUCTION, SCALAR, VECTOR, AccessKind, Scope, AccessUnit
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import Physical
from tinyhw.emulator.nvidia.card.port import Caches, Port

BASE = 1 << 21

@pytest.fixture
def parts():
  physical, table, coherence = Physical(), PageTable(), Coherence()
  frames = physical.allocate(8192, cleared=False)
  table.map(Range(BASE, frames, 0, 4096, True, True, False, False, "first"))
  table.map(Range(BASE + 4096, frames, 4096, 4096, True, True, False, False, "second"))
  yield table, coherence
  for start in list(table.starts): table.unmap(start)
  physical.free(frames)
  physical.close()

def test_what_nothing_has_written_is_told(parts) -> None:
  port = Port(*parts, "a block")
  with pytest.raises(UninitialisedRead, match="a block reads 4 bytes at 0x200000"): port.load(BASE, 4)
  port.store(BASE + 4094, b"abcd")
  assert port.load(BASE + 4094, 4) == b"abcd", "across two ranges"
  with pytest.raises(PageFault): port.load(BASE + 8192, 4)
  with pytest.raises(PageFault): port.store(BASE + 8190, b"abcd")
  with pytest.raises(UninitialisedRead): port.load(BASE + 8190, 2)

def test_caches_keep_what_was_there_until_they_are_told(parts) -> None:
  caches = Caches("GPU 0")
  one, two, engine = Port(*parts, "block 1", caches, 1), Port(*parts, "block 2", caches, 2), Port(*parts, "a copy")
  engine.store(BASE, b"old!", ENGINE)
  for kind, said, unit in ((VECTOR, "L1 cache of multiprocessor 1 of GPU 0 was not invalidated since; set global_data",
                            AccessUnit.VECTOR),
                           (SCALAR, "constant cache .* set constant", AccessUnit.SCALAR),
                           (INSTRUCTION, "instruction cache", AccessUnit.INSTRUCTION)):
    assert one.load(BASE, 4, kind) == b"old!"
    engine.store(BASE, b"new!", ENGINE)
    with pytest.raises(StaleRead, match=said): one.load(BASE, 4, kind)
    caches.forget(unit)
    assert one.load(BASE, 4, kind) == b"new!"
    engine.store(BASE, b"old!", ENGINE)
    caches.forget(unit)
  one.load(BASE, 4)
  two.store(BASE, b"mine")
  assert one.load(BASE, 4, AccessKind(AccessUnit.VECTOR, Scope.DEVICE)) == b"mine", ("loads of the device's scope "
                                                                                     "pass by the L1")
  assert two.load(BASE, 4) == b"mine", "its own"
  with pytest.raises(StaleRead): one.load(BASE, 4)

def test_atomics_and_copies(parts) -> None:
  port = Port(*parts, "a block", Caches("GPU 0"), 0)
  port.store(BASE, (5).to_bytes(4, "little"))
  assert (port.atomic(BASE, 4, lambda old: old + 7) == 5
          and port.load(BASE, 4, AccessKind(AccessUnit.VECTOR, Scope.DEVICE))
          == (12).to_bytes(4, "little"))
  port.copy(BASE, BASE + 4000, 200)
  with pytest.raises(UninitialisedRead): port.load(BASE + 4100, 4)
  port.scatter([BASE, BASE + 8], [b"ab", b"cd"])
  port.invalidate(VECTOR)
  assert port.gather([BASE + 8, BASE], 2) == [b"cd", b"ab"]
