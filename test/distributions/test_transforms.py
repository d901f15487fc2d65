"""distributions/transforms.py: values, inverses and slopes against PyTorch's."""
from __future__ import annotations
from typing import Any

from test.distributions.distribution_cases import close
import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw import Tensor
from tinyhw.distributions.transforms import ExpTransform
from tinyhw.errors import ArgumentError

X = np.array([[0.3, -1.2, 2.0], [0.5, 0.1, -2.0]], np.float32)
CASES: list[tuple[str, tuple[Any, ...]]] = [
  ("ExpTransform", ()), ("PowerTransform", (2.0,)), ("PowerTransform", (-0.5,)), ("SigmoidTransform", ()),
  ("TanhTransform", ()), ("SoftplusTransform", ()), ("AffineTransform", (1.0, -2.0)),
  ("AffineTransform", (1.0, 2.0, 1)),
  ("StickBreakingTransform", ()), ("SoftmaxTransform", ()), ("ReshapeTransform", ((3,), (3, 1))), ("AbsTransform", ())]

def values(torch: Any, name: str, args: tuple[Any, ...]) -> list[Any]:
  f = getattr(torch.distributions.transforms, name)(*args)
  x = torch.tensor(np.abs(X) if name == "PowerTransform" else X)
  y = f(x)
  assert tuple(f.forward_shape((2, 3))) == tuple(y.shape) and tuple(f.inverse_shape(y.shape)) == (2, 3)
  if name in ("SoftmaxTransform", "AbsTransform"): return [y, f.inv(y)]
  both = torch.distributions.transforms.ComposeTransform([torch.distributions.transforms.AffineTransform(2.0, 3.0), f])
  return [y, f.inv(y), f.log_abs_det_jacobian(x, y), f.inv.log_abs_det_jacobian(y, x), both.log_abs_det_jacobian(
    x, both(x)), torch.distributions.transforms.IndependentTransform(f, 1).log_abs_det_jacobian(x, y) if
    name != "ReshapeTransform" else y]

@pytest.mark.parametrize("name, args", CASES, ids=lambda x: x if isinstance(x, str) else str(len(x)))
def test_against_pytorch(name: str, args: tuple[Any, ...]) -> None:
  wanted, found = (values(t, name, args) for t in (pytest.importorskip("torch"), ours))
  for i, (a, b) in enumerate(zip(wanted, found, strict=True)): close(a, b, (name, i))

def test_plain_tensors_and_refusals() -> None:
  f = ExpTransform()
  assert type(f(Tensor([1.0]))) is Tensor and f.inv.inv is f and repr(f) == "ExpTransform()"
  with pytest.raises(ArgumentError, match="differ in elements"):
    ours.distributions.transforms.ReshapeTransform((2,), (3,))
  with pytest.raises(NotImplementedError, match="has no slope"):
    ours.distributions.transforms.AbsTransform().log_abs_det_jacobian(ours.ones(1), ours.ones(1))
