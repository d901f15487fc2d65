"""Block order, rotation of loops, and removal of jumps."""
from __future__ import annotations
from generators.invented import Build, cisc

from tinyhw.machine.ir.inst import Block, Reg, RegClass
from tinyhw.machine.order.layout import layout

def graph(*lines: str, rare: str = "") -> tuple[Build, dict[str, Block]]:
  """Lay out a function of these blocks. `a: b c` is a conditional jump from a to b, else to c; `a: b` a jump; `a:`
  returns."""
  b = Build(cisc())
  parsed = [(name, goals.split()) for name, _, goals in (line.partition(":") for line in lines)]
  blocks = {parsed[0][0]: b.at}
  for name, _ in parsed[1:]: blocks[name] = b.block(name)
  if rare: blocks[rare].rare = True
  r0 = b.classes["r64"]
  for name, goals in parsed:
    b.at = blocks[name]
    if not goals:
      b.emit("ret", _physical(r0, 0))
      continue
    # a lower case block has only jumps
    if name.isupper(): b.emit("cmp", _physical(r0, 0), _physical(r0, 3))
    if len(goals) == 2: b.emit("jl", blocks[goals[0]])
    b.emit("jmp", blocks[goals[-1]])
  layout(b.function, b.target)
  return b, blocks

def _physical(cls: RegClass, index: int) -> Reg: return Reg(cls, -1, index)

def shown(b: Build, blocks: dict[str, Block]) -> list[str]:
  """`name: jumps` of each block in order."""
  names = {block: name for name, block in blocks.items()}
  out = []
  for block in b.function.blocks:
    jumps = [f"{i.row.name} {names[o]}" for i in block.insts for o in i.operands if isinstance(o, Block)]
    out.append(f"{names[block]}: {', '.join(jumps)}".strip())
  return out

def test_jump_to_the_next_block_is_dropped_and_conditions_are_inverted() -> None:
  assert shown(*graph("A: B C", "B: D", "C: D", "D:")) == ["A: jge C", "B: jmp D", "C:", "D:"]

def test_empty_blocks_are_skipped_and_unreachable_ones_vanish() -> None:
  assert shown(*graph("A: b C", "b: c", "c: D", "C: D", "D:", "E: D")) == ["A: jl D", "C:", "D:"]

def test_do_while_loop_has_one_conditional_jump() -> None:
  assert shown(*graph("A: B", "B: B C", "C:")) == ["A:", "B: jl B", "C:"]

def test_while_loop_is_rotated() -> None:
  """The header moves to the bottom: one conditional jump an iteration, and one jump to enter."""
  assert shown(*graph("A: H", "H: B X", "B: H", "X:")) == ["A: jmp H", "B:", "H: jl B", "X:"]
  assert shown(*graph("A: H", "H: X B", "B: H", "X:")) == ["A: jmp H", "B:", "H: jge B", "X:"]

def test_loops_are_contiguous() -> None:
  """A loop's exit is not laid out in the middle of it, whichever way its condition points."""
  found = shown(*graph("A: H", "H: X B", "B: C D", "C: E", "D: E", "E: H X", "X:"))
  assert found[-1] == "X:" and [line[0] for line in found[:-1]][0] == "A"
  inner = shown(*graph("A: O", "O: I", "I: J", "J: I K", "K: O X", "X:"))
  assert inner == ["A:", "O:", "I:", "J: jl I", "K: jl O", "X:"]

def test_both_ways_to_one_block() -> None:
  assert shown(*graph("A: B B", "B:")) == ["A:", "B:"]

def test_endless_empty_loop_survives() -> None:
  assert shown(*graph("A: b", "b: b")) == ["A:", "b: jmp b"]

def test_what_is_rare_stands_behind_all_others() -> None:
  """Also for rare blocks of a loop. The common path falls through."""
  b, blocks = graph("A: B", "B: D R", "R: D", "D: B X", "X:", rare="R")
  assert shown(b, blocks) == ["A:", "B: jge R", "D: jl B", "X:", "R: jmp D"]
