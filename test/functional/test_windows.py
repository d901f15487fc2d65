"""functional/windows.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES = """
torch.signal.windows.hann(7)
torch.signal.windows.hamming(8, sym=False)
torch.signal.windows.kaiser(9, beta=5.0)
torch.signal.windows.gaussian(6, std=1.5)
torch.signal.windows.bartlett(5)
torch.signal.windows.nuttall(6)
torch.signal.windows.exponential(6, tau=2.0)
torch.signal.windows.cosine(4)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.signal.windows.bartlett(3).tolist() == [0.0, 1.0, 0.0]
  with pytest.raises(ArgumentError, match="std"): torch.signal.windows.gaussian(3, std=-1.0)
