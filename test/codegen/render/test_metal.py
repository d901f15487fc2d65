"""The Metal Shading Language as text. test/emulator/metal runs it."""
import numpy as np
import pytest
from generators.program_builder import Builder, add, i32, workgroups

from tinyhw.arithmetic import round_to
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render.metal import MATRICES, WORDS, render
from tinyhw.codegen.render.targets import capabilities
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def test_lanes_meet_in_shared_memory() -> None:
  assert render(workgroups(2, 4)) == """\
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
kernel void k_workgroups(device int *data0 [[buffer(0)]], device int *data1 [[buffer(1)]], \
threadgroup uchar *shared_bytes [[threadgroup(0)]], uint group [[threadgroup_position_in_grid]], \
uint lane [[thread_index_in_threadgroup]]) {
  threadgroup int *local0 = (threadgroup int *)(shared_bytes + 0);
  { const int i1_1 = group;
    { const int i2_2 = lane;
      int v3 = (int)((uint)i1_1 * (uint)(4));
      int v4 = (int)((uint)v3 + (uint)i2_2);
      int v5 = data1[v4];
      local0[i2_2] = v5;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int v6 = (int)((uint)i2_2 * (uint)(-1));
      int v7 = (int)((uint)v6 + (uint)(3));
      int v8 = local0[v7];
      data0[v4] = v8;
    }
  }
}
"""

def test_vectors_and_variables() -> None:
  text = render(add(16, 4))
  assert "float4 v3 = *(device float4 *)(data1 + v2);" in text and "*(device float4 *)(data0 + v2) = v5;" in text
  b = Builder("scaled")
  out, n = b.param(0, i32, 8), b.add(UOp.variable("n", -9, 9, i32))
  with b.loop(8, AxisType.GLOBAL) as g: b.store(out, g, g * n)
  assert ("constant long *numbers [[buffer(1)]]" in render(b.program())
          and "int n1 = (int)numbers[0];" in render(b.program()))

def exchanged(dtype: DType) -> Program:
  b = Builder("swap")
  out, x = b.param(0, dtype, 32), b.param(1, dtype, 32)
  with b.loop(32, AxisType.LOCAL) as l: b.store(out, l, b.add(UOp(Ops.EXCHANGE, dtype, (b.load(x, l),), 16)))
  return b.program()

@pytest.mark.parametrize("dtype, text", [
  (dtypes.float32, "float v3 = simd_shuffle_xor(v2, 16);"),
  (dtypes.int64, "long v3 = as_type<long>(uint2(simd_shuffle_xor(as_type<uint2>(v2).x, 16), "
   "simd_shuffle_xor(as_type<uint2>(v2).y, 16)));"),
  (dtypes.int8, "char v3 = char(simd_shuffle_xor(int(v2), 16));"),
  (dtypes.bool, "uchar v3 = uchar(simd_shuffle_xor(int(v2), 16));"),
])
def test_exchanges(dtype: DType, text: str) -> None: assert text in render(exchanged(dtype))

@pytest.mark.parametrize("operand", (dtypes.float16, dtypes.float32), ids=str)
def test_products_are_matrices_of_simd_groups(operand: DType) -> None:
  out, a, b = (UOp.param(slot, dtype, 4096) for slot, dtype in enumerate((dtypes.float32, operand, operand)))
  i, j, k = UOp.range(64, 0, AxisType.LOOP), UOp.range(64, 1, AxisType.LOOP), UOp.range(64, 2, AxisType.REDUCE)
  factors = [x.index(at).load().cast(dtypes.float32) for x, at in ((a, i * 64 + k), (b, k * 64 + j))]
  sink = UOp.sink(out.index(i * 64 + j).store((factors[0] * factors[1]).reduce(Ops.ADD, k), i, j))
  found = capabilities("metal")
  program = lower(optimize(sink, found), found, "product")
  text = render(program)
  element = {dtypes.float16: "half", dtypes.float32: "float"}[operand]
  products = [u for u in program.uops if u.op is Ops.MMA]
  assert products and text.count("simdgroup_multiply_accumulate(") == len(products)
  assert text.count(f"simdgroup_{element}8x8 a") == len(products) and program.lanes % 32 == 0
  assert program.local_bytes and "threadgroup_barrier" in text

@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: str(matrix.operand))
def test_lanes_hold_each_element_once(matrix: object) -> None:
  for layout, axes in ((matrix.a, ("row", "step")), (matrix.b, ("step", "column")), (matrix.c, ("row", "column"))):
    held = {tuple(layout.coordinate(axis, lane, k) for axis in axes) for lane in range(32) for k in range(2)}
    assert len(held) == 64 and layout.contiguous(axes[1]) == 2

def test_what_metal_has_not() -> None:
  with pytest.raises(CompileError, match="Metal has no values of dtypes.float64"): render(add(4, 1, dtypes.float64))
  with pytest.raises(CompileError, match=r"add_15_3: Metal has no vectors of 3 lanes; use \(2, 4\)"): render(add(15, 3))

def test_halves_are_converted_by_the_language() -> None:
  b = Builder("halves")
  out, x = b.param(0, dtypes.float16, 4), b.param(1, dtypes.float16, 4)
  b.store(out, 0, b.add(b.load(x, 0).cast(dtypes.float32) * 2).cast(dtypes.float16))
  text = render(b.program())
  assert "decode_float16(v1)" in text and "return as_type<ushort>(half(x));" in text
  assert WORDS.literal(UOp.const(i32, -2**31)) == "(-2147483647 - 1)"

def test_arguments_have_a_limit() -> None:
  def summed(count: int) -> str:
    b = Builder("sums")
    out, n = b.param(0, i32, 1), b.add(UOp.variable("n", 0, 9, i32))
    total = n
    for k in range(1, count): total = b.add(total + b.load(b.param(k, i32, 1), 0))
    b.store(out, 0, total)
    return render(b.program())
  assert "numbers [[buffer(30)]]" in summed(30)
  text = summed(32)
  assert "struct k_sums_slots { device int *data29; device int *data30; device int *data31; };\n" in text
  assert "numbers [[buffer(29)]], constant k_sums_slots &slots [[buffer(30)]], uint group" in text
  assert "  device int *data30 = slots.data30;\n" in text and "data30 [[buffer" not in text
  with pytest.raises(CompileError, match="sums: Metal has 541 arguments, not 542; realize parts of the expression"):
    summed(542)

@pytest.mark.parametrize("value", (0.1, 1e-45, 3.4028234663852886e38, -1e20, 16777217.0, 2.0**-126, 5e-39))
def test_literals_are_exact(value: float) -> None:
  """In decimal: hexadecimal floats are C++17, and Metal is C++14."""
  rounded = round_to(dtypes.float32)(value)
  text = WORDS.literal(UOp.const(dtypes.float32, value))
  assert "x" not in text and np.float32(text.strip("()f")) == np.float32(rounded)
