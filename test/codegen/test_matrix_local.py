"""How factors of products lie in local memory, and how they get there."""
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, count
from test.codegen.test_matrix import APART, matmul
from test.codegen.test_workgroup import LANES, run
from tinyhw.codegen.linearize import AHEAD_BYTES
from tinyhw.codegen.matrix_local import lies_along, packed_place, reads_apart
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize("size", [(16, 8, 16), (32, 13, 16)])
def test_local_memory_has_columns_in_the_order_of_lanes(size: tuple[int, int, int]) -> None:
  assert APART.b is not None and reads_apart(APART.b, "column", 16) and not reads_apart(APART.b, "column", 8)
  program = run(matmul(*size), replace(LANES, lanes=32, matrix=(APART,)))
  assert count(program, Ops.MMA) >= 1 and any(u.op is Ops.STORE and u.src[1].dtype.count == 4 for u in program.uops)

def test_where_local_memory_has_a_column() -> None:
  digits = APART.b.digits("column") if APART.b is not None else ()
  found = [packed_place(UOp.const(dtypes.weakint, k), digits).arg for k in range(32)]
  assert found == [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, *(16 + k for k in found[:16])]

def test_along_what_a_factor_is_copied() -> None:
  """Memory may lie along the rows, along the steps, or along neither; the first elements tell, also where a range has digits."""
  r, k = axis(16, 0), axis(16, 1)
  assert lies_along(r * 16 + k, k, 8) and not lies_along(r * 16 + k, r, 8)
  assert lies_along(k % 16 + r * 40, k, 8) and lies_along(k // 8 * 99 + k % 8, k, 8) and not lies_along(k // 4 * 99 + k % 4, k, 8)
  data = UOp.param(0, dtypes.int32, 16).index(k).load().cast(dtypes.weakint)
  assert not lies_along(data, k, 8)

def test_factors_are_loaded_some_steps_ahead() -> None:
  """16 bytes of each factor a step: AHEAD_BYTES are three steps more. No product waits for what was loaded just before."""
  program = run(matmul(4, 32, 8), replace(LANES, threads=64))
  kinds = [u.op for u in program.uops if u.op is Ops.MMA or u.op is Ops.LOAD and u.src[0].src[0].op is Ops.DEFINE_LOCAL]
  assert AHEAD_BYTES == 96 and kinds == [Ops.LOAD] * 8 + [Ops.MMA, Ops.LOAD, Ops.LOAD] * 4 + [Ops.MMA] * 4
