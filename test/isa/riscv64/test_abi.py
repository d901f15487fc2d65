"""The calling convention."""
from tinyhw.isa.riscv64 import abi
from tinyhw.isa.riscv64.table import regs

def test_registers_of_the_convention() -> None:
  """s0 to s11 and fs0 to fs11 are saved; the first arguments are a0 to a3."""
  assert {regs.X_NAMES[k] for k in abi.LP64D.saved} == {f"s{k}" for k in range(12)}
  assert {regs.F_NAMES[k] for k in abi.LP64D.saved_float} == {f"fs{k}" for k in range(12)}
  assert [regs.X_NAMES[k] for k in abi.LP64D.arguments] == ["a0", "a1", "a2", "a3"] and abi.LP64D.stack_align == 16
