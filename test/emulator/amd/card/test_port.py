"""tinyhw/emulator/amd/card/port.py: the caches of an access, by unit, scope and generation; bounds of ranges;
uninitialised memory."""
import pytest

from tinyhw.emulator.amd.card.port import Port, Xcc
from tinyhw.emulator.checks.races import Races
from tinyhw.emulator.errors import DataRace, PageFault, StaleRead, UninitialisedRead
from tinyhw.emulator.memory.cache import Coherence
from tinyhw.emulator.memory.memory import ENGINE, INSTRUCTION, SCALAR, VECTOR, AccessKind, Scope, AccessUnit
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import PAGE, Frames, Physical

BASE = 0x10000
GROUP, DEVICE, SYSTEM = (AccessKind(AccessUnit.VECTOR, scope) for scope in (Scope.GROUP, Scope.DEVICE, Scope.SYSTEM))

class Card:
  """A page table with three pages (the second one uncached, the third one of another buffer) and one or two XCCs."""
  def __init__(self, packets: int = 10, array_units: int = 2, xccs: int = 1, strict: bool = True,
               executable: bool = True):
    self.table, self.coherence = PageTable(), Coherence() if strict else None
    for i in range(3):
      frames = Frames(i * PAGE, PAGE, memoryview(bytearray(PAGE)))
      self.table.map(Range(BASE + i * PAGE, frames, 0, PAGE, i != 2, executable, i == 1, False, f"page {i}"))
    self.xccs = [Xcc(i, packets, array_units) for i in range(xccs)]
    self.engine = Port(self.table, self.coherence, "an engine")

  def wave(self, unit: int = 0, xcc: int = 0) -> Port:
    return Port(self.table, self.coherence, f"a wave on unit {unit}", self.xccs[xcc], unit, shared=len(self.xccs) > 1)

def names(card: Card, kind: AccessKind, uncached: bool = False) -> list[str]:
  return [cache.name.split(" cache")[0].removeprefix("the ") for cache in card.wave()._caches(kind, uncached)]

@pytest.mark.parametrize("kind,gfx11,gfx12,gfx942", [
  (VECTOR, "vector GL1 L2", "vector L2", "vector L2"), (GROUP, "GL1 L2", "L2", "L2"), (DEVICE, "L2", "L2", ""),
  (SYSTEM, "", "", ""),
  (SCALAR, "scalar GL1 L2", "scalar L2", "scalar L2"),
  (INSTRUCTION, "instruction GL1 L2", "instruction L2", "instruction L2"), (ENGINE, "", "", "")])
def test_caches_that_a_read_meets(kind: AccessKind, gfx11: str, gfx12: str, gfx942: str) -> None:
  cards = Card(), Card(array_units=0), Card(packets=9, array_units=0, xccs=2)
  assert [names(card, kind) for card in cards] == [gfx11.split(), gfx12.split(), gfx942.split()]
  assert names(cards[0], kind, uncached=True) == [name for name in gfx11.split() if name != "L2"]

def test_a_unit_sees_its_own_writes_and_another_one_not() -> None:
  card = Card()
  mine, other = card.wave(0), card.wave(1)
  for port in (mine, other): port.load(BASE, 4)
  mine.store(BASE, b"new!")
  assert mine.load(BASE, 4) == b"new!"
  with pytest.raises(StaleRead, match="vector cache of compute unit 1.*GLV_INV"): other.load(BASE, 4)
  assert other.load(BASE, 4, DEVICE) == b"new!"
  other.invalidate(AccessKind(AccessUnit.VECTOR, Scope.DEVICE))
  assert other.load(BASE, 4) == b"new!"

def test_the_units_of_a_shader_array_share_a_cache_that_others_do_not_update() -> None:
  card = Card()
  reader, writer, neighbour = card.wave(0), card.wave(2), card.wave(1)
  reader.load(BASE, 4)
  writer.store(BASE, b"new!")
  with pytest.raises(StaleRead, match="GL1 cache of shader array 0.*GL1_INV"): neighbour.load(BASE, 4)
  neighbour.invalidate(AccessKind(AccessUnit.VECTOR, Scope.DEVICE))
  assert neighbour.load(BASE, 4) == b"new!" == card.wave(3).load(BASE, 4)

def test_writes_reach_other_xccs_after_a_write_back() -> None:
  card = Card(packets=9, array_units=0, xccs=2)
  first, second = card.wave(xcc=0), card.wave(xcc=1)
  first.store(BASE, b"new!")
  with pytest.raises(StaleRead, match="L2 cache of XCC 0 has not written it back; add TC_WB"): second.load(BASE, 4)
  first.write_back(AccessKind(AccessUnit.VECTOR, Scope.DEVICE))
  assert second.load(BASE, 4) == b"new!"
  first.store(BASE + 256, b"thru", DEVICE)
  assert second.load(BASE + 256, 4) == b"thru"

def test_uncached_memory_needs_no_write_back() -> None:
  card = Card()
  card.wave().store(BASE + PAGE, b"new!")
  assert card.engine.load(BASE + PAGE, 4) == b"new!"
  card.wave().store(BASE, b"new!")
  with pytest.raises(StaleRead, match="GL2_WB"): card.engine.load(BASE, 4)

def test_scalar_loads_have_a_cache_of_their_own() -> None:
  card = Card()
  wave = card.wave()
  wave.load(BASE, 4, SCALAR)
  wave.store(BASE, b"new!")
  with pytest.raises(StaleRead, match="scalar cache.*GLK_INV"): wave.load(BASE, 4, SCALAR)
  wave.invalidate(SCALAR)
  assert wave.load(BASE, 4, SCALAR) == b"new!"

