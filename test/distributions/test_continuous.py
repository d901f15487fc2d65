"""distributions/continuous.py: densities, moments, gradients and samples against PyTorch's."""
from __future__ import annotations

from test.distributions.distribution_cases import compare, compare_gradients_of_samples, compare_samples
import pytest

from tinyhw import Tensor
from tinyhw.distributions.continuous import Kumaraswamy

NAMES = [name.strip() for name in """Normal, Laplace, Cauchy, Gumbel, Uniform, Exponential, LogNormal, HalfNormal,
  HalfCauchy, Pareto, Weibull, Kumaraswamy, VonMises,
  GeneralizedPareto, GeneralizedPareto 2""".split(',')]
SMOOTH = [name.strip() for name in """Normal, Laplace, Gumbel, Uniform, Exponential, LogNormal, HalfNormal, Weibull,
  Kumaraswamy, GeneralizedPareto""".split(',')]

@pytest.mark.parametrize("case", NAMES)
def test_against_pytorch(case: str) -> None: compare(case)

@pytest.mark.parametrize("case", NAMES)
def test_samples(case: str) -> None: compare_samples(case)

@pytest.mark.parametrize("case", SMOOTH)
def test_gradients_of_samples(case: str) -> None: compare_gradients_of_samples(case)

def test_a_mode() -> None:
  """The density of Kumaraswamy's distribution is largest at its mode."""
  d = Kumaraswamy(Tensor([1.5, 3.0]), Tensor([1.5, 2.0]))
  top = d.log_prob(d.mode)
  assert (top > d.log_prob(d.mode + 0.01)).all().item() and (top > d.log_prob(d.mode - 0.01)).all().item()
