"""loops/schur.py against NumPy: residuals and orthogonality of Schur's form, as LAPACK's tests measure them."""
import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.methods.loops.kernel import in_order
from tinyhw.methods.loops.schur import triangle_vectors, triangular_form

def check(a: np.ndarray) -> None:
  n, kind = a.shape[-1], a.real.dtype
  ulp = float(np.finfo(kind).eps)
  t, z = triangular_form(Tensor(a.real.copy()), Tensor(a.imag.copy().astype(kind)))
  triangle, vectors = (x[0].numpy() + 1j * x[1].numpy() for x in (t, z))
  vectors = np.swapaxes(vectors, -1, -2)
  norm = max(np.abs(a).sum(-1).max(), 1e-30)
  assert np.abs(a @ vectors - vectors @ triangle).max() < 10 * n * ulp * norm
  assert np.abs(np.swapaxes(vectors.conj(), -1, -2) @ vectors - np.eye(n)).max() < 10 * n * ulp
  assert np.abs(np.tril(triangle, -1)).max() <= 10 * ulp * norm
  y = triangle_vectors(t)
  own = vectors @ np.swapaxes(y[0].numpy() + 1j * y[1].numpy(), -1, -2)
  own /= np.linalg.norm(own, axis=-2, keepdims=True)
  values = np.diagonal(triangle, axis1=-2, axis2=-1)
  alone = triangular_form(Tensor(a.real.copy()), Tensor(a.imag.copy().astype(kind)), False)[0]
  found = alone[0].numpy() + 1j * alone[1].numpy()
  np.testing.assert_allclose(np.diagonal(found, axis1=-2, axis2=-1), values, rtol=0, atol=1e3 * n * ulp * norm)
  assert np.abs(a @ own - own * values[..., None, :]).max() < 10 * n * ulp * norm

def _drawn(*shape: int, imaginary: bool = False) -> np.ndarray:
  draw = np.random.default_rng(4)
  a = draw.standard_normal(shape) / 3
  return a + 1j * draw.standard_normal(shape) / 3 if imaginary else a

def test_random(engine: str) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  shapes = ((1, 1), (2, 2), (3, 3), (2, 5, 5), (17, 17), (40, 40)) if engine == "CPU" else ((2, 3, 3),)
  for shape in shapes: check(_drawn(*shape))
  if engine != "CPU": return
  check(_drawn(9, 9, imaginary=True))
  check(_drawn(12, 12).astype(np.float32))

@pytest.mark.parametrize("name, a", [
  ("zeros", np.zeros((4, 4))), ("identity", np.eye(5)), ("triangle", np.triu(_drawn(6, 6))),
  ("defective", np.eye(5) + np.diag(np.ones(4), 1)), ("cyclic", np.roll(np.eye(7), 1, 0)),
  ("rotation", np.array([[0.0, 1], [-1, 0]])), ("symmetric", _drawn(6, 6) + _drawn(6, 6).T),
  ("of rank 1", np.outer(np.arange(6.0), np.ones(6))),
  ("graded", np.diag(10.0 ** -np.arange(0, 12, 2)) @ _drawn(6, 6))], ids=lambda x: x if isinstance(x, str) else "")
def test_awkward(name: str, a: np.ndarray) -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  check(a / max(np.abs(a).max(), 1e-30))

def test_not_numbers() -> None:
  if not in_order(Tensor([1.0])): pytest.skip("no long loops")
  assert np.isnan(triangular_form(Tensor([[float("nan"), 1.0], [1.0, 1.0]]), Tensor.zeros(2, 2))[0][0].numpy()).any()
