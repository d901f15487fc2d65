"""nn/optim/clipping.py: norms, clipping and vectors, on plain tensors and against PyTorch's."""
from __future__ import annotations
import math
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw import Tensor
from tinyhw.errors import ArgumentError, GradientError
from tinyhw.nn.optim import clipping

_RNG = np.random.default_rng(0)
START = [_RNG.normal(size=shape).astype(np.float32) for shape in ((3, 4), (5,))]

def clipped(torch: Any, p: float) -> list[Any]:
  """Return the norm, clipped gradients, parameters as a vector, and doubled parameters."""
  params, utils = [torch.nn.Parameter(torch.tensor(x)) for x in START], torch.nn.utils
  sum((x * x * x).sum() for x in params).backward()
  found = [utils.clip_grad_norm_(params, 0.7, norm_type=p), *[x.grad.clone() for x in params]]
  utils.clip_grad_value_(params, 0.1)
  found += [x.grad for x in params]
  vector = utils.parameters_to_vector(params)
  utils.vector_to_parameters(vector * 2, params)
  found += [vector, *params]
  assert all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in found)
  return [x.detach().numpy() for x in found]

@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, math.inf, -math.inf, 0.0])
def test_against_pytorch(p: float) -> None:
  for a, b in zip(clipped(pytest.importorskip("torch"), p), clipped(ours, p), strict=True):
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)

def test_plain_tensors() -> None:
  w = Tensor([3.0, 4.0], requires_grad=True)
  (w * w).sum().backward()
  assert clipping.clip_grad_norm_(w, 1.0).item() == 10.0 and w.grad is not None
  assert w.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
  assert clipping.get_total_norm([w.half()], math.inf).item() == 4.0

def test_nothing_and_refusals() -> None:
  w = Tensor([1.0, 2.0], requires_grad=True)
  assert clipping.clip_grad_norm_([w], 1.0).item() == 0.0 and w.grad is None
  w.grad = Tensor([math.inf, 1.0])
  with pytest.raises(GradientError, match="not finite"): clipping.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
  for call in (lambda: clipping.clip_grad_norm_([3], 1.0), lambda: clipping.parameters_to_vector([]),
               lambda: clipping.vector_to_parameters([1.0], [w])):
    with pytest.raises(ArgumentError, match="wants"): call()
