"""Backward hooks of modules: functions that see the gradients at a module's results and at its arguments.

A module with such hooks is called between two boundaries, which are identities. The gradients of all results pass the
one behind the module together. Those of all arguments pass the one before it later, and there the hooks are called. A
gradient may be computed lazily, as for hooks of tensors.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.differentiation.functions import with_joint_rule
from tinyhw.compat.torch.differentiation.modes import enable_grad
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

class Boundary:
  """The boundaries of one call of a module."""
  def __init__(self, module: Any, every: dict[int, Any]) -> None:
    self.module, self.every = module, every     # hooks of all modules
    self.count = 0                              # of arguments
    self.places: list[int] = []                 # of those with a gradient
    self.gradients: tuple[Any, ...] = ()        # of results

  def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments behind the first boundary."""
    self.count, self.places = len(args), [k for k, x in enumerate(args) if _is_traced(x)]
    if not self.places: return args
    many = list(args)
    inner = _identity([args[k] for k in self.places], self._at_arguments)
    for k, x in zip(self.places, inner): many[k] = x
    return tuple(many)

  def left(self, found: Any) -> Any:
    """Return a module's results, a tensor or a tuple or list of some, behind the second boundary."""
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    places = [k for k, y in enumerate(results) if _is_traced(y)]
    if not places: return found
    def rule(gradients: list[Tensor]) -> list[Tensor]:
      given: list[Any] = [None] * len(results)
      for k, g in zip(places, dress(gradients)): given[k] = g
      self.gradients = _passed(self.module._backward_pre_hooks, lambda hook, now: hook(self.module, now), tuple(given))
      if not self.places: self._called((None,) * self.count)
      return [plain(self.gradients[k]) for k in places]
    for k, y in zip(places, _identity([results[k] for k in places], rule)): results[k] = y
    if not isinstance(found, (tuple, list)): return results[0]
    return type(found)(*results) if hasattr(found, "_fields") else type(found)(results)

  def _at_arguments(self, gradients: list[Tensor]) -> list[Tensor]:
    given: list[Any] = [None] * self.count
    for k, g in zip(self.places, dress(gradients)): given[k] = g
    found = self._called(tuple(given))
    return [plain(found[k]) for k in self.places]

  def _called(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
    hooks = {**self.every, **self.module._backward_hooks}
    return _passed(hooks, lambda hook, now: hook(self.module, now, self.gradients), given)

def _is_traced(x: Any) -> bool:
  return isinstance(x, Handle) and not x.holds_complex and dtypes.is_float(x.dtype) and bool(x.requires_grad)

def _identity(tensors: list[Any], rule: Callable[[list[Tensor]], list[Tensor]]) -> list[Any]:
  values = [plain(x) for x in tensors]
  return list(dress(with_joint_rule(values, values, rule)))

def _passed(hooks: dict[int, Any], call: Callable[[Any, Any], Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
  """Call hooks with gradients, one after the other. Those that one returns take their place."""
  for hook in list(hooks.values()):
    with enable_grad(): found = call(hook, given)
    if found is None: continue
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(given):
      raise ArgumentError(f"a backward hook gave {len(found)} gradients, and there are {len(given)}")
    for new, old in zip(found, given):
      if old is not None and (not isinstance(new, Handle) or sizes(new._self()) != sizes(old)):
        raise ShapeError(f"a backward hook gave {new!r:.60} for a gradient of shape {old.shape}")
    given = tuple([None if old is None else new for new, old in zip(found, given)])
  return given
