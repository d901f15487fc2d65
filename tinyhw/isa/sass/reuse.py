"""Marks sources for the reuse cache: what the next instruction reads at the same place is kept for it, and not read again from its bank.

A bank of registers gives two of them a cycle, so of instructions with three sources in one bank, that begin with the same factor, all but the first
one are faster. Only registers of 32 bits on the pipes of integers and floats, of instructions that stand next to each other in a block, are always
executed, do not write what they keep, and need not be waited for. Input and output are scheduled lines; nothing moves. Cost: one walk.
"""
from __future__ import annotations

from tinyhw.isa.sass import regs
from tinyhw.isa.sass.branch import BRANCH
from tinyhw.isa.sass.control import Control
from tinyhw.isa.sass.form import Form
from tinyhw.machine.inst import MInst, Reg

PIPES = frozenset({"alu", "fma"})

def sources(inst: MInst) -> dict[int, int]:
  """The registers that an instruction could keep, by the bit of their place in Control.reuse."""
  if inst.row.encoding is BRANCH or inst.row.pipe not in PIPES: return {}
  form: Form = inst.row.isa
  found: dict[int, int] = {}
  for spec, value in zip(form.specs, inst.operands):
    if spec.name == "guard" and value != regs.PT: return {}
    if spec.reuse < 0 or not isinstance(value, Reg) or value.cls is not regs.R[1] or value.index in (None, regs.ZERO): continue
    found[spec.reuse] = value.index or 0
  return found

def mark_reuse(lines: list[tuple[MInst, Control]]) -> list[tuple[MInst, Control]]:
  """The lines of a block with their marks."""
  out = list(lines)
  following: dict[int, int] = {}
  for at in range(len(out) - 1, -1, -1):
    inst, control = out[at]
    own = sources(inst)
    written = {r.index + k for r in inst.writes() if r.cls.bank is regs.VECTOR and r.index is not None for k in range(r.cls.units)} if own else set()
    marks = sum(1 << bit for bit, index in own.items() if following.get(bit) == index and index not in written)
    if marks: out[at] = inst, control._replace(reuse=marks)
    following = own if not control.wait else {}
  return out
