"""compat/torch/complexes.py: complex tensors with PyTorch's names, against PyTorch."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import DTypeError

CASES = """
torch.view_as_real(torch.polar(x.detach().abs(), y.detach()))
torch.complex(x.detach(), y.detach()).abs()
torch.view_as_real(torch.complex(x.detach(), y.detach()).conj() * (2 - 1j))
torch.angle(torch.complex(x.detach(), y.detach()))
torch.is_complex(torch.complex(x.detach(), y.detach()))
torch.isreal(torch.complex(x.detach(), y.detach() * 0))
torch.view_as_real(torch.sgn(torch.complex(x.detach(), y.detach())))
torch.view_as_real(torch.fft.fft(x.detach()))
torch.fft.irfft(torch.fft.rfft(x.detach()))
torch.view_as_real(torch.view_as_complex(torch.stack((x.detach(), y.detach()), dim=-1)) + 1)
torch.real(x)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_tensors_of_the_class() -> None:
  x = torch.tensor([1 + 2j, 3.0], requires_grad=True)
  for y in (x, x + 1, 1j * x, x.conj(), x[0], torch.exp(x)): assert isinstance(y, torch.Tensor) and y.is_complex()
  assert type(x.real) is torch.Tensor
  x.abs().sum().backward()
  assert isinstance(x.grad, torch.Tensor) and x.grad.dtype is torch.cfloat
  x.grad = None
  assert x.grad is None
  y = torch.zeros(2, dtype=torch.complex64)
  y[1] = 1j
  y.add_(1)
  assert y.tolist() == [1 + 0j, 1 + 1j]
  assert y.float().tolist() == [1.0, 1.0]
  assert (torch.randn(3, dtype=torch.cdouble).dtype, y.cdouble().dtype) == (torch.complex128, torch.complex128)
  assert y.reshape(1, 2).mH.tolist() == [[1 - 0j], [1 - 1j]]
  assert torch.vdot(y, y).item() == 3 + 0j
  with pytest.raises(DTypeError, match="imag wants"): torch.imag(torch.ones(1))
