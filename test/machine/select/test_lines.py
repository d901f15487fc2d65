"""Lines of assembly with named registers, by the assembler of AArch64."""
import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.arm64.asm.syntax import show
from tinyhw.isa.arm64.select.line import line
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Block, Reg

def test_names_become_registers() -> None:
  a, b, old, new = (Reg(regs.V, k) for k in range(4))
  made = line("fmla v%d:c.4s, v%a.4s, v%b.s[1]").made({"a": a, "b": b, "c": old, "d": new}, None)
  assert show(made) == "fmla %3:v.4s, %0:v.4s, %1:v.s[1]" and made.ties == (old,)

def test_a_name_may_stand_twice_and_blocks_have_names() -> None:
  x, block = Reg(regs.X, 1), Block(3, name="loop")
  assert show(line("add x%d, x%a, x%a").made({"a": x, "d": Reg(regs.X, 2)}, None)) == "add %2:x, %1:x, %1:x"
  assert show(line("b.lt .%t").made({"t": block}, None, ([x],))) == "b.lt #.loop3"
  assert line("b .%t").classes == {} and line("fmov s%d, w%a").classes == {"d": regs.V, "a": regs.X}

def test_zero_and_numbers_stand_for_themselves() -> None:
  made = line("csel w%d, w%a, wzr, lo").made({"a": Reg(regs.X, 1), "d": Reg(regs.X, 2)}, None)
  assert made.operands[2] is regs.XZR and made.operands[3] == 3

def test_mistakes_are_found_at_the_first_use() -> None:
  with pytest.raises(AssertionError, match="are read and written"): line("fmla v%d.4s, v%a.4s, v%b.4s")
  with pytest.raises(ParseError, match="no instruction is called fmad4"): line("fmad4 s%d, s%a")
