"""distributions/shaping.py: values, inverses and slopes against PyTorch's."""
from __future__ import annotations
from typing import Any

from test.distributions.distribution_cases import close
import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError, ShapeError

DRAW = np.random.default_rng(3)
VECTOR, MATRIX = (DRAW.standard_normal(shape).astype(np.float32) for shape in ((2, 6), (2, 3, 3)))

def values(torch: Any) -> list[Any]:
  """Return results, inverses and slopes of each transform."""
  t, d = torch.distributions.transforms, torch.distributions
  x, m = torch.tensor(VECTOR), torch.tensor(MATRIX)
  found = []
  corr = t.CorrCholeskyTransform()
  y = corr(x)
  assert tuple(corr.forward_shape((2, 6))) == (2, 4, 4) and tuple(corr.inverse_shape((2, 4, 4))) == (2, 6)
  found += [y, corr.inv(y), corr.log_abs_det_jacobian(x, y)]
  for kind in (t.LowerCholeskyTransform, t.PositiveDefiniteTransform):
    f = kind()
    found += [f(m), f(f.inv(f(m)))]
  f = t.CumulativeDistributionTransform(d.Normal(0.5, 2.0))
  y = f(x)
  found += [y, f.inv(y), f.log_abs_det_jacobian(x, y)]
  parts = [t.ExpTransform(), t.AffineTransform(1.0, 2.0)]
  for f in (t.CatTransform(parts, dim=1, lengths=[2, 4]), t.StackTransform([t.ExpTransform()] * 2, dim=0),
            t.StackTransform([*parts, t.TanhTransform()] * 2, dim=-1)):
    y = f(x)
    found += [y, f.inv(y), f.log_abs_det_jacobian(x, y)]
  return found

def test_against_pytorch() -> None:
  for i, (a, b) in enumerate(zip(values(pytest.importorskip("torch")), values(ours), strict=True)): close(a, b, i)

def test_refusals() -> None:
  t = ours.distributions.transforms
  with pytest.raises(ShapeError, match="5 numbers are not"): t.CorrCholeskyTransform()(ours.zeros(5))
  with pytest.raises(ArgumentError, match="1 lengths for 2"): t.CatTransform([t.ExpTransform()] * 2, lengths=[3])
