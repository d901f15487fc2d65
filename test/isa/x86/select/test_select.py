"""Selection of whole Programs: loops, variables, conditions, addresses, shared memory and arguments, executed by the
processor in Python."""
from __future__ import annotations

from generators.program_builder import Builder, add, fold, gather, i32, matmul, memory_for, named, pad
import pytest
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.capabilities import LEVELS
from tinyhw.isa.x86.select.select import select
from tinyhw.isa.x86.target import assemble, target
from tinyhw.machine.ir.inst import Effect, Function
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32 = dtypes.float32
levels = pytest.mark.parametrize("arch", LEVELS)

def run(program: Program, arch: str) -> None:
  memory = memory_for(program)
  x86_kernels.run(program, arch, [bytes(memory[p.arg[0]]) for p in program.params])

def selected(program: Program, arch: str = "x86_64:avx2") -> Function: return select(program, target(arch))

def names(function: Function, depth: int | None = None) -> list[str]:
  """Names of instructions, in blocks of a loop depth if one is given."""
  return [i.row.name for b in function.blocks if depth in (None, b.depth) for i in b.insts]

PROGRAMS = [*(p for p in named() if p.name != "add_15_3"), matmul(3), pad(20, 5, 4), gather(16, 9, 8), fold(3, 4)]

@levels
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program, arch: str) -> None: run(program, arch)

@levels
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int16, F32, dtypes.float64, dtypes.bool], ids=str)
def test_addresses(dtype: DType, arch: str) -> None:
  """Scales that an address can have, and others; displacements; a computed index, and a constant one."""
  b = Builder("addresses")
  out, a = b.param(0, dtype, 90), b.param(1, dtype, 400)
  with b.loop(5, AxisType.GLOBAL) as g:
    for k, at in enumerate((g, g + 7, g * 8 + 3, g * 80, g * -3 + 12, g * g, UOp.const(i32, 399))):
      b.store(out, g * 18 + k, b.load(a, at))
    with b.loop(3) as r: b.store(out, g * 18 + r * 2 + 9, b.load(a, g * 16 + r * 4 + 1))
  run(b.program(), arch)

@levels
def test_loops_that_may_not_run_and_sizes_of_64_bits(arch: str) -> None:
  b = Builder("loops")
  out, ends = b.param(0, i32, 16), b.param(1, i32, 4)
  with b.loop(4, AxisType.GLOBAL) as g:
    total, wide = b.accumulator(b.const(i32, 100)), b.accumulator(b.const(dtypes.int64, 5))
    end = b.add(b.load(ends, g).maximum(0).minimum(9))
    with b.loop(end) as r:
      with b.loop(2) as s: b.assign(total, total + r * s + 1)
    with b.loop(b.add(end.cast(dtypes.int64))) as w: b.assign(wide, wide + w)
    b.store(out, g, total)
    b.store(out, g + 4, b.add(wide.cast(i32)))
  run(b.program(), arch)

@levels
def test_conditions_gates_and_variables_of_every_kind(arch: str) -> None:
  b = Builder("conditions")
  out, a = b.param(0, F32, 24), b.param(1, F32, 8)
  with b.loop(8, AxisType.GLOBAL) as g:
    x = b.load(a, g)
    flag = b.accumulator(b.add(x < UOp.const(F32, 5.0)))
    with b.loop(3) as r: b.assign(flag, flag.alu(Ops.XOR, r < 2))
    with b.when(flag): b.store(out, g, x)
    b.store(out, g + 8, x + 1, b.add(g < 5))
    b.store(out, g + 16, b.load(a, g * 2, 1, b.add(g < 4), -1.0))
  run(b.program(), arch)

@levels
def test_variables_that_exchange_their_values(arch: str) -> None:
  """Fibonacci: the loop carries two values, and each is assigned from the other."""
  b = Builder("fibonacci")
  out = b.param(0, i32, 12)
  with b.loop(12, AxisType.GLOBAL) as g:
    p, q = b.accumulator(b.const(i32, 0)), b.accumulator(b.const(i32, 1))
    with b.loop(g):
      both = b.add(p + q)
      b.assign(p, b.add(q + 0))
      b.assign(q, both)
    b.store(out, g, p)
  run(b.program(), arch)

