"""Spilling: pressure ends within the limits, stores are outside of loops if possible, constants are rematerialized."""
from __future__ import annotations
from hypothesis import given, settings, strategies as st
from generators.invented import Build, cisc, inputs, lanes, matmul_loop, random_function, run

import pytest

from tinyhw.errors import AllocationError
from tinyhw.machine.allocate.spill import spill
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.pseudo import PSEUDO
from tinyhw.machine.ir.registers import registers_of

def counts(function: Function, block: str) -> tuple[int, int]:
  """(spills, reloads) in the blocks of a name."""
  names = [i.row.name for b in function.blocks if b.name == block for i in b.insts if i.row.encoding is PSEUDO]
  return names.count("spill"), names.count("reload")

@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(8, 40), st.booleans())
def test_pressure_fits_and_meaning_stays(seed: int, pressure: int, gpu: bool) -> None:
  target = lanes(16, 3) if gpu else cisc(7, 4)
  function = random_function(target, seed, pressure, 40)
  data = inputs(seed)
  try: expected = run(function, *data)
  except TimeoutError: return
  spill(function, target)
  assert not any(Liveness(function, registers_of(target)).over)
  assert run(function, *data, fuel=400_000) == expected

def test_nothing_happens_where_everything_fits() -> None:
  target = cisc(10, 15)
  function = matmul_loop(target, 12, 2)
  before = [list(b.insts) for b in function.blocks]
  spill(function, target)
  assert ([list(b.insts) for b in function.blocks] == before and function.stack_bytes == 0
          and function.liveness is not None)

def test_accumulators_in_memory_cost_one_store_and_one_reload_each() -> None:
  """Of the twelve registers, two columns, a broadcast and one reloaded value leave eight for accumulators.

  The parameters of four become slots.
  """
  target = cisc(10, 12)
  function = spill(matmul_loop(target, 12, 2), target)
  assert counts(function, "loop") == (4, 4)
  assert function.stack_bytes == 8 * 4 and not [b for b in function.blocks if b.name == "edge" and b.depth]

def through_a_loop(count: int, vectors: int) -> tuple[Function, int]:
  """A function with `count` values that a loop of one vector accumulator does not use."""
  target = cisc(10, vectors)
  b = Build(target)
  a = b.params("r64")[0]
  idle = b.many("v", count)
  for k, r in enumerate(idle): b.emit("vload", r, a, k)
  zero, end, start = b.new("r64"), b.new("r64"), b.new("v")
  b.emit("movi", zero, 0)
  b.emit("movi", end, 5)
  b.emit("zero", start)
  entry, loop = b.at, b.block("loop", 1, ("r64", "v"))
  b.at = entry
  b.emit("jmp", loop, arguments=([zero, start],))
  b.at = loop
  i, s = loop.params
  x, t, following = b.new("v"), b.new("v"), b.new("r64")
  b.emit("vload", x, a, 9)
  b.emit("vadd", t, s, x)
  b.emit("inc", following, ties=(i,))
  b.emit("cmp", following, end)
  done = b.block("done")
  b.at = loop
  b.emit("jl", loop, arguments=([following, t],))
  b.emit("jmp", done, arguments=([],))
  b.at = done
  for k, r in enumerate(idle): b.emit("vstore", a, k, r)
  b.emit("vstore", a, 50, t)
  b.emit("ret", a)
  spill(b.function, target)
  return b.function, vectors

def test_what_a_loop_does_not_use_is_stored_outside() -> None:
  function, _ = through_a_loop(6, 6)
  assert counts(function, "loop") == (0, 0)
  assert counts(function, "entry")[0] == 2 and function.reloads == 2

def test_constants_are_repeated_instead_of_reloaded() -> None:
  target = cisc(7, 4)
  b = Build(target)
  values = b.many("r64", 12)
  for k, r in enumerate(values): b.emit("movi", r, k)
  for r in values: b.emit("store", values[0], 1, r)
  b.emit("ret", values[3])
  spill(b.function, target)
  assert function_names(b.function).count("spill") == 0 and b.function.stack_bytes == 0
  assert function_names(b.function)[-4:] == ["movi", "store", "store", "ret"]

def function_names(function: Function) -> list[str]: return [i.row.name for b in function.blocks for i in b.insts]

def test_values_across_a_call_leave_its_registers() -> None:
  target = cisc(10, 6)
  b = Build(target)
  a = b.params("r64", fixed={0: 3})[0]
  values = b.many("v", 6)
  for k, r in enumerate(values): b.emit("vload", r, a, k)
  result = b.new("r64")
  b.emit("call", a, result)
  for k, r in enumerate(values): b.emit("vstore", a, k, r)
  b.emit("ret", result)
  spill(b.function, target)
  assert b.function.spills == b.function.reloads == 2  # the call destroys two of six

def test_an_instruction_that_asks_for_too_much_is_named() -> None:
  target = lanes(4, 3)
  b = Build(target)
  address = b.params("s1")[0]
  x, y = b.many("d4", 2)
  b.emit("ld4", x, address, 0)
  b.emit("ld4", y, address, 4)
  b.emit("add4", z := b.new("d4"), x, y)
  b.emit("st4", address, 0, z)
  b.emit("exit")
  with pytest.raises(AllocationError, match="add4.*data 4"): spill(b.function, target)
