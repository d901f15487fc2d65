"""Webs: values that share a register, and values that must not."""
from __future__ import annotations
from generators.invented import Build, cisc, matmul_loop

from tinyhw.machine.allocate.hints import Hints
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target

def hints(function: Function, target: Target) -> Hints: return Hints(function, Liveness(function, registers_of(target)))

def test_accumulator_is_one_web_through_the_loop() -> None:
  target = cisc(10, 15)
  function = matmul_loop(target, 4, 2)
  found = hints(function, target)
  loop = function.blocks[1]
  results = loop.insts[-2].arguments[0]
  for param, result in zip(loop.params, results): assert found.web[param.id] == found.web[result.id]
  assert len({found.web[p.id] for p in loop.params}) == 5

def test_parameters_of_one_block_stay_apart() -> None:
  """Two parameters that start from the same value are two webs."""
  b = Build(cisc())
  x = b.params("r64")[0]
  entry, following = b.at, b.block("next", 0, ("r64", "r64"))
  p, q = following.params
  b.emit("lea", z := b.new("r64"), p, q, 0)
  b.emit("ret", z)
  b.at = entry
  b.emit("jmp", following, arguments=([x, x],))
  found = hints(b.function, b.target)
  assert found.web[p.id] != found.web[q.id]

def test_fixed_registers_are_wished_for_and_avoided() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  b.emit("shl", z := b.new("r64"), y, ties=(x,))
  b.emit("ret", z)
  found = hints(b.function, b.target)
  unit_of = registers_of(b.target).banks[0].unit_of
  assert found.unit[found.web[y.id]] == unit_of[1] and found.unit[found.web[z.id]] == unit_of[0]
  assert found.web[x.id] == found.web[z.id]  # tied, and x ends there
  assert found.avoid[0] == 1 << unit_of[0] | 1 << unit_of[1]

def test_tied_value_that_lives_on_is_another_web() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  b.emit("sub", z := b.new("r64"), y, ties=(x,))
  b.emit("store", x, 0, z)
  b.emit("ret", y)
  found = hints(b.function, b.target)
  assert found.web[x.id] != found.web[z.id]
