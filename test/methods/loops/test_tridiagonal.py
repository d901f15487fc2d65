"""loops/tridiagonal.py against NumPy: eigenvalues, residuals and orthogonality as LAPACK's tests measure them."""
import numpy as np
import pytest

from test.helpers import arrays
from tinyhw import Tensor
from tinyhw.methods.loops.kernel import in_order
from tinyhw.methods.loops.tridiagonal import eigen

def check(a: np.ndarray) -> None:
  n, ulp = a.shape[-1], float(np.finfo(a.dtype).eps)
  values, vectors = eigen(Tensor(a))
  assert vectors is not None
  w, v = values.numpy().astype(np.float64), vectors.numpy().astype(np.float64)
  norm = max(np.abs(a).sum(-1).max(), 1e-30)
  assert np.abs(a @ v - v * w[..., None, :]).max() < 10 * n * ulp * norm
  assert np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(n)).max() < 10 * n * ulp
  np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(a.astype(np.float64)), rtol=0, atol=10 * n * ulp * norm)
  alone = eigen(Tensor(a), False)
  assert alone[1] is None
  np.testing.assert_array_equal(alone[0].numpy(), values.numpy())     # the same steps

def symmetric(shape: tuple[int, ...], kind: type = np.float32) -> np.ndarray:
  a = arrays(shape, dtype=kind)[0]
  return (a + np.swapaxes(a, -1, -2)) / kind(6)

def test_random(engine: str) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  for shape in ((1, 1), (2, 2), (3, 5, 5), (20, 20), (33, 33)) if engine == "CPU" else ((2, 4, 4),):
    check(symmetric(shape))
  if engine == "CPU": check(symmetric((17, 17), np.float64))

@pytest.mark.parametrize("name, a", [
  ("zeros", np.zeros((4, 4))), ("identity", np.eye(5)), ("ones", np.ones((6, 6))),
  ("diagonal", np.diag([1.0, -1, 0.5])),
  ("no diagonal", np.array([[0.0, 1], [1, 0]])), ("tiny beside", np.array([[1.0, 1e-20], [1e-20, -1]])),
  ("graded", np.array([[1.0, 1e-4, 0], [1e-4, 1e-8, 1e-12], [0, 1e-12, 1e-16]])),
  ("of Wilkinson", (np.diag(np.abs(np.arange(-10.0, 11))) + np.diag(np.ones(20), 1) + np.diag(np.ones(20), -1)) / 10)])
def test_awkward(name: str, a: np.ndarray) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  check(a.astype(np.float32))

def test_not_numbers() -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  assert np.isnan(eigen(Tensor([[float("nan"), 1.0], [1.0, 1.0]]))[0].numpy()).any()
