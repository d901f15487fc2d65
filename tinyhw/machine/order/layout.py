"""Order blocks in memory with as few jumps as possible.

Needs: physical code without arguments on jumps. Jumps to blocks that only jump are redirected to their targets.
Unreachable blocks are removed. Loops become contiguous, except for rare blocks, which follow all others.

A loop with its condition at the top is rotated: the header moves to the bottom. Then an iteration executes one
conditional jump, and entering the loop costs one jump. A jump to the next block is dropped. For `jcc next; jmp other`
the condition is inverted.

Output: blocks may fall through into the next one. Cost: linear, times the depth of loops.
"""
from __future__ import annotations

from tinyhw.machine.ir.inst import Block, Effect, Function, MInst
from tinyhw.machine.ir.liveness import Flow, first_jump
from tinyhw.machine.ir.target import Target

def is_plain_jump(inst: MInst) -> bool:
  """Whether it is an unconditional jump to one block."""
  effects, operands = inst.row.effects, inst.operands
  if not effects & Effect.JUMP or not effects & Effect.END or effects & Effect.READ_FLAGS: return False
  return len(operands) == 1 and isinstance(operands[0], Block)

def layout(function: Function, target: Target) -> Function:
  """Order the blocks and drop needless jumps."""
  _skip_empty(function)
  flow = Flow(function)
  order = _contiguous(flow, list(range(len(flow.blocks))), -1)
  function.blocks = sorted([flow.blocks[b] for b in order], key=lambda block: block.rare)
  for block, following in zip(function.blocks, [*function.blocks[1:], None]): _fall_through(block, following, target)
  return function

def _skip_empty(function: Function) -> None:
  """Redirect jumps to blocks that only jump to the end of the chain."""
  onward = {block: block.insts[0].operands[0] for block in function.blocks if len(block.insts) == 1
            and is_plain_jump(block.insts[0])}
  if not onward: return
  for block in function.blocks:
    for inst in block.insts[first_jump(block):]:
      for i, operand in enumerate(inst.operands):
        seen: set[Block] = set()
        while isinstance(operand, Block) and operand in onward and operand not in seen:
          seen.add(operand)
          operand = onward[operand]
        inst.operands[i] = operand

def _contiguous(flow: Flow, blocks: list[int], header: int) -> list[int]:
  """The blocks of one loop (-1: all) in reverse postorder, with each inner loop contiguous at the position of its
  header."""
  order: list[int] = []
  inner: dict[int, list[int]] = {}
  for b in blocks:
    loop, below = flow.loop[b], -1
    while loop not in (header, -1): loop, below = flow.parent[loop], loop
    if below >= 0 and below not in inner: order.append(~below)
    if below >= 0: inner.setdefault(below, []).append(b)
    else: order.append(b)
  found: list[int] = []
  for item in order:
    if item < 0: found += _rotate(flow, _contiguous(flow, inner[~item], ~item))
    else: found.append(item)
  return found

def _rotate(flow: Flow, loop: list[int]) -> list[int]:
  """Move the header to the bottom of a loop that tests at the top and jumps back at the bottom."""
  header, last = loop[0], loop[-1]
  if header == 0 or header == last: return loop
  targets = [edge.target for edge in flow.out[header]]
  leaves = [s for s in targets if s not in loop]
  if len(targets) != 2 or len(leaves) != 1: return loop
  if [edge.target for edge in flow.out[last]] != [header]: return loop
  return loop[1:] + [header]

def _fall_through(block: Block, following: Block | None, target: Target) -> None:
  """Drop the jump to the next block."""
  first = first_jump(block)
  jumps = block.insts[first:]
  if len(jumps) == 2 and is_plain_jump(jumps[1]):
    goals = [o for o in jumps[0].operands if isinstance(o, Block)]
    if goals == [jumps[1].operands[0]]: del block.insts[first]  # both successors are the same block
    elif goals == [following] and target.invert is not None:
      inverse = target.invert(jumps[0])
      if inverse is not None:
        inverse.operands = [jumps[1].operands[0] if isinstance(o, Block) else o for o in inverse.operands]
        inverse.origin = jumps[0].origin
        block.insts[first:] = [inverse]
        return
  if is_plain_jump(block.insts[-1]) and block.insts[-1].operands[0] is following: block.insts.pop()
