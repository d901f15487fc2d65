"""A lane's elements of a matrix are one STORE for each row, until legalize."""
from dataclasses import replace

import pytest

from test.codegen.kernels import count
from test.codegen.matrix.test_matrix import plain
from test.codegen.plan.test_workgroup import F32, LANES, run
from tinyhw.codegen.lower.legalize import legalize
from tinyhw.codegen.optimize import optimize
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Layout, Matrix, Scattered
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.inbounds import outside

# A lane has two columns of each block of eight, in two rows.
BLOCKS = Matrix(4, 16, 4, F32, F32, 8, Layout((("row", 4, 1), ("", 2, 0)), (("step", 4, 1),)),
                Layout((("column", 8, 1),), (("step", 4, 1), ("column", 2, 8))),
                Layout((("column", 4, 2), ("row", 2, 1)), (("column", 2, 1), ("row", 2, 2), ("column", 2, 8))))
UNITS = replace(LANES, matrix=(BLOCKS,))

def scattered(kernel: UOp, units: Capabilities = UNITS) -> list[UOp]:
  return [u for u in optimize(kernel, units).src if isinstance(u.arg, Scattered)]

@pytest.mark.parametrize("result", [F32, dtypes.float16])
def test_a_row_is_one_store_until_the_end(result: DType) -> None:
  kernel = plain(4, 8, 16, result)
  assert [(s.arg, s.arg.reach) for s in scattered(kernel)] == [(Scattered(2, ((0, 0), (4, 8))), 10),
                                                               (Scattered(2, ((2, 0), (6, 8))), 10)]
  program = run(kernel, replace(UNITS, vector_operations=UNITS.vector_operations | {(Ops.CAST, dtypes.float16)}))
  stores = [u for u in program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM]
  assert count(program, Ops.MMA) >= 1 and len(stores) == 4 and {u.src[1].dtype for u in stores} == {result.vec(2)}

@pytest.mark.parametrize("size", [(8, 8, 32), (12, 4, 48), (5, 8, 16), (9, 8, 40), (16, 13, 33)])
@pytest.mark.parametrize("threads", [1, 4, 64])
def test_several_matrices_and_rests(size: tuple[int, int, int], threads: int) -> None:
  run(plain(*size), replace(UNITS, threads=threads))

def test_what_cannot_be_cast_or_stored_at_once() -> None:
  """Pieces are as wide as the target's operations."""
  for result, units in (F32, replace(UNITS, vector_bytes=4)), (dtypes.float16, UNITS):
    stores = [u for u in run(plain(4, 8, 16, result), units).uops if u.op is Ops.STORE
              and u.src[0].src[0].op is Ops.PARAM]
    assert len(stores) == 8 and {u.src[1].dtype for u in stores} == {result}

def test_distances_that_do_not_fit() -> None:
  """An index of 32 bits becomes one of 64 bits where a piece is too far from it."""
  out, at = UOp.param(0, F32, 1 << 32), UOp.variable("at", 0, (1 << 31) - 5, dtypes.int32)
  store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, F32, (out, at)), UOp(Ops.CONST, F32.vec(4), (), 1.0)),
              Scattered(2, ((0, 0), (2, 8))))
  made = legalize(UOp.sink(store), UNITS)
  assert [s.src[0].src[1].dtype for s in made.src] == [dtypes.int32,
                                                       dtypes.int64] and all(s.arg is None for s in made.src)

def test_accesses_are_checked_up_to_the_last_piece() -> None:
  stores = scattered(plain(4, 8, 16))   # of rows 0 and 1, and of rows 2 and 3
  assert [[outside(s, size) is None for s in stores] for size in (64, 63, 32, 31)] == [[True, True], [True, False],
                                                                                       [True, False], [False, False]]

def test_other_kernels_stay_as_they_are() -> None:
  assert not scattered(plain(4, 8, 16), LANES)
