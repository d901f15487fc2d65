"""distributions/registry.py: transforms into constraints, against PyTorch's."""
from __future__ import annotations
from typing import Any

from test.distributions.distribution_cases import close
import pytest

import tinyhw.compat.torch as ours
from tinyhw import Tensor
from tinyhw.distributions import constraints, registry
from tinyhw.distributions.transforms import ExpTransform

def values(torch: Any) -> list[Any]:
  """Return what is in each constraint for some real numbers, and the numbers again."""
  d, c = torch.distributions, torch.distributions.constraints
  x, found = torch.tensor([[0.3, -0.2, 0.7], [0.1, 2.0, -1.0], [0.5, 0.4, 0.0]]), []
  for constraint in (c.real, c.positive, c.nonnegative, c.unit_interval, c.interval(1.0, 3.0), c.greater_than(2.0),
                     c.greater_than_eq(-1.0), c.less_than(2.0), c.half_open_interval(0.0, 5.0), c.simplex,
                     c.independent(c.positive, 1), c.corr_cholesky, c.lower_cholesky, c.positive_definite,
                     c.cat([c.positive, c.real], -1, [1, 2]), c.stack([c.positive, c.unit_interval, c.real], -1)):
    matrices = constraint in (c.lower_cholesky, c.positive_definite)     # PyTorch has no biject_to for them
    for make in ((d.transform_to,) if matrices else (d.biject_to, d.transform_to)):
      f = make(constraint)
      y = f(x)
      assert constraint.check(y).all().item(), constraint
      found.append(y)
      if constraint is not c.simplex or make is d.biject_to: found.append(f.inv(y))
  return [*found, d.identity_transform(x) if hasattr(d, "identity_transform") else x]

def test_against_pytorch() -> None:
  for i, (a, b) in enumerate(zip(values(pytest.importorskip("torch")), values(ours), strict=True)): close(a, b, i, 1e-3)

def test_plain_tensors_and_own_factories() -> None:
  assert type(registry.transform_to(constraints.positive)(Tensor([1.0]))) is Tensor
  own = registry.bijections()
  with pytest.raises(NotImplementedError, match="no transform into boolean"): own(constraints.boolean)
  @own.register(constraints.boolean)
  def made(constraint: Any) -> Any: return ExpTransform()
  assert isinstance(own(constraints.boolean), ExpTransform)
  own.register(constraints.less_than, made)
  assert isinstance(own(constraints.less_than(3)), ExpTransform)
  assert registry.biject_to(constraints.less_than(3))(Tensor([0.0])).item() == 2
