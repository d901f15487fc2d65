"""Python source computes exactly the same as the interpreter."""

import pytest
from generators.program_builder import (
  Builder, RandomProgram, convert_to_all, i32, matmul, memory_for, named, same_memory, softmax, vectorize, workgroups)

from tinyhw import arithmetic
from tinyhw.codegen.render.python import render
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def run(program: Program, memory: dict[int, bytearray], variables: tuple[int, ...] = (), first: int = 0,
        last: int | None = None) -> None:
  namespace = dict(vars(arithmetic))
  exec(render(program), namespace)
  namespace["kernel"]([memory[p.arg[0]] for p in program.params], variables, first, program.grid if last is None
                      else last)

def check(program: Program, memory: dict[int, bytearray]) -> None:
  again = {k: bytearray(v) for k, v in memory.items()}
  evaluate(program, memory)
  run(program, again)
  same_memory(program, memory, again)

@pytest.mark.parametrize("program", named() + [softmax()], ids=lambda p: p.name)
def test_programs(program: Program) -> None: check(program, memory_for(program))

@pytest.mark.parametrize("lanes", (1, 2, 3, 8))
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, lanes: int) -> None:
  program = RandomProgram(seed, lanes=lanes, steps=16)
  check(program.program, program.memory(seed))

@pytest.mark.parametrize("source", dtypes.all, ids=str)
def test_conversions(source: DType) -> None:
  outputs = {i + 1: bytearray(24 * target.itemsize) for i, target in enumerate(dtypes.all)}
  check(convert_to_all(source, 24), {0: RandomProgram(0, types=(source,), items=24).memory(7)[0], **outputs})

def test_part_of_a_grid_and_variables() -> None:
  b = Builder("part")
  out, n, m = b.param(0, i32, 8), b.add(UOp.variable("n", 0, 9, i32)), b.add(UOp.variable("a", 0, 9, i32))
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, g * n + m)
  memory = {0: bytearray(32)}
  run(b.program(), memory, (100, 2), 3, 5)  # variables go by name: a, n
  assert memoryview(memory[0]).cast("i").tolist() == [0, 0, 0, 106, 108, 0, 0, 0]

def test_buffers_come_in_the_order_of_slots_without_gaps() -> None:
  """A kernel that simplification left without one of its buffers is called with the others."""
  b = Builder("gap")
  out, x = b.param(0, i32, 4), b.param(2, i32, 4)
  with b.loop(4, AxisType.GLOBAL) as g: b.store(out, g, b.load(x, g) * 2)
  check(b.program(), {0: bytearray(16), 2: bytearray(range(16))})

def test_lanes_of_an_accumulator_are_read_when_they_stand() -> None:
  b = Builder("swap")
  out = b.param(0, i32, 2)
  acc = b.accumulator(vectorize(UOp.const(i32, 1), UOp.const(i32, 2)))
  with b.loop(3): b.assign(acc, vectorize(UOp(Ops.GEP, i32, (acc,), 1), UOp(Ops.GEP, i32, (acc,), 0)))
  b.store(out, 0, acc)
  check(b.program(), {0: bytearray(8)})

def test_rounding_is_left_out_where_memory_rounds() -> None:
  assert "t[0]" in render(matmul(2)) and render(matmul(2)).count("t[0] =") == 2
  add_only = render(named()[0])
  assert "t[0] =" not in add_only

def test_what_the_device_has_not() -> None:
  with pytest.raises(CompileError, match="workgroups: device PYTHON has no BARRIER; compile without workgroups"):
    render(workgroups())
