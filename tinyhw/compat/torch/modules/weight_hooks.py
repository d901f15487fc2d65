"""The older `torch.nn.utils.weight_norm` and `spectral_norm`: a weight is computed before each call of a module."""
from __future__ import annotations
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.differentiation.modes import no_grad
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.compat.torch.modules.parametrize import SpectralNorm, WeightNorm, axis_of_rows
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

class WeightHook:
  """The weight `name` of a module, computed from its own parameters before each call."""
  def __init__(self, name: str): self.name = name

  def compute(self, module: Module) -> Any:
    """Return the weight."""
    raise NotImplementedError

  def __call__(self, module: Module, args: Any) -> None: object.__setattr__(module, self.name, self.compute(module))

class WeightNormHook(WeightHook):
  """The weight as norms, name_g, times a direction, name_v."""
  def __init__(self, name: str, dim: int | None):
    super().__init__(name)
    self.norm = WeightNorm(dim)

  def compute(self, module: Module) -> Any:
    """Return the weight."""
    return self.norm(getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v"))

class SpectralHook(WeightHook):
  """The weight name_orig divided by an estimate of its largest singular value, with the buffers name_u and name_v."""
  def __init__(self, name: str, iterations: int, dim: int, eps: float):
    super().__init__(name)
    self.iterations, self.dim, self.eps = iterations, dim, eps

  def compute(self, module: Module) -> Any:
    """Return the weight. In training mode, iterate first."""
    weight, u, v = (getattr(module, f"{self.name}_{end}") for end in ("orig", "u", "v"))
    matrix = SpectralNorm.matrix_of(weight, self.dim)
    if module.training:
      with no_grad():
        for _ in range(self.iterations):
          v.copy_(SpectralNorm.unit(matrix.detach().t().mv(u), self.eps))
          u.copy_(SpectralNorm.unit(matrix.detach().mv(v), self.eps))
    return weight / u.clone().dot(matrix.mv(v.clone()))

def _taken(module: Module, name: str) -> Any:
  """Return the parameter of a module, and unregister it."""
  if name not in module._parameters or module._parameters[name] is None:
    raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}")
  return module._parameters.pop(name)

def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
  """Compute a weight from its norms along an axis, name_g, and a direction, name_v."""
  hook, weight = WeightNormHook(name, dim), _taken(module, name)
  with no_grad(): g, v = hook.norm.right_inverse(weight)
  module.register_parameter(f"{name}_g", Parameter(g))
  module.register_parameter(f"{name}_v", Parameter(v))
  return _hooked(module, hook)

def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
  """Divide a weight by an estimate of its largest singular value."""
  if n_power_iterations <= 0: raise ArgumentError(f"n_power_iterations is {n_power_iterations}; it is at least 1")
  weight, axis = _taken(module, name), axis_of_rows(module, dim)
  matrix = SpectralNorm.matrix_of(weight.detach(), axis)
  module.register_parameter(f"{name}_orig", weight)
  for end, count in (("u", int(matrix.shape[0])), ("v", int(matrix.shape[1]))):
    drawn = SpectralNorm.unit(dress(Tensor.randn(count, dtype=weight.dtype, device=weight.device)), eps)
    module.register_buffer(f"{name}_{end}", dress(plain(drawn).contiguous().realize()))
  return _hooked(module, SpectralHook(name, n_power_iterations, axis, eps))

def _hooked(module: Module, hook: WeightHook) -> Module:
  module.register_forward_pre_hook(hook)
  with no_grad(): hook(module, ())
  return module

def _removed(module: Module, name: str, kind: type[WeightHook], ends: tuple[str, ...]) -> Module:
  for key, (hook, _) in list(module._forward_pre_hooks.items()):
    if isinstance(hook, kind) and hook.name == name:
      with no_grad(): value = getattr(module, name)
      del module._forward_pre_hooks[key]
      for end in ends: delattr(module, f"{name}_{end}")
      object.__delattr__(module, name)
      module.register_parameter(name, Parameter(value))
      return module
  raise ArgumentError(f"{type(module).__name__} has no such norm of {name!r}")

def remove_weight_norm(module: Module, name: str = "weight") -> Module:
  """Make the weight of weight_norm a parameter again."""
  return _removed(module, name, WeightNormHook, ("g", "v"))

def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
  """Make the weight of spectral_norm a parameter again."""
  return _removed(module, name, SpectralHook, ("orig", "u", "v"))
