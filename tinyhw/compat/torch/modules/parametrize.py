"""Parametrizations: a weight of a module that is computed from other parameters each time it is read.

`register_parametrization` gives a module a class of its own, derived from its class, with a property in the place of
the weight. The weight's own parameters are below `module.parametrizations`, so state dicts have PyTorch's keys:
"parametrizations.weight.original". The older weight_norm and spectral_norm of torch.nn.utils compute before each call.
"""
from __future__ import annotations
import contextlib
from collections.abc import Iterator
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.differentiation.modes import no_grad
from tinyhw.compat.torch.modules.containers import ModuleDict, ModuleList
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.compat.torch.table import find
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

class _Cache:
  depth = 0
  values: dict[Any, Any] = {}

@contextlib.contextmanager
def cached() -> Iterator[None]:
  """Within a `with`, compute each parametrized weight once."""
  _Cache.depth += 1
  try: yield
  finally:
    _Cache.depth -= 1
    if not _Cache.depth: _Cache.values = {}

class ParametrizationList(ModuleList):
  """The parametrizations of one weight, and the parameters from which the first one computes."""
  def __init__(self, modules: list[Module], original: Any):
    super().__init__(modules)
    start: Any = original
    with no_grad():
      for module in reversed(modules):
        if hasattr(module, "right_inverse"): start = module.right_inverse(start)
    self.is_tensor = isinstance(start, Tensor)
    kind = Parameter if isinstance(original, Parameter) else None
    for name, value in zip(self._names(start), [start] if self.is_tensor else start):
      if kind is not None: self.register_parameter(name, value if value is original else Parameter(value))
      else: self.register_buffer(name, value)

  def _names(self, start: Any) -> list[str]:
    return ["original"] if isinstance(start, Tensor) else [f"original{i}" for i in range(len(start))]

  def _given(self) -> list[Any]:
    own = {**self._parameters, **self._buffers}
    return [own[name] for name in own if name.startswith("original")]

  def forward(self) -> Any:
    """Return the weight."""
    first, *rest = self
    found = first(*self._given())
    for module in rest: found = module(found)
    return found

  def put(self, value: Any) -> None:
    """Write a weight, by the inverses of the parametrizations."""
    with no_grad():
      for module in reversed(list(self)):
        if not hasattr(module, "right_inverse"):
          raise ArgumentError(f"{type(module).__name__} has no right_inverse, so the weight cannot be set; define one")
        value = module.right_inverse(value)
      for own, new in zip(self._given(), [value] if self.is_tensor else value): own.copy_(new)

def _weight(name: str) -> property:
  def read(self: Any) -> Any:
    key = (id(self), name)
    if _Cache.depth and key in _Cache.values: return _Cache.values[key]
    found = self.parametrizations[name]()
    if _Cache.depth: _Cache.values[key] = found
    return found
  return property(read, lambda self, value: self.parametrizations[name].put(value))

def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
  """Compute a weight of a module by another module, from its present value. Several of them follow each other.

  unsafe: allow another shape or type.
  """
  if is_parametrized(module, tensor_name):
    there = module.parametrizations[tensor_name]
    _check(parametrization, there(), tensor_name, unsafe)
    if hasattr(parametrization, "right_inverse"):
      with no_grad(): value = parametrization.right_inverse(there())
      there.put(value)
    there.append(parametrization)
    return module
  original = module._parameters.get(tensor_name)
  if original is None: original = module._buffers.get(tensor_name)
  if original is None: raise ArgumentError(f"{type(module).__name__} has no parameter or buffer {tensor_name!r}")
  made = ParametrizationList([parametrization], original)
  _check(made, original, tensor_name, unsafe)
  if not is_parametrized(module):
    kind = type(module)
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {})
    module.parametrizations = ModuleDict()
  delattr(module, tensor_name)
  setattr(type(module), tensor_name, _weight(tensor_name))
  module.parametrizations[tensor_name] = made
  return module

def _check(function: Any, old: Any, name: str, unsafe: bool) -> None:
  if unsafe: return
  with no_grad(): found = function() if isinstance(function, ParametrizationList) else function(old)
  if tuple(found.shape) != tuple(old.shape) or found.dtype is not old.dtype:
    raise ArgumentError(f"the parametrization gives {name} shape {found.shape} and type {found.dtype}, and it has "
                        f"{old.shape} and {old.dtype}; unsafe=True allows that")

