"""OpenCL C: its text, and on an OpenCL device the results of the interpreter, bit by bit."""
import pytest
from generators import program_builder
from generators.program_builder import (
  INTS, Builder, RandomProgram, add, convert, i32, memory_for, named, workgroups)
from opencl import pocl

from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render import compile_source
from tinyhw.codegen.render.opencl import WORDS, render
from tinyhw.codegen.render.targets import capabilities
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def test_lanes_meet_in_shared_memory() -> None:
  assert render(workgroups(2, 4)) == """\
#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void k_workgroups(__global uchar *memory0, long offset0, __global uchar *memory1, long offset1) {
  __local uchar shared_bytes[64] __attribute__((aligned(64)));
  __global int *data0 = (__global int *)(memory0 + offset0);
  __global int *data1 = (__global int *)(memory1 + offset1);
  __local int *local0 = (__local int *)(shared_bytes + 0);
  { const int i1_1 = get_group_id(0);
    { const int i2_2 = get_local_id(0);
      int v3 = (int)((uint)i1_1 * (uint)(4));
      int v4 = (int)((uint)v3 + (uint)i2_2);
      int v5 = data1[v4];
      local0[i2_2] = v5;
      barrier(CLK_LOCAL_MEM_FENCE);
      int v6 = (int)((uint)i2_2 * (uint)(-1));
      int v7 = (int)((uint)v6 + (uint)(3));
      int v8 = local0[v7];
      data0[v4] = v8;
    }
  }
}
"""

def test_vectors_and_variables() -> None:
  source = render(add(16, 4))
  assert "float4 v3 = vload4(0, data1 + v2);" in source and "vstore4(v5, 0, data0 + v2);" in source
  b = Builder("scaled")
  out, n = b.param(0, i32, 8), b.add(UOp.variable("n", -9, 9, i32))
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, g * n)
  assert "long number1)" in render(b.program()) and "int n1 = (int)number1;" in render(b.program())

@pytest.mark.parametrize(("dtype", "value", "text"), [
  (dtypes.float32, 0.5, "(0.5f)"), (dtypes.float32, float("-inf"), "(-INFINITY)"),
  (dtypes.float64, float("nan"), "NAN"), (dtypes.float16, 1.0, "15360"), (dtypes.int32, -2**31, "INT_MIN"),
  (dtypes.int64, -2**63, "LONG_MIN"), (dtypes.int64, 5, "(5l)"), (dtypes.uint64, 2**64 - 1, "18446744073709551615ul"),
])
def test_literals(dtype: DType, value: object, text: str) -> None:
  assert WORDS.literal(UOp.const(dtype, value)) == text

def test_what_opencl_has_not() -> None:
  with pytest.raises(CompileError, match="convert: OpenCL C has no function decode_float16"):
    render(convert(dtypes.float16, dtypes.float32, 4))
  with pytest.raises(CompileError, match=r"add_15_5: OpenCL C has no vectors of 5 lanes; use \(2, 3, 4, 8, 16\)"):
    render(add(15, 5))
  b = Builder("swap")
  with b.loop(4, AxisType.LOCAL) as l: b.store(b.param(0, i32, 4), l, b.add(UOp(Ops.EXCHANGE, i32, (l,), 1)))
  with pytest.raises(CompileError, match="swap: OpenCL C has no EXCHANGE; compile without matrix units"):
    render(b.program())

@pytest.mark.parametrize("program", [*named(), workgroups(), workgroups(5, 48)], ids=lambda p: p.name)
def test_programs_on_a_device(program: Program) -> None: pocl.check(program, memory_for(program))

@pytest.mark.parametrize("seed", range(8))
def test_random_programs_on_a_device(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All but divisions of integers, whose operands codegen makes positive before."""
  monkeypatch.setattr(program_builder, "INT_OPS", tuple(op for op in program_builder.INT_OPS
                                                        if op not in (Ops.IDIV, Ops.MOD)))
  made = RandomProgram(seed, steps=14, types=(dtypes.float32, dtypes.float64, *INTS, dtypes.bool))
  pocl.check(made.program, made.memory(seed))

@pytest.mark.parametrize("source", (dtypes.float32, dtypes.float64), ids=str)
@pytest.mark.parametrize("target", (*dtypes.ints, dtypes.bool, dtypes.float32), ids=str)
def test_conversions_on_a_device(source: DType, target: DType) -> None:
  program = convert(source, target, 96)
  pocl.check(program, {1: RandomProgram(7, types=(source,), items=96).memory(3)[0], 0: bytearray(96 * target.itemsize)})

def test_products_and_sums_stay_apart_on_a_device() -> None:
  """With a = b = 1 + 2**-12 the rounded product less 1 + 2**-11 is 0; contracted it would be 2**-24."""
  b = Builder("apart")
  out, x = b.param(0, dtypes.float32, 1), b.param(1, dtypes.float32, 2)
  a = b.load(x, 0)
  b.store(out, 0, a * a - b.load(x, 1))
  memory = {0: bytearray(4), 1: bytearray(4 * 2)}
  memoryview(memory[1]).cast("f")[:] = memoryview(bytearray(8)).cast("f")
  memoryview(memory[1]).cast("f")[0], memoryview(memory[1]).cast("f")[1] = 1 + 2.0 ** -12, 1 + 2.0 ** -11
  pocl.run(compile_source(b.program(), "opencl"), memory)
  assert memoryview(memory[0]).cast("f")[0] == 0

@pytest.mark.parametrize("rows, columns", [(3, 5000), (64, 64), (1, 1 << 16)])
def test_lanes_of_codegen_on_a_device(rows: int, columns: int) -> None:
  """Sums of rows, tiled for lanes: shared memory and barriers as codegen makes them."""
  out, x = UOp.param(0, i32, rows), UOp.param(1, i32, rows * columns)
  i, k = UOp.range(rows, 0, AxisType.LOOP), UOp.range(columns, 1, AxisType.REDUCE)
  sink = UOp.sink(out.index(i).store(x.index(i * columns + k).load().reduce(Ops.ADD, k), i))
  found = capabilities("opencl")
  program = lower(optimize(sink, found), found, "rows")
  assert program.lanes >= 32
  memory = memory_for(program, seed=rows)
  numbers = memoryview(bytes(memory[1])).cast("i")
  pocl.run(compile_source(program, "opencl"), memory, (), int(program.grid))
  assert memoryview(memory[0]).cast("i").tolist() == [sum(numbers[r * columns:(r + 1) * columns]) for r in range(rows)]
