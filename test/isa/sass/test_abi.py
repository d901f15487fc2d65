"""Where arguments begin, as compiled code of NVIDIA's own assembler has it."""
from tinyhw.isa.sass.abi import ABI
from tinyhw.isa.sass.capabilities import CARDS

def test_constant_bank() -> None:
  assert set(ABI) == set(CARDS)
  assert (ABI["sm_80"].arguments, ABI["sm_90"].arguments) == (0x160, 0x210)
  assert (ABI["sm_89"].descriptor, ABI["sm_90"].descriptor, ABI["sm_90"].shared) == (0x118, 0x208, 1024)
