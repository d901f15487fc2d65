"""Constant bank 0: every generation of launches has its numbers."""
from tinyhw.autogen.nvidia.bank import ARGUMENTS, RESERVED
from tinyhw.drivers.nvidia.chips import CHIPS

def test_every_generation_is_there() -> None:
  assert set(ARGUMENTS) == set(RESERVED) == {chip.generation for chip in CHIPS}
  assert all(number % 16 == 0 for number in ARGUMENTS.values()), "arguments of 8 bytes, and pairs of them"
