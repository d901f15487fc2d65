"""Lazy layers: the count of inputs is taken from the first call, or from a state that is loaded.

Until then their parameters have no shape. Afterwards the layer is one of the class without `Lazy`, and the parameters
are the same objects, so an optimizer may have been given them before.
"""
from __future__ import annotations
from collections.abc import Mapping
from typing import Any

from tinyhw.compat.torch.modules import parametric
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.errors import ArgumentError, ShapeError

class UninitializedParameter(Parameter):
  """A parameter whose shape is not known yet. Raises ArgumentError where the shape is asked for."""
  __slots__ = ()

  def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
    return super().__new__(cls, None, requires_grad)

  def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None): pass

  @property
  def shape(self) -> Any:
    """There is none."""
    raise ArgumentError("a parameter of a lazy layer has no shape yet; call the layer once, or load a state")

  def materialize(self, value: Parameter) -> None:
    """Become a parameter with another's elements."""
    self.__class__ = Parameter  # type: ignore[assignment]
    self.hold(value.uop)

  def __repr__(self) -> str: return "<UninitializedParameter>"
  def __deepcopy__(self, memo: dict[int, Any]) -> Any:
    found = memo[id(self)] = UninitializedParameter(bool(self.requires_grad))
    return found
  def __reduce_ex__(self, protocol: Any) -> Any: return UninitializedParameter, (bool(self.requires_grad),)

class LazyLayer(Module):
  """The base: keeps the arguments, and makes the layer when the count of inputs is known."""
  made: type[Module] = Module
  axis = 1                # of the input's axes, the one that is counted; from the end where it is negative
  place = 0               # of the arguments, that of the count
  weight_axis = 1         # of the weight's axes, the one that has the count (times groups, for convolutions)
  state_key = "weight"

  def __init__(self, *args: Any, **keywords: Any):
    super().__init__()
    self._given = args, keywords
    probe = self.made(*self._arguments(self._least()), **keywords)    # raises now for bad arguments
    for name, value in probe._parameters.items():
      self.register_parameter(name, None if value is None else UninitializedParameter())

  def _least(self) -> int: return int(self._given[1].get("groups", 1))

  def _arguments(self, count: int) -> tuple[Any, ...]:
    args = self._given[0]
    return (*args[:self.place], count, *args[self.place:])

  def _make(self, count: int) -> None:
    """Become the layer for a count of inputs. Hooks and the mode stay."""
    made = self.made(*self._arguments(count), **self._given[1]).train(self.training)
    for name, value in made._parameters.items():
      own = self._parameters[name]
      if isinstance(own, UninitializedParameter) and value is not None: own.materialize(value)
    state = {k: v for k, v in made.__dict__.items() if k not in ("_parameters", "_forward_hooks", "_forward_pre_hooks")}
    del self.__dict__["_given"]
    self.__dict__.update(state)
    self.__class__ = self.made  # type: ignore[assignment]

  def forward(self, input: Any, *args: Any, **keywords: Any) -> Any:
    """Count, become the layer, and compute."""
    if not -input.ndim <= self._counted(input) < input.ndim:
      raise ShapeError(f"{type(self).__name__} counts axis {self.axis}, and the input has shape {input.shape}")
    self._make(int(input.shape[self._counted(input)]))
    return self.forward(input, *args, **keywords)      # now the layer's own

  def _counted(self, input: Any) -> int: return self.axis

  def _prepare(self, state: Mapping[str, Any], prefix: str) -> None:
    found = state.get(prefix + self.state_key)
    if found is not None: self._make(self._count_of(tuple(found.shape)))

  def _count_of(self, shape: tuple[int, ...]) -> int:
    return int(shape[self.weight_axis])

class _Convolution(LazyLayer):
  def _counted(self, input: Any) -> int: return -1 - self.made.axes  # type: ignore[attr-defined,no-any-return]

  def _count_of(self, shape: tuple[int, ...]) -> int:
    groups = int(self._given[1].get("groups", 1))
    return int(shape[0]) if self.made.transposed else int(shape[1]) * groups  # type: ignore[attr-defined]

class _Statistics(LazyLayer):
  weight_axis = 0

  def __init__(self, *args: Any, **keywords: Any):
    super().__init__(*args, **keywords)
    affine = any(p is not None for p in self._parameters.values())
    self.state_key = "weight" if affine else "running_mean"

  def _counted(self, input: Any) -> int:
    least = min(self.made.ndims)  # type: ignore[attr-defined]
    return 0 if issubclass(self.made, parametric.InstanceNorm1d) and input.ndim == least else 1

def _lazy(name: str) -> type[LazyLayer]:
  made = getattr(parametric, name)
  base = (_Convolution if name.startswith("Conv") else LazyLayer if name == "Linear" else _Statistics)
  return type(f"Lazy{name}", (base,), {"made": made, "axis": -1 if name == "Linear" else 1, "__module__": __name__,
                                       "__doc__": f"{name} that takes the count of inputs from its first call."})

NAMES = ("Linear", *[f"{kind}{n}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
                     for n in (1, 2, 3)])
LAZY: dict[str, type[LazyLayer]] = {f"Lazy{name}": _lazy(name) for name in NAMES}

globals().update(LAZY)
