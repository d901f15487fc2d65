"""Kernels that are bound by products: the share of the matrix unit's rate that they reach on each GPU, by the listing's
model."""
from __future__ import annotations

import pytest

from test.codegen.products import gradient, halved
from test.isa.gpus import GPUS, lowered
from tinyhw.device import Device
from tinyhw.engine.schedule.schedule import canonicalize, make_schedule
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def convolution(channels: int, side: int) -> UOp:
  """A 3x3 convolution of 32 images, padded. The kernel before it stores weights in order (weights.py)."""
  shapes = (32, channels, side, side), (channels, channels, 3, 3)
  x, w = (Tensor.empty(*shape, dtype="half", device="NULL") for shape in shapes)
  kernels = make_schedule(canonicalize([x.conv2d(w, padding=1).uop]).roots).kernels
  assert len(kernels) == 2
  return kernels[-1].sink

@pytest.mark.parametrize("arch, forward, backward", [
  ("gfx942", 0.2, 0.11), ("gfx1100", 0.65, 0.55), ("gfx1200", 0.4, 0.33), ("sm_80", 0.35, 0.22), ("sm_89", 0.43, 0.2),
  ("sm_90", 0.28, 0.14)])
def test_convolutions_reach_the_matrix_unit(arch: str, forward: float, backward: float,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
  """3x3 of 32 images, padded, and the gradient of its weights: the share of the peak. Adjacent lanes load adjacent
  elements."""
  monkeypatch.setattr(Device["NULL"], "copies_operands", True)
  for channels, side in ((64, 56), (256, 14)):
    found = GPUS[arch].bounds(lowered(convolution(channels, side), arch), arch)
    assert found.whole.share >= forward, f"{channels} channels, {found.hottest.binding}: {found.hottest.cost}"
  found = GPUS[arch].bounds(lowered(halved(gradient(4, 256, 14, 256, 3, 1)), arch), arch)
  assert found.whole.share >= backward, f"{found.hottest.binding}: {found.hottest.cost}"
