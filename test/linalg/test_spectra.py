"""linalg/spectra.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.linalg.svdvals(tall)
torch.linalg.eigvalsh(sym)
torch.linalg.eigh(sym)[0]
torch.linalg.eigh(sym)[1].abs()
torch.linalg.pinv(tall)
torch.linalg.matrix_rank(tall)
torch.linalg.cond(m)
torch.svd(tall)[1]
torch.linalg.qr(tall)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_eigenvectors() -> None:
  a = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
  w, v = torch.linalg.eigh(a)
  assert w.tolist() == pytest.approx([1.0, 3.0], rel=1e-6)
  assert (v @ torch.diag(w) @ v.T).flatten().tolist() == pytest.approx([2.0, 1.0, 1.0, 2.0], rel=1e-5)

def test_low_rank() -> None:
  left, right = torch.arange(12.0).reshape(6, 2) + 1, torch.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, -1.0]])
  u, s, v = torch.svd_lowrank(left @ right, q=2)
  assert torch.allclose(u @ torch.diag(s) @ v.T, left @ right, atol=1e-3)
  with pytest.raises(ArgumentError, match="UPLO"): torch.linalg.eigh(right[:, :2], "X")
