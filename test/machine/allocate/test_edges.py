"""Placement of an edge's copies."""
from __future__ import annotations
from generators.invented import Build, cisc

from tinyhw.machine.allocate.allocate import allocate
from tinyhw.machine.allocate.edges import split
from tinyhw.machine.ir.liveness import Flow
from tinyhw.machine.ir.pseudo import PARALLEL

def diamond(exit_reads_old: bool) -> Build:
  """A loop whose back-edge is critical and needs copies: x, y = y, x. Its exit reads x, or nothing of the loop."""
  b = Build(cisc())
  x0, y0, end = b.params("r64", "r64", "r64")
  entry, loop = b.at, b.block("loop", 1, ("r64", "r64"))
  b.at = entry
  b.emit("jmp", loop, arguments=([x0, y0],))
  b.at = loop
  x, y = loop.params
  b.emit("store", x, 0, y)
  b.emit("cmp", x, end)
  done = b.block("done")
  b.emit("ret", x if exit_reads_old else end)
  b.at = loop
  b.emit("jl", loop, arguments=([y, x],))
  b.emit("jmp", done, arguments=([],))
  return b

def test_copies_stand_before_the_jumps_if_nothing_else_needs_the_registers() -> None:
  b = diamond(False)
  allocate(b.function, b.target)
  assert len(b.function.blocks) == 3 and [i.row.name for i in b.function.blocks[1].insts] == ["store", "cmp",
                                                                                              "parallel", "jl", "jmp"]

def test_copies_get_a_block_of_their_own_if_another_way_out_needs_the_registers() -> None:
  b = diamond(True)
  allocate(b.function, b.target)
  names = {block.name: [i.row for i in block.insts] for block in b.function.blocks}
  assert PARALLEL not in names["loop"] and names["edge"][0] is PARALLEL and len(names["edge"]) == 2

def test_split_moves_the_arguments() -> None:
  b = diamond(True)
  flow = Flow(b.function)
  loop = b.function.blocks[1]
  edge = next(e for e in flow.out[1] if e.target == 1)
  block = split(b.function, b.target, edge, loop, loop, 1)
  assert edge.jump.operands == [block] and edge.jump.arguments == ([],)
  assert block.insts[0].operands == [loop] and block.insts[0].arguments == ([loop.params[1], loop.params[0]],)
  assert b.function.blocks.index(block) == 2 and len({x.id for x in b.function.blocks}) == 4
