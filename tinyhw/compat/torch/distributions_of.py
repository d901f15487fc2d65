"""`torch.distributions`: the classes of tinyhw/distributions, taking and giving PyTorch's tensors.

Each class has a twin, made at its first use, that dresses what its methods return. Twins derive from each other as the
classes do, so `isinstance` holds, and programs may derive from `torch.distributions.Distribution`.
"""
from __future__ import annotations
import functools
import importlib
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.distributions.distribution import Distribution
from tinyhw.distributions.transforms import Transform
from tinyhw.tensor import Tensor

class Dressing:
  """Takes and gives PyTorch's tensors."""
  def _take(self, x: Any) -> Any: return plain(x)
  def _give(self, x: Any) -> Any:
    return dress(x._view(x.uop) if type(x) is Tensor else x)     # a parameter stays plain

MODULES = {
  "distribution": "Distribution", "gammas": "Gamma Chi2 InverseGamma Dirichlet Beta StudentT FisherSnedecor",
  "continuous": """Normal Laplace Cauchy Gumbel Uniform Exponential LogNormal HalfNormal HalfCauchy Pareto Weibull
    Kumaraswamy VonMises GeneralizedPareto""",
  "discrete": """Bernoulli Geometric Binomial NegativeBinomial Poisson Categorical OneHotCategorical
    OneHotCategoricalStraightThrough Multinomial ContinuousBernoulli""",
  "matrices": "MultivariateNormal LowRankMultivariateNormal Wishart LKJCholesky",
  "shaping": """CorrCholeskyTransform LowerCholeskyTransform PositiveDefiniteTransform CumulativeDistributionTransform
    CatTransform StackTransform""",
  "composed": """Independent TransformedDistribution LogisticNormal RelaxedBernoulli RelaxedOneHotCategorical
    MixtureSameFamily""",
  "transforms": """Transform ExpTransform PowerTransform SigmoidTransform TanhTransform SoftplusTransform AbsTransform
    AffineTransform SoftmaxTransform StickBreakingTransform ReshapeTransform IndependentTransform ComposeTransform""",
}
_PLACES = {name: module for module, names in MODULES.items() for name in names.split()}

@functools.lru_cache(None)
def twin(kind: type) -> type:
  """Return the class that takes and gives PyTorch's tensors in the place of a class."""
  if kind in (Distribution, Transform): return type(kind.__name__, (Dressing, kind), {"__doc__": kind.__doc__})
  bases: list[Any] = [twin(base)  # type: ignore[arg-type]
                      for base in kind.__bases__ if issubclass(base, (Distribution, Transform))]
  return type(kind.__name__, (*bases, kind), {"__doc__": kind.__doc__})

def __getattr__(name: str) -> Any:
  """Return the twin of a class by its name, or a registry of transforms."""
  if name in ("biject_to", "transform_to", "identity_transform"): return _registry(name)
  if name not in _PLACES: raise AttributeError(f"torch.distributions has no {name!r} here")
  return twin(getattr(importlib.import_module(f"tinyhw.distributions.{_PLACES[name]}"), name))

@functools.lru_cache(None)
def _registry(name: str) -> Any:
  registry = importlib.import_module("tinyhw.distributions.registry")
  if name == "identity_transform": return registry.bijections(twin).identity()
  return (registry.bijections if name == "biject_to" else registry.transformations)(twin)
