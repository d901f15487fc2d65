"""Bulk tensor copies that signals count: the emulator computes them, and finds each missing wait."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.products import product
from test.isa.sass.machine import SASS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.errors import EmulatorError
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.table.control import Control, unpack
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.isa.sass.table.table import build, table
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program

HALF, CAPABLE = dtypes.float16, capabilities("sm_90")

def boxed(kernel: UOp, columns: int = 64, groups: int = 1) -> tuple[UOp, Program]:
  """Return a kernel with opts for products of four warps and factors from bulk tensor copies, and its Program."""
  matrix = (Opt(OptOps.MATRIX, 0, 64), Opt(OptOps.MATRIX, 1, columns), Opt(OptOps.MATRIX, 2, 64),
            Opt(OptOps.BULK_COPY, 2, 1))
  opts = (*matrix, *[Opt(OptOps.LOCAL, 0, groups)] * (groups > 1), Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1))
  kernel = kernel.replace(arg=KernelInfo(opts=opts))
  return kernel, lower(optimize(kernel, CAPABLE), CAPABLE, "product")

def names(program: Program) -> list[str]: return [inst.row.name for _, inst, _ in assemble(program, "sm_90")[2]]

@pytest.mark.slow
@pytest.mark.parametrize("m, n, k, columns, groups, dtype, transposed", [
  (64, 64, 256, 64, 1, HALF, False), (128, 64, 256, 64, 2, dtypes.bfloat16, True), (72, 136, 256, 128, 1, HALF, False),
  (64, 64, 504, 64, 1, HALF, False)])
def test_products_of_boxes(m: int, n: int, k: int, columns: int, groups: int, dtype: DType, transposed: bool) -> None:
  """Factors lie along the sum and across it. There are one group and two, sizes that are no multiples of the tile, and
  a sum that is no multiple of the steps."""
  kernel, program = boxed(product(m, n, k, dtype, dtypes.float32, transposed), columns, groups)
  found = names(program)
  assert found.count("HGMMA") == 4 and not {"LDGSTS.U", "LDGSTS.plain", "LDG.U", "LDG.plain", "STS",
                                            "DEPBAR.LE"} & set(found)
  # before the loop, and in it
  assert found.count("UTMALDG.plain") == 2 * (1 + (1 if transposed else columns // 64))
  check(kernel, "sm_90")

@pytest.mark.slow
def test_a_batch_and_an_epilogue() -> None:
  """A batch of matrices is one tensor."""
  batch, m, n, k = 2, 64, 64, 256
  out, a, b = UOp.param(0, HALF, batch * m * n), UOp.param(1, HALF, batch * m * k), UOp.param(2, HALF, batch * k * n)
  i, j, x, z = axis(m, 0), axis(n, 1), axis(k, 2, "REDUCE"), axis(batch, 3)
  left, right = (place.load().cast(dtypes.float32) for place in (a.index(z * (m * k) + i * k + x),
                                                                 b.index(z * (k * n) + x * n + j)))
  value = (left * right).reduce(Ops.ADD, x) * 0.5 + 1.0
  store = out.index(z * (m * n) + i * n + j).store(value.cast(HALF), z, i, j)
  kernel, program = boxed(UOp.sink(store))
  assert "UTMALDG.plain" in names(program)
  check(kernel, "sm_90")

@pytest.mark.slow
def test_a_loop_around_ends_signals_before_it_begins_them_again() -> None:
  """Sum over two ranges. The outer one is a loop."""
  batch, m, n, k = 2, 64, 64, 256
  out, a, b = UOp.param(0, dtypes.float32, m * n), UOp.param(1, HALF, batch * m * k), UOp.param(2, HALF, batch * k * n)
  i, j, z, x = axis(m, 0), axis(n, 1), axis(batch, 2, "REDUCE"), axis(k, 3, "REDUCE")
  left, right = (place.load().cast(dtypes.float32) for place in (a.index(z * (m * k) + i * k + x),
                                                                 b.index(z * (k * n) + x * n + j)))
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in (0, 1, 3)), Opt(OptOps.BULK_COPY, 3, 1)
  alone = replace(CAPABLE, matrix=(product_of_group(64, HALF),))  # with it both ranges of the sum stay separate
  kernel = UOp.sink(out.index(i * n + j).store((left * right).reduce(Ops.ADD, z, x), i, j), arg=KernelInfo(opts=opts))
  program = lower(optimize(kernel, alone), alone, "product")
  assert [u.arg for u in program.uops if u.op is Ops.SIGNALS] == [None, "end"]
  data = data_for(kernel)
  wanted, found = ({slot: list(values) for slot, values in data.items()} for _ in range(2))
  evaluate(kernel, wanted)
  SASS.execute(program, "sm_90", found)
  compare("boxes in a loop", wanted, found, 0.0)

@pytest.mark.slow
@pytest.mark.parametrize("name, which", [("SYNCS.ARRIVE", 0), ("SYNCS.EXCH", 0), ("BAR", 0), ("WARPGROUP.DEPBAR", 0),
                                         ("UTMALDG.plain", 1)])
def test_nothing_can_be_left_out(name: str, which: int) -> None:
  """Without one of these instructions, the emulator finds a possible error or a deadlock."""
  kernel, program = boxed(product(64, 64, 512, HALF, dtypes.float32))
  _, _, placed = assemble(program, "sm_90")
  at = [offset for offset, inst, _ in placed if inst.row.name == name][which]
  code = SASS.compile(program, "sm_90")
  nop = encode(build(table("sm_90")["NOP/918"]), unpack(int.from_bytes(code.text[at:at + 16], "little")) or Control())
  hasty = replace(SASS, compile=lambda *_: replace(code, text=code.text[:at] + nop + code.text[at + 16:]))
  with pytest.raises(EmulatorError):
    for seed in range(6): hasty.execute(program, "sm_90", data_for(kernel), seed=seed)
