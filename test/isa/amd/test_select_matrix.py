"""Groups of registers: which elements stand beside each other, and how others are put together."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.select import Selector
from tinyhw.isa.amd.select_matrix import adjacent, swallowed_loads
from tinyhw.codegen.program import Program
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import by_columns
from tinyhw.uop.ops import UOp

HALF = dtypes.float16
LOCAL = UOp(Ops.DEFINE_LOCAL, HALF, (), (0, 64))
BASE = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 8))

def element(offset: int, buffer: UOp = LOCAL) -> UOp:
  i = UOp(Ops.ADD, dtypes.int32, (BASE, UOp.const(dtypes.int32, offset))) if offset else BASE
  return UOp(Ops.LOAD, HALF, (UOp(Ops.INDEX, HALF, (buffer, i)),))

def vector(*elements: UOp) -> UOp: return UOp(Ops.VECTORIZE, HALF.vec(len(elements)), elements)

def test_adjacent_elements() -> None:
  assert adjacent(vector(*map(element, range(4)))) is element(0).src[0]
  assert adjacent(vector(*map(element, range(2, 6)))) is element(2).src[0]
  for offsets in ((0, 1, 3, 2), (0, 2, 4, 6), (1, 0)): assert adjacent(vector(*map(element, offsets))) is None
  assert adjacent(vector(element(0), element(1, UOp.param(0, HALF, 64)))) is None
  assert adjacent(vector(element(0, UOp.param(0, HALF, 64)), element(1, UOp.param(0, HALF, 64)))) is None, "only local memory is read so"

def test_loads_that_only_a_group_wants() -> None:
  factor, other = vector(*map(element, range(4))), vector(*map(element, range(4, 8)))
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, other, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  alone = swallowed_loads((*factor.src, *other.src, factor, other, product))
  assert alone == {*factor.src, *other.src}
  more = UOp(Ops.CAST, dtypes.float32, (factor.src[0],))
  assert swallowed_loads((*factor.src, *other.src, factor, other, product, more)) == {*factor.src[1:], *other.src}

@pytest.mark.parametrize("arch", ARCHS)
def test_factors_that_are_loaded_whole(arch: str) -> None:
  """Eight or sixteen halves of a factor are one or two loads."""
  out, a, b = UOp.param(0, dtypes.float32, 64 * 64), UOp.param(1, HALF, 64 * 64), UOp.param(2, HALF, 64 * 64)
  i, j, x = axis(64, 0), axis(64, 1), axis(64, 2, "REDUCE")
  total = a.index(i * 64 + x).load().cast(dtypes.float32) * b.index(x * 64 + j).load().cast(dtypes.float32)
  kernel = UOp.sink(out.index(i * 64 + j).store(total.reduce(Ops.ADD, x), i, j))
  program = lower(optimize(kernel, capabilities(arch)), capabilities(arch), "p")
  names = [inst.row.name for block in Selector(program, arch).run().blocks for inst in block.insts]
  assert sum(name.startswith("load_") for name in names) == 2 and not any(name.startswith("pack") for name in names)
  check(kernel, arch)

def test_another_shape_is_refused() -> None:
  factor = vector(*map(element, range(4)))
  zero = UOp(Ops.CONST, dtypes.float32.vec(4), (), 0.0)
  product = UOp(Ops.MMA, dtypes.float32.vec(4), (factor, factor, zero), by_columns(4, 8, 4, HALF, dtypes.float32, 8))
  with pytest.raises(CompileError, match="gfx1100 has no matrix unit for Matrix.m=4"):
    Selector(Program("k", (BASE, LOCAL, *factor.src, factor, zero, product)), "gfx1100").run()
