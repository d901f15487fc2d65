"""WGSL: its text, and on a WebGPU adapter the results of the interpreter, bit by bit."""
import pytest
from generators import program_builder
from generators.program_builder import (
  INTS, Builder, RandomProgram, add, convert, i32, memory_for, named, workgroups)
from webgpu import adapter

from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render import compile_source, targets
from tinyhw.codegen.render.targets import capabilities
from tinyhw.codegen.render.wgsl import render
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def test_lanes_meet_in_shared_memory() -> None:
  assert render(workgroups(2, 4)) == """\
@group(0) @binding(0) var<storage, read_write> data0: array<i32>;
@group(0) @binding(1) var<storage, read_write> data1: array<i32>;
@group(1) @binding(0) var<uniform> numbers: array<vec4<u32>, 2>;
var<private> zero: u32;
var<workgroup> local0: array<i32, 4>;
@compute @workgroup_size(4)
fn k_workgroups(@builtin(workgroup_id) place: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  zero = numbers[numbers[0].x].x;
  let group = place.y * numbers[0].z + place.x;
  if (group >= numbers[0].y) { return; }
  let start0 = numbers[0].w >> 2u;
  let start1 = numbers[1].x >> 2u;
  { let i1_7: i32 = i32(group);
    { let i2_8: i32 = i32(lane);
      let v1: i32 = i1_7 * 4i;
      let v2: i32 = v1 + i2_8;
      let v3: i32 = data1[start1 + u32(v2)];
      local0[u32(i2_8)] = v3;
      workgroupBarrier();
      let v4: i32 = i2_8 * (-1i);
      let v5: i32 = v4 + 3i;
      let v6: i32 = local0[u32(v5)];
      data0[start0 + u32(v2)] = v6;
    }
  }
}
"""

def test_parts_of_words_variables_and_gates() -> None:
  b = Builder("scaled")
  out, x, n = b.param(0, dtypes.int8, 8), b.param(1, dtypes.float16, 8), b.add(UOp.variable("n", -9, 9, i32))
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, b.add(UOp(Ops.CAST, dtypes.int8, (n,))))
  source = render(b.program())
  assert "data0: array<atomic<u32>>" in source and "data1: array<u32>" in source
  assert ": i32 = bitcast<i32>(numbers[1].y);" in source and "start0 = numbers[0].w >> 0u;" in source
  assert "extractBits(v1, 0u, 8u)" in source and "atomicAnd(&data0[" in source and "atomicOr(&data0[" in source
  assert x.arg == (1, 8)

def test_iterations_of_a_lane() -> None:
  b = Builder("loops")
  out = b.param(0, i32, 64)
  with b.loop(4, AxisType.GLOBAL) as g, b.loop(32, AxisType.LOCAL), b.loop(5, AxisType.LOOP):
    with b.loop(7, AxisType.LOOP) as k: b.store(out, g, k)
  assert targets.iterations(b.program()) == 5 + 5 * 7
  with pytest.raises(CompileError, match="loops: this driver ends the loops of a kernel after 39 iterations, and a "
                     "lane needs 40; use smaller tensors, or another device"):
    targets.compile(b.program(), "wgsl:loops39")
  assert targets.compile(b.program(), "wgsl:loops40").lanes == 32

def test_what_wgsl_has_not() -> None:
  with pytest.raises(CompileError, match="WGSL has no values of dtypes.float64; cast to float32"):
    render(add(16, 1, dtypes.float64))
  with pytest.raises(CompileError, match="convert: WGSL does not convert dtypes.float16 to dtypes.float32; decomp"):
    render(convert(dtypes.float16, dtypes.float32, 4))
  b = Builder("swap")
  with b.loop(4, AxisType.LOCAL) as l: b.store(b.param(0, i32, 4), l, b.add(UOp(Ops.EXCHANGE, i32, (l,), 1)))
  with pytest.raises(CompileError, match="swap: WGSL has no EXCHANGE; compile without matrix units"):
    render(b.program())

@pytest.mark.parametrize("program", [*named(), workgroups(), workgroups(5, 48)], ids=lambda p: p.name)
def test_programs_on_a_device(program: Program) -> None: adapter.check(program, memory_for(program))

@pytest.mark.parametrize("seed", range(16))
def test_random_programs_on_a_device(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All but divisions and shifts of integers, whose operands codegen limits before."""
  monkeypatch.setattr(program_builder, "INT_OPS", tuple(op for op in program_builder.INT_OPS
                                                        if op not in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR)))
  made = RandomProgram(seed, steps=14, types=(dtypes.float32, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
                                              dtypes.bool))
  adapter.check(made.program, made.memory(seed))

@pytest.mark.parametrize("source", (*INTS, dtypes.float32), ids=str)
@pytest.mark.parametrize("target", (*dtypes.ints, dtypes.bool, dtypes.float32), ids=str)
def test_conversions_on_a_device(source: DType, target: DType) -> None:
  program = convert(source, target, 96)
  adapter.check(program, {1: RandomProgram(7, types=(source,), items=96).memory(3)[0],
                          0: bytearray(96 * target.itemsize)})

def test_products_and_sums_stay_apart_on_a_device() -> None:
  """With a = b = 1 + 2**-12 the rounded product less 1 + 2**-11 is 0; contracted it would be 2**-24."""
  b = Builder("apart")
  out, x = b.param(0, dtypes.float32, 1), b.param(1, dtypes.float32, 2)
  a = b.load(x, 0)
  b.store(out, 0, a * a - b.load(x, 1))
  memory = {0: bytearray(4), 1: bytearray(4 * 2)}
  memoryview(memory[1]).cast("f")[0], memoryview(memory[1]).cast("f")[1] = 1 + 2.0 ** -12, 1 + 2.0 ** -11
  adapter.run(compile_source(b.program(), "wgsl"), memory)
  assert memoryview(memory[0]).cast("f")[0] == 0

@pytest.mark.parametrize("count", (4, 32))
def test_a_sum_begins_with_a_positive_zero_on_a_device(count: int) -> None:
  """Also where the compiler unrolls the loop: the sum of negative zeros is 0.0."""
  out, x = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, count)
  k = UOp.range(count, 0, AxisType.REDUCE)
  sink = UOp.sink(out.index(UOp.const(i32, 0)).store(x.index(k).load().reduce(Ops.ADD, k)))
  program = lower(sink, capabilities("wgsl"), "zeros")
  memory = {0: bytearray(b"\xff" * 4), 1: bytearray(b"\0\0\0\x80" * count)}
  adapter.check(program, memory)
  assert memory[0] == bytes(4)

@pytest.mark.parametrize("rows, columns", [(3, 5000), (64, 64), (1, 1 << 16)])
def test_lanes_of_codegen_on_a_device(rows: int, columns: int) -> None:
  """Sums of rows, tiled for lanes: shared memory and barriers as codegen makes them."""
  out, x = UOp.param(0, i32, rows), UOp.param(1, i32, rows * columns)
  i, k = UOp.range(rows, 0, AxisType.LOOP), UOp.range(columns, 1, AxisType.REDUCE)
  sink = UOp.sink(out.index(i).store(x.index(i * columns + k).load().reduce(Ops.ADD, k), i))
  found = capabilities("wgsl")
  program = lower(optimize(sink, found), found, "rows")
  assert program.lanes >= 32
  memory = memory_for(program, seed=rows)
  numbers = memoryview(bytes(memory[1])).cast("i")
  adapter.run(compile_source(program, "wgsl"), memory, (), int(program.grid))
  assert memoryview(memory[0]).cast("i").tolist() == [sum(numbers[r * columns:(r + 1) * columns]) for r in range(rows)]
