"""Drop instructions whose results nobody uses. Selection leaves them when it merges them into a user, such as the
indices of a load's further elements.

Needs: SSA form. Instructions with an effect stay, as well as instructions that they need, also through parameters of
blocks. The others are dropped, as well as parameters that nobody reads. An instruction that also writes flags stays if
they are read. Unused loads are dropped. Cost: linear in the instructions.
"""
from __future__ import annotations
from collections.abc import Iterator

from tinyhw.machine.ir.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.ir.target import Target

DROPPED = Effect.LOAD | Effect.READ_FLAGS | Effect.WRITE_FLAGS  # effects that keep no instruction

def drop_unused(function: Function, target: Target) -> Function:
  """Drop unused instructions and parameters."""
  makers: dict[int, MInst] = {}                        # virtual register -> the instruction that writes it
  passed: dict[int, list[Reg]] = {}                    # parameter -> the values that jumps pass for it
  work: list[MInst] = []
  for block in function.blocks:
    flags_read = False
    for inst in reversed(block.insts):
      for i in inst.row.writes:
        if inst.operands[i] is not None: makers[inst.operands[i].id] = inst
      for goal, values in jumps(inst) if inst.arguments else ():
        for parameter, value in zip(goal.params, values): passed.setdefault(parameter.id, []).append(value)
      if stays(inst, flags_read): work.append(inst)
      if inst.row.effects & (Effect.READ_FLAGS | Effect.WRITE_FLAGS):
        flags_read = bool(inst.row.effects & Effect.READ_FLAGS)
  used, kept = needed(work, makers, passed)
  for block in function.blocks: block.insts = [inst for inst in block.insts if id(inst) in kept]
  for block in function.blocks:
    for inst in block.insts:
      if inst.arguments:
        inst.arguments = tuple([[value for parameter, value in zip(goal.params, values) if parameter.id in used]
                                for goal, values in jumps(inst)])
  for block in function.blocks[1:]: block.params = [p for p in block.params if p.id in used]
  function.liveness = None
  return function

def jumps(inst: MInst) -> Iterator[tuple[Block, list[Reg]]]:
  """The target blocks of an instruction, and the values that it passes to each."""
  return zip((o for o in inst.operands if isinstance(o, Block)), inst.arguments)

def stays(inst: MInst, flags_read: bool) -> bool:
  """Whether an instruction has an effect other than writing virtual registers. flags_read: whether the flags that it
  writes are read."""
  effects = inst.row.effects
  if effects & ~DROPPED or effects & Effect.WRITE_FLAGS and flags_read: return True
  results = [r for i in inst.row.writes if (r := inst.operands[i]) is not None]
  return not results or any([r.index is not None for r in results])

def needed(work: list[MInst], makers: dict[int, MInst], passed: dict[int, list[Reg]]) -> tuple[set[int], set[int]]:
  """The virtual registers that the instructions need, and all instructions (by id) that make these.

  `work` is consumed.
  """
  used: set[int] = set()
  kept = {id(inst) for inst in work}
  while work:
    inst = work.pop()
    reads = [r for i in (inst.row.only_reads if inst.ties else inst.row.reads)
             if isinstance(r := inst.operands[i], Reg)]
    registers = [*reads, *inst.ties]
    while registers:
      r = registers.pop()
      if r.index is not None or r.id in used: continue
      used.add(r.id)
      registers += passed.get(r.id, ())
      maker = makers.get(r.id)
      if maker is not None and id(maker) not in kept:
        kept.add(id(maker))
        work.append(maker)
  return used, kept
