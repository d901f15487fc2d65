"""Mark sources for the reuse cache, so that the next instruction does not read the same register again from its bank.

A bank delivers two registers a cycle. So instructions with three sources in one bank that share their first factor are
faster, except for the first one. An operand is marked if the next instruction reads the same register at the same
source. Only 32-bit registers on the pipes of integers and floats are marked, under these conditions:
- the two instructions are adjacent in a block;
- both are always executed;
- the first one does not write the register;
- the second one waits for nothing.

Input and output are scheduled lines. Nothing moves. Cost: one walk.
"""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import Form
from tinyhw.machine.ir.inst import Inst, MInst, Reg
from tinyhw.threads import once

PIPES = frozenset({"alu", "fma"})

@once
def places_of(row: Inst) -> tuple[tuple[int, int], ...]:
  """Return the operands of a row that could be marked, each with its bit of Control.reuse. The guard is last, with
  -1."""
  if row.encoding is BRANCH or row.pipe not in PIPES: return ()
  form: Form = row.isa
  return (*[(i, spec.reuse) for i, spec in enumerate(form.specs) if spec.reuse >= 0], (form.index["guard"], -1))

def sources(inst: MInst) -> dict[int, int]:
  """Return the registers that an instruction could mark, by their bit of Control.reuse."""
  places, operands = places_of(inst.row), inst.operands
  if not places or operands[places[-1][0]] != regs.PT: return {}
  found: dict[int, int] = {}
  for i, bit in places[:-1]:
    value = operands[i]
    if value.__class__ is Reg and value.cls is regs.R[1] and value.index not in (None, regs.ZERO):
      found[bit] = value.index
  return found

def mark_reuse(lines: list[tuple[MInst, Control]]) -> list[tuple[MInst, Control]]:
  """Return the lines of a block with their marks."""
  out = list(lines)
  following: dict[int, int] = {}
  for at in range(len(out) - 1, -1, -1):
    inst, control = out[at]
    own = sources(inst)
    written = {r.index + k for r in inst.writes() if r.cls.bank is regs.VECTOR and r.index is not None
               for k in range(r.cls.units)} if own else set()
    marks = sum(1 << bit for bit, index in own.items() if following.get(bit) == index and index not in written)
    if marks: out[at] = inst, control._replace(reuse=marks)
    following = own if not control.wait else {}
  return out
