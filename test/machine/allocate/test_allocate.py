"""Random functions through order, spill, allocate, check, moves, expand and layout. An interpreter is the oracle.

Then properties of good code.
"""
from __future__ import annotations
import os
import random

import pytest
from hypothesis import given, settings, strategies as st
from generators.invented import Build, cisc, inputs, lanes, matmul_loop, random_function, run

from tinyhw.errors import AllocationError
from tinyhw.machine.allocate.allocate import RegisterAllocator, allocate
from tinyhw.machine.allocate.spill import spill
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.moves import expand, moves
from tinyhw.machine.ir.pseudo import PSEUDO
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.layout import layout
from tinyhw.machine.order.order import order
from tinyhw.machine.verify.allocation import check, snapshot

def compile_checked(function: Function, target: Target) -> Function:
  order(function, target)
  reference = snapshot(function)
  check(allocate(spill(function, target), target), target, reference)
  check(moves(function, target), target, reference)
  return layout(expand(function, target), target)

def agree(target: Target, seed: int, pressure: int, size: int) -> None:
  function = random_function(target, seed, pressure, size)
  data = [inputs(seed + k) for k in range(2)]
  try: expected = [run(function, arguments, memory) for arguments, memory in data]
  except TimeoutError: return
  compile_checked(function, target)
  assert [run(function, arguments, memory, seed=9, fuel=400_000) for arguments, memory in data] == expected

@settings(max_examples=60)
@given(st.integers(0, 1 << 30), st.integers(2, 30), st.integers(10, 60), st.sampled_from([7, 10, 15]),
       st.sampled_from([4, 6, 16]))
def test_random_cisc(seed: int, pressure: int, size: int, general: int, vectors: int) -> None:
  agree(cisc(general, vectors), seed, pressure, size)

@settings(max_examples=60)
@given(st.integers(0, 1 << 30), st.integers(2, 30), st.integers(10, 60), st.sampled_from([16, 20, 32]),
       st.sampled_from([3, 4, 8]))
def test_random_lanes(seed: int, pressure: int, size: int, units: int, scalars: int) -> None:
  agree(lanes(units, scalars), seed, pressure, size)

FUZZ = int(os.environ.get("FUZZ", "0"))

@pytest.mark.skipif(not FUZZ, reason="FUZZ=n runs n functions of each ISA")
def test_many_random() -> None:
  for seed in range(FUZZ):
    rng = random.Random(seed)
    agree(cisc(rng.choice((7, 8, 10, 15)), rng.choice((4, 6, 16))), seed, rng.choice((2, 6, 12, 24, 40)),
          rng.choice((20, 60, 120)))
    agree(lanes(rng.choice((16, 20, 32)), rng.choice((3, 4, 8))), seed, rng.choice((2, 6, 12, 24, 40)),
          rng.choice((20, 60, 120)))

def names(function: Function, block: str) -> list[str]:
  return [i.row.name for b in function.blocks if b.name == block for i in b.insts]

@pytest.mark.parametrize("accumulators,vectors,registers", [(12, 2, 15), (12, 3, 16), (24, 3, 28), (28, 2, 31)])
def test_matmul_that_fits_exactly(accumulators: int, vectors: int, registers: int) -> None:
  """No move and no spill in the inner loop: accumulators, vectors and one broadcast fill all registers."""
  target = cisc(15, min(16, registers))
  if registers > 16: target = cisc(15, registers, wide=True)
  function = compile_checked(matmul_loop(target, accumulators, vectors), target)
  rows = accumulators // vectors
  assert names(function, "loop") == ["vload"] * vectors + (["vload"] + ["vfma"] * vectors) * rows + ["inc", "cmp", "jl"]
  assert function.spills == function.reloads == 0

def test_values_that_rotate_through_a_loop_need_only_their_moves() -> None:
  """a, b = b, a + b: two copies an iteration, before the jump, though the back-edge is critical."""
  target = cisc()
  b = Build(target)
  a0, b0, end = b.params("r64", "r64", "r64")
  entry, loop = b.at, b.block("loop", 1, ("r64", "r64"))
  b.at = entry
  b.emit("jmp", loop, arguments=([a0, b0],))
  b.at = loop
  x, y = loop.params
  z = b.new("r64")
  b.emit("lea", z, x, y, 0)
  b.emit("cmp", z, end)
  done = b.block("done", 0, ("r64",))
  b.at = loop
  b.emit("jl", loop, arguments=([y, z],))
  b.emit("jmp", done, arguments=([z],))
  b.at = done
  b.emit("ret", done.params[0])
  compile_checked(b.function, target)
  assert names(b.function, "loop") == ["lea", "cmp", "mov", "mov", "jl"]
  assert run(b.function, [1, 1, 50], {}) == [("ret", 55)]

