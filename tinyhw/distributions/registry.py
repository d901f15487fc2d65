"""`biject_to` and `transform_to`: a transform from real numbers into a constraint.

biject_to gives one with an inverse and a slope. transform_to may give one that is better for optimizers: softmax for
shares.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.distributions.constraints import Constraint
from tinyhw.distributions.shaping import (
  CatTransform, CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform, StackTransform)
from tinyhw.distributions.transforms import (
  AffineTransform, ComposeTransform, ExpTransform, IndependentTransform, SigmoidTransform, SoftmaxTransform,
  StickBreakingTransform)

Factory = Callable[[Any], Any]

class ConstraintRegistry:
  """Factories of transforms by kinds of constraints. `twin`: makes of a class the one for the user's tensors."""
  def __init__(self, twin: Callable[[type], Any] = lambda kind: kind):
    self.factories: dict[str, Factory] = {}
    self.twin = twin

  def register(self, constraint: Any, factory: Factory | None = None) -> Any:
    """Set the factory for a constraint, or for the kind of those that a function makes. Without one, decorate it."""
    kind = constraint.kind if isinstance(constraint, Constraint) else constraint.__name__
    if factory is None: return lambda function: self.register(constraint, function)
    self.factories[kind] = factory
    return factory

  def __call__(self, constraint: Constraint) -> Any:
    """Return a transform into a constraint. Raises NotImplementedError where there is none."""
    if constraint.kind in self.factories: return self.factories[constraint.kind](constraint)
    raise NotImplementedError(f"there is no transform into {constraint}; register one")

  def identity(self) -> Any:
    """Return the transform that changes nothing."""
    return self.twin(ComposeTransform)([])

  def _chain(self, first: type, *affine: Any) -> Any:
    """Return a transform, then one by affine numbers."""
    return self.twin(ComposeTransform)([self.twin(first)(), self.twin(AffineTransform)(*affine)])

  def _shifted(self, c: Constraint) -> Any:
    return self._chain(ExpTransform, c.parts[0], 1.0) if c.parts else self.twin(ExpTransform)()

  def _below(self, c: Constraint) -> Any: return self._chain(ExpTransform, c.parts[0], -1.0)

  def _between(self, c: Constraint) -> Any:
    if not c.parts: return self.twin(SigmoidTransform)()
    low, high = c.parts
    return self._chain(SigmoidTransform, low, high - low)

def _filled(found: ConstraintRegistry, shares: type) -> ConstraintRegistry:
  make = found.twin
  for kind in ("positive", "nonnegative", "greater_than", "greater_than_eq"): found.factories[kind] = found._shifted
  found.factories["less_than"] = found._below
  for kind in ("unit_interval", "interval", "half_open_interval"): found.factories[kind] = found._between
  found.factories["real"] = lambda c: found.identity()
  found.factories["real_vector"] = lambda c: make(IndependentTransform)(found.identity(), 1)
  found.factories["simplex"] = lambda c: make(shares)()
  found.factories["corr_cholesky"] = lambda c: make(CorrCholeskyTransform)()
  found.factories["lower_cholesky"] = lambda c: make(LowerCholeskyTransform)()
  found.factories["positive_definite"] = lambda c: make(PositiveDefiniteTransform)()
  found.factories["positive_semidefinite"] = found.factories["positive_definite"]
  found.factories["independent"] = lambda c: make(IndependentTransform)(found(c.parts[0]), c.parts[1])
  found.factories["cat"] = lambda c: make(CatTransform)([found(part) for part in c.parts[0]], c.parts[1], c.parts[2])
  found.factories["stack"] = lambda c: make(StackTransform)([found(part) for part in c.parts[0]], c.parts[1])
  return found

def bijections(twin: Callable[[type], Any] = lambda kind: kind) -> ConstraintRegistry:
  """Return a registry like biject_to."""
  return _filled(ConstraintRegistry(twin), StickBreakingTransform)

def transformations(twin: Callable[[type], Any] = lambda kind: kind) -> ConstraintRegistry:
  """Return a registry like transform_to."""
  return _filled(ConstraintRegistry(twin), SoftmaxTransform)

biject_to, transform_to = bijections(), transformations()