@levels
def test_local_memory(arch: str) -> None:
  b = Builder("local")
  out, a = b.param(0, i32, 12), b.param(1, i32, 12)
  small, kept = b.local(dtypes.uint8, 3), b.local(i32, 4)
  with b.loop(3, AxisType.GLOBAL) as g:
    b.store(small, 1, b.add(g.cast(dtypes.uint8)))
    with b.loop(4) as r: b.store(kept, r, b.load(a, g * 4 + r))
    with b.loop(4) as r: b.store(out, g * 4 + r, b.load(kept, b.add(r * -1 + 3)) + b.load(small, 1).cast(i32))
  program = b.program()
  run(program, arch)
  assert selected(program, arch).local_bytes == program.local_bytes == 128

def test_what_a_user_takes_is_not_emitted() -> None:
  """docs/design/isa.md: a load is an operand, an index an address, a constant an immediate."""
  inside = names(selected(add(16, 8)), 1)
  assert (sum(n == "vmovups" for n in inside) == 2 and sum(n == "vaddps" for n in inside)
          == 1), "one load, the other is an operand, one store"
  b = Builder("immediate")
  out, a = b.param(0, i32, 9), b.param(1, i32, 9)
  with b.loop(9, AxisType.GLOBAL) as g: b.store(out, g, b.load(a, g) + 5)
  assert names(selected(b.program()), 1)[:3] == ["mov", "lea", "mov"], "load, add, store"

def test_a_load_is_not_moved_over_a_store() -> None:
  b = Builder("fence")
  out, a = b.param(0, F32, 8), b.param(1, F32, 8)
  with b.loop(4, AxisType.GLOBAL) as g:
    before = b.load(out, g)
    b.store(out, g, b.load(a, g))
    b.store(out, g + 4, before + b.load(a, g + 1))
  for arch in LEVELS: run(b.program(), arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
def test_more_constants_than_registers(arch: str) -> None:
  """The first ones are made before the grid's loop, the others at their use. None is spilled, and none is made
  twice."""
  b, count = Builder("constants"), 80
  out, x = b.param(0, dtypes.float32, 32), b.param(1, dtypes.float32, 32)
  with b.loop(2, AxisType.GLOBAL) as g:
    value = b.load(x, g * 16, 4)
    for k in list(range(count)) + [0, 1]: value = b.add(value * UOp.const(value.dtype, 1 + k / 64))
    b.store(out, g * 16, value)
  program = b.program()
  function = selected(program, arch)
  made = [[i for i in block.insts if i.row.rematerialize] for block in function.blocks]
  assert sum(map(len, made)) == count and 0 < len(made[0]) < target(arch).capabilities.vector_registers
  assert assemble(program, arch)[0].spills == 0
  run(program, arch)

def test_arguments_and_loop_depths() -> None:
  function = selected(matmul(4))
  assert max(b.depth for b in function.blocks) == 3 and function.blocks[0].depth == 0
  assert len(function.fixed_params) == len(function.blocks[0].params), ("each argument comes in a register of the "
                                                                        "convention")
  assert all(b.insts[-1].row.effects & Effect.END for b in function.blocks)

def test_what_cannot_be_is_refused() -> None:
  with pytest.raises(CompileError, match="add_15_3: a vector of 3 bytes cannot be loaded"):
    selected(add(15, 3, dtypes.uint8))
  out = UOp.param(0, F32, 1)
  value = UOp(Ops.LOAD, F32, (UOp(Ops.INDEX, F32, (UOp.param(1, F32, 1), UOp.const(i32, 0))),))
  store = UOp(Ops.INDEX, F32, (out, UOp.const(i32, 0))).store(value + 1)
  with pytest.raises(CompileError, match="no value for"):
    selected(Program("broken", (out, UOp.const(i32, 0), store.src[0], store)))
