"""Modules that hold modules: Sequential, ModuleList, ModuleDict, ParameterList."""
from __future__ import annotations
from collections.abc import Iterable, Iterator, Mapping
import operator
from typing import Any

from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.errors import ArgumentError, IndexRangeError

class ModuleList(Module):
  """A list of modules, named by their positions."""
  def __init__(self, modules: Iterable[Module] | None = None):
    super().__init__()
    self.extend(modules or ())

  def _place(self, index: Any) -> str:
    i, n = operator.index(index), len(self)
    if not -n <= i < n: raise IndexRangeError(f"there is no module {i}: the list has {n}")
    return str(i % n)

  def __len__(self) -> int: return len(self._modules)
  def __iter__(self) -> Iterator[Any]: return iter(list(self._modules.values()))

  def __getitem__(self, index: Any) -> Any:
    if isinstance(index, slice): return type(self)(list(self)[index])
    return self._modules[self._place(index)]

  def __setitem__(self, index: int, module: Module) -> None: self.add_module(self._place(index), module)

  def __delitem__(self, index: int) -> None:
    del self._modules[self._place(index)]
    self._renumbered(list(self))

  def _renumbered(self, modules: list[Any]) -> None:
    self._modules.clear()
    for i, module in enumerate(modules): self.add_module(str(i), module)

  def append(self, module: Module) -> Any:
    """Add a module at the end."""
    self.add_module(str(len(self)), module)
    return self

  def extend(self, modules: Iterable[Module]) -> Any:
    """Add modules at the end."""
    for module in modules: self.append(module)
    return self

  def pop(self, index: int) -> Any:
    """Remove a module, and return it."""
    found = self[index]
    del self[index]
    return found

  def __iadd__(self, modules: Iterable[Module]) -> Any: return self.extend(modules)
  def __add__(self, modules: Iterable[Module]) -> Any: return type(self)([*self, *modules])

  def insert(self, index: int, module: Module) -> Any:
    """Add a module before a position."""
    modules = list(self)
    modules.insert(index, module)
    self._renumbered(modules)
    return self

class Sequential(ModuleList):
  """Modules that are called one after the other: given one by one, or in a dict with their names."""
  def __init__(self, *args: Any):
    Module.__init__(self)
    if len(args) == 1 and isinstance(args[0], Mapping):
      for name, module in args[0].items(): self.add_module(name, module)
    else: self.extend(args)

  def _place(self, index: Any) -> str:
    names: list[str] = list(self._modules)
    return names[int(super()._place(index))]

  def __getitem__(self, index: Any) -> Any:
    if isinstance(index, slice): return type(self)(dict(list(self._modules.items())[index]))
    return super().__getitem__(index)

  def __add__(self, modules: Iterable[Module]) -> Any: return type(self)(*self, *modules)

  def forward(self, input: Any) -> Any:
    """Return the result of the last module."""
    for module in self: input = module(input)
    return input

class ModuleDict(Module):
  """A dict of modules."""
  def __init__(self, modules: Mapping[str, Module] | None = None):
    super().__init__()
    self.update(modules or {})

  def __len__(self) -> int: return len(self._modules)
  def __iter__(self) -> Iterator[str]: return iter(list(self._modules))
  def __contains__(self, key: str) -> bool: return key in self._modules
  def __getitem__(self, key: str) -> Any: return self._modules[key]
  def __setitem__(self, key: str, module: Module) -> None: self.add_module(key, module)
  def __delitem__(self, key: str) -> None: del self._modules[key]

  def pop(self, key: str) -> Any:
    """Remove a module, and return it."""
    return self._modules.pop(key)

  def keys(self) -> Any:
    """Return the names."""
    return self._modules.keys()

  def values(self) -> Any:
    """Return the modules."""
    return self._modules.values()

  def items(self) -> Any:
    """Return names and modules."""
    return self._modules.items()

  def update(self, modules: Mapping[str, Module]) -> None:
    """Add modules of another dict."""
    for name, module in dict(modules).items(): self[name] = module

class ParameterList(Module):
  """A list of parameters, named by their positions."""
  def __init__(self, values: Iterable[Any] | None = None):
    super().__init__()
    self.extend(values or ())

  def __len__(self) -> int: return len(self._parameters)
  def __iter__(self) -> Iterator[Any]: return iter(list(self._parameters.values()))
  def __getitem__(self, index: int) -> Any: return list(self._parameters.values())[index]

  def append(self, value: Any) -> Any:
    """Add a parameter, or a tensor as one, at the end."""
    if value is None: raise ArgumentError("a ParameterList holds tensors, not None")
    self._parameters[str(len(self))] = value if isinstance(value, Parameter) else Parameter(value)
    return self

  def extend(self, values: Iterable[Any]) -> Any:
    """Add parameters at the end."""
    for value in values: self.append(value)
    return self

class ParameterDict(Module):
  """A dict of parameters."""
  def __init__(self, parameters: Any = None):
    super().__init__()
    self.update(parameters or {})

  def __len__(self) -> int: return len(self._parameters)
  def __iter__(self) -> Iterator[str]: return iter(list(self._parameters))
  def __contains__(self, key: str) -> bool: return key in self._parameters
  def __getitem__(self, key: str) -> Any: return self._parameters[key]
  def __delitem__(self, key: str) -> None: del self._parameters[key]

  def __setitem__(self, key: str, value: Any) -> None:
    if value is None: raise ArgumentError("a ParameterDict holds tensors, not None")
    self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)

  def keys(self) -> Any:
    """Return the names."""
    return self._parameters.keys()

  def values(self) -> Any:
    """Return the parameters."""
    return self._parameters.values()

  def items(self) -> Any:
    """Return names and parameters."""
    return self._parameters.items()

  def get(self, key: str, default: Any = None) -> Any:
    """Return a parameter, or a default."""
    return self._parameters.get(key, default)

  def pop(self, key: str) -> Any:
    """Remove a parameter, and return it."""
    return self._parameters.pop(key)

  def update(self, parameters: Any) -> None:
    """Add parameters of another dict."""
    for name, value in dict(parameters).items(): self[name] = value

class DataParallel(Module):
  """A module as it is: there is one device by PyTorch's names. Its names begin with `module.`."""
  def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
    super().__init__()
    self.module, self.device_ids, self.dim = module, device_ids or [], dim

  def forward(self, *args: Any, **keywords: Any) -> Any:
    """Call the module."""
    return self.module(*args, **keywords)
