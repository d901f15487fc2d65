"""Lines of RISC-V with named registers."""
from tinyhw.isa.riscv64.asm.syntax import show
from tinyhw.isa.riscv64.select.line import line
from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.ir.inst import Block, Reg

def test_names_and_registers_of_the_line() -> None:
  made = line("bge x%b, x%a, .%t").made({"a": Reg(regs.X, 1), "b": Reg(regs.X, 2), "t": Block(3, name="loop")}, None)
  assert show(made) == "bge %2:x, %1:x, .loop3"
  assert line("sw zero, 8(x%p)").made({"p": Reg(regs.X, 1)}, None).operands[0] is regs.ZERO

def test_states() -> None:
  made = line("vadd.vv v%d, v%a, v%b @32x4m1")
  assert made.row.isa.state == "32x4m1" and line("vadd.vv v%d, v%a, v%b").row.isa.state == ""

def test_the_mask_is_a_value() -> None:
  made = line("vmerge.vvm v%d, v%b, v%a, v0").made({k: Reg(regs.V, n) for n, k in enumerate("dbam")}, None)
  assert show(made) == "vmerge.vvm %0:v, %1:v, %2:v, %3:v" and made.row.operands[3].fixed == 0
