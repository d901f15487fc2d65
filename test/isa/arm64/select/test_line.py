"""Lines of AArch64 with named registers."""
from tinyhw.isa.arm64.asm.syntax import show
from tinyhw.isa.arm64.select.line import line
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Reg

def test_a_letter_chooses_the_part_of_a_register() -> None:
  made = line("fmov s%d, w%a").made({"a": Reg(regs.X, 1), "d": Reg(regs.V, 2)}, None)
  assert show(made) == "fmov %2:v, %1:x" and line("fmov s%d, w%a") is line("fmov s%d, w%a")
