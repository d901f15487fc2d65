"""Offsets of arguments, as in compiled code of NVIDIA's own assembler."""
import pytest

from tinyhw.drivers.nvidia.chips import CHIPS
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import CARDS

def test_constant_bank() -> None:
  assert set(ABI) == set(CARDS)
  assert (ABI["sm_80"].arguments, ABI["sm_90"].arguments) == (0x160, 0x210)
  assert (ABI["sm_80"].shared, ABI["sm_90"].shared) == (0, 1024)

@pytest.mark.parametrize("arch", ABI)
def test_kernels_and_the_driver_agree(arch: str) -> None:
  chip = next(chip for chip in CHIPS if chip.arch == arch)
  assert (chip.arguments, chip.reserved) == (ABI[arch].arguments, ABI[arch].shared)
