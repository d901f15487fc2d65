"""Operands whose combination the V extension reserves: a result in the mask register, or in a register of a source
whose elements have another size.

Source: RISC-V Unprivileged ISA, version 20240411, chapter "V", sections "Vector Operands" and "Vector Masking".
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.ir.inst import Reg

CHECKED = {"masked", "apart", "apart1"}  # the properties of lines whose rows have such operands

def span(register: Reg) -> range:
  assert register.index is not None
  return range(register.index, register.index + register.cls.units)

def reserved(form: WordForm, operands: Sequence[Any]) -> str:
  """The reason why the operands do not go together, or "".

  masked: the result of this masked row is not v0. apart: it is not a register of a source; apart1: not
  the last source, which is narrower.
  """
  vectors = [r for r in operands if isinstance(r, Reg) and r.cls.bank is regs.VECTOR and r.index is not None]
  if not vectors: return ""
  masked = "v0" in form.text
  result, sources = vectors[0], vectors[1:-1] if masked else vectors[1:]
  if "masked" in form.words and 0 in span(result): return "the result is in v0, which is the mask"
  if "apart" in form.words and any(r.index in span(result) for r in sources):
    return f"the result {result} is also a source, whose elements are read after the first are written"
  if "apart1" in form.words and sources[-1].index in span(result):
    return f"the result {result} is also the narrower source"
  return ""
