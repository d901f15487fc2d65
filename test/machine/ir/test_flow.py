"""States flow over blocks along all paths until nothing changes. The new code is written once."""
from __future__ import annotations

from tinyhw.machine.ir.flow import rewrite
from tinyhw.machine.ir.inst import Access, Block, Effect, Inst, MInst, Operand

STEP = Inst("step", None, ())
JUMP = Inst("jump", None, (Operand("to", Access.READ, kind="block"),), effects=Effect.JUMP | Effect.END)
MAYBE = Inst("maybe", None, (Operand("to", Access.READ, kind="block"),), effects=Effect.JUMP)
STOP = Inst("stop", None, (), effects=Effect.END)

def test_the_worse_path_holds_and_each_block_is_written_once() -> None:
  """A state counts steps, up to 5. The loop makes it 5, and the path around the loop leaves 1."""
  entry, loop, end, never = (Block(k) for k in range(4))
  entry.insts = [MInst(STEP, []), MInst(MAYBE, [end])]
  loop.insts = [MInst(STEP, []), MInst(MAYBE, [loop])]
  end.insts, never.insts = [MInst(STOP, [])], [MInst(STEP, [])]
  seen: dict[int, int] = {}

  def walk(block: Block, state: int, out: list[MInst]) -> int:
    seen[block.id] = state
    for inst in block.insts:
      state = min(state + (inst.row is STEP), 5)
      out += [inst] * (2 if inst.row is STEP else 1)
    return state

  def meet(known: int | None, state: int) -> int | None: return state if known is None or state > known else None
  rewrite([entry, loop, end, never], 0, walk, meet)
  assert seen == {0: 0, 1: 5, 2: 5}
  assert [len(block.insts) for block in (entry, loop, end, never)] == [3, 3, 1, 1], "what is not reached stays as it is"

def test_an_empty_block_goes_on_with_the_next() -> None:
  first, empty, last = (Block(k) for k in range(3))
  first.insts, last.insts = [MInst(STEP, [])], [MInst(STOP, [])]
  walked: list[int] = []

  def walk(block: Block, state: int, out: list[MInst]) -> int:
    walked.append(block.id)
    return state
  rewrite([first, empty, last], 0, walk, lambda known, state: state if known is None else None)
  assert walked == [0, 1, 2], "without a loop each block is walked once"
