"""compat/torch/modules/fusion.py: a fused layer does what both did."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch import nn
from tinyhw.errors import ArgumentError

def _norm(kind: Any, count: int, affine: bool) -> Any:
  found = kind(count, affine=affine).eval()
  found.running_mean.copy_(torch.arange(float(count)))
  found.running_var.copy_(torch.arange(float(count)) + 0.5)
  if affine: found.weight.data.copy_(torch.arange(float(count)) - 0.7)
  return found

@pytest.mark.parametrize("affine", [True, False])
def test_results_are_equal(affine: bool) -> None:
  fusion = torch.nn.utils.fusion
  for layer, bn, x, fuse in (
      (nn.Conv2d(1, 2, 3), _norm(nn.BatchNorm2d, 2, affine), torch.randn(1, 1, 4, 4), fusion.fuse_conv_bn_eval),
      (nn.ConvTranspose1d(2, 3, 2, bias=False), _norm(nn.BatchNorm1d, 3, affine), torch.randn(1, 2, 4),
       lambda a, b: fusion.fuse_conv_bn_eval(a, b, transpose=True)),
      (nn.Linear(3, 2), _norm(nn.BatchNorm1d, 2, affine), torch.randn(4, 3), fusion.fuse_linear_bn_eval)):
    found = fuse(layer.eval(), bn)
    assert isinstance(found.weight, nn.Parameter) and found.weight is not layer.weight
    np.testing.assert_allclose(found(x).numpy(), bn(layer(x)).numpy(), rtol=1e-4, atol=1e-5)

def test_refusals() -> None:
  with pytest.raises(ArgumentError, match="in evaluation mode"):
    torch.nn.utils.fusion.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))
