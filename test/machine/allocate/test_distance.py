"""Distances to the next use."""
from __future__ import annotations
from generators.invented import Build, cisc, matmul_loop

from tinyhw.machine.allocate.distance import FAR, Distances
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.registers import registers_of

def test_within_a_block() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  b.emit("lea", z := b.new("r64"), x, x, 0)
  b.emit("lea", w := b.new("r64"), z, y, 0)
  b.emit("ret", x)
  found = Distances(Liveness(b.function, registers_of(b.target)))
  assert found.uses[0] == {x.id: [2, 0], z.id: [1], y.id: [1]} and found.entry[0] == {x.id: 0, y.id: 1}
  assert w.id not in found.exit[0]

def test_around_and_out_of_a_loop() -> None:
  target = cisc(10, 15)
  function = matmul_loop(target, 4, 2)
  found = Distances(Liveness(function, registers_of(target)))
  entry, loop = function.blocks[0], function.blocks[1]
  counter, first, *_ = loop.params
  size = len(loop.insts)
  assert found.entry[1][first.id] == 3 and found.entry[1][counter.id] == size - 4
  passed = loop.insts[-2].arguments[0]
  assert found.exit[1][passed[1].id] == 3, "as far as the parameter's first use in the next iteration"
  assert found.entry[1][entry.params[0].id] == 2
  b = Build(target)
  x = b.params("r64")[0]
  start, body = b.at, b.block("loop", 1)
  b.emit("movi", y := b.new("r64"), 1)
  b.emit("cmp", y, y)
  done = b.block("done")
  b.emit("ret", x)
  b.at = body
  b.emit("jl", body, arguments=([],))
  b.emit("jmp", done, arguments=([],))
  b.at = start
  b.emit("jmp", body, arguments=([],))
  assert Distances(Liveness(b.function, registers_of(target))).entry[1][x.id] >= FAR
