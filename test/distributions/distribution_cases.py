"""Distributions with parameters and values, and the comparison of ours with PyTorch's."""
from __future__ import annotations
from typing import Any
import warnings

import numpy as np
import pytest

import tinyhw.compat.torch as ours

P, L, Q = [[0.5, 1.5], [2.0, 0.7]], [[0.1, -1.0], [0.5, 2.0]], [[0.2, 0.7], [0.5, 0.1]]
S, C = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [[2.0, 0.5], [0.5, 1.0]]
V, COUNTS, HOT = [[0.3, 1.0], [-1.0, 2.0]], [[1.0, 0.0], [3.0, 5.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

W, F = [[0.5], [-1.0], [0.3]], [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]

# name, with a number where it has several rows: (parameters, values of log_prob and cdf)
CASES: dict[str, tuple[dict[str, Any], Any]] = {
  "Normal": ({"loc": L, "scale": P}, V), "Laplace": ({"loc": L, "scale": P}, V), "Cauchy": ({"loc": L, "scale": P}, V),
  "Gumbel": ({"loc": L, "scale": P}, V), "Uniform": ({"low": -1.0, "high": [2.0, 3.0]}, [0.3, 1.0]),
  "Exponential": ({"rate": P}, P), "LogNormal": ({"loc": L, "scale": P}, P), "HalfNormal": ({"scale": P}, P),
  "HalfCauchy": ({"scale": P}, P), "Pareto": ({"scale": P, "alpha": [2.5, 0.5]}, [[3.0, 4.0], [5.0, 6.0]]),
  "Weibull": ({"scale": P, "concentration": [2.5, 1.5]}, P), "VonMises": ({"loc": L, "concentration": P}, L),
  "Kumaraswamy": ({"concentration1": P, "concentration0": [2.5, 1.5]}, Q),
  "Gamma": ({"concentration": P, "rate": [0.5, 2.0]}, P), "Chi2": ({"df": P}, P),
  "InverseGamma": ({"concentration": [[3.0, 1.5], [2.5, 0.7]], "rate": [0.5, 2.0]}, P),
  "Beta": ({"concentration1": P, "concentration0": [2.0, 0.8]}, Q),
  "Dirichlet": ({"concentration": [[0.5, 1.5, 2.0], [2.0, 3.0, 4.0]]}, S),
  "StudentT": ({"df": [3.0, 5.0], "loc": L, "scale": P}, L), "FisherSnedecor": ({"df1": P, "df2": [5.0, 6.0]}, P),
  "Bernoulli": ({"probs": Q}, [[1.0, 0.0], [0.0, 1.0]]), "Bernoulli 2": ({"logits": L}, [[1.0, 0.0], [0.0, 1.0]]),
  "Geometric": ({"probs": Q}, [[1.0, 0.0], [3.0, 1.0]]), "Binomial": ({"total_count": 5, "probs": Q}, COUNTS),
  "Binomial 2": ({"total_count": 5, "logits": L}, COUNTS),
  "NegativeBinomial": ({"total_count": 5.0, "probs": Q}, COUNTS), "Poisson": ({"rate": P}, COUNTS),
  "Categorical": ({"probs": S}, [2.0, 0.0]), "Categorical 2": ({"logits": S}, [2.0, 0.0]),
  "OneHotCategorical": ({"probs": S}, HOT), "OneHotCategoricalStraightThrough": ({"logits": S}, HOT),
  "Multinomial": ({"total_count": 4, "probs": S}, [[1.0, 3.0, 0.0], [0.0, 0.0, 4.0]]),
  "RelaxedBernoulli": ({"temperature": [0.5], "probs": Q}, Q),
  "RelaxedOneHotCategorical": ({"temperature": [0.7], "probs": S}, S), "LogisticNormal": ({"loc": L, "scale": P}, S),
  "MultivariateNormal": ({"loc": L, "covariance_matrix": C}, P),
  "MultivariateNormal 2": ({"loc": L, "precision_matrix": C}, P),
  "MultivariateNormal 3": ({"loc": L, "scale_tril": [[1.0, 0.0], [0.5, 2.0]]}, P),
  "GeneralizedPareto": ({"loc": L, "scale": P, "concentration": [0.3, 0.0]}, [[1.0, 0.5], [3.0, 2.5]]),
  "GeneralizedPareto 2": ({"loc": 0.0, "scale": P, "concentration": [-0.4, 1.5]}, [[0.3, 0.5], [3.0, 2.5]]),
  "ContinuousBernoulli": ({"probs": [[0.2, 0.7], [0.4995, 0.1]]}, Q), "ContinuousBernoulli 2": ({"logits": L}, Q),
  "LowRankMultivariateNormal": ({"loc": S, "cov_factor": W, "cov_diag": [0.5, 1.0, 2.0]}, S),
  "Wishart": ({"df": [3.0, 4.5], "covariance_matrix": C}, [[[2.0, 0.3], [0.3, 1.0]], C]),
  "Wishart 2": ({"df": [3.0, 4.5], "precision_matrix": C}, [[[2.0, 0.3], [0.3, 1.0]], C]),
  "Wishart 3": ({"df": [3.0, 4.5], "scale_tril": [[1.0, 0.0], [0.5, 2.0]]}, [[[2.0, 0.3], [0.3, 1.0]], C]),
  "LKJCholesky": ({"dim": 3, "concentration": [0.7, 2.0]}, [F, F])}

# PyTorch's are NaN there, and its gradient has elements above the diagonal, which the density does not read.
UNLIKE = {("Kumaraswamy", "mode"), ("GeneralizedPareto", "mean"), ("GeneralizedPareto", "variance"),
          ("GeneralizedPareto", "stddev"), ("Wishart 3", "scale_tril")}

def array(torch: Any, x: Any) -> Any:
  return x if isinstance(x, (int, float)) else torch.tensor(np.array(x, np.float32), requires_grad=True)

def made(torch: Any, case: str, parameters: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
  """Return a distribution, and its parameters as tensors with gradients."""
  given = {k: array(torch, v) for k, v in (CASES[case][0] if parameters is None else parameters).items()}
  return getattr(torch.distributions, case.split()[0])(**given), given

def close(wanted: Any, found: Any, what: Any, rtol: float = 1e-4) -> None:
  a, b = wanted.detach().numpy(), found.detach().numpy()
  assert a.shape == b.shape and type(found) is ours.Tensor, (what, a.shape, b.shape, type(found))
  np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-5, err_msg=str(what))

def compare(case: str) -> None:
  """Compare shapes, densities, moments, gradients and expansions."""
  torch = pytest.importorskip("torch")
  (a, left), (b, right) = (made(t, case) for t in (torch, ours))
  assert isinstance(b, ours.distributions.Distribution)
  assert (tuple(a.batch_shape), tuple(a.event_shape)) == (b.batch_shape, b.event_shape)
  x, y = (t.tensor(np.array(CASES[case][1], np.float32)) for t in (torch, ours))
  u, v = (t.tensor(np.array(Q if len(b.batch_shape) == 2 else Q[0], np.float32)) for t in (torch, ours))
  for what in ("log_prob", "cdf", "icdf", "entropy", "mean", "mode", "variance", "stddev", "enumerate_support"):
    if (case.split()[0], what) in UNLIKE: continue
    def value(d: Any, z: Any, q: Any, what: str = what) -> Any:
      found = getattr(d, what)
      return found(z) if what in ("log_prob", "cdf") else found(q) if what == "icdf" else found() if callable(
        found) else found
    try:
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = value(a, x, u)
    except (NotImplementedError, AttributeError): continue
    close(wanted, value(b, y, v), (case, what))
  a.log_prob(x).sum().backward()
  b.log_prob(y).sum().backward()
  for k, p in left.items():
    if getattr(p, "grad", None) is None or (case, k) in UNLIKE: continue
    close(p.grad, right[k].grad, (case, "gradient", k), 1e-3)
  if case != "LogisticNormal":
    wide = [d.expand((3, *d.batch_shape)).log_prob(z) for d, z in ((a, x), (b, y))]
    close(*wide, (case, "expand"))
  assert bool(a.has_rsample) == bool(b.has_rsample) and case.split()[0] in repr(b)

def compare_samples(case: str, count: int = 4000) -> None:
  """Compare quantiles of samples, and shapes."""
  torch = pytest.importorskip("torch")
  torch.manual_seed(0)
  ours.manual_seed(0)
  (a, _), (b, _) = (made(t, case) for t in (torch, ours))
  x, y = a.sample((count,)).double().numpy(), b.sample((count,))
  assert y.shape == (count, *b.batch_shape, *b.event_shape) and not y.requires_grad
  y = y.numpy().astype(np.float64)
  if np.array_equal(x, np.floor(x)): assert (np.abs(y.mean(0) - x.mean(0)) < 0.08 * (0.5 + x.std(0))).all()
  else:
    wanted, found = (np.quantile(z, [0.2, 0.35, 0.5, 0.65, 0.8], axis=0) for z in (x, y))
    assert (np.abs(wanted - found) / (wanted[-1] - wanted[0])).max() < 0.1, case

def compare_gradients_of_samples(case: str, count: int = 4000) -> None:
  """Compare the gradients of a mean of a bounded function of samples."""
  torch, found = pytest.importorskip("torch"), []
  for t in (torch, ours):
    t.manual_seed(1)
    d, given = made(t, case)
    x = d.rsample((count,))
    weights = np.linspace(1, 2, int(np.prod(x.shape[1:]))).reshape(x.shape[1:]).astype(np.float32)
    (x.tanh() * t.tensor(weights)).mean(0).sum().backward()
    found.append({k: p.grad.numpy() for k, p in given.items() if getattr(p, "grad", None) is not None})
  for k, wanted in found[0].items(): np.testing.assert_allclose(found[1][k], wanted, rtol=0.2, atol=0.06, err_msg=k)
