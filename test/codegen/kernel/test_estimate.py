"""Operations and bytes of kernels whose numbers are known."""
from test.codegen.kernels import axis, elementwise, matmul, softmax
from tinyhw.codegen.kernel.estimate import estimate, iterations
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def test_matmul() -> None:
  assert estimate(matmul(12, 32, 8)) == (2 * 12 * 32 * 8, 4 * (12 * 8 + 8 * 32 + 12 * 32))

def test_elementwise_and_reductions() -> None:
  assert estimate(elementwise(64, 8, 2)) == (2 * 64, 3 * 64 * 4)
  operations, moved = estimate(softmax(3, 16))
  assert operations == 3 * (16 * 5 + 1) and moved == 2 * 3 * 16 * 4

def test_a_part_of_a_buffer_counts_as_that_part() -> None:
  out, a = UOp.param(0, dtypes.float32, 100), UOp.param(1, dtypes.float32, 100)
  r = axis(10, 0)
  assert estimate(UOp.sink(out.index(r).store(a.index(r * 2).load(), r)))[1] == 2 * 10 * 4

def test_symbolic() -> None:
  n = UOp.variable("n", 1, 50)
  out, a = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, 50)
  r = axis(n, 0, "REDUCE")
  operations, moved = estimate(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.ADD, r))))
  assert isinstance(operations, UOp) and operations.vmax == 50 and isinstance(moved, UOp) and moved.vmax == 51 * 4
  assert iterations((r, axis(3, 1))).vmax == 150  # type: ignore[union-attr]
