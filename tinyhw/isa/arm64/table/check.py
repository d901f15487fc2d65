"""Operands whose combination the architecture leaves unpredictable, so that the processor may do anything.

GNU as accepts some of them with a warning; here they are errors. Source: DDI 0487, "CONSTRAINED UNPREDICTABLE" of each
instruction, and appendix K1.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.isa.arm64.table import regs
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.ir.inst import Effect, Reg

CHECKED = {"back", "pair", "status"}  # the properties of lines whose rows have such operands

def unpredictable(form: WordForm, operands: Sequence[Any]) -> str:
  """The reason why the operands do not go together, or ""."""
  words = form.words
  general = [r for r in operands if isinstance(r, Reg) and r.cls.bank is regs.GENERAL]
  data = [r for r in operands[:-1] if isinstance(r, Reg)] if "pair" in words else []
  row = form.row
  load = row is not None and bool(row.effects & Effect.LOAD)
  if "pair" in words and load and len(data) > 1 and data[0] == data[1] and data[0] is not regs.XZR:
    return f"both results would be in {data[0]}"
  if "back" in words:
    base = next(r for r in reversed(general))
    if base.index != regs.STACK and base in general[:-1]:
      return f"the base {base} is written back, so it cannot hold data too"
  if "status" in words and general[0] in general[1:]:
    return f"the status is written to {general[0]}, so that can be neither data nor address"
  return ""
