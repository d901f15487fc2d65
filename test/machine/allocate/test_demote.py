"""Demoted parameters: stores in the right places, and old contents saved before they are overwritten."""
from __future__ import annotations
from generators.invented import Build, cisc, matmul_loop, run

from tinyhw.machine.allocate.demote import demote
from tinyhw.machine.allocate.spill import Slots
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.pseudo import PSEUDO, reload_row
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target

def demoted(function: Function, target: Target, block: Block, *params: Reg) -> Slots:
  """Demote, and read the slots at the block's start, so that the function runs as it is."""
  slots, liveness = Slots(function, target), Liveness(function, registers_of(target))
  demote(liveness, liveness.flow.position[block], {p.id for p in params}, slots)
  block.insts[:0] = [MInst(reload_row(p.cls), [p, slots.of(p)]) for p in params]
  return slots

def pseudo(block: Block) -> list[str]: return [i.row.name for i in block.insts if i.row.encoding is PSEUDO]

def test_store_stands_behind_the_definition() -> None:
  target = cisc(10, 15)
  function = matmul_loop(target, 4, 2)
  expected = run(function, [3, 9], {k: k for k in range(61)})
  loop = function.blocks[1]
  last = loop.params[-1]
  slots = demoted(function, target, loop, last)
  at = [i.row.name for i in loop.insts]
  assert at[at.index("spill") - 1] == "vfma" and pseudo(function.blocks[0]) == ["spill"] and len(function.blocks) == 3
  assert len(slots.alias) == 2 and last not in loop.params and run(function, [3, 9],
                                                                   {k: k for k in range(61)}) == expected

def exchange_loop() -> tuple[Build, Block]:
  """while x < end: x, y = y, x + 1"""
  b = Build(cisc())
  x0, y0, end = b.params("r64", "r64", "r64")
  entry, loop = b.at, b.block("loop", 1, ("r64", "r64"))
  b.at = entry
  b.emit("jmp", loop, arguments=([x0, y0],))
  b.at = loop
  x, y = loop.params
  b.emit("store", x, 0, y)
  b.emit("inc", z := b.new("r64"), ties=(x,))
  b.emit("cmp", x, end)
  done = b.block("done")
  b.emit("ret", y)
  b.at = loop
  b.emit("jl", loop, arguments=([y, z],))
  b.emit("jmp", done, arguments=([],))
  return b, loop

def test_slots_that_trade_places() -> None:
  b, loop = exchange_loop()
  expected = run(b.function, [1, 2, 9], {})
  demoted(b.function, b.target, loop, *loop.params)
  assert not loop.params and run(b.function, [1, 2, 9], {}) == expected
  edge = next(block for block in b.function.blocks if block.name == "edge")
  assert pseudo(edge) == ["copy", "spill", "spill"], ("the loop's exit reads the old content, so the stores are on "
                                                      "the back-edge")

def test_one_of_two() -> None:
  for k in (0, 1):
    b, loop = exchange_loop()
    expected = run(b.function, [1, 2, 9], {})
    demoted(b.function, b.target, loop, loop.params[k])
    assert len(loop.params) == 1 and run(b.function, [1, 2, 9], {}) == expected
