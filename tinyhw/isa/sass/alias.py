"""Names that the text has for special cases of an instruction: an IMAD that moves, shifts or adds is written so."""
from __future__ import annotations
from typing import Any

from tinyhw.isa.sass import regs
from tinyhw.isa.sass.form import Form
from tinyhw.machine.inst import Reg

WORDS = ("MOV", "SHL", "IADD")

def shown(words: list[str], form: Form, values: dict[str, Any]) -> list[str]:
  """The dotted words of an instruction, with the name of the special case that it is."""
  if "alias" not in form.properties: return words
  a, b, c = (values[name] for name in "abc")
  if any(isinstance(x, Reg) and x.cls.bank is regs.UNIFORM for x in (b, c)): return words
  immediate = form.specs[form.index["b"]].kind == "s"
  if a == regs.RZ or b == regs.RZ or b == 0 and immediate: return [words[0], "MOV", *words[1:]]
  if not immediate or b < 0: return words
  if b == 1: return [words[0], "IADD", *words[1:]]
  if c == regs.RZ and b.bit_count() == 1 and b != 0x10000: return [words[0], "SHL", *words[1:]]
  return words

def meant(words: list[str], form: Form) -> list[list[str]]:
  """What the dotted words of a text may mean: as they are, and without the name of a special case."""
  if "alias" in form.properties and words and words[0] in WORDS: return [words[1:]]
  return [words]
