"""Vectors in OpenCL C: whole operations where there are forms, and on an OpenCL device the interpreter's results."""
import pytest
from generators import program_builder
from generators.program_builder import INTS, Builder, RandomProgram, convert, memory_for
from opencl import pocl

from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render import compile_source
from tinyhw.codegen.render.opencl import render
from tinyhw.codegen.render.targets import capabilities
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def binary(op: Ops, dtype: DType, lanes: int = 4) -> Program:
  b = Builder("binary")
  result = dtypes.bool if op in GroupOp.Comparison else dtype
  out, x, y = b.param(0, result, lanes), b.param(1, dtype, lanes), b.param(2, dtype, lanes)
  b.store(out, 0, b.add(UOp(op, result.vec(lanes), (b.load(x, 0, lanes), b.load(y, 0, lanes)))))
  return b.program()

@pytest.mark.parametrize("op, dtype, text", [
  (Ops.ADD, dtypes.float32, "float4 v3 = v1 + v2;"), (Ops.MUL, dtypes.uint16, "ushort4 v3 = v1 * v2;"),
  (Ops.ADD, dtypes.int32, "int4 v3 = as_int4(as_uint4(v1) + as_uint4(v2));"),
  (Ops.CMPLT, dtypes.float64, "uchar4 v3 = convert_uchar4(-(v1 < v2));"),
  (Ops.CMPNE, dtypes.int8, "uchar4 v3 = as_uchar4(-(v1 != v2));"), (Ops.SHR, dtypes.int64, "long4 v3 = v1 >> v2;"),
  (Ops.AND, dtypes.bool, "uchar4 v3 = v1 & v2;"), (Ops.MOD, dtypes.uint32, "uint4 v3 = v1 % v2;"),
])
def test_operators(op: Ops, dtype: DType, text: str) -> None: assert text in render(binary(op, dtype))

@pytest.mark.parametrize("source, target, text", [
  (dtypes.int64, dtypes.float32, "convert_float4(v"), (dtypes.float32, dtypes.float64, "convert_double4(v"),
  (dtypes.int32, dtypes.bool, "convert_uchar4(-(v"), (dtypes.float32, dtypes.int32, "float32_to_int32(v"),
])
def test_conversions(source: DType, target: DType, text: str) -> None:
  assert text in render(convert(source, target, 8, 4))

@pytest.mark.parametrize("lanes", (3, 4, 16))
@pytest.mark.parametrize("seed", range(5))
def test_random_vectors_on_a_device(seed: int, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All but divisions and shifts of integers, whose operands codegen restricts before."""
  monkeypatch.setattr(program_builder, "INT_OPS", tuple(op for op in program_builder.INT_OPS if op not in (
    Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR)))
  made = RandomProgram(seed, lanes=lanes, steps=16, types=(dtypes.float32, dtypes.float64, *INTS, dtypes.bool))
  pocl.check(made.program, made.memory(seed))

@pytest.mark.parametrize("dtype", (dtypes.uint8, dtypes.float32, dtypes.int64), ids=str)
def test_vectors_of_codegen_have_at_most_16_lanes(dtype: DType) -> None:
  """A vector of 64 bytes would hold 64 bytes; OpenCL C has no such type."""
  out, x = UOp.param(0, dtype, 4096), UOp.param(1, dtype, 4096)
  i = UOp.range(4096, 0, AxisType.LOOP)
  sink = UOp.sink(out.index(i).store(x.index(i).load() + x.index(i).load(), i))
  found = capabilities("opencl:fp64+vectors64")
  program = lower(optimize(sink, found), found, "twice")
  assert max(u.dtype.count for u in program.uops) == min(16, 64 // dtype.itemsize) and program.lanes == 1
  assert compile_source(program, "opencl:fp64+vectors64").lanes == 1
  pocl.check(program, memory_for(program))
