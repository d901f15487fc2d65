"""The layout of products' operands in shared memory, and their copies."""
import math
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, count
from test.codegen.matrix.test_matrix import APART, matmul
from test.codegen.plan.test_workgroup import F32, LANES, run
from tinyhw.codegen.lower.linearize import AHEAD_BYTES
from tinyhw.codegen.matrix.local import Pieces, distance_along, packed_place, pieces_of, has_bank_conflicts
from tinyhw.codegen.matrix.operands import ProductRange, WorkgroupTile
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize("size", [(16, 8, 16), (32, 13, 16)])
def test_local_memory_has_columns_in_the_order_of_lanes(size: tuple[int, int, int]) -> None:
  assert APART.b is not None and has_bank_conflicts(APART.b, "column", 16)
  assert not has_bank_conflicts(APART.b, "column", 8)
  program = run(matmul(*size), replace(LANES, lanes=32, matrix=(APART,)))
  assert count(program, Ops.MMA) >= 1 and any(u.op is Ops.STORE and u.src[1].dtype.count == 4 for u in program.uops)

def test_where_local_memory_has_a_column() -> None:
  digits = APART.b.digits("column") if APART.b is not None else ()
  found = [packed_place(UOp.const(dtypes.weakint, k), digits).arg for k in range(32)]
  assert found == [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, *(16 + k for k in found[:16])]

def test_along_what_a_factor_is_copied() -> None:
  """Memory may be contiguous along the rows, along the steps, or along neither. The first elements show it, also where
  a range has digits."""
  r, k = axis(16, 0), axis(16, 1)
  assert distance_along(r * 16 + k, k, 8) == 1 and distance_along(r * 16 + k, r, 8) == 16
  assert distance_along(k % 16 + r * 40, k, 8) == 1 and distance_along(k // 8 * 99 + k % 8 * 2, k, 8) == 2
  data = UOp.param(0, dtypes.int32, 16).index(k).load().cast(dtypes.weakint)
  for varying in (k // 4 * 99 + k % 4, data, r): assert distance_along(varying, k, 8) == math.inf

def cut(index: UOp, gate: UOp | None = None, transposes: bool = False, aligned: bool = True) -> tuple[bool, Pieces]:
  """Return the blocks of an operand of 64 rows (range 0) by 64 steps (range 1) for 64 lanes. index: of its elements."""
  row, step, lane = axis(64, 0, "UPCAST"), axis(64, 1, "UNROLL"), axis(64, 2, "LOCAL")
  tile = WorkgroupTile(ProductRange((row,)), ProductRange((lane,)), ProductRange((step,)), (lane,), False, aligned)
  place = UOp.param(1, dtypes.float16, 1 << 20).index(index)
  return pieces_of(place.load() if gate is None else place.load(gate), tile, tile.row, 64, transposes)

def test_blocks_of_pieces() -> None:
  """Contiguous elements that can be loaded at once are one load. Otherwise adjacent lanes load adjacent elements, and
  store pieces the other way."""
  r, k = axis(64, 0, "UPCAST"), axis(64, 1, "UNROLL")
  pieces, steps_beside, rows_beside = Pieces(1, 8, 1), Pieces(8, 1, 1), Pieces(1, 8, 64)
  assert cut(r * 64 + k) == (False, pieces) and cut(k * 64 + r, transposes=True) == (True, Pieces(8, 1, 8))
  assert (cut(r * 68 + k) == (False, Pieces(1, 4, 1)) and cut(r * 65 + k, aligned=False)
          == (False, pieces)), "as far as it must be aligned"
  for odd in (k * 2 + r * 64, k // 8 * 101 + k % 8 + r * 64):
    assert cut(odd) == (False, steps_beside) and cut(odd, transposes=True) == (True, steps_beside)
  for odd in (r * 2 + k * 64, r // 8 * 101 + r % 8 + k * 64):
    assert cut(odd) == cut(odd, transposes=True) == (False, rows_beside)
  assert cut(r // 8 * 104 + r % 8 + k * 64, transposes=True) == (True, Pieces(8, 1, 8)), "digits that begin with pieces"
  assert cut(r // 8 * 104 + r % 8 + k * 64, k + r < 100, True) == (False, rows_beside), "a gate for each"
  assert cut(k * 3 + r // 5 * 1000 + r % 5 * 7) == (False, pieces), "rows at different distances"

def test_factors_are_loaded_some_steps_ahead() -> None:
  """A step has 16 bytes of each operand: AHEAD_BYTES are three more steps.

  No product waits for the last load before it.
  """
  program = run(matmul(4, 32, 8), replace(LANES, threads=64))
  kinds = [u.op for u in program.uops if u.op is Ops.MMA or u.op is Ops.LOAD and u.src[0].src[0].op is Ops.DEFINE_LOCAL]
  assert AHEAD_BYTES == 96 and kinds == [Ops.LOAD] * 8 + [Ops.MMA, Ops.LOAD, Ops.LOAD] * 4 + [Ops.MMA] * 4

def test_loads_with_one_gate_stand_together() -> None:
  """A gate is then live for a short time, since predicates are few.

  Lanes have 4 steps of 4 rows, whose gates depend on the steps.
  """
  out, a, w = UOp.param(0, F32, 64), UOp.param(1, F32, 256), UOp.param(2, F32, 256)
  i, j, k = axis(8, 0), axis(8, 1), axis(16, 2, "REDUCE")
  left = a.index(i // 2 * 32 + i % 2 * 3 + k * 7 % 16).load(k % 4 + i % 2 > 0)
  program = run(UOp.sink(out.index(i * 8 + j).store((left * w.index(k * 8 + j).load()).reduce(Ops.ADD, k), i, j)))
  gates = [u.src[1] for u in program.uops if u.op is Ops.LOAD and len(u.src) > 1]
  changes = sum(one is not other for one, other in zip(gates, gates[1:]))
  assert len(gates) > len(set(gates)) and changes == len(set(gates)) - 1