def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
  """Has a module a parametrized weight, or one of this name?"""
  there = module.__dict__.get("_modules", {}).get("parametrizations")
  return there is not None and (tensor_name is None or tensor_name in there)

def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
  """Make a weight a parameter again: of its present value, or (leave_parametrized=False) of the original one."""
  if not is_parametrized(module, tensor_name):
    raise ArgumentError(f"{type(module).__name__} has no parametrized {tensor_name!r}")
  there = module.parametrizations[tensor_name]
  if not leave_parametrized and not there.is_tensor:
    raise ArgumentError("the weight is made of several parameters; leave_parametrized=True makes one of them")
  with no_grad(): value = getattr(module, tensor_name) if leave_parametrized else there.original
  trained = bool(there._parameters)
  delattr(type(module), tensor_name)
  del module.parametrizations[tensor_name]
  if trained: module.register_parameter(tensor_name, Parameter(value))
  else: module.register_buffer(tensor_name, value.detach())
  if not len(module.parametrizations):
    del module.parametrizations
    module.__class__ = type(module).__bases__[0]
  return module

# ***** ready ones *****

def _norm(v: Any, dim: int | None) -> Any:
  """Return the norms of the slices along an axis, with axes of 1; of all elements for -1 or None."""
  axes = [i for i in range(v.ndim) if dim is None or dim == -1 or i != dim % v.ndim]
  return v.square().sum(axes, keepdim=True).sqrt() if dim is not None and dim != -1 else v.square().sum().sqrt()

class WeightNorm(Module):
  """A weight as its norms along an axis times a direction. Source: Salimans and Kingma 2016."""
  def __init__(self, dim: int | None = 0):
    super().__init__()
    self.dim = -1 if dim is None else dim

  def forward(self, weight_g: Any, weight_v: Any) -> Any:
    """Return the weight."""
    return weight_v * (weight_g / _norm(weight_v, self.dim))

  def right_inverse(self, weight: Any) -> Any:
    """Return norms and direction of a weight."""
    return _norm(weight, self.dim), weight

class SpectralNorm(Module):
  """A weight divided by an estimate of its largest singular value, as a matrix whose rows are along `dim`.

  In training mode each call makes n_power_iterations. Source: Miyato et al. 2018.
  """
  def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
    super().__init__()
    if n_power_iterations <= 0: raise ArgumentError(f"n_power_iterations is {n_power_iterations}; it is at least 1")
    self.dim, self.n_power_iterations, self.eps = dim % weight.ndim, n_power_iterations, eps
    if weight.ndim > 1:
      matrix = self._matrix(weight.detach())
      for name, count in (("_u", int(matrix.shape[0])), ("_v", int(matrix.shape[1]))):
        drawn = dress(Tensor.randn(count, dtype=weight.dtype, device=weight.device))
        self.register_buffer(name, dress(plain(self._unit(drawn)).contiguous().realize()))
      self._iterate(matrix, 15)

  @staticmethod
  def unit(x: Any, eps: float) -> Any:
    """Return a vector of length 1."""
    return find("nn.functional", "normalize")(x, dim=0, eps=eps)

  @staticmethod
  def matrix_of(weight: Any, dim: int) -> Any:
    """Return a weight as a matrix with the rows along an axis."""
    if dim: weight = weight.permute(dim, *[d for d in range(weight.ndim) if d != dim])
    return weight.flatten(1)

  def _unit(self, x: Any) -> Any: return self.unit(x, self.eps)
  def _matrix(self, weight: Any) -> Any: return self.matrix_of(weight, self.dim)

  def _iterate(self, matrix: Any, count: int) -> None:
    with no_grad():
      for _ in range(count):
        self._u.copy_(self._unit(matrix.mv(self._v)))
        self._v.copy_(self._unit(matrix.t().mv(self._u)))

  def forward(self, weight: Any) -> Any:
    """Return the weight divided by its largest singular value."""
    if weight.ndim == 1: return self._unit(weight)
    matrix = self._matrix(weight)
    if self.training: self._iterate(matrix.detach(), self.n_power_iterations)
    return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

  def right_inverse(self, value: Any) -> Any:
    """Return the weight itself."""
    return value

