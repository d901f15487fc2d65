"""special/polynomials.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.special.chebyshev_polynomial_t(x.detach(), i)
torch.special.chebyshev_polynomial_u(x.detach(), 3)
torch.special.chebyshev_polynomial_v(u.detach(), 4)
torch.special.chebyshev_polynomial_w(u.detach(), 2)
torch.special.shifted_chebyshev_polynomial_t(u.detach(), 3)
torch.special.hermite_polynomial_h(x.detach(), 3)
torch.special.hermite_polynomial_he(x.detach(), i)
torch.special.laguerre_polynomial_l(x.detach(), 3)
torch.special.legendre_polynomial_p(x.detach(), 4)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.special.legendre_polynomial_p(torch.tensor([0.5]), 2).item() == -0.125
  assert torch.special.hermite_polynomial_h(torch.tensor([1.0]), -1).item() == 0.0
  with pytest.raises(ArgumentError, match="degree"): torch.special.laguerre_polynomial_l(torch.tensor([0.5]), 5000)
