"""The checker accepts correct code and finds each kind of injected error."""
from __future__ import annotations
import random

import pytest
from generators.invented import Build, cisc, lanes, matmul_loop, random_function

from tinyhw.errors import AllocationError
from tinyhw.machine.allocate.allocate import allocate
from tinyhw.machine.allocate.spill import spill
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.moves import moves
from tinyhw.machine.ir.pseudo import PARALLEL, PSEUDO
from tinyhw.machine.ir.target import Target
from tinyhw.machine.verify.allocation import Reference, check, snapshot

def allocated(target: Target, function: Function) -> Reference:
  reference = snapshot(function)
  allocate(spill(function, target), target)
  check(function, target, reference)
  moves(function, target)
  check(function, target, reference)
  return reference

def pseudo(function: Function, name: str) -> list[tuple[list[MInst], MInst]]:
  return [(b.insts, i) for b in function.blocks for i in b.insts if i.row.encoding is PSEUDO and i.row.name == name]

def crowded() -> tuple[Target, Function, Reference]:
  target = cisc(10, 4)
  function = matmul_loop(target, 6, 2)
  return target, function, allocated(target, function)

def refused(target: Target, function: Function, reference: Reference, *words: str) -> None:
  with pytest.raises(AllocationError) as caught: check(function, target, reference)
  assert all(word in str(caught.value) for word in words), str(caught.value)

def test_dropped_reload() -> None:
  target, function, reference = crowded()
  insts, reload = pseudo(function, "reload")[0]
  insts.remove(reload)
  refused(target, function, reference, "matmul", "block", "reads")

def test_dropped_spill() -> None:
  target, function, reference = crowded()
  insts, store = pseudo(function, "spill")[0]
  insts.remove(store)
  refused(target, function, reference, "reads")

def test_wrong_slot() -> None:
  target, function, reference = crowded()
  _, reload = pseudo(function, "reload")[0]
  reload.operands[1] += 64
  refused(target, function, reference, "nothing known")

def test_two_slots_in_one_place() -> None:
  target, function, reference = crowded()
  slots = sorted({i.operands[1] for _, i in pseudo(function, "spill")})
  for name in ("spill", "reload"):
    for _, inst in pseudo(function, name):
      if inst.operands[1] == slots[1]: inst.operands[1] = slots[0]
  refused(target, function, reference, "reads")

def rotating() -> tuple[Target, Function, Reference]:
  """A loop that exchanges two values, which takes copies on its back-edge."""
  target = cisc()
  b = Build(target)
  x0, y0, end = b.params("r64", "r64", "r64")
  entry, loop = b.at, b.block("loop", 1, ("r64", "r64"))
  b.at = entry
  b.emit("jmp", loop, arguments=([x0, y0],))
  b.at = loop
  x, y = loop.params
  b.emit("store", x, 0, y)
  b.emit("cmp", x, end)
  done = b.block("done")
  b.at = loop
  b.emit("jl", loop, arguments=([y, x],))
  b.emit("jmp", done, arguments=([],))
  b.at = done
  b.emit("ret", x)
  return target, b.function, allocated(target, b.function)

def test_dropped_move() -> None:
  target, function, reference = rotating()
  insts, copy = (pseudo(function, "copy") + pseudo(function, "swap"))[0]
  insts.remove(copy)
  refused(target, function, reference, "reads")

def test_parallel_copy_made_sequential_in_the_wrong_order() -> None:
  target, function, _ = rotating()
  for block in function.blocks:
    copies = [i for i in block.insts if i.row.encoding is PSEUDO]
    assert not any(i.row is PARALLEL for i in copies)
  found = [(b.insts, [k for k, i in enumerate(b.insts) if i.row.encoding is PSEUDO]) for b in function.blocks]
  insts, places = max(found, key=lambda item: len(item[1]))
  assert len(places) >= 2
  target, function, reference = rotating()
  found = [(b.insts, [k for k, i in enumerate(b.insts) if i.row.encoding is PSEUDO]) for b in function.blocks]
  insts, places = max(found, key=lambda item: len(item[1]))
  insts[places[0]], insts[places[1]] = insts[places[1]], insts[places[0]]
  refused(target, function, reference, "reads")

def test_swapped_registers() -> None:
  target, function, reference = crowded()
  fma = next(i for b in function.blocks for i in b.insts if i.row.name == "vfma")
  fma.operands[0], fma.operands[1] = fma.operands[2], fma.operands[0]
  refused(target, function, reference, "vfma", "reads")

def test_missing_and_moved_instructions() -> None:
  target, function, reference = crowded()
  insts = next(b.insts for b in function.blocks if b.name == "loop")
  at = next(k for k, i in enumerate(insts) if i.row.name == "vfma")
  inst = insts.pop(at)
  refused(target, function, reference, "missing")
  insts.insert(len(insts) - 3, inst)
  refused(target, function, reference, "order")

def test_changed_integer_and_foreign_instruction() -> None:
  target, function, reference = crowded()
  store = next(i for b in function.blocks for i in b.insts if i.row.name == "vstore")
  store.operands[1] += 1
  refused(target, function, reference, "operand i1")
  store.operands[1] -= 1
  function.blocks[-1].insts.insert(0, MInst(store.row, list(store.operands)))
  refused(target, function, reference, "not in the unallocated")

def test_registers_that_the_row_does_not_allow() -> None:
  target = lanes(16)
  b = Build(target)
  address, x = b.params("s1", "d1")
  b.emit("dup4", quad := b.new("d4"), x)
  b.emit("st4", address, 0, quad)
  b.emit("exit")
  reference = allocated(target, b.function)
  made = b.at.insts[0]
  made.operands[0] = Reg(quad.cls, -1, 2)
  refused(target, b.function, reference, "dup4", "not aligned")
  made.operands[0] = Reg(quad.cls, -1, 32)
  refused(target, b.function, reference, "dup4", "may not be used")
  made.operands[0] = Reg(quad.cls, -1, 4000)
  refused(target, b.function, reference, "dup4", "which there is not")

def test_fixed_register() -> None:
  target = cisc()
  b = Build(target)
  x, count = b.params("r64", "r64", fixed={0: 3, 1: 1})
  b.emit("shl", y := b.new("r64"), count, ties=(x,))
  b.emit("ret", y)
  reference = allocated(target, b.function)
  shift = b.at.insts[0] if b.at.insts[0].row.name == "shl" else b.at.insts[1]
  b.at.insts.insert(0, MInst(target.table["mov"], [Reg(shift.operands[1].cls, -1, 5), shift.operands[1]]))
  refused(target, b.function, reference, "not in the unallocated")
  b.at.insts.pop(0)
  shift.operands[1] = Reg(shift.operands[1].cls, -1, 5)
  refused(target, b.function, reference, "shl")

def test_random_mutations_are_found() -> None:
  """Replace a register of an instruction by another of its class. The checker finds it unless that register happens to
  hold the same value."""
  found = total = 0
  for seed in range(40):
    rng = random.Random(seed)
    target = cisc(8, 4)
    function = random_function(target, seed, 8, 40)
    reference = allocated(target, function)
    insts = [i for b in function.blocks for i in b.insts if i.row.only_reads and i.row.encoding is not PSEUDO]
    inst = rng.choice(insts)
    i = rng.choice([k for k in inst.row.only_reads])
    old = inst.operands[i]
    inst.operands[i] = Reg(old.cls, -1, rng.choice([k for k in old.cls.bank.allocatable if k != old.index]))
    total += 1
    try: check(function, target, reference)
    except AllocationError: found += 1
  assert found >= total - 6, (found, total)
