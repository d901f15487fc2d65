"""special/bessel.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import math

import tinyhw.compat.torch as torch

CASES = """
torch.i0(x)
torch.special.i0e(x)
torch.special.i1(x)
torch.special.i1e(x)
torch.special.bessel_j0(x.detach() * 9)
torch.special.bessel_j1(x.detach() * 9)
torch.special.bessel_y0(p.detach() * 9)
torch.special.bessel_y1(p.detach() * 9)
torch.special.modified_bessel_k0(p.detach())
torch.special.modified_bessel_k1(p.detach())
torch.special.scaled_modified_bessel_k0(p.detach())
torch.special.spherical_bessel_j0(x.detach())
torch.special.airy_ai(x.detach() * 4)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.special.bessel_j0(torch.tensor([0.0, 2.404825557695773])).tolist() == pytest.approx([1.0, 0.0], abs=1e-7)
  assert torch.special.bessel_y0(torch.tensor([0.0, -1.0])).tolist()[0] == -math.inf
  assert torch.special.airy_ai(torch.tensor([0.0])).item() == pytest.approx(0.3550280538878172, rel=1e-7)
