"""The virtual cards have the features of their names."""
import pytest

from tinyhw.autogen.nvidia import methods, qmd
from tinyhw.emulator.nvidia.chips import CHIPS

@pytest.mark.parametrize("name, multiprocessors", [("sm_80", 108), ("sm_89", 128), ("sm_90", 132)])
def test_multiprocessors(name: str, multiprocessors: int) -> None: assert 2 * sum(CHIPS[name].gpcs) == multiprocessors

@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
def test_there_are_tables_for_each(chip) -> None:
  assert (methods.engines(chip.generation).compute.SEND_PCAS_A and qmd.layout(chip.generation).bytes
          and chip.compute in chip.classes)
