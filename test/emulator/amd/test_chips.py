"""tinyhw/emulator/amd/chips.py: sizes of save areas, from real cards and from the kernel's formulas."""
import pytest

from tinyhw.emulator.amd.chips import CHIPS

def test_save_area_of_a_7900_xtx() -> None:
  """wave_num 3072; the sizes are those of a real card's queue dump."""
  chip = CHIPS["gfx1100"]
  assert (chip.wave_count, chip.control_stack_bytes, chip.save_bytes,
          chip.debug_bytes) == (3072, 0xA000, 0x2BEA000, 0x18000)
  assert chip.save_bytes + chip.debug_bytes == 0x2C02000

def test_save_area_of_an_xcc_of_an_mi300x() -> None:
  chip = CHIPS["gfx942"]
  assert chip.wave_count == 38 * 40 and chip.control_stack_bytes == 0x3000
  assert chip.save_bytes == 0x3000 + 38 * (0x80000 + 0x4000 + 0x10000 + 0x1000)

@pytest.mark.parametrize("name", CHIPS)
def test_rows_agree_with_themselves(name: str) -> None:
  chip = CHIPS[name]
  major, minor, stepping = chip.target_version // 10000, chip.target_version // 100 % 100, chip.target_version % 100
  assert chip.name == f"gfx{major}{minor}{stepping:x}" and chip.gc[0] == major == chip.generation
  assert chip.cus % (chip.engines * chip.arrays) in (0, chip.cus % chip.engines) and chip.sdma_engines > 0
