"""linalg/eigen.py against NumPy and PyTorch: eigenvalues in any order, residuals, gradients of what has no order."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw import Tensor, function
from tinyhw.errors import DTypeError, FunctionError, ShapeError
from tinyhw.linalg import eigen

def _drawn(*shape: int, imaginary: bool = False, kind: Any = np.float32) -> np.ndarray:
  draw = np.random.default_rng(8)
  a = draw.standard_normal(shape)
  return (a + 1j * draw.standard_normal(shape)).astype(np.complex64) if imaginary else a.astype(kind)

def _sorted(values: Any) -> np.ndarray:
  z = np.asarray(values)
  return np.stack([row[np.lexsort((row.imag.round(4), row.real.round(4)))] for row in z.reshape(-1, z.shape[-1])])

CASES = {"real": _drawn(3, 5, 5), "complex": _drawn(4, 4, imaginary=True), "float64": _drawn(6, 6, kind=np.float64),
         "large": _drawn(4, 4) * np.float32(1e20), "symmetric": _drawn(5, 5) + _drawn(5, 5).T}

@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name: str) -> None:
  a = CASES[name]
  values, vectors = ours.linalg.eig(ours.tensor(a))
  w, v = values.numpy(), vectors.numpy()
  ulp = np.finfo(a.dtype).eps * np.abs(a).max()
  assert w.dtype == v.dtype == (np.complex128 if name == "float64" else np.complex64)
  assert np.abs(a @ v - v * w[..., None, :]).max() < 50 * ulp
  np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, atol=1e-6)
  largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
  assert np.abs(largest.imag).max() < 1e-6
  for found in (values, ours.linalg.eigvals(ours.tensor(a))):
    np.testing.assert_allclose(_sorted(found.numpy()), _sorted(np.linalg.eigvals(a)), rtol=1e-4, atol=50 * ulp)

def test_real_eigenvalues_are_real() -> None:
  assert ours.linalg.eigvals(ours.tensor([[2.0, 1.0], [1.0, 2.0]])).imag.tolist() == [0.0, 0.0]
  assert ours.linalg.eigvals(ours.tensor(CASES["symmetric"])).imag.abs().max().item() == 0

def _slope(torch: Any, a: np.ndarray, both: bool) -> np.ndarray:
  x = torch.tensor(a, requires_grad=True)
  if both:
    values, vectors = torch.linalg.eig(x)
    loss = (vectors.abs() ** 4).sum() + values.abs().sum()
  else:
    values = torch.linalg.eigvals(x)
    loss = (values.real ** 2 + values.imag.abs()).sum()
  loss.backward()
  found: np.ndarray = x.grad.numpy()
  return found

@pytest.mark.parametrize("name", ["real", "complex", "float64"])
@pytest.mark.parametrize("both", [False, True])
def test_gradients(name: str, both: bool) -> None:
  torch = pytest.importorskip("torch")
  wanted = _slope(torch, CASES[name], both)
  np.testing.assert_allclose(_slope(ours, CASES[name], both), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())

def test_small_and_empty() -> None:
  values, vectors = ours.linalg.eig(ours.tensor([[3.0]]))
  assert values.tolist() == [3 + 0j] and vectors.tolist() == [[1 + 0j]]
  values, vectors = ours.linalg.eig(ours.zeros(2, 0, 0))
  assert values.shape == (2, 0) and vectors.shape == (2, 0, 0) and values.dtype is ours.complex64
  assert ours.linalg.eigvals(ours.zeros(0, 3, 3)).shape == (0, 3)
  assert np.isnan(ours.linalg.eigvals(ours.tensor([[float("nan"), 1.0], [0.0, 1.0]])).real.numpy()).any()

def test_other_devices_send_matrices_to_the_cpu() -> None:
  x = Tensor([[0.0, 1.0], [-1.0, 0.0]], device="PYTHON")
  values = eigen.eigvals(x)
  assert values.device == "PYTHON" and sorted(v.imag for v in values.tolist()) == [-1.0, 1.0]

def test_refusals() -> None:
  with pytest.raises(ShapeError, match="eig wants square matrices"): ours.linalg.eig(ours.zeros(2, 3))
  with pytest.raises(DTypeError, match="eigvals wants float32"): ours.linalg.eigvals(ours.zeros(2, 2).half())
  with pytest.raises(FunctionError, match="eigvals reads its matrices"):
    function(lambda x: eigen.eigvals(x).real)(Tensor.eye(2))
