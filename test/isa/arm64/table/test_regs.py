"""Names and classes of registers."""
import pytest

from tinyhw.isa.arm64.table import regs

@pytest.mark.parametrize("text,found", [
  ("x0", ("x", 0)), ("w30", ("w", 30)), ("wzr", ("w", 31)), ("sp", ("x", 32)), ("v31", ("v", 31)), ("p15", ("p", 15)),
  ("x31", None), ("v32", None), ("p16", None), ("x01", None), ("y1", None), ("x", None), ("", None)])
def test_names(text: str, found: tuple[str, int] | None) -> None:
  assert regs.parse(text) == found
  if found is not None: assert regs.name(*found) == text

def test_registers_are_one_object_and_print() -> None:
  assert regs.reg(regs.X, 32) is regs.SP and [str(r) for r in (regs.SP, regs.XZR, regs.reg(regs.V3, 30))] == ["sp",
      "xzr", "v30*3"]

def test_neither_zero_nor_stack_nor_platform_register_is_allocated() -> None:
  assert not {18, 29, 30, regs.ZERO, regs.STACK} & set(regs.GENERAL.allocatable)
