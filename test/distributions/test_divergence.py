"""distributions/divergence.py: divergences against PyTorch's, and by samples."""
from __future__ import annotations
from typing import Any

from test.distributions.distribution_cases import CASES, close, made
import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw.distributions.continuous import Laplace, Normal
from tinyhw.distributions.divergence import kl_divergence, register_kl

NAMES = """Normal LogNormal HalfNormal Laplace Cauchy Gumbel Uniform Exponential Gamma Chi2 Dirichlet Beta Bernoulli
  Binomial Geometric Poisson Categorical OneHotCategorical MultivariateNormal""".split()

def scaled(x: Any, factor: float) -> Any:
  return x if isinstance(x, int) else (np.array(x, np.float32) * factor).tolist()

@pytest.mark.parametrize("name", NAMES)
def test_against_pytorch(name: str) -> None:
  torch = pytest.importorskip("torch")
  other = {k: scaled(v, 0.8) for k, v in CASES[name][0].items()}
  if name == "Uniform": other = {"low": -2.0, "high": [2.5, 2.9]}
  (a, b), (c, d) = ((made(t, name)[0], made(t, name, other)[0]) for t in (torch, ours))
  close(torch.distributions.kl_divergence(a, b), ours.distributions.kl_divergence(c, d), name)
  if name == "Normal":
    independent = [t.distributions.kl_divergence(t.distributions.Independent(p, 1), t.distributions.Independent(q, 1))
                   for t, p, q in ((torch, a, b), (ours, c, d))]
    close(*independent, "Independent")

def test_own_formulas() -> None:
  p, q = Normal(0.0, 1.0), Laplace(0.0, 1.0)
  with pytest.raises(NotImplementedError, match=r"KL\(Normal \|\| Laplace\)"): kl_divergence(p, q)
  @register_kl(Normal, Laplace)
  def formula(p: Normal, q: Laplace) -> Any: return p.scale * 7
  assert kl_divergence(p, q).item() == 7.0
