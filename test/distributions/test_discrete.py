"""distributions/discrete.py: densities, moments, gradients and samples against PyTorch's."""
from __future__ import annotations

from test.distributions.distribution_cases import compare, compare_gradients_of_samples, compare_samples
import pytest

from tinyhw import Tensor
from tinyhw.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, Multinomial, poisson
from tinyhw.errors import ArgumentError

NAMES = [name.strip() for name in """Bernoulli, Bernoulli 2, Geometric, Binomial, Binomial 2, NegativeBinomial,
  Poisson, Categorical, Categorical 2, OneHotCategorical, OneHotCategoricalStraightThrough, Multinomial,
  ContinuousBernoulli, ContinuousBernoulli 2""".split(',')]
SMOOTH = [name.strip() for name in """OneHotCategoricalStraightThrough, ContinuousBernoulli""".split(',')]

@pytest.mark.parametrize("case", NAMES)
def test_against_pytorch(case: str) -> None: compare(case)

@pytest.mark.parametrize("case", NAMES)
def test_samples(case: str) -> None: compare_samples(case)

@pytest.mark.parametrize("case", SMOOTH)
def test_gradients_of_samples(case: str) -> None: compare_gradients_of_samples(case)

@pytest.mark.slow
def test_large_rates() -> None:
  x = poisson(Tensor([0.0, 1e3, 1e5]).unsqueeze(0), (400, 3)).numpy()
  assert (x[:, 0] == 0).all() and x.mean(0)[1:] == pytest.approx([1e3, 1e5], rel=0.01)
  assert x.std(0)[1:] == pytest.approx([1e3 ** 0.5, 1e5 ** 0.5], rel=0.2)

def test_certain_values() -> None:
  assert set(Categorical(Tensor([0.0, 1.0, 0.0])).sample((50,)).tolist()) == {1}
  assert Geometric(Tensor([1.0])).log_prob(Tensor([0.0])).tolist() == [0.0]

def test_refusals() -> None:
  for match, call in {"give probs or logits": lambda: Bernoulli(), "axis of classes": lambda: Categorical(0.5),
                      "total_count is -1": lambda: Multinomial(-1, Tensor([1.0])),
                      "outside of unit_interval": lambda: Bernoulli(2.0)}.items():
    with pytest.raises(ArgumentError, match=match): call()
  with pytest.raises(NotImplementedError, match="equal counts"):
    Binomial(Tensor([1.0, 2.0]), Tensor([0.5, 0.5])).enumerate_support()
