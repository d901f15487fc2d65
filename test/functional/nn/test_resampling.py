"""functional/nn/resampling.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.interpolate(signal, 5)
F.interpolate(signal, scale_factor=1.5, mode="linear")
F.interpolate(image, (9, 4), mode="bilinear", align_corners=True)
F.interpolate(image, (4, 9), mode="bicubic")
F.interpolate(image, (3, 4), mode="bilinear", antialias=True)
F.interpolate(image, (4, 4), mode="area")
F.interpolate(volume, scale_factor=2, mode="trilinear")
F.interpolate(image, 9, mode="nearest-exact")
F.grid_sample(image, z[:, :, :2].unsqueeze(1), align_corners=False)
F.grid_sample(image, z[:, :, :2].unsqueeze(1), mode="nearest", padding_mode="border")
F.grid_sample(image, z[:, :, :2].unsqueeze(1), padding_mode="reflection", align_corners=True)
F.grid_sample(image, 0.3 * z[:, :, :2].unsqueeze(1), mode="bicubic")
F.affine_grid(z[:, :2, :3], (2, 3, 4, 5))
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert F.interpolate(torch.tensor([[[1.0, 3.0]]]), 4, mode="linear").tolist() == [[[1.0, 1.5, 2.5, 3.0]]]

@pytest.mark.parametrize("call", [
  lambda: F.interpolate(torch.ones(1, 1, 4), 2, 0.5), lambda: F.interpolate(torch.ones(1, 1, 4), 2, mode="bilinear"),
  lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 2, 2, 3)), lambda: F.interpolate(torch.ones(1, 1, 4), 0)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
