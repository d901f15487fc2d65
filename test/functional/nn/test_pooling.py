"""functional/nn/pooling.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.max_pool1d(signal, 3, 2)
F.max_pool2d(image, 2, return_indices=True)
F.max_pool2d(image[0], (2, 3), 1, 1)
F.max_pool3d(volume, 2)
F.avg_pool1d(signal, 2, ceil_mode=True)
F.avg_pool2d(image, 3, 2, 1, count_include_pad=False)
F.avg_pool2d(image, 2, divisor_override=3)
F.avg_pool3d(volume, 2)
F.lp_pool2d(image.abs(), 2, 2)
F.adaptive_avg_pool1d(signal, 4)
F.adaptive_avg_pool2d(image, (4, 3))
F.adaptive_max_pool2d(image, (4, 5), return_indices=True)
F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_fractional_windows_cover_the_ends() -> None:
  x = torch.arange(49.0).reshape(1, 1, 7, 7)
  found = F.fractional_max_pool2d(x, 2, output_size=3)
  assert found.shape == (1, 1, 3, 3)
  assert found[0, 0, 2, 2].item() == 48.0

@pytest.mark.parametrize("call", [
  lambda: F.max_pool2d(torch.ones(1, 2, 2), 3), lambda: F.max_pool2d(torch.ones(1, 4, 4), 2, padding=2),
  lambda: F.avg_pool2d(torch.ones(1, 4, 4), 2, divisor_override=0), lambda: F.max_pool1d(torch.ones(4), 2),
  lambda: F.max_unpool2d(torch.ones(1, 1, 1), torch.tensor([[[9]]]), 2)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]

def test_fractional_pooling_draws_for_each_plane() -> None:
  x = torch.arange(50.0).reshape(2, 1, 5, 5)
  samples = torch.tensor([[[0.1, 0.6]], [[0.6, 0.1]]])
  found = torch.nn.functional.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples)
  alone = [torch.nn.functional.fractional_max_pool2d(x[k:k + 1], 2, output_size=3, _random_samples=samples[k:k + 1])
           for k in range(2)]
  assert found.tolist() == torch.cat(alone).tolist() and (found[1] - 25).tolist() != found[0].tolist()
