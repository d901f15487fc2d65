"""Explain errors in an instruction over physical registers: the slow path after encode.py fails."""
from __future__ import annotations
from typing import Any

from tinyhw.isa.x86.table.form import Form
from tinyhw.isa.x86.table.regs import GPR, RIP_CLASS, VEC
from tinyhw.machine.ir.inst import Block, MInst, Operand, Reg

def complain(inst: MInst) -> str:
  """The reason why an instruction cannot be encoded: the first wrong operand, and the expected one."""
  form: Form = inst.row.isa
  found = problem(inst)
  return f"{form.key}: {found or 'no encoding has this combination of operands'}"

def problem(inst: MInst) -> str | None:
  """The first error, or None. Cost: 1 us an operand."""
  row, form = inst.row, inst.row.isa
  if len(inst.operands) != len(row.operands): return f"it has {len(row.operands)} operands, got {len(inst.operands)}"
  for i, (operand, value) in enumerate(zip(row.operands, inst.operands)):
    found = register_problem(operand, value) if operand.cls is not None else number_problem(form, operand, value)
    if found: return f"operand {i} ({operand.name}) {found}"
    if operand.cls is not None and value is not None and operand.cls.bank is VEC and value.index > 15:
      if any(e.space == "evex" for e in form.encodings): continue
      return f"operand {i} ({operand.name}) wants a register below 16, got {value}: no EVEX form exists"
  if form.mask >= 0 and inst.operands[form.mask].index == 0:
    return "k0 cannot be a mask: as a mask it means that there is none"
  return None

def register_problem(operand: Operand, value: Any) -> str | None:
  """The error in a register operand, or None."""
  cls = operand.cls
  assert cls is not None
  if value is None: return None if operand.optional else f"wants {cls.name}, got nothing"
  if not isinstance(value, Reg): return f"wants {cls.name}, got {value!r}"
  if value.index is None: return f"wants a physical {cls.name}, got {value}; allocate registers first"
  if operand.name == "base" and value.cls is RIP_CLASS: return None
  if value.cls is not cls: return f"wants {cls.name}, got {value}"
  if operand.fixed is not None and value.index != operand.fixed:
    return f"must be {cls.name_of(operand.fixed)}, got {value}"
  if operand.name == "index" and cls.bank is GPR and value.index == 4:
    return "cannot be rsp: the encoding uses it for \"no index\""
  return None

def number_problem(form: Form, operand: Operand, value: Any) -> str | None:
  """The error in an operand that is no register, or None."""
  if operand.kind == "rel" and isinstance(value, Block): return "is a block; only encode_function knows where it is"
  if not isinstance(value, int): return f"wants an integer, got {value!r}"
  if operand.kind == "scale": return None if value in (1, 2, 4, 8) else f"must be 1, 2, 4 or 8, got {value}"
  low, high = bounds(form, operand.kind)
  return None if low <= value <= high else f"must be in {low}..{high}, got {value}"

def bounds(form: Form, kind: str) -> tuple[int, int]:
  """The range of integers that an operand accepts, as signed and as unsigned numbers."""
  if kind in ("disp32", "rel"): return -1 << 31, (1 << 31) - 1  # ignores the few bytes of a jump's length
  bits = int(kind[1:])
  extends = any(e.imm_extends for e in form.encodings)
  return -1 << bits - 1, (1 << bits - extends) - 1

