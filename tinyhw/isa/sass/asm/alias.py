"""Names in the text for special cases of an instruction: an IMAD that moves, shifts or adds has a name for that."""
from __future__ import annotations
from typing import Any

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.form import Form
from tinyhw.machine.ir.inst import Reg

MEANINGS = {"MOV": "one factor is zero, or 0x1 and nothing is added", "SHL": "the second source is a power of two and "
            "nothing is added",
            "IADD": "the second source is 0x1"}

def special_case(form: Form, values: dict[str, Any]) -> str:
  """Return the name of the special case that an instruction is, or ""."""
  if "alias" not in form.properties: return ""
  a, b, c = (values[name] for name in "abc")
  if any(isinstance(x, Reg) and x.cls.bank is regs.UNIFORM for x in (b, c)): return ""
  immediate = form.specs[form.index["b"]].kind == "s"
  if a == regs.RZ or b == regs.RZ or b == 0 and immediate: return "MOV"
  if not immediate or b < 0: return ""
  if b == 1: return "MOV" if c == regs.RZ else "IADD"
  return "SHL" if c == regs.RZ and b.bit_count() == 1 and b != 0x10000 else ""

def without(words: list[str], form: Form) -> tuple[str, list[str]]:
  """Split the dotted words of a text: the name of a special case, or "", and the other words."""
  if "alias" in form.properties and words and words[0] in MEANINGS: return words[0], words[1:]
  return "", words
