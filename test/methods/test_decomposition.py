"""qr and svd against NumPy's (LAPACK), and their gradients against differences."""
import numpy as np
import pytest

from test.helpers import arrays, check_gradient, only_on, wide_types
from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.errors import ShapeError

SHAPES = [(1, 1), (3, 3), (4, 2), (2, 4), (5, 1), (1, 3), (2, 3, 2), (2, 0, 3), (0, 2, 2), (3, 0)]

def shapes_on(engine: str) -> list[tuple[int, ...]]:
  """Return all shapes, or a few where another program compiles each kernel."""
  return SHAPES if engine != "CLANG" else [(3, 2), (2, 0, 3)]

def close(got, want, kind) -> None:
  assert got.shape == want.shape and got.dtype == want.dtype
  np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 if kind == np.float32 else 1e-14)

@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_qr(engine, kind):
  for shape in shapes_on(engine):
    a = arrays(shape, dtype=kind)[0]
    for got, want in zip(Tensor(a).qr(), np.linalg.qr(a, mode="complete")): close(got.numpy(), want, kind)

@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False])
def test_svd(engine, full):
  for kind, shapes in ((np.float32, shapes_on(engine)), (np.float64, [(3, 2), (2, 3)]))[:len(wide_types())]:
    for shape in shapes:
      a = arrays(shape, dtype=kind)[0]
      u, s, v = (x.numpy() for x in Tensor(a).svd(full))
      want = np.linalg.svd(a, full_matrices=full)
      assert (u.shape, v.shape) == (want[0].shape, want[2].shape)
      close(s, want[1], kind)
      k = s.shape[-1]
      close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a, kind)
      close(np.swapaxes(u, -1, -2) @ u,
            np.broadcast_to(np.eye(u.shape[-1], dtype=kind), (*shape[:-2], u.shape[-1], u.shape[-1])), kind)
      close(v @ np.swapaxes(v, -1, -2),
            np.broadcast_to(np.eye(v.shape[-2], dtype=kind), (*shape[:-2], v.shape[-2], v.shape[-2])), kind)

@pytest.mark.slow
@pytest.mark.parametrize("name, a", [("zeros", np.zeros((3, 2))), ("of rank 1", np.outer([1.0, 2, 3], [1.0, -1])),
                                     ("huge", np.eye(2) * 1e300),
                                     ("tiny", np.array([[1e-300, 0], [2e-300, 3e-300]])), ("repeated", np.eye(3))])
def test_awkward_matrices(name, a):
  u, s, v = (x.numpy() for x in Tensor(a).svd())
  size = max(np.abs(a).max(), 1e-320)
  np.testing.assert_allclose(s / size, np.linalg.svd(a)[1] / size, rtol=0, atol=1e-14)
  np.testing.assert_allclose(u.T @ u, np.eye(len(u)), rtol=0, atol=1e-14)
  np.testing.assert_allclose((u[:, :len(s)] * s) @ v[:len(s)] / size, a / size, rtol=0, atol=1e-14)
  q, r = (x.numpy() for x in Tensor(a).qr())
  np.testing.assert_allclose(q @ r / size, a / size, rtol=0, atol=1e-14)
  np.testing.assert_array_equal(r, np.triu(r))

@pytest.mark.slow
def test_types():
  for x in (Tensor([[1, 2], [3, 4]]), Tensor([[1.0, 2], [3, 4]]).half()):
    kinds = {t.dtype for t in (*x.qr(), *x.svd())}
    assert kinds == {dtypes.float16 if x.dtype is dtypes.float16 else dtypes.float32}
    q, r = x.qr()
    np.testing.assert_allclose((q @ r).numpy(), [[1, 2], [3, 4]], atol=5e-3)

@pytest.mark.slow
def test_not_numbers():
  assert np.isnan(Tensor([[float("nan"), 1.0], [0.0, 1.0]]).svd()[1].numpy()).any()

@pytest.mark.slow
def test_gradients(engine):
  only_on(engine, "CPU", "PYTHON", why="hundreds of decompositions")
  check_gradient(lambda x: x.qr()[0][:, :2], (3, 2), tolerance=1e-5)
  check_gradient(lambda x: x.qr()[1], (3, 2), tolerance=1e-5)
  check_gradient(lambda x: x.svd()[1], (2, 3), tolerance=1e-5)
  check_gradient(lambda x: (lambda u, s, v: u.square() @ v.square() + s)(*x.svd(False)), (2, 2), tolerance=1e-5)
  # a function of the space that the added columns span
  check_gradient(lambda x: (lambda u: u @ u.transpose(-2, -1))(x.svd()[0][:, 2:]), (3, 2), tolerance=1e-5)

def test_refused():
  for f in (lambda x: x.qr(), lambda x: x.svd()):
    with pytest.raises(ShapeError, match="matrices"): f(Tensor([1.0, 2.0]))

@pytest.mark.slow
def test_replayed(engine):
  if engine == "interpreter": pytest.skip("replays run kernels")
  f = TinyJit(lambda x: tuple(x.svd()))
  for seed in range(4):
    a = arrays((3, 3), seed=seed)[0]
    np.testing.assert_allclose(f(Tensor(a).realize())[1].numpy(), np.linalg.svd(a)[1], atol=1e-5)
