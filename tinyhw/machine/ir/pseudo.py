"""Rows that every target has: what the machine passes themselves put into code, until `moves.expand` turns them into
the target's instructions.

`copy dst, src` is one value in a second register; selection may use it too. `spill value, slot` and
`reload value, slot` go to and from a byte offset in the stack frame. `parallel dst, src, dst, src, ...` are copies that
happen at once; `moves.sequence` makes them copies and `swap a, b`.
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Access, Inst, MInst, Operand, Reg, RegClass
from tinyhw.once import once

PSEUDO = "pseudo"  # the `encoding` of these rows

PARALLEL = Inst("parallel", PSEUDO, ())  # operands: physical registers; arguments[0]: physical registers of one unit
                                         # that are free meanwhile

@once
def copy_row(cls: RegClass) -> Inst:
  return Inst("copy", PSEUDO, (Operand("dst", Access.WRITE, cls), Operand("src", Access.READ, cls)))

@once
def swap_row(cls: RegClass) -> Inst:
  return Inst("swap", PSEUDO, (Operand("a", Access.BOTH, cls), Operand("b", Access.BOTH, cls)))

@once
def spill_row(cls: RegClass) -> Inst:
  return Inst("spill", PSEUDO, (Operand("value", Access.READ, cls), Operand("slot", Access.READ, kind="slot")))

@once
def reload_row(cls: RegClass) -> Inst:
  return Inst("reload", PSEUDO, (Operand("value", Access.WRITE, cls), Operand("slot", Access.READ, kind="slot")))

def copy(dst: Reg, src: Reg) -> MInst:
  """dst = src; a selector's way to say that a value is wanted in a second register.

  Costs nothing where the two can share one.
  """
  return MInst(copy_row(dst.cls), [dst, src])
