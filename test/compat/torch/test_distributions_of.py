"""compat/torch/distributions_of.py: twins of the classes of tinyhw/distributions."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch import distributions_of
from tinyhw.distributions.continuous import Normal
from tinyhw.distributions.gammas import Gamma

def test_twins() -> None:
  d = torch.distributions
  assert issubclass(d.Normal, d.Distribution) and issubclass(d.Normal, Normal) and issubclass(d.Chi2, d.Gamma)
  assert d.Normal is distributions_of.twin(Normal) and d.Gamma.__doc__ == Gamma.__doc__
  assert d.transforms.ExpTransform is d.ExpTransform and d.kl.kl_divergence is d.kl_divergence
  with pytest.raises(AttributeError, match="no 'X'"): _ = distributions_of.X

def test_tensors_are_pytorchs() -> None:
  loc = torch.tensor([1.0, 2.0], requires_grad=True)
  d = torch.distributions.Normal(loc, 1.0)
  x = d.rsample()
  values = [x, d.loc, d.mean, d.log_prob(x), torch.distributions.ExpTransform()(x)]
  assert {type(value) for value in values} == {torch.Tensor}
  d.log_prob(torch.zeros(2)).sum().backward()
  assert loc.grad.tolist() == [-1.0, -2.0]
  assert torch.distributions.Uniform(0, 1).support.check(torch.tensor([0.5, 2.0])).tolist() == [True, False]
