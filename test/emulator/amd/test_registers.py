"""tinyhw/emulator/amd/registers.py: the parameters of a dispatch for its waves."""
from tinyhw.emulator.amd.registers import DispatchRegisters

def test_a_dispatch_describes_itself() -> None:
  registers = DispatchRegisters("gfx1100", 0x10000, 32, 24, 106, (64, 1, 1), (8, 1, 1), lds_bytes=512)
  assert (registers.describe() == "kernel at 0x10000 (gfx1100, groups (8, 1, 1) of (64, 1, 1), 24 VGPRs, 512 bytes of "
          "LDS)")
