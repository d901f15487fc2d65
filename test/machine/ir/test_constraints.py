"""Demands of single instructions, case by case."""
from __future__ import annotations
from generators.invented import Build, cisc, lanes

from tinyhw.machine.ir.constraints import Demands, demands_of, pressure_of, sources_of
from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.ir.registers import registers_of

def demands(b: Build, inst: MInst, *ends: int) -> Demands:
  return demands_of(registers_of(b.target).shape(inst.row), inst, ends)

def unit(b: Build, number: int) -> int: return registers_of(b.target).banks[0].unit_of[number]

def test_ties() -> None:
  b = Build(cisc())
  x, y, z = b.many("r64", 3)
  add = b.emit("add", z, y, ties=(x,))
  assert sources_of(add) == [y, x]
  assert demands(b, add, x.id).inherits == [(0, x.id)]
  exchanged = demands(b, add, y.id)
  assert exchanged.exchange == (1, 0) and exchanged.inherits == [(0, y.id)]
  assert demands(b, add).clones == [(0, 1)]
  sub = b.emit("sub", b.new("r64"), y, ties=(x,))
  assert demands(b, sub, y.id).clones == [(0, 1)] and demands(b, sub, y.id).exchange is None

def test_fixed_registers() -> None:
  b = Build(cisc())
  x, y, z, q, r = b.many("r64", 5)
  shift = b.emit("shl", z, y, ties=(x,))
  assert demands(b, shift, x.id).home == {y.id: unit(b, 1)}
  assert demands(b, shift).home == {y.id: unit(b, 1)}  # it lives on, but nothing overwrites it
  divide = b.emit("div", q, r, z, ties=(x, y))
  assert demands(b, divide, x.id, y.id, z.id).home == {x.id: unit(b, 0), y.id: unit(b, 2)}
  assert demands(b, divide, y.id).copies == [(1, unit(b, 0))]  # x lives on and its register is overwritten
  twice = b.emit("div", q, r, z, ties=(x, x))
  assert demands(b, twice, x.id).home == {x.id: unit(b, 0)} and demands(b, twice, x.id).copies == [(2, unit(b, 2))]

def test_one_value_counted_and_shifted() -> None:
  b = Build(cisc())
  x, z = b.many("r64", 2)
  shift = b.emit("shl", z, x, ties=(x,))
  found = demands(b, shift, x.id)
  assert found.home == {x.id: unit(b, 1)} and found.clones == [(0, 1)]

def test_early_writes() -> None:
  b = Build(lanes())
  x, y, z = b.new("d1"), b.new("d2"), b.new("d4")
  assert demands(b, b.emit("widen", z, x, y), x.id, y.id).early == [0]

def test_pressure() -> None:
  b = Build(cisc())
  file = registers_of(b.target)
  one = file.views[b.classes["r64"]].weight
  weight = [one] * 20
  x, y, z = b.many("r64", 3)
  add = b.emit("add", z, y, ties=(x,))
  shape = file.shape(add.row)
  assert pressure_of(shape, add, [x.id], weight) == (0, one)
  assert pressure_of(shape, add, [], weight) == (one, one)
  shift = b.emit("shl", z, y, ties=(x,))
  assert pressure_of(file.shape(shift.row), shift, [x.id, y.id], weight) == (0, one)
  divide = b.emit("div", b.new("r64"), b.new("r64"), z, ties=(x, y))
  assert pressure_of(file.shape(divide.row), divide, [x.id, y.id], weight) == (0, 2 * one)
  assert pressure_of(file.shape(divide.row), divide, [], weight) == (2 * one, 2 * one)
