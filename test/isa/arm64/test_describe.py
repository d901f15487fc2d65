"""AArch64 instructions in listings, and the bounds of a product's inner loop."""
from __future__ import annotations
import re

import pytest
from generators.program_builder import Builder

from test.codegen.kernels import axis
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.plan.register_tile import TOGETHER
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64 import target
from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.isa.arm64.capabilities import capabilities
from tinyhw.isa.arm64.describe import LISTER, bounds, compile_listed, operations, peak_of, touched
from tinyhw.isa.arm64.model.latency import find
from tinyhw.machine.model.scoreboard import bound
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCH = "arm64:neon"

@pytest.mark.parametrize("text,size,count", [
  ("fmla v0.4s, v1.4s, v2.s[1]", 0, 8), ("fmadd d0, d1, d2, d3", 0, 2), ("fdiv v0.2d, v1.2d, v2.2d", 0, 2),
  ("fadd s0, s1, s2", 0, 1), ("bfdot v0.4s, v1.8h, v2.2h[0]", 0, 16), ("bfdot v0.2s, v1.4h, v2.4h", 0, 8),
  ("sdot v0.4s, v1.16b, v2.16b", 0, 0),
  ("add v0.4s, v1.4s, v2.4s", 0, 0), ("ldr q0, [x1, x2, lsl #4]", 16, 0), ("ldp x0, x1, [x2]", 16, 0),
  ("strh w0, [x1]", 2, 0), ("ldrsb x0, [x1]", 1, 0), ("ldrsw x0, [x1, #8]", 4, 0),
  ("ld2 { v0.4s, v1.4s }, [x0], #32", 32, 0), ("str x0, [sp, #8]", 8, 0), ("add x0, x1, #8", 0, 0)])
def test_bytes_and_operations(text: str, size: int, count: int) -> None:
  assert (touched(parse(text)), operations(parse(text))) == (size, count)

@pytest.mark.parametrize("name,single", [("a72", 8), ("n1", 16), ("v1", 32), ("v2", 32), ("firestorm", 32)])
def test_peaks(name: str, single: int) -> None:
  """Pairs of bfloat16 go through the same ports."""
  assert peak_of(find(name)) == {32: single, 64: single / 2, 16: 2 * single}

def test_the_peak_is_that_of_the_element_in_use() -> None:
  how = LISTER.core("v1", ARCH)
  texts = ("fadd v0.4s, v1.4s, v2.4s", "fadd d0, d1, d2", "add x0, x1, x2")
  assert [how.peak([parse(t)]) for t in texts] == [32, 16, 0]

def test_code_is_what_the_target_compiles() -> None:
  b = Builder("twice")
  out, x = b.param(0, dtypes.float32, 64), b.param(1, dtypes.float32, 64)
  with b.loop(16, AxisType.GLOBAL) as g: b.store(out, g * 4, b.add(b.load(x, g * 4, 4) + b.load(x, g * 4, 4)))
  code, text = compile_listed(b.program(), ARCH, "n1")
  assert code == target.compile(b.program(), ARCH)
  assert "fadd v0.4s" in text and "bound of .loop1" in text and "Neoverse N1" in text

def product(n: int, arch: str = ARCH, dtype: DType = dtypes.float32) -> Program:
  """The program of x @ w.T of n x n matrices (in float32: x @ w), with the tile that codegen chooses."""
  narrow = dtype is not dtypes.float32
  total = dtypes.int32 if dtype is dtypes.int8 else dtype
  out, a, b = UOp.param(0, total, n * n), UOp.param(1, dtype, n * n), UOp.param(2, dtype, n * n)
  i, j, k = axis(n, 0), axis(n, 1), axis(n, 2, "REDUCE")
  first, second = a.index(i * n + k).load(), b.index(j * n + k if narrow else k * n + j).load()
  if dtype is dtypes.int8: first, second = first.cast(total), second.cast(total)
  known = capabilities(arch)
  sink = UOp.sink(out.index(i * n + j).store((first * second).reduce(Ops.ADD, k), i, j))
  return lower(optimize(sink, known), known, "product")

CORES = ("n1", "v1", "v2", "firestorm")

@pytest.mark.parametrize("arch,dtype", [(ARCH, dtypes.float32), ("arm64:bf16", dtypes.bfloat16)])
@pytest.mark.parametrize("name", CORES)
def test_the_inner_loop_of_a_product_is_near_the_peak(name: str, arch: str, dtype: DType) -> None:
  """24 accumulators, products by element, and few loads: at least 90 % of the peak of the multiply-add pipes."""
  lines = bounds(product(512, arch, dtype), arch, name)
  shares = [int(found) for line in lines for found in re.findall(r"flop a cycle of \d+, (\d+) %", line)]
  assert shares and max(shares) >= 90, lines

@pytest.mark.parametrize("arch", ("arm64:dotprod", "arm64:bf16"))
@pytest.mark.parametrize("name", CORES)
def test_the_inner_loop_of_a_product_of_bytes_is_near_the_peak(name: str, arch: str) -> None:
  """24 sums of four products, by element, in bodies of several steps: at least 90 % of the rate of sdot."""
  lines = bounds(product(512, arch, dtypes.int8), arch, name)
  cycles = [float(found) for line in lines for found in re.findall(r"bound of .*: ([\d.]+) cycles", line)]
  rate = 1 / bound([parse("sdot v0.4s, v1.16b, v2.16b")], find(name).costs, find(name).issue_width).ports
  assert 0.9 <= 24 * TOGETHER / rate / cycles[-1] <= 1, lines
