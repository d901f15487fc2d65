"""Products on the matrix unit: executed by the emulator, whose own layouts come from the vendor's calculator, beside the interpreter."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.isa.amd.matrix import Unit, units
from tinyhw.isa.amd.table import table
from tinyhw.isa.amd.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

UNITS = [(arch, unit) for arch in ARCHS for unit in units(generation_of(arch))]
NAMES = [f"{arch}-{unit.key}" for arch, unit in UNITS]

def product(m: int, n: int, k: int, operand: DType, result: DType, transposed: bool = False) -> UOp:
  """out[i, j] = sum over x of a[i, x] * b[x, j]."""
  out, a, b = UOp.param(0, result, m * n), UOp.param(1, operand, m * k), UOp.param(2, operand, k * n)
  i, j, x = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE")
  right = b.index(j * k + x if transposed else x * n + j).load()
  return UOp.sink(out.index(i * n + j).store((a.index(i * k + x).load().cast(result) * right.cast(result)).reduce(Ops.ADD, x), i, j))

@pytest.mark.parametrize("arch, unit", UNITS, ids=NAMES)
def test_layouts_have_the_registers_of_the_instruction(arch: str, unit: Unit) -> None:
  matrix, specs = unit.matrix, table(generation_of(arch).arch)[unit.key].isa.specs
  assert matrix.a is not None and matrix.b is not None and matrix.c is not None
  assert [specs[k].type.count for k in range(3)] == [matrix.c.count, matrix.a.count, matrix.b.count]

@pytest.mark.parametrize("arch, unit", UNITS, ids=NAMES)
def test_one_tile_and_several(arch: str, unit: Unit) -> None:
  x = unit.matrix
  for sizes in ((x.m, x.n, x.k), (2 * x.m, 2 * x.n, 4 * x.k)):
    kernel = product(*sizes, x.operand, x.result)
    names = [inst.row.name for block in assemble(lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p"), arch)[0].blocks
             for inst in block.insts]
    if any(other.matrix != x and other.matrix.operand is x.operand and sizes[0] >= other.matrix.m and sizes[2] >= other.matrix.k
           and sizes[1] >= other.matrix.n for _, other in UNITS if _ == arch): continue  # a better one is chosen
    assert unit.key in names
    check(kernel, arch, what=f"{unit.key} {sizes}")

@pytest.mark.parametrize("arch", ARCHS)
def test_what_does_not_divide_and_a_transposed_factor(arch: str) -> None:
  check(product(37, 50, 40, dtypes.float16, dtypes.float32), arch)
  check(product(32, 32, 32, dtypes.float16, dtypes.float32, transposed=True), arch)

@pytest.mark.parametrize("arch", ARCHS)
def test_sums_stay_in_their_registers(arch: str) -> None:
  """The loop along the sum copies no accumulators."""
  program = lower(optimize(product(64, 64, 256, dtypes.float16, dtypes.float32), capabilities(arch)), capabilities(arch), "p")
  for block in assemble(program, arch)[0].blocks:
    for inst in block.insts:
      if inst.row.pipe in ("wmma", "mfma"):
        assert inst.operands[0] == inst.operands[3] or not hasattr(inst.operands[3], "cls")
        around = [other.row.name for other in block.insts]
        assert around.count("v_mov_b32") < 8
