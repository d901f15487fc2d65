"""Differences between GPUs: classes, splits of the cache."""
import pytest

from tinyhw.drivers.nvidia.chips import CHIPS, WITHOUT_CODE, chip_of, newest, shared_config, split
from tinyhw.emulator.nvidia import chips as virtual
from tinyhw.engine.run.backends import BACKENDS
from tinyhw.isa.sass.table.form import GENERATIONS

BY_NAME = {chip.arch: chip for chip in CHIPS}

def test_the_newest_known_class_decides() -> None:
  assert chip_of((0xC6C0, 0xCBC0, 0xC86F)) is BY_NAME["sm_90"] and chip_of((0xC5C0,)) is None
  assert newest((3, 2, 1), (1, 2)) == 2 and newest((3,), (1,)) is None

@pytest.mark.parametrize("name", virtual.CHIPS)
def test_virtual_cards_are_recognized(name: str) -> None:
  card = virtual.CHIPS[name]
  chip = chip_of(card.classes)
  assert (chip is BY_NAME[name] and chip.generation == card.generation and chip.warps == card.warps
          and chip.carve_outs[-1] == card.shared_kib)

def test_splits_hold_what_is_wanted() -> None:
  chip = BY_NAME["sm_90"]
  assert [split(chip, size << 10, blocks) for size, blocks in ((0, 4), (8, 1), (9, 1), (48, 2), (48, 4), (228, 1),
                                                               (227, 2))] == [
    0, 8, 16, 100, 196, 228, 228]
  assert [shared_config(chip, kib) for kib in (0, 32, 64, 100, 228)] == [1, 9, 0x11, 0x1A, 0x3A]

def test_what_nothing_compiles_for_is_known() -> None:
  assert {chip.arch for chip in CHIPS} - set(WITHOUT_CODE) <= set(BACKENDS) and not set(WITHOUT_CODE) & set(BACKENDS)

def test_each_has_an_assembler() -> None:
  assert {chip.arch for chip in CHIPS} - {"sm_86"} <= set(GENERATIONS) | {"sm_100", "sm_120"}
