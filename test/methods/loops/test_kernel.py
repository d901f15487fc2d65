"""loops/kernel.py: a kernel whose steps see the stores of earlier ones, on every device that has them."""
import numpy as np
import pytest

from test.helpers import arrays
from tinyhw import Tensor
from tinyhw.dtype import dtypes
from tinyhw.function import function
from tinyhw.methods.loops.kernel import Loops, MatrixParam, count_of, in_order, run, width_of
from tinyhw.uop.ops import KernelInfo, UOp

def test_running_sums_of_rows(engine: str) -> None:
  """Each row adds the row before it; then its first element is doubled, which the next row sees."""
  a = arrays((2, 5, 33))[0]
  x = Tensor(a).clone()
  if not in_order(x): pytest.skip("no long loops")
  loops = Loops(2, dtypes.float32)
  rows = MatrixParam(loops, 0, 2, 5, 33)
  k, j = loops.steps(4), loops.loop(33)
  own = (*loops.each, k)
  run(UOp.sink(rows.at(k + 1, j).store(rows(k + 1, j) + rows(k, j), *own, j),
               rows.at(k + 1, 0).store(rows(k + 1, 0) * 2.0, *own), arg=KernelInfo()), (x,))
  for k in range(4):
    a[:, k + 1] += a[:, k]
    a[:, k + 1, 0] *= 2
  np.testing.assert_array_equal(x.numpy(), a)

def test_sizes() -> None:
  assert count_of([2, 3]) == 6 and count_of([]) == 1
  assert width_of(5, dtypes.float32) == (5, 5) and width_of(20, dtypes.float32) == (32, 32)
  assert width_of(250, dtypes.float32) == (256, 64) and width_of(40, dtypes.float64) == (40, 8)

def test_inside_of_a_function_nothing_runs() -> None:
  """There, decompositions are expressions, whatever the device."""
  a = arrays((3, 3))[0]
  @function
  def factor(x: Tensor) -> Tensor:
    assert not in_order(x)
    return x.qr()[0]
  np.testing.assert_allclose(np.abs(factor(Tensor(a)).numpy()), np.abs(Tensor(a).qr()[0].numpy()), atol=1e-6)
