"""RISC-V instructions in listings, and the bounds of a product's inner loop."""
from __future__ import annotations
import re

import pytest
from generators.program_builder import Builder

from test.codegen.kernels import axis
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.riscv64 import target
from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.describe import LISTER, bounds, compile_listed, operations, peak_of, state_of, touched
from tinyhw.isa.riscv64.model.latency import find
from tinyhw.machine.ir.inst import MInst
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

V128, V256 = "riscv64:v128", "riscv64:v256"

@pytest.mark.parametrize("text,size,count", [
  ("fmadd.d fa0, fa1, fa2, fa3", 0, 2), ("fdiv.s fa0, fa1, fa2", 0, 1), ("fadd.s fa0, fa1, fa2", 0, 1),
  ("feq.s a0, fa1, fa2", 0, 0), ("ld a0, 8(a1)", 8, 0), ("lbu a0, 8(a1)", 1, 0), ("lwu a0, 8(a1)", 4, 0),
  ("fsh fa0, 0(a1)", 2, 0), ("flw fa0, 0(a1)", 4, 0), ("fsd fa0, 0(a1)", 8, 0), ("sh a0, 0(a1)", 2, 0),
  ("amoadd.w.aqrl a0, a1, (a2)", 4, 0), ("lr.d a0, (a2)", 8, 0), ("add a0, a1, a2", 0, 0),
  ("vl1re8.v v1, (a0)", 16, 0), ("vs2r.v v2, (a0)", 32, 0)])
def test_bytes_and_operations(text: str, size: int, count: int) -> None:
  assert (touched(parse(text), V128), operations(parse(text))) == (size, count)

def selected(program: Program, arch: str) -> list[MInst]:
  return [inst for _, inst in target.assemble(program, arch)[2]]

def scaled(lanes: int, kind: str) -> Program:
  """out = x * x + x, in vectors."""
  b, dtype = Builder("scaled"), getattr(dtypes, kind)
  out, x = b.param(0, dtype, 16 * lanes), b.param(1, dtype, 16 * lanes)
  with b.loop(16, AxisType.GLOBAL) as g:
    value = b.load(x, g * lanes, lanes)
    b.store(out, g * lanes, b.add(b.add(value * value) + value))
  return b.program()

@pytest.mark.parametrize("lanes, kind, size", [(4, "float32", 16), (2, "float64", 16), (2, "float32", 8)])
def test_vectors_count_by_the_state_that_they_need(lanes: int, kind: str, size: int) -> None:
  insts = selected(scaled(lanes, kind), V128)
  loads = [touched(i, V128) for i in insts if i.row.isa.mnemonic.startswith("vle")]
  stores = [touched(i, V128) for i in insts if i.row.isa.mnemonic.startswith("vse") and "set" not in i.row.isa.mnemonic]
  assert loads == stores == [size]
  assert sum(operations(i) for i in insts) == 2 * lanes
  assert {state_of(i) for i in insts} == {(0, 0), (lanes, 8 * size // lanes)}

@pytest.mark.parametrize("name, arch, single", [("p670", V128, 16), ("p670", V256, 32), ("p670", "riscv64:g", 4),
                                                ("u74", "riscv64:rva22", 2)])
def test_peaks(name: str, arch: str, single: float) -> None:
  peaks = peak_of(find(name), arch)
  assert peaks[32] == single and peaks[64] == (single / 2 if arch in (V128, V256) else single)

def test_the_peak_is_that_of_the_element_in_use() -> None:
  how = LISTER.core("p670", V128)
  singles, doubles = (selected(scaled(n, kind), V128) for n, kind in ((4, "float32"), (2, "float64")))
  assert [how.peak(insts) for insts in (singles, doubles, [parse("add a0, a1, a2")])] == [16, 8, 0]

def test_code_is_what_the_target_compiles() -> None:
  program = scaled(4, "float32")
  code, text = compile_listed(program, V128, "p670")
  assert code == target.compile(program, V128)
  assert "vle32.v" in text and "bound of .loop1" in text and "SiFive P670" in text

def product(n: int, arch: str) -> Program:
  """The program of a product of n x n matrices, with the tile that codegen chooses."""
  out, a, b = (UOp.param(k, dtypes.float32, n * n) for k in range(3))
  i, j, k = axis(n, 0), axis(n, 1), axis(n, 2, "REDUCE")
  factors = a.index(i * n + k).load() * b.index(k * n + j).load()
  known = capabilities(arch)
  sink = UOp.sink(out.index(i * n + j).store(factors.reduce(Ops.ADD, k), i, j))
  return lower(optimize(sink, known), known, "product")

@pytest.mark.parametrize("arch", [V128, V256])
def test_the_inner_loop_of_a_product_is_near_the_peak(arch: str) -> None:
  """24 sums, one operand of each product a scalar in a float register: at least 95 % of the multiply-adds."""
  lines = bounds(product(512, arch), arch, "p670")
  shares = [int(found) for line in lines for found in re.findall(r"flop a cycle of \d+, (\d+) %", line)]
  assert shares and max(shares) >= 95, lines
