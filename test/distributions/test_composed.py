"""distributions/composed.py: densities, moments, gradients and samples against PyTorch's."""
from __future__ import annotations
from typing import Any

from test.distributions.distribution_cases import close, compare, compare_gradients_of_samples, compare_samples
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

NAMES = "RelaxedBernoulli RelaxedOneHotCategorical LogisticNormal".split()

@pytest.mark.parametrize("case", NAMES)
def test_against_pytorch(case: str) -> None: compare(case)

@pytest.mark.parametrize("case", NAMES)
def test_samples(case: str) -> None: compare_samples(case)

@pytest.mark.parametrize("case", NAMES)
def test_gradients_of_samples(case: str) -> None: compare_gradients_of_samples(case)

def parts(torch: Any) -> list[Any]:
  """Return densities and moments of transformed distributions and mixtures."""
  d, t = torch.distributions, torch.distributions.transforms
  loc, scale = torch.tensor([[0.1, -1.0], [0.5, 2.0]]), torch.tensor([[0.5, 1.5], [2.0, 0.7]])
  base, weights = d.Normal(loc, scale), d.Categorical(torch.tensor([[0.3, 0.7], [0.5, 0.5]]))
  bent = d.TransformedDistribution(base, [t.AffineTransform(1.0, -0.5), t.TanhTransform()])
  shares = d.TransformedDistribution(d.Independent(base, 1), [t.SigmoidTransform(), t.StickBreakingTransform()])
  one = d.MixtureSameFamily(weights, base)
  many = d.MixtureSameFamily(d.Categorical(torch.tensor([0.3, 0.7])), d.Independent(base, 1))
  x, y = torch.tensor([[0.3, 0.1], [-0.2, 0.5]]), torch.tensor([0.1, 0.2])
  sizes = [bent.sample((4,)), shares.sample((4,)), one.sample((5,)), many.sample((5,))]
  assert [tuple(s.shape) for s in sizes] == [(4, 2, 2), (4, 2, 3), (5, 2), (5, 2)]
  assert (tuple(shares.batch_shape), tuple(shares.event_shape)) == ((2,), (3,))
  alone = d.Independent(base, 1)
  return [bent.log_prob(x), bent.cdf(x), bent.icdf(torch.tensor([0.2, 0.3])), bent.expand((3, 2, 2)).log_prob(x),
          one.log_prob(y), one.mean, one.variance, one.cdf(y), many.log_prob(y), many.mean, many.variance,
          alone.log_prob(x), alone.entropy(), alone.mean, alone.variance, alone.expand((5, 2)).log_prob(x)]

def test_made_of_others() -> None:
  for i, (a, b) in enumerate(zip(parts(pytest.importorskip("torch")), parts(ours), strict=True)): close(a, b, i)

def test_refusals() -> None:
  d = ours.distributions
  normal, vector = d.Normal(0.0, 1.0), ours.zeros(2)
  for match, call in {
      "cannot be an event": lambda: d.Independent(normal, 1),
      "transforms are needed": lambda: d.TransformedDistribution(normal, [3]),
      "a Categorical": lambda: d.MixtureSameFamily(normal, normal),
      "weights for components": lambda: d.MixtureSameFamily(d.Categorical(ours.ones(3)), d.Normal(vector, 1.0)),
      }.items():
    with pytest.raises(ArgumentError, match=match): call()
