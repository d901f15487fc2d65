"""tinyhw/emulator/memory/pages.py: look-ups and rights."""
import pytest

from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.pages import PageTable, Range
from tinyhw.emulator.memory.physical import PAGE, Frames

def entry(start: int, pages: int, writable: bool = True, executable: bool = False) -> Range:
  frames = Frames(start, pages * PAGE, memoryview(bytearray(pages * PAGE)))
  return Range(start, frames, 0, pages * PAGE, writable, executable, False, False, f"buffer {start:#x}")

def table(*ranges: Range) -> PageTable:
  made = PageTable()
  for item in ranges: made.map(item)
  return made

def test_addresses_are_found_in_their_range() -> None:
  made = table(entry(0x5000, 2), entry(0x1000, 1), entry(0x2000, 1))
  for address, start in ((0x1000, 0x1000), (0x1fff, 0x1000), (0x2000, 0x2000), (0x6fff, 0x5000)):
    found = made.find(address)
    assert found is not None and found.start == start
  assert all(made.find(address) is None for address in (0xfff, 0x3000, 0x4fff, 0x7000))
  made.unmap(0x2000)
  assert made.find(0x2000) is None and made.find(0x1000) is not None

@pytest.mark.parametrize("start,end,hit", [(0, 0x1000, False), (0, 0x1001, True), (0x1fff, 0x3000, True),
                                           (0x2000, 0x3000, False)])
def test_overlaps(start: int, end: int, hit: bool) -> None:
  assert (table(entry(0x1000, 1), entry(0x3000, 1)).overlaps(start, end) is not None) == hit

def test_rights() -> None:
  made = table(entry(0x1000, 1, writable=False, executable=True), entry(0x2000, 1))
  assert made.at(0x1000, execute=True).start == 0x1000 and made.at(0x2000, write=True).start == 0x2000
  with pytest.raises(PageFault, match="write to 0x1010: read only"): made.at(0x1010, write=True)
  with pytest.raises(PageFault, match="not executable"): made.at(0x2000, execute=True)
  with pytest.raises(PageFault, match="read of 0x3000: not present"): made.at(0x3000)

def test_an_address_among_the_ranges_in_words() -> None:
  made = table(entry(0x1000, 1), entry(0x8000, 1))
  assert made.nearest(0x2010) == ("0x10 bytes after the end of 0x1000..0x2000 rw of buffer 0x1000 and "
                                  "0x5ff0 bytes before 0x8000..0x9000 rw of buffer 0x8000")
  assert made.nearest(0x1004).startswith("in 0x1000") and PageTable().nearest(5) == "nothing is mapped"
