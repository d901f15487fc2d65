"""Jumps between blocks, before emission knows their distances. The machine passes invert, drop and move them."""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.table import Table, build
from tinyhw.machine.ir.inst import Access, Block, Effect, Inst, MInst, Operand

BRANCH = "branch"  # the `encoding` of these rows
_TO = Operand("to", Access.READ, kind="block")
JUMP = Inst("jump", BRANCH, (_TO,), "branch", Effect.JUMP | Effect.END)
_CONDITION = (Operand("predicate", Access.READ, regs.P), Operand("negated", Access.READ, kind="flag"))
JUMP_IF = Inst("jump_if", BRANCH, (_TO, *_CONDITION), "branch", Effect.JUMP)

def jump(block: Block) -> MInst: return MInst(JUMP, [block], None, ([],))

def invert(inst: MInst) -> MInst | None:
  """Return the conditional jump with the opposite condition."""
  if inst.row is not JUMP_IF: return None
  block, predicate, negated = inst.operands
  return MInst(JUMP_IF, [block, predicate, 1 - negated], inst.origin, inst.arguments)

def real(inst: MInst, distance: int, rows: Table) -> MInst:
  """Return the instruction of a jump. distance: bytes from its end to its block."""
  guard = {} if inst.row is JUMP else {"guard": inst.operands[1], "guard_not": inst.operands[2]}
  return build(rows["BRA/947"], regs.PT, distance, **guard)
