"""The notation of RISC-V's operands."""
from __future__ import annotations

import pytest

from tinyhw.isa.riscv64.table import regs
from tinyhw.isa.riscv64.table.template import NOTATION
from tinyhw.machine.assembler.reader import TextReader, tokens
from tinyhw.machine.assembler.template import template_of
from tinyhw.machine.ir.inst import Access

WIDTHS = {"d": 5, "n": 5, "m": 5, "i": 12, "r": 3}

@pytest.mark.parametrize("text,full", [
  ("Xd=, <offset:i>[Xn]", "a0, -8(sp)"), ("Vd!+, Vm, Xn, v0.t", "v3, v4, a1, v0.t"), ("Fd=, Fmn", "fa0, fa1"),
  ("Fd=, Fn, Fm(, <rm:r>)", "fa0, fa1, fa2, rtz"), ("Vd*4/4=, <no:z>[Xn]", "v8, (a0)"),
  ("Vd=, Vm, Vn, v0", "v1, v2, v3, v0")])
def test_both_ways(text: str, full: str) -> None:
  template = template_of(text, WIDTHS, NOTATION)
  assert template.show(template.read(TextReader(tokens(full)))) == full

def test_marks_are_accesses() -> None:
  result, source, _, mask = template_of("Vd!+, Vm, Xn, v0.t", WIDTHS, NOTATION).holes
  assert (result.access, result.early, source.access, source.early) == (Access.BOTH, True, Access.READ, False)
  assert (mask.fixed, mask.cls) == (0, regs.V)

def test_the_usual_rounding_mode_is_left_out() -> None:
  template = template_of("Fd=, Fn(, <rm:r>)", WIDTHS, NOTATION)
  assert template.show(template.read(TextReader(tokens("fa0, fa1, dyn")))) == "fa0, fa1"

def test_a_register_needs_its_field() -> None:
  with pytest.raises(AssertionError, match="the word has no field q"): template_of("Xq", WIDTHS, NOTATION)
