"""functional/nn/convolutions.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.conv1d(signal, torch.ones(2, 3, 3), padding="same")
F.conv2d(image, torch.ones(3, 1, 2, 2), groups=3, stride=2)
F.conv2d(image[0], torch.ones(2, 3, 3, 3), padding=1, dilation=2)
F.conv3d(volume, torch.ones(1, 2, 2, 2, 2))
F.conv_transpose1d(signal, torch.ones(3, 2, 3), stride=2, output_padding=1)
F.conv_transpose2d(image, torch.ones(3, 2, 3, 3), padding=1)
F.unfold(image, 2, stride=2)
F.fold(F.unfold(image, 3, padding=1), (6, 6), 3, padding=1)
F.pixel_shuffle(torch.ones(1, 4, 2, 2) * image[:1, :1, :2, :2], 2)
F.pixel_unshuffle(image, 2)
F.channel_shuffle(image, 3)
F.pad(x, (1, 2), value=3.0)
F.pad(image, (1, 2, 0, 1), mode="reflect")
F.pad(image, (-1, 2), mode="constant")
F.pad(signal, (2, 3), mode="circular")
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert F.pixel_shuffle(torch.arange(4.0).reshape(1, 4, 1, 1), 2).tolist() == [[[[0.0, 1.0], [2.0, 3.0]]]]

@pytest.mark.parametrize("call", [
  lambda: F.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 3, 3)), lambda: F.conv1d(torch.ones(1, 2, 4), torch.ones(1, 2,
                                                                                                                  5)),
  lambda: F.conv1d(torch.ones(1, 2, 4), torch.ones(1, 2, 3), stride=2, padding="same"),
  lambda: F.pixel_shuffle(torch.ones(1, 3, 2, 2), 2), lambda: F.pad(torch.ones(3), (1,)),
  lambda: F.fold(torch.ones(1, 5, 4), (3, 3), 2)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
