"""Kernels that are bound by products: the share of the matrix unit's rate that they reach on each GPU, by the listing's
model."""
from __future__ import annotations

import pytest

from test.codegen.products import convolution, gradient, halved
from test.isa.gpus import GPUS, lowered

@pytest.mark.parametrize("arch, forward, backward", [
  ("gfx942", 0.2, 0.11), ("gfx1100", 0.65, 0.55), ("gfx1200", 0.4, 0.33), ("sm_80", 0.35, 0.22), ("sm_89", 0.43, 0.2),
  ("sm_90", 0.28, 0.14)])
def test_convolutions_reach_the_matrix_unit(arch: str, forward: float, backward: float) -> None:
  """3x3 of 32 images, padded, and the gradient of its weights: the share of the peak. Adjacent lanes load adjacent
  elements."""
  for channels, side in ((64, 56), (256, 14)):
    found = GPUS[arch].bounds(lowered(halved(convolution(32, channels, side, channels, 3, 1)), arch), arch)
    assert found.whole.share >= forward, f"{channels} channels, {found.hottest.binding}: {found.hottest.cost}"
  found = GPUS[arch].bounds(lowered(halved(gradient(4, 256, 14, 256, 3, 1)), arch), arch)
  assert found.whole.share >= backward, f"{found.hottest.binding}: {found.hottest.cost}"
