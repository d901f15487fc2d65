"""Verify the output of selection: a function in SSA form as docs/design/machine.md defines it. It runs with
CHECK=1, before all other passes.

Dominance is not computed. A read without a definition on some path appears as a value live into the entry block.
"""
from __future__ import annotations

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.ir.liveness import Liveness, bits, first_jump
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target

def verify(function: Function, target: Target) -> Function:
  """Raise AllocationError, naming block and instruction, unless the function is well formed."""
  defined: dict[int, str] = {}
  blocks = set(function.blocks)
  if len(blocks) != len(function.blocks):
    raise AllocationError(f"{function.name}: a block stands twice in `blocks`; new_block adds it already")
  for block in function.blocks:
    for p in block.params: _define(function, p, defined, f"block {block}")
    _ending(function, block, blocks)
    for inst in block.insts:
      where = f"block {block}, `{inst!r}`"
      _operands(function, inst, target, where)
      for r in inst.writes():
        if r.index is None: _define(function, r, defined, where)
  liveness = function.liveness = Liveness(function, registers_of(target))
  missing = [repr(function.registers[v]) for v in bits(liveness.live_in[0])]
  if missing: raise AllocationError(f"{function.name}: {', '.join(missing)} can be read before it is written")
  return function

def _define(function: Function, r: Reg, defined: dict[int, str], where: str) -> None:
  if r.id >= len(function.registers) or function.registers[r.id] is not r:
    raise AllocationError(f"{function.name}, {where}: {r!r} is not a register of this function; make it with new_reg")
  if r.id in defined:
    raise AllocationError(f"{function.name}, {where}: {r!r} is defined a second time, after {defined[r.id]}")
  defined[r.id] = where

def _ending(function: Function, block: Block, blocks: set[Block]) -> None:
  """Check that the block ends with an instruction with Effect.END, that jumps are only at the end, and that each passes
  the right number of arguments to a block of the function."""
  if not block.insts or not block.insts[-1].row.effects & Effect.END:
    raise AllocationError(f"{function.name}, block {block}: the last instruction must have Effect.END")
  first = first_jump(block)
  for inst in block.insts[:first]:
    if inst.row.effects & Effect.JUMP:
      raise AllocationError(f"{function.name}, block {block}, `{inst!r}`: only jumps may follow a jump")
  for inst in block.insts[first:]:
    goals = [o for o in inst.operands if isinstance(o, Block)]
    passed = inst.arguments or tuple([] for _ in goals)
    for goal, values in zip(goals, passed):
      if goal not in blocks:
        raise AllocationError(f"{function.name}, block {block}, `{inst!r}`: {goal} is not in `blocks`")
      if ([r.cls.bank for r in values] != [r.cls.bank for r in goal.params] or [r.cls.units for r in values]
          != [r.cls.units for r in goal.params]):
        raise AllocationError(f"{function.name}, block {block}, `{inst!r}`: arguments {values} do not fit the "
                              f"parameters {goal.params}")
    if inst.row.writes:
      raise AllocationError(f"{function.name}, block {block}, `{inst!r}`: a jump may write no register")

def _operands(function: Function, inst: MInst, target: Target, where: str) -> None:
  """Check the operands: their number, their classes, and an old value for each that is read and written. Physical
  registers are allowed only if the allocator does not use them."""
  row, file = inst.row, registers_of(target)
  if len(inst.operands) != len(row.operands):
    raise AllocationError(f"{function.name}, {where}: {len(inst.operands)} operands, the row has {len(row.operands)}")
  virtual = [i for i in row.both if inst.operands[i] is not None and inst.operands[i].index is None]
  if virtual and len(inst.ties) != len(row.both):
    raise AllocationError(f"{function.name}, {where}: {len(row.both)} operands are read and written, so `ties` must "
                          f"have as many old values")
  for i, operand in enumerate(row.operands):
    r = inst.operands[i]
    if operand.cls is None or r is None:
      if operand.cls is not None and not operand.optional:
        raise AllocationError(f"{function.name}, {where}: operand {operand.name} is missing")
      continue
    if r.index is None:
      if r.cls.bank is operand.cls.bank and r.cls.units == operand.cls.units: continue
      raise AllocationError(f"{function.name}, {where}: operand {operand.name} is {r!r}, the row wants "
                            f"{operand.cls.name}")
    bank = file.by_bank.get(r.cls.bank)
    if operand.fixed is None and bank is not None and bank.free >> bank.unit_of[r.index] & 1:
      raise AllocationError(f"{function.name}, {where}: {r!r} may be given to other values; name registers here that "
                            f"are not allocatable")