def test_atomics_are_done_in_the_l2() -> None:
  card = Card()
  for unit in (0, 1): assert card.wave(unit).atomic(BASE, 4, lambda word: word + 3) == 3 * unit
  assert card.wave(2).load(BASE, 4) == b"\6\0\0\0"
  assert card.wave(2).atomic(BASE + 8, 8, lambda word: word - 1) == 0 and card.wave(3).load(BASE + 8, 8) == b"\xff" * 8

def test_accesses_go_over_the_ends_of_ranges() -> None:
  card = Card(strict=False)
  card.engine.store(BASE + PAGE - 2, b"abcd")
  assert card.engine.load(BASE + PAGE - 2, 4) == b"abcd" and card.engine.load(BASE + PAGE, 2) == b"cd"
  with pytest.raises(PageFault, match="read only"): card.engine.store(BASE + 2 * PAGE - 2, b"wxyz")
  assert card.engine.load(BASE + 2 * PAGE - 2, 2) == bytes(2)
  with pytest.raises(PageFault, match=f"{BASE + 3 * PAGE:#x}"): card.engine.load(BASE + 3 * PAGE - 2, 4)

def test_code_is_fetched_from_executable_pages() -> None:
  with pytest.raises(PageFault, match="not executable"): Card(executable=False).wave().load(BASE, 4, INSTRUCTION)

@pytest.mark.parametrize("strict", [True, False])
def test_gather_and_scatter_do_what_loads_and_stores_do(strict: bool) -> None:
  card = Card(strict=strict)
  wave = card.wave()
  for step in (4, 8, 0, -4):
    addresses = [BASE + 512 + step * i for i in range(32)]
    data = [bytes([i, 0, step & 255, 1]) for i in range(32)]
    wave.scatter(addresses, data)
    wanted = {address: value for address, value in zip(addresses, data)}
    assert wave.gather(addresses, 4) == [wanted[address] for address in addresses]
  assert wave.gather([], 4) == []
  with pytest.raises(PageFault): wave.gather([BASE, BASE + 3 * PAGE], 4)

@pytest.mark.parametrize("step", [8, 136, -12])
def test_a_gather_finds_what_its_loads_find(step: int) -> None:
  """Also if all lanes were plain before."""
  for stale in (0, 7, 15):
    card = Card()
    wave, places = card.wave(), [BASE + 2100 + step * i for i in range(16)]
    first = [wave.gather(places, 4) for _ in range(3)]
    assert first == [[bytes(4)] * 16] * 3
    card.engine.store(places[stale] + 2, b"x")
    with pytest.raises(StaleRead, match=f"{places[stale] + 2:#x}"): wave.gather(places, 4)
    wave.invalidate(DEVICE)
    wave.invalidate(SYSTEM)
    assert wave.gather(places, 4)[stale] == b"\0\0x\0" == wave.gather(places, 4)[stale]

def test_a_gather_beside_what_is_stale() -> None:
  card = Card()
  wave = card.wave()
  for _ in range(2): wave.gather([BASE, BASE + 8, BASE + 16], 4)
  card.engine.store(BASE + 4, b"new!")
  assert wave.gather([BASE, BASE + 8, BASE + 16], 4) == [bytes(4)] * 3

def test_gathers_race_as_loads_do() -> None:
  card = Card()
  one, two, places = card.wave(), card.wave(), [BASE, BASE + 8, BASE + 16]
  for port, group in ((one, 1), (two, 2)): port.races, port.mark = Races() if group == 1 else one.races, group
  for _ in range(3):
    for port in (one, two): port.gather(places, 4)
  with pytest.raises(DataRace, match="more than one workgroup"): one.store(BASE + 8, b"mine")
  one.store(BASE + 100, b"mine")
  for port in (two, two):
    with pytest.raises(DataRace, match="workgroup number 0"): port.gather([BASE + 100, BASE + 92, BASE], 4)

def test_a_range_that_was_unmapped_is_not_remembered() -> None:
  card = Card()
  card.engine.load(BASE, 4)
  card.table.unmap(BASE)
  with pytest.raises(PageFault): card.engine.load(BASE, 4)

def test_a_copy_of_memory_that_nothing_wrote_is_that_too() -> None:
  physical, table = Physical(), PageTable()
  for i, cleared in enumerate((False, False, True)):
    table.map(Range(BASE + 4 * i * PAGE, physical.allocate(PAGE, cleared), 0, PAGE, True, False, False, False, "VRAM"))
  port = Port(table, Coherence(), "an engine")
  port.store(BASE + 4, b"abcd")
  port.copy(BASE, BASE + 4 * PAGE + 8, 64)
  assert port.load(BASE + 4 * PAGE + 12, 4) == b"abcd"
  with pytest.raises(UninitialisedRead): port.load(BASE + 4 * PAGE + 10, 4)
  port.copy(BASE + 8 * PAGE, BASE + 4 * PAGE, 64)
  assert port.load(BASE + 4 * PAGE + 10, 4) == bytes(4)
  with pytest.raises(PageFault): port.copy(BASE + PAGE - 4, BASE, 8)

def test_memory_that_nothing_wrote() -> None:
  physical, table = Physical(), PageTable()
  frames = physical.allocate(PAGE, cleared=False)
  table.map(Range(BASE, frames, 0, PAGE, True, False, False, False, "new VRAM"))
  port = Port(table, Coherence(), "a wave")
  port.store(BASE + 4, b"abcd")
  assert port.load(BASE + 4, 4) == b"abcd"
  with pytest.raises(UninitialisedRead, match=r"a wave reads 8 bytes at 0x10000 \(in .* of new VRAM\) that nothing "
                     r"has written"):
    port.load(BASE, 8)
  with pytest.raises(UninitialisedRead): port.atomic(BASE + 16, 4, lambda word: word)
