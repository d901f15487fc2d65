"""Demote block parameters that have no register at the start of their block to stack slots that the predecessors write.

Input: the parameters. Each predecessor stores the argument to the parameter's slot. It stores directly after the
argument's definition if no later instruction reads the old content. A loop then costs one store an iteration. Otherwise
it stores before its jumps or in a block on the edge. An argument that is itself a demoted parameter of the same block
is copied first, because its slot may be overwritten.

Output: blocks and jumps lose these parameters. `slots` maps values to their slots.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.machine.allocate.edges import split
from tinyhw.machine.ir.inst import Block, MInst, Reg
from tinyhw.machine.ir.liveness import Edge, Liveness, first_jump
from tinyhw.machine.ir.pseudo import copy, spill_row

if TYPE_CHECKING:
  from tinyhw.machine.allocate.spill import Slots

def demote(liveness: Liveness, b: int, params: set[int], slots: Slots) -> None:
  """Remove `params` (ids) from the parameters of block b of an analyzed function. Its liveness is invalid
  afterwards."""
  flow, function = liveness.flow, slots.function
  block = flow.blocks[b]
  registers = {p.id: p for p in block.params if p.id in params}
  for p in registers.values(): slots.of(p)
  for edge in flow.into[b]:
    _store_arguments(liveness, edge, block, registers, slots)
  kept = [i for i, p in enumerate(block.params) if p.id not in params]
  block.params = [block.params[i] for i in kept]
  for edge in flow.into[b]:
    jump, operand = _jump_into(edge, block)
    jump.arguments = tuple([values[i] for i in kept] if k == operand else values
                           for k, values in enumerate(jump.arguments))
  function.liveness = None

def _jump_into(edge: Edge, block: Block) -> tuple[MInst, int]:
  """The jump that passes the arguments: the edge's own, or that of a block that was put on the edge."""
  targets = [o for o in edge.jump.operands if isinstance(o, Block)]
  if targets[edge.operand] is block: return edge.jump, edge.operand
  return targets[edge.operand].insts[-1], 0

def _store_arguments(liveness: Liveness, edge: Edge, block: Block, params: dict[int, Reg], slots: Slots) -> None:
  """Store the arguments of one edge."""
  flow, function = liveness.flow, slots.function
  source = flow.blocks[edge.source]
  jump, operand = _jump_into(edge, block)
  arguments = list(jump.arguments[operand])
  pairs = [(params[p.id], k) for k, p in enumerate(block.params) if p.id in params and not _same(p, arguments[k])]
  clashes = [k for k, a in enumerate(arguments) if a.index is None and a.id in params and not _same(block.params[k], a)]
  late: list[MInst] = []
  copies: dict[int, Reg] = {}
  for k in clashes:
    old = arguments[k]
    if old.id not in copies:
      copies[old.id] = function.new_reg(old.cls)
      late.append(copy(copies[old.id], old))
    arguments[k] = copies[old.id]
  harmless = all(_is_harmless(liveness, edge, p.id) for p, _ in pairs)
  for p, k in pairs:
    argument = arguments[k]
    store = MInst(spill_row(p.cls), [argument, slots.of(p)])
    at = _defined_at(source, argument)
    if harmless and not clashes and at >= 0 and not _reads_after(source, at, p):
      source.insts.insert(at + 1, store)
      if _owns_slot(liveness, edge, argument, arguments): slots.alias[argument.id] = p.id
    else: late.append(store)
  jump.arguments = tuple(arguments if k == operand else values for k, values in enumerate(jump.arguments))
  if not late: return
  if harmless: place = source
  else:
    place = jump_block(edge)
    if place is block: place = split(function, slots.target, edge, source, block, min(source.depth, block.depth))
  at = first_jump(place)
  place.insts[at:at] = late

def jump_block(edge: Edge) -> Block:
  """The block on the edge, or the target itself."""
  found = [o for o in edge.jump.operands if isinstance(o, Block)][edge.operand]
  assert isinstance(found, Block)
  return found

def _same(p: Reg, argument: Reg) -> bool: return argument.index is None and argument.id == p.id

def _is_harmless(liveness: Liveness, edge: Edge, p: int) -> bool:
  """Whether p's slot may be written in the edge's source: no other successor of it needs the old content."""
  for other in liveness.flow.out[edge.source]:
    if other is edge: continue
    if liveness.live_in[other.target] >> p & 1 or any(a.index is None and a.id == p for a in other.arguments):
      return False
  return True

def _defined_at(block: Block, value: Reg) -> int:
  """Index of the instruction of the block that writes the value, or -1."""
  if value.index is not None: return -1
  for i in range(len(block.insts) - 1, -1, -1):
    if any(r is value for r in block.insts[i].writes()): return i
  return -1

def _reads_after(block: Block, at: int, p: Reg) -> bool:
  return any(r is p for inst in block.insts[at + 1:] for r in inst.reads())

def _owns_slot(liveness: Liveness, edge: Edge, argument: Reg, arguments: list[Reg]) -> bool:
  """Whether the slot holds the argument as long as the argument lives: no other predecessor writes it meanwhile."""
  if sum(a is argument for a in arguments) > 1 or liveness.live_in[edge.target] >> argument.id & 1: return False
  others = [other.source for other in liveness.flow.into[edge.target] if other is not edge]
  return not any((liveness.live_out[b] | liveness.live_in[b]) >> argument.id & 1 for b in others)
