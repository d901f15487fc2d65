"""linalg/factors.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations
from typing import Any

import pytest
from torch_cases import agree

import numpy as np

import tinyhw.compat.torch as torch
from tinyhw import TinyJit
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods import decomposition

CASES = """
torch.linalg.cholesky(pd)
torch.cholesky_solve(rhs, torch.linalg.cholesky(pd))
torch.cholesky_inverse(torch.linalg.cholesky(pd))
torch.linalg.lu(m)
torch.linalg.lu(tall)
torch.linalg.lu(tall.T)
torch.linalg.lu_factor(batch)
torch.linalg.lu_solve(*torch.linalg.lu_factor(m), rhs)
torch.lu_unpack(*torch.linalg.lu_factor(m))
torch.linalg.solve_triangular(m, rhs, upper=True)
torch.linalg.solve_triangular(m.T, rhs.T, upper=False, left=False)
torch.triangular_solve(rhs, m, transpose=True)
torch.geqrf(tall.detach())
torch.linalg.householder_product(*torch.geqrf(tall.detach()))
torch.ormqr(*torch.geqrf(tall.detach()), tall.detach())
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

@pytest.mark.parametrize("n", (1, 3, 33, 70))
def test_residuals_as_lapack_tests_them(n: int) -> None:
  """Ratios of residuals to n * eps * norm are below 30."""
  draw = np.random.default_rng(n)
  a = draw.normal(size=(2, n, n)).astype(np.float32)
  p, low, up = (t.numpy().astype(np.float64) for t in torch.linalg.lu(torch.tensor(a)))
  assert ratio(p @ low @ up - a, a) < 30
  spd = (a @ a.transpose(0, 2, 1) + n * np.eye(n)).astype(np.float32)
  low = torch.linalg.cholesky(torch.tensor(spd)).numpy().astype(np.float64)
  assert ratio(low @ low.transpose(0, 2, 1) - spd, spd) < 30
  x = torch.linalg.solve(torch.tensor(a), torch.tensor(a[:, :, :1])).numpy().astype(np.float64)
  assert ratio(a @ x - a[:, :, :1], a) / max(np.abs(x).sum(-2).max(), 1e-9) < 30

def ratio(error: np.ndarray, a: np.ndarray) -> float:
  return float(np.abs(error).sum(-2).max() / (a.shape[-1] * 2.0 ** -24 * np.abs(a).sum(-2).max()))

def test_refuses() -> None:
  with pytest.raises(ArgumentError, match="matrix 1 of the batch is not positive definite"):
    torch.linalg.cholesky(torch.tensor([[[1.0]], [[-1.0]]]))
  with pytest.raises(ShapeError, match="square"): torch.linalg.cholesky(torch.ones(2, 3))

@pytest.mark.parametrize("f", (lambda a: torch.linalg.lu(a)[1], torch.linalg.det, lambda a: torch.linalg.qr(a)[1],
                               lambda a: torch.linalg.eigh(a + a.T)[0], torch.linalg.svdvals,
                               lambda a: torch.linalg.cholesky_ex(a @ a.T)[0]),
                         ids=("lu", "det", "qr", "eigh", "svdvals", "cholesky"))
def test_captured(f: Any) -> None:
  """A TinyJit replays the kernels of a factorization on other matrices."""
  captured = TinyJit(lambda a: f(a).contiguous().realize())
  for seed in range(4):
    a = torch.tensor(np.random.default_rng(seed).normal(size=(6, 6)).astype(np.float32))
    np.testing.assert_allclose(captured(a).numpy(), f(a).numpy(), atol=1e-5)

def test_a_reduced_factor_has_no_other_columns(monkeypatch: pytest.MonkeyPatch) -> None:
  counts, inner = [], decomposition._orthogonal
  monkeypatch.setattr(decomposition, "_orthogonal", lambda x, count: counts.append(count) or inner(x, count))
  q, r = torch.linalg.qr(torch.arange(60.0).reshape(20, 3).sin())
  assert q.shape == (20, 3) and r.shape == (3, 3) and counts == [3]
