"""distributions/gammas.py: densities, moments, gradients and samples against PyTorch's."""
from __future__ import annotations

from test.distributions.distribution_cases import compare, compare_gradients_of_samples, compare_samples
import pytest

from tinyhw import Tensor
from tinyhw.distributions.gammas import Gamma

NAMES = [name.strip() for name in """Gamma, Chi2, InverseGamma, Beta, Dirichlet, StudentT,
  FisherSnedecor""".split(',')]
SMOOTH = [name.strip() for name in """Gamma, Chi2, Beta, Dirichlet, StudentT, FisherSnedecor""".split(',')]

@pytest.mark.parametrize("case", NAMES)
def test_against_pytorch(case: str) -> None: compare(case)

@pytest.mark.parametrize("case", NAMES)
def test_samples(case: str) -> None: compare_samples(case)

@pytest.mark.slow
@pytest.mark.parametrize("case", SMOOTH)
def test_gradients_of_samples(case: str) -> None: compare_gradients_of_samples(case)

def test_plain_tensors() -> None:
  d = Gamma(Tensor([2.0, 0.01]), 3.0)
  x = d.sample((500,))
  assert type(x) is Tensor and (x > 0).all().item() and type(d.concentration) is Tensor
  assert x.mean(0)[0].item() == pytest.approx(2 / 3, abs=0.1)
