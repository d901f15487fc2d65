"""distributions/distribution.py: parameters, checks, shapes, and what a distribution does not have."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw import Tensor, TinyJit
from tinyhw.distributions.continuous import Normal
from tinyhw.distributions.distribution import Distribution
from tinyhw.errors import ArgumentError

def test_parameters_are_broadcast() -> None:
  d = Normal(Tensor([[0.0], [1.0]]), Tensor([1.0, 2.0, 3.0]))
  assert d.batch_shape == (2, 3) and d.event_shape == () and d.loc.shape == d.scale.shape == (2, 3)
  assert d.sample((4,)).shape == (4, 2, 3) and d.sample_n(5).shape == (5, 2, 3) and type(d.mean) is Tensor
  assert d.perplexity().shape == (2, 3) and d.log_prob(0.5).shape == (2, 3)
  assert repr(Normal(0, 1)) == "Normal(loc: 0.0, scale: 1.0)"
  with pytest.raises(AttributeError, match="no attribute 'rate'"): _ = d.rate
  with pytest.raises(ArgumentError, match="numbers or tensors"): Normal("a", 1.0)

def test_checks() -> None:
  with pytest.raises(ArgumentError, match="scale has values outside of positive"): Normal(0.0, -1.0)
  with pytest.raises(ArgumentError, match="scale has"): Normal(0.0, Tensor([1.0, -1.0]))
  assert Normal(0.0, Tensor([1.0]) * -1).batch_shape == (1,), "an expression is not computed for a check"
  with pytest.raises(ArgumentError, match="scale has"): Normal(0.0, Tensor([1.0]) * -1, validate_args=True)
  assert Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
  with pytest.raises(ArgumentError, match="a value is outside of real"):
    Normal(0.0, 1.0, validate_args=True).log_prob(Tensor([float("nan")]))
  Distribution.set_default_validate_args(False)
  try: assert Normal(0.0, -1.0).scale.item() == -1.0
  finally: Distribution._default_check = None

def test_own_distributions() -> None:
  class Mine(torch.distributions.Distribution):
    def __init__(self) -> None: super().__init__((2,), ())
    def log_prob(self, value: Any) -> Any: return -value.abs()
  d = Mine()
  assert d.log_prob(torch.ones(2)).tolist() == [-1.0, -1.0] and d.batch_shape == (2,)
  for what in ("cdf", "icdf"):
    with pytest.raises((NotImplementedError, StopIteration)): getattr(d, what)(torch.ones(2))
  for call in (d.entropy, d.rsample, lambda: d.mean):
    with pytest.raises(NotImplementedError): call()

def test_captured_samples_and_gradients() -> None:
  mean = Tensor([1.0], requires_grad=True)
  Normal(mean, 0.5).rsample((8,)).sum().backward()
  assert mean.grad is not None and mean.grad.tolist() == [8.0]
  draw = TinyJit(lambda x: Normal(x, 1.0).sample((3,)).realize())
  drawn = [draw(Tensor([float(i)]).realize()).tolist() for i in range(4)]
  assert len({str(x) for x in drawn}) == 4
