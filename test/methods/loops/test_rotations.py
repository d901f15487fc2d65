"""loops/rotations.py against NumPy: singular values, residuals, and orthogonality, of small columns, too."""
import numpy as np
import pytest

from test.helpers import arrays
from tinyhw import Tensor
from tinyhw.methods.loops.kernel import in_order
from tinyhw.methods.loops.rotations import orthogonal_columns

def check(a: np.ndarray) -> None:
  n, ulp = a.shape[-1], float(np.finfo(a.dtype).eps)
  found, turned = orthogonal_columns(Tensor(a))
  assert turned is not None
  columns, v = found.numpy().astype(np.float64), turned.numpy().astype(np.float64)
  assert np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(n)).max() < 10 * n * ulp
  norm = max(np.linalg.norm(a.astype(np.float64), 2, (-2, -1)).max(), 1e-30)
  assert np.abs(a @ v - columns).max() < 10 * n * ulp * norm
  s = np.sqrt((columns ** 2).sum(-2))
  np.testing.assert_allclose(-np.sort(-s), np.linalg.svd(a.astype(np.float64))[1], rtol=0, atol=10 * n * ulp * norm)
  u = columns / np.where(s, s, 1)[..., None, :]      # small columns are orthogonal, too
  assert np.abs(np.swapaxes(u, -1, -2) @ u - (s > 0)[..., None] * np.eye(n)).max() < 10 * n * ulp
  alone = orthogonal_columns(Tensor(a), False)
  assert alone[1] is None
  np.testing.assert_allclose(alone[0].numpy(), found.numpy(), rtol=0, atol=10 * n * ulp * norm)

def test_random(engine: str) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  for shape in ((1, 1), (2, 2), (5, 3), (3, 6, 5), (20, 20), (40, 33)) if engine == "CPU" else ((2, 4, 3),):
    check(arrays(shape)[0] / np.float32(3))
  if engine == "CPU": check(arrays((20, 17), dtype=np.float64)[0] / 3)

@pytest.mark.parametrize("name, s", [
  ("small", 10.0 ** -np.linspace(0, 7, 24)), ("equal", np.ones(24)), ("of rank 3", np.r_[1.0, 0.5, 0.2, np.zeros(21)]),
  ("in two groups", np.r_[np.ones(12), np.full(12, 1e-3)]), ("nothing", np.zeros(24))])
def test_of_known_values(name: str, s: np.ndarray) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  u, _, v = np.linalg.svd(arrays((24, 24), dtype=np.float64)[0])
  check(((u * s) @ v).astype(np.float32))
