"""distributions/matrices.py: densities, moments, gradients and samples against PyTorch's."""
from __future__ import annotations

from test.distributions.distribution_cases import compare, compare_gradients_of_samples, compare_samples
import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.errors import ArgumentError

NORMAL = ["MultivariateNormal", "MultivariateNormal 2", "MultivariateNormal 3"]
NAMES = [*NORMAL, "LowRankMultivariateNormal", "Wishart", "Wishart 2", "Wishart 3", "LKJCholesky"]

@pytest.mark.parametrize("case", NAMES)
def test_against_pytorch(case: str) -> None: compare(case)

@pytest.mark.parametrize("case", [*NORMAL, "LowRankMultivariateNormal", "Wishart"])
def test_samples(case: str) -> None: compare_samples(case)

@pytest.mark.parametrize("case", [*NORMAL[:2], "LowRankMultivariateNormal"])
def test_gradients_of_samples(case: str) -> None: compare_gradients_of_samples(case)

def test_gradients_of_sums_of_products() -> None:
  """The mean of samples is df times the covariance. PyTorch's own gradient raises an error."""
  ours.manual_seed(2)
  df, low = ours.tensor(5.0, requires_grad=True), ours.tensor([[1.0, 0.0], [0.5, 2.0]], requires_grad=True)
  ours.distributions.Wishart(df, scale_tril=low).rsample((8000,)).mean(0)[1, 1].backward()
  np.testing.assert_allclose([df.grad.item(), *low.grad.flatten().tolist()], [4.25, 0, 0, 5, 20], atol=0.6)

def test_samples_are_factors_of_correlations() -> None:
  torch = pytest.importorskip("torch")
  found = []
  for t in (torch, ours):
    t.manual_seed(0)
    d = t.distributions.LKJCholesky(3, t.tensor([0.7, 2.0]))
    x = d.sample((4000,))
    assert tuple(x.shape) == (4000, 2, 3, 3) and d.support.check(x).all().item()
    found.append(x.numpy()[..., [1, 2, 2, 2], [0, 0, 1, 2]].astype(np.float64))
  for q in (0.2, 0.5, 0.8): np.testing.assert_allclose(*[np.quantile(x, q, axis=0) for x in found], atol=0.06)

def test_matrices_of_a_low_rank() -> None:
  d = ours.distributions.LowRankMultivariateNormal(ours.zeros(3), ours.ones(3, 1), ours.ones(3))
  wanted = np.ones((3, 3)) + np.eye(3)
  np.testing.assert_allclose(d.covariance_matrix.numpy(), wanted, rtol=1e-5)
  np.testing.assert_allclose(d.precision_matrix.numpy(), np.linalg.inv(wanted), atol=1e-5)
  np.testing.assert_allclose(d.scale_tril.numpy(), np.linalg.cholesky(wanted), atol=1e-5)
  w = ours.distributions.Wishart(ours.tensor(4.0), scale_tril=ours.eye(2) * 2)
  assert w.covariance_matrix.tolist() == [[4.0, 0.0], [0.0, 4.0]] and w.precision_matrix.tolist()[0][0] == 0.25

def test_refusals() -> None:
  d, vector = ours.distributions, ours.zeros(2)
  for match, call in {
      "as many rows": lambda: d.LowRankMultivariateNormal(vector, ours.zeros(3, 1), vector + 1),
      "give one of": lambda: d.Wishart(3.0), "give one of ": lambda: d.MultivariateNormal(vector),
      "loc is a vector": lambda: d.MultivariateNormal(vector, scale_tril=vector),
      "a matrix is needed": lambda: d.Wishart(3.0, scale_tril=vector),
      "df has values": lambda: d.Wishart(0.5, ours.eye(2), validate_args=True),
      "at least 2": lambda: d.LKJCholesky(1)}.items():
    with pytest.raises(ArgumentError, match=match): call()
