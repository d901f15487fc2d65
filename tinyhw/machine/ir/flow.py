"""Forward data flow over laid out code: facts that hold at a point of the code on every path to it.

A pass defines how a block changes a state, and how states meet where two paths join. Blocks are walked until nothing
changes. The output of the last walk is the new code of a block. Cost: linear in the instructions, times the depth of
loops.
"""
from __future__ import annotations
from typing import TypeVar
from collections.abc import Callable, Iterator

from tinyhw.machine.ir.inst import Block, Effect, MInst

T = TypeVar("T")
L = TypeVar("L")

def walked(blocks: list[Block], start: T, walk: Callable[[Block, T, list[L]], T],
           meet: Callable[[T | None, T], T | None]) -> dict[Block, list[L]]:
  """The output of the last walk of each block that is reached, under a state that flows along all paths.

  - walk(block, state, out): `state` holds at the block's start. Append the output to `out` and return the state at the
    block's end. Change neither block nor state.
  - meet(known, state): return the state at the start of a block where `known` held (None: nothing yet) and `state`
    arrives along another path. Return None if that changes nothing.
  """
  following = dict(zip(blocks, blocks[1:]))
  starts = {blocks[0]: start}
  work = [blocks[0]]
  made: dict[Block, list[L]] = {}
  while work:
    block = work.pop()
    made[block] = []
    state = walk(block, starts[block], made[block])
    for goal in goals_of(block, following.get(block)):
      met = meet(starts.get(goal), state)
      if met is None: continue
      starts[goal] = met
      if goal not in work: work.append(goal)
  return made

def rewrite(blocks: list[Block], start: T, walk: Callable[[Block, T, list[MInst]], T],
            meet: Callable[[T | None, T], T | None]) -> None:
  """Rewrite the blocks of a function. walk makes the new code of a block."""
  for block, insts in walked(blocks, start, walk, meet).items(): block.insts = insts

def goals_of(block: Block, following: Block | None) -> Iterator[Block]:
  """Yield the blocks that may run next. following: the next block in the layout."""
  for inst in [inst for inst in block.insts if inst.row.effects & Effect.JUMP]:
    yield from [o for o in inst.operands if isinstance(o, Block)]
  if following is not None and not (block.insts and block.insts[-1].row.effects & Effect.END): yield following
