"""Names and banks of registers."""
from tinyhw.isa.x86.table import regs

def test_names() -> None:
  names = regs.by_name()
  assert len(names) == 4 * 16 + 3 * 32 + 8 + 8 + 1
  assert all(repr(register) == name for name, register in names.items())
  assert names["ymm17"] == regs.reg(regs.YMM, 17) and names["r11d"] is regs.reg(regs.R32, 11)

def test_what_may_be_allocated() -> None:
  assert 4 not in regs.GPR.allocatable and len(set(regs.GPR.allocatable)) == 15  # rsp
  assert 0 not in regs.MASK.allocatable  # k0 means "no mask"
  assert regs.XMM.bank is regs.YMM.bank is regs.ZMM.bank
