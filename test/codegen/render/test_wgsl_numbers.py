"""Arithmetic as WGSL: literals, types, and what keeps compilers from changing floats."""
import pytest
from generators.program_builder import Builder

from tinyhw.codegen.render.wgsl import render
from tinyhw.codegen.render.wgsl_numbers import literal, type_of
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize(("dtype", "value", "text"), [
  (dtypes.float32, 0.5, "0.5f"), (dtypes.float32, -0.0, "(-0.0f)"), (dtypes.float32, 1e30, "1.0000000150474662e+30f"),
  (dtypes.float32, float("-inf"), "bitcast<f32>(0xff800000u ^ zero)"), (dtypes.float16, 1.0, "15360u"),
  (dtypes.int32, -2**31, "(-2147483647i - 1i)"), (dtypes.int8, -5, "(-5i)"), (dtypes.uint16, 5, "5u"),
  (dtypes.int64, -2, "vec2<u32>(4294967294u, 4294967295u)"), (dtypes.uint64, 1 << 32, "vec2<u32>(0u, 1u)"),
  (dtypes.bool, True, "true")])
def test_literals(dtype: DType, value: object, text: str) -> None:
  assert literal(UOp.const(dtype, value)) == text

def test_types() -> None:
  assert [type_of(d) for d in (dtypes.bool, dtypes.int16, dtypes.uint8, dtypes.bfloat16, dtypes.uint64.vec(4))] == [
    "bool", "i32", "u32", "u32", "vec2<u32>"]
  with pytest.raises(CompileError, match="WGSL has no values of dtypes.float64; cast to float32"):
    type_of(dtypes.float64)

def line(op: Ops, *operands: object, dtype: DType = dtypes.float32) -> str:
  """The line that computes an operation; "x" is a loaded number."""
  b = Builder("one")
  out, data = b.param(0, dtype, 4), b.param(1, dtype, 4)
  with b.loop(4, AxisType.GLOBAL) as g:
    x = b.load(data, g)
    u = b.add(UOp(op, dtype, tuple(x if o == "x" else b.add(UOp.const(dtype, o)) for o in operands)))
    b.store(out, g, u)
  return [text.partition(" = ")[2] for text in render(b.program()).splitlines() if "let v" in text][-1]

def test_compilers_do_not_know_what_they_would_misuse() -> None:
  assert line(Ops.MUL, "x", 0.0).endswith("* exact(0.0f));") and line(Ops.ADD, "x", 0.5).endswith("+ 0.5f);")
  subtracted = line(Ops.SUB, "x", "x")
  name = subtracted.split("(")[1].split(" ")[0]
  assert subtracted == f"exact({name} - exact({name}));"
  assert line(Ops.FDIV, "x", 3.0).endswith("/ exact(3.0f));")
  assert line(Ops.ADD, 2**31 - 1, 1, dtype=dtypes.int32) == "(2147483647i ^ bitcast<i32>(zero)) + 1i;"
  assert line(Ops.MULACC, "x", "x", 0.5).startswith("fused(")
