"""Templates: texts with holes, optional parts and repeated registers."""
import pytest

from tinyhw.isa.arm64.table import regs
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens
from tinyhw.isa.arm64.table.template import NOTATION
from tinyhw.machine.assembler.template import Template, template_of

WIDTHS = {"d": 5, "n": 5, "m": 5, "i": 9, "g": 3, "t": 2, "j": 4}

def read(template: Template, text: str) -> list[list[object]]: return template.read(TextReader(tokens(text)))

@pytest.mark.parametrize("text,full,short", [
  ("Xd=, [Xn|sp(, #<s:i>)]", "x1, [sp, #-3]", "x1, [sp]"), ("Zd.s=, Pg/m, Zd.s, Zn.s", "z1.s, p2/m, z1.s, z3.s", ""),
  ("Xd=(, <pattern:i>(, mul #<j+1>))", "x3, vl2, mul #7", "x3"), ("{ Vd.8h*2 }, [Xn|sp], #32",
                                                                  "{ v1.8h, v2.8h }, [x3], #32", ""),
  ("Xd*2+, Xd*2+1", "x4, x5", ""), ("Vd.s+[<i>], Vnm.s", "v0.s[3], v7.s", "")])
def test_both_ways(text: str, full: str, short: str) -> None:
  template = template_of(text, WIDTHS, NOTATION)
  for one in filter(None, (full, short)): assert template.show(read(template, one)) == one

@pytest.mark.parametrize("text,wrong,reason", [
  ("Zd.s=, Pg/m, Zd.s, Zn.s", "z1.s, p2/m, z2.s, z3.s", "operand 3 wants z1.s again, got z2.s"),
  ("Xd*2+, Xd*2+1", "x4, x6", "operand 2 wants x5, got x6"), ("Xd=, #0", "x0, #1", "operand 2 wants #0, got 1"),
  ("Xd=, Xn", "x0", "operand 1 wants a comma, got the end of the line"), ("Xd=", "x0, x1",
                                                                          "operand 1 wants the end of the line, got ,"),
  ("Xd=, [Xn|sp]", "x0, [x1", "operand 2 wants ], got the end of the line")])
def test_refusals(text: str, wrong: str, reason: str) -> None:
  with pytest.raises(TextMismatch) as caught: read(template_of(text, WIDTHS, NOTATION), wrong)
  assert caught.value.message == reason

def test_operands_of_a_text() -> None:
  template = template_of("Vd.4s+, Vn.4s, Vm.s[<i>]", {**WIDTHS, "i": 2}, NOTATION)
  assert read(template, "v1.4s, v2.4s, v3.s[3]") == [[regs.reg(regs.V, k)] for k in (1, 2, 3)] + [[3]]
  assert [hole.letters for hole in template.holes] == ["d", "n", "m", "i"]

def test_a_template_names_fields_of_the_word_and_kinds_of_numbers() -> None:
  with pytest.raises(AssertionError, match="the word has no field q"): template_of("Xq", WIDTHS, NOTATION)
  with pytest.raises(AssertionError, match="no number is called magic"): template_of("#<magic:i>", WIDTHS, NOTATION)
