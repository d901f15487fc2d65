"""Remove copies between vector registers (machine/order/copies.py), and shorten fused multiply-adds.

A v_fma into its own addend becomes v_fmac, which is shorter and can be one of two operations in an instruction. Needs:
physical code without macros; before waits and hazards.
"""
from __future__ import annotations

from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Function, Inst, MInst
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order import copies
from tinyhw.machine.order.copies import within

def drop_copies(function: Function, target: Target) -> Function:
  """Remove copies that are not necessary."""
  copies.drop_copies(function, VECTOR_COPIES)
  row = table(target.table.generation.arch)["v_fmac_f32"]
  for block in function.blocks: block.insts = [accumulating(inst, row) for inst in block.insts]
  return function

def vector(operand: object) -> bool: return within(operand, regs.VGPR)

def copied(inst: MInst) -> tuple[int, int] | None:
  """The destination and source register of a plain copy; None for other instructions."""
  form: Form = inst.row.isa
  if form.key != "v_mov_b32" or not vector(inst.operands[1]) or not plain(inst): return None
  return inst.operands[0].index, inst.operands[1].index

def plain(inst: MInst) -> bool:
  """Whether an instruction has no modifiers."""
  form: Form = inst.row.isa
  return all(spec.show or value == spec.implied for spec, value in zip(form.specs, inst.operands))

VECTOR_COPIES = copies.Copies(regs.VGPR, copied, regs.reg)

def accumulating(inst: MInst, row: Inst) -> MInst:
  """Replace a v_fma whose sum stays in its register by v_fmac, if that has a short encoding."""
  if inst.row.name != "v_fma_f32" or not plain(inst): return inst
  d, a, b, c = inst.operands[:4]
  if c != d: return inst
  if not vector(b): a, b = b, a
  if not vector(b): return inst
  short = build(row, d, a, b)
  short.origin, short.comment = inst.origin, inst.comment
  return short