class Orthogonal(Module):
  """An orthogonal weight from any matrix: by the exponential of its antisymmetric part, Cayley's map, or Householder
  reflections, from a base (trivialized) or from the identity."""
  def __init__(self, weight: Any, orthogonal_map: str, trivialized: bool = True):
    super().__init__()
    self.orthogonal_map, self.shape = orthogonal_map, tuple(weight.shape)
    if trivialized: self.register_buffer("base", None)
    if trivialized or orthogonal_map == "householder": self.right_inverse = self._inverse

  def forward(self, x: Any) -> Any:
    """Return the orthogonal matrix."""
    rows, columns = (int(d) for d in x.shape[-2:])
    if swapped := rows < columns: x, rows, columns = x.transpose(-2, -1), columns, rows
    if self.orthogonal_map == "householder":
      low = x.tril(-1)
      signs = x.diagonal(dim1=-2, dim2=-1).int().to(x.dtype).unsqueeze(-2)
      found = find("linalg", "householder_product")(low, 2 / (low.square().sum(-2) + 1)) * signs
    else: found = self._mapped(x.tril(), rows, columns)
    base = self._buffers.get("base")
    if base is not None: found = base @ found
    return found.transpose(-2, -1) if swapped else found

  def _mapped(self, low: Any, rows: int, columns: int) -> Any:
    """Return the first columns of the exponential or of Cayley's map of an antisymmetric matrix."""
    if rows != columns: low = find("", "cat")([low, low.new_zeros(*low.shape[:-1], rows - columns)], -1)
    skew = low - low.transpose(-2, -1)
    if self.orthogonal_map == "matrix_exp": return find("", "matrix_exp")(skew)[..., :columns]
    one = dress(Tensor.eye(rows, dtype=low.dtype))
    return find("linalg", "solve")(one - skew * 0.5, one + skew * 0.5)[..., :columns]

  def _inverse(self, weight: Any) -> Any:
    """Return a matrix that gives this weight, or the nearest one that a factorization finds."""
    rows, columns = (int(d) for d in weight.shape[-2:])
    x = weight.transpose(-2, -1) if rows < columns else weight
    if "base" not in self._buffers:
      x, _ = find("", "geqrf")(x)
      x = x.tril(-1) + dress(Tensor.eye(max(rows, columns), min(rows, columns), dtype=x.dtype)) * _signs(x)
      return x.transpose(-2, -1) if rows < columns else x
    longer, shorter = max(rows, columns), min(rows, columns)
    if longer != shorter:
      extra = dress(Tensor.randn(*x.shape[:-2], longer, longer - shorter, dtype=x.dtype))
      x = find("", "cat")([x, extra], -1)
    q, r = find("linalg", "qr")(x)
    self.register_buffer("base", dress(plain(q * _signs(r)).contiguous().realize()))
    return weight.new_zeros(*weight.shape) - dress(Tensor.eye(rows, columns, dtype=weight.dtype))

def _signs(x: Any) -> Any: return x.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)

def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
  """Give a weight the parametrization WeightNorm."""
  return register_parametrization(module, name, WeightNorm(dim), unsafe=True)

def axis_of_rows(module: Module, dim: int | None) -> int:
  """Return the axis of a weight whose slices are the rows of its matrix."""
  if dim is not None: return dim
  return int(type(module).__name__.startswith("ConvTranspose"))

def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
  """Give a weight the parametrization SpectralNorm."""
  weight = getattr(module, name)
  return register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, axis_of_rows(module, dim),
                                                             eps))

def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
  """Give a weight the parametrization Orthogonal. With use_trivialization it begins with the orthogonal matrix that a
  factorization of the present weight gives."""
  weight = getattr(module, name)
  if weight.ndim < 2: raise ArgumentError(f"orthogonal wants a matrix, not {weight.shape}")
  found = orthogonal_map or ("matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder")
  if found not in ("matrix_exp", "cayley", "householder"):
    raise ArgumentError(f"orthogonal_map is 'matrix_exp', 'cayley' or 'householder', not {found!r}")
  return register_parametrization(module, name, Orthogonal(weight, found, use_trivialization), unsafe=True)
