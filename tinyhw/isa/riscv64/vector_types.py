"""Set vl and vtype: how many elements of which size a vector instruction works on.

Selection notes the state that each instruction needs (`WordForm.state`, such as "32x4m1"). This pass inserts vsetivli
where another state may hold. The state at the start of a block is that of the ends of all blocks before it, if they
agree. Instructions without a state (moves of whole registers, spills) work in any. Elements whose mask is false keep
their old value (mu).

Needs: physical code, so that a loop has its spills. Cost: O(instructions), and a few rounds over the blocks.
"""
from __future__ import annotations
import re

from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.ir.inst import Block, Function, Inst, MInst
from tinyhw.machine.ir.target import Target
from tinyhw.threads import once

UNKNOWN = ""
MOST_ELEMENTS = 31   # that vsetivli names; more are a whole register

@once
def set_row(elements: int, size: int, share: str) -> tuple[Inst, list[object]]:
  """The instruction that makes a state, and its operands. t6 takes the number of elements of a whole register."""
  if elements <= MOST_ELEMENTS: inst = parse(f"vsetivli zero, {elements}, e{size}, {share}, ta, mu")
  else: inst = parse(f"vsetvli {regs.T6}, zero, e{size}, {share}, ta, mu")
  return inst.row, inst.operands

def setting(state: str) -> MInst:
  """The instruction that makes a state."""
  found = re.fullmatch(r"(\d+)x(\d+)(m\w+)", state)
  assert found is not None, f"{state} is no state of vectors"
  row, operands = set_row(int(found[2]), int(found[1]), found[3])
  return MInst(row, list(operands), comment="vector type")

def last_state(block: Block, before: str | None) -> str | None:
  """The state at the end of a block."""
  return next((inst.row.isa.state for inst in reversed(block.insts) if needs(inst)), before)

def needs(inst: MInst) -> bool: return bool(getattr(inst.row.isa, "state", ""))

def set_vector_types(function: Function, target: Target) -> Function:
  """Insert the instructions that set vl and vtype."""
  if not any(needs(inst) for block in function.blocks for inst in block.insts): return function
  before: dict[Block, list[Block]] = {block: [] for block in function.blocks}
  for block in function.blocks:
    for following in block.successors(): before[following].append(block)
  starts: dict[Block, str | None] = dict.fromkeys(function.blocks)   # None: not reached yet
  starts[function.blocks[0]] = UNKNOWN
  changed = True
  while changed:
    changed = False
    for block in function.blocks[1:]:
      ends = {last_state(other, starts[other]) for other in before[block]} - {None}
      state = next(iter(ends)) if len(ends) == 1 else (UNKNOWN if ends else None)
      if state != starts[block]: starts[block], changed = state, True
  for block in function.blocks: block.insts = with_settings(block, starts[block] or UNKNOWN)
  return function

def with_settings(block: Block, state: str) -> list[MInst]:
  """The instructions of a block that starts in a state, with what sets others."""
  made: list[MInst] = []
  for inst in block.insts:
    if needs(inst) and inst.row.isa.state != state:
      state = inst.row.isa.state
      made.append(setting(state))
    made.append(inst)
  return made
