"""Rows that every target has. The machine passes themselves insert them, until `moves.expand` replaces them by the
target's instructions.

- `copy dst, src` puts a value into a second register. Selection may use it too.
- `spill value, slot` and `reload value, slot` access a byte offset in the stack frame.
- `parallel dst, src, dst, src, ...` are copies that happen at once. `moves.sequence` converts them to copies and `swap
  a, b`.
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Access, Inst, MInst, Operand, Reg, RegClass
from tinyhw.threads import once

PSEUDO = "pseudo"  # the `encoding` of these rows

# operands: physical registers; arguments[0]: physical registers of one unit that are free during the copies
PARALLEL = Inst("parallel", PSEUDO, ())

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
  """Make the instruction dst = src, for a selector that needs a value in a second register.

  It costs nothing if the two can share one register.
  """
  return MInst(copy_row(dst.cls), [dst, src])
