"""loops/columns.py: factorizations in one kernel against NumPy's products, for sizes around the widths of vectors, on
every device that has them."""
import numpy as np
import pytest

from test.helpers import arrays
from tinyhw import Tensor
from tinyhw.methods.loops import columns
from tinyhw.methods.loops.kernel import in_order

SHAPES = [(1, 1), (5, 5), (2, 5, 3), (3, 7), (33, 20), (2, 17, 40), (70, 70)]

def shapes_on(engine: str) -> list[tuple[int, ...]]:
  """Return all shapes, or few where kernels are slow or another program compiles them."""
  return SHAPES if engine == "CPU" else SHAPES[2:4]

def swapped(a: np.ndarray) -> np.ndarray: return np.swapaxes(a, -1, -2)

def close(found: np.ndarray, want: np.ndarray) -> None:
  np.testing.assert_allclose(found, want, rtol=0, atol=30 * 2.0**-24 * max(want.shape[-2:]) * np.abs(want).max())

def test_lu(engine: str) -> None:
  for shape in shapes_on(engine):
    a = arrays(shape)[0]
    if not in_order(Tensor(a)): pytest.skip("no long loops")
    both, order, pivots, signs = (x.numpy() for x in columns.lu(Tensor(a)))
    k = min(shape[-2:])
    low, up = np.tril(both, -1)[..., :k] + np.eye(shape[-2], k), np.triu(both)[..., :k, :]
    rows = np.take_along_axis(a, order[..., None].repeat(shape[-1], -1), -2)
    close(low @ up, rows)
    assert np.abs(low).max() <= 1
    np.testing.assert_array_equal(pivots, np.diagonal(both, 0, -2, -1))
    if shape[-2] <= shape[-1]:     # taller ones may exchange rows that stay below
      for one, sign in zip(order.reshape(-1, shape[-2]), signs.reshape(-1, k).prod(-1)):
        assert round(np.linalg.det(np.eye(shape[-2])[one])) == sign

def test_lu_of_awkward_matrices() -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  both, order, pivots, _ = columns.lu(Tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 3.0, 4.0]]))
  assert both.tolist() == [[0, 0, 1], [0, 3, 4], [0, 0, 2]] and order.tolist() == [0, 2, 1]
  assert pivots.tolist() == [0, 3, 2]
  ties = columns.lu(Tensor([[1.0, 2.0], [-1.0, 3.0]]))      # the first of equal ones
  assert ties.order.tolist() == [0, 1] and ties.both.tolist() == [[1, 2], [-1, 5]]
  assert columns.lu(Tensor([[float("nan"), 1.0], [1.0, 1.0]])).order.tolist() == [1, 0]

def test_cholesky(engine: str) -> None:
  for shape in shapes_on(engine):
    n = shape[-2]
    a = arrays((*shape[:-2], n, n))[0]
    if not in_order(Tensor(a)): pytest.skip("no long loops")
    a = a @ swapped(a) + np.eye(n, dtype=np.float32) * n
    low = columns.cholesky(Tensor(np.tril(a)[..., :min(n, 20)])).numpy()     # the other triangle is not read
    close((low @ swapped(low))[..., :min(n, 20)], a[..., :min(n, 20)])
    np.testing.assert_array_equal(low, np.tril(low))

@pytest.mark.parametrize("upper", [False, True])
def test_substituted(engine: str, upper: bool) -> None:
  for n, k in ((1, 1), (5, 3), (33, 20), (20, 70)) if engine == "CPU" else ((5, 3),):
    a, b = arrays((2, n, n), (2, n, k))
    if not in_order(Tensor(a)): pytest.skip("no long loops")
    for unit in (False, True):
      full = a + 0 if unit else a + 2 * np.sqrt(n).astype(np.float32) * np.eye(n, dtype=np.float32)
      if unit: full /= n
      half = np.triu(full, 1) if upper else np.tril(full, -1)
      half += np.eye(n) if unit else full * np.eye(n)
      close(half @ columns.substituted(Tensor(full), Tensor(b), upper, unit).numpy(), b)

def test_reflections(engine: str) -> None:
  for shape in shapes_on(engine):
    a = arrays(shape)[0]
    if not in_order(Tensor(a)): pytest.skip("no long loops")
    steps = min(shape[-2] - 1, shape[-1])
    if not steps: continue
    vectors, scales, r = columns.reflected(Tensor(a), steps)
    q = columns.product(vectors, scales, shape[-2]).numpy()
    close(q @ r.numpy(), a)
    close(swapped(q) @ q, np.broadcast_to(np.eye(shape[-2]), q.shape))
    np.testing.assert_array_equal(r.numpy(), np.triu(r.numpy()))

def test_panels(monkeypatch: pytest.MonkeyPatch) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  monkeypatch.setattr(columns, "MOST_COLUMNS", 8)
  for shape in ((30, 21), (21, 30), (2, 20, 20)):
    a = arrays(shape)[0]
    vectors, scales, r = columns.triangle(Tensor(a), min(shape[-2] - 1, shape[-1]))
    q = columns.product(vectors, scales, shape[-2]).numpy()
    close(q @ r.numpy(), a)
    np.testing.assert_allclose(np.tril(r.numpy(), -1), 0, atol=0)
