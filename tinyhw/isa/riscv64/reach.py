"""Make all jumps reach their blocks: a conditional branch reaches 4 KiB, an unconditional jump 1 MiB.

Needs: laid out blocks, each instruction 4 bytes. A branch that does not reach becomes the opposite branch over a jump:

    blt a0, a1, .far   ->   bge a0, a1, .next; j .far; .next:

That moves other blocks apart, so the pass goes round until nothing changes. Cost: O(instructions) a round, usually one.
"""
from __future__ import annotations

from tinyhw.machine.assembler.encode import BYTES
from tinyhw.machine.ir.inst import Block, Effect, Function
from tinyhw.machine.ir.target import Target

REACH = 4096  # bytes of a conditional branch, in both directions

def extend_branches(function: Function, target: Target) -> Function:
  """Replace branches that do not reach."""
  while True:
    starts, at = {}, 0
    for block in function.blocks:
      starts[block] = at
      at += BYTES * len(block.insts)
    if at <= REACH or not any([extend(function, k, starts, target) for k in range(len(function.blocks) - 1, -1, -1)]):
      return function

def extend(function: Function, number: int, starts: dict[Block, int], target: Target) -> bool:
  """Replace the branches of one block that do not reach by offsets of blocks. Whether there was one."""
  block = function.blocks[number]
  for k, inst in enumerate(block.insts):
    if not inst.row.effects & Effect.JUMP or inst.row.effects & Effect.END: continue
    far = inst.operands[-1]
    # new blocks have no offset yet; they are next to their branch
    if far not in starts or -REACH <= starts[far] - starts.get(block, starts[far]) - BYTES * k < REACH: continue
    assert target.invert is not None
    opposite = target.invert(inst)
    assert opposite is not None, f"{inst.row.name} has no opposite"
    following = function.new_block(block.depth, "next", block.rare)
    del function.blocks[-1]
    following.insts = block.insts[k + 1:]
    opposite.operands[-1] = following
    block.insts[k:] = [opposite, target.jump(far)]
    function.blocks.insert(number + 1, following)
    return True
  return False
