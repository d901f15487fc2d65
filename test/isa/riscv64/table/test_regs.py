"""Names and banks of RISC-V registers."""
from tinyhw.isa.riscv64.table import regs

def test_names_of_the_convention() -> None:
  """RISC-V ABIs Specification 1.0, table "Integer register convention" and "Floating-point register convention"."""
  assert [regs.X_NAMES[k] for k in (0, 1, 2, 5, 8, 9, 10, 17, 18, 27, 28, 31)] == [
    "zero", "ra", "sp", "t0", "s0", "s1", "a0", "a7", "s2", "s11", "t3", "t6"]
  assert [regs.F_NAMES[k] for k in (0, 7, 8, 9, 10, 17, 18, 27, 28, 31)] == [
    "ft0", "ft7", "fs0", "fs1", "fa0", "fa7", "fs2", "fs11", "ft8", "ft11"]
  assert len(regs.X_NAMES) == len(regs.F_NAMES) == 32 and regs.NUMBERS["fp"] == regs.NUMBERS["s0"] == ("x", 8)

def test_registers_with_a_use_of_their_own_are_not_allocated() -> None:
  """x0 is zero; ra, sp, gp and tp belong to calls, stack and threads; t6 and v31 to frames and exchanges."""
  assert set(range(32)) - set(regs.GENERAL.allocatable) == {0, 1, 2, 3, 4, 31}
  assert sorted(regs.FLOAT.allocatable) == list(range(32)) and sorted(regs.VECTOR.allocatable) == list(range(31))

def test_groups() -> None:
  assert str(regs.reg(regs.V3, 5)) == "v5*3" and regs.name("f", 10) == "fa0" and regs.name("v", 7) == "v7"
