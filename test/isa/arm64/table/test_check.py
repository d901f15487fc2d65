"""Operands that do not go together."""
import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.arm64.table.check import unpredictable
from tinyhw.isa.arm64.asm.syntax import assemble, parse

@pytest.mark.parametrize("text,reason", [
  ("ldr x0, [x0], #8", "the base x0 is written back"), ("str x1, [x1, #8]!", "the base x1 is written back"),
  ("ldp x0, x0, [x1]", "both results would be in x0"), ("ldp x0, x1, [x0], #16", "the base x0 is written back"),
  ("stxr w1, x2, [x1]", "the status is written to x1"), ("stxr w0, x0, [x1]", "the status is written to x0")])
def test_refused(text: str, reason: str) -> None:
  with pytest.raises(ParseError, match=reason): assemble(text)

@pytest.mark.parametrize("text", ["ldr x0, [sp], #8", "stp x0, x0, [x1]", "ldp xzr, xzr, [sp]", "ldr q1, [x1], #16",
                                  "stxr wzr, x0, [x1]", "stp x29, x30, [sp, #-16]!"])
def test_taken(text: str) -> None:
  inst = parse(text)
  assert unpredictable(inst.row.isa, inst.operands) == ""