def test_tied_value_that_lives_on_is_copied_and_the_other_order_is_tried_first() -> None:
  target = cisc()
  for living, moves_needed in ((False, 0), (True, 1)):  # add commutes: with one value ending here, no copy is needed
    b = Build(target)
    x, y = b.params("r64", "r64")
    z, w = b.new("r64"), b.new("r64")
    b.emit("add", z, y, ties=(x,))
    b.emit("lea", w, x, y if living else z, 0)
    b.emit("lea", q := b.new("r64"), w, z, 0)
    b.emit("store", x, 0, q)
    compile_checked(_returning(b, q), target)
    assert names(b.function, "entry").count("mov") == moves_needed

def _returning(b: Build, value: object) -> Function:
  b.emit("ret", value)
  return b.function

def test_division_moves_what_sits_in_its_registers() -> None:
  target = cisc(10)
  b = Build(target)
  # operands are in each other's registers
  low, high, divisor, other = b.params("r64", "r64", "r64", "r64", fixed={0: 2, 1: 0, 2: 1, 3: 3})
  q, r = b.new("r64"), b.new("r64")
  b.emit("div", q, r, divisor, ties=(low, high))
  b.emit("store", other, 0, r)
  expected = run(_returning(b, q), [1000, 3, 7, 5], {})
  compile_checked(b.function, target)
  assert names(b.function, "entry") == ["xchg", "div", "store", "ret"] or len(names(b.function, "entry")) <= 6
  assert run(b.function, [1000, 3, 7, 5], {}) == expected

def test_scattered_registers_are_gathered_for_a_quad() -> None:
  """Eight singles in sixteen units, every second one: a quad fits only after some of them move."""
  target = lanes(16, 4)
  b = Build(target)
  address = b.params("s1")[0]
  singles = b.many("d1", 16)
  for k, r in enumerate(singles): b.emit("imm", r, k)
  for k in range(0, 16, 2): b.emit("st1", address, k, singles[k])
  quad = b.new("d4")
  b.emit("dup4", quad, singles[1])
  b.emit("st4", address, 40, quad)
  for k in range(1, 16, 2): b.emit("st1", address, k, singles[k])
  b.emit("exit")
  expected = run(b.function, [0], {})
  compile_checked(b.function, target)
  assert run(b.function, [0], {}) == expected
  assert b.function.spills == 0 and names(b.function, "entry").count("mov.d1") <= 4

def test_registers_are_interned_and_used_ones_are_reported() -> None:
  target = cisc(10, 6)
  function = compile_checked(matmul_loop(target, 4, 2), target)
  assert not any(i.row.encoding is PSEUDO for block in function.blocks for i in block.insts)
  assert function.used["vec"] <= set(range(6)) and 7 not in function.used["vec"]

def test_more_parameters_than_registers_are_refused() -> None:
  target = cisc(7, 4)
  b = Build(target)
  values = b.params(*["r64"] * 9)
  for k, r in enumerate(values): b.emit("store", values[0], k, r)
  with pytest.raises(AllocationError, match="small"): compile_checked(_returning(b, values[0]), target)

@pytest.mark.parametrize("count", [2, 6, 12])
def test_a_step_that_values_exceed_anyway_is_no_reason_to_crowd(count: int) -> None:
  """The allocator begins with the first reach that can hold all values."""
  target = cisc(15)
  target.steps = {bank.name: (4, 8) for bank in target.banks}
  b = Build(target)
  x = b.params("r64")[0]
  values = [b.new("r64") for _ in range(count - 1)]
  for v in values: b.emit("lea", v, x, x, 0)
  for v in values: b.emit("lea", b.new("r64"), v, x, 0)
  b.emit("ret", x)
  allocator = RegisterAllocator(b.function, target)
  file = allocator.file.banks[allocator.views[x.id].bank]
  sizes = [reach.bit_count() for reach in file.reaches]
  assert len(sizes) > 2 and allocator.reach[file.position].bit_count() == next(size for size in sizes if size >= count)
