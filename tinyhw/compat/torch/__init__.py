"""PyTorch's names with PyTorch's meaning: `import tinyhw.compat.torch as torch`.

    torch.tensor, torch.cat ...    functions            torch.Tensor      the class, with PyTorch's methods
    torch.nn.functional            torch.linalg  torch.fft  torch.special  torch.signal.windows  torch.masked

It is thin. table.py says for each name where it is computed: by a method of `tinyhw.Tensor`, by a function of a plain
room (tinyhw.functional, tinyhw.linalg, tinyhw.special), or by a function of this folder, where PyTorch's meaning
contradicts tinygrad's. Names are looked up at first use. docs/guide/from-pytorch.md lists what is left out.
"""
from __future__ import annotations
import importlib as _importlib
import sys as _sys
import types as _types
from typing import Any

class _Namespace(_types.ModuleType):
  """A module whose names are functions of the table."""
  def __getattr__(self, name: str) -> Any:
    if name.startswith("__"): raise AttributeError(name)
    table = _importlib.import_module("tinyhw.compat.torch.table")
    found = table.find(self.__name__.removeprefix(f"{__name__}."), name)
    setattr(self, name, found)
    return found

  def __dir__(self) -> list[str]:
    table = _importlib.import_module("tinyhw.compat.torch.table")
    return sorted({*super().__dir__(), *table.names(self.__name__.removeprefix(f"{__name__}."))})

def _namespace(name: str) -> Any:
  full = f"{__name__}.{name}"
  if full not in _sys.modules: _sys.modules[full] = _Namespace(full, f"Functions of PyTorch's torch.{name}.")
  return _sys.modules[full]

# Each name after a dot is an attribute of the namespace before it.
for _name in """linalg special masked nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize
    nn.utils.parametrizations signal signal.windows fft optim optim.lr_scheduler optim.swa_utils amp random utils
    utils.data distributions distributions.transforms distributions.constraints distributions.kl
    autograd autograd.function utils.checkpoint nn.parameter cuda cuda.amp""".split():
  _above, _, _last = _name.rpartition(".")
  setattr(_namespace(_above) if _above else _sys.modules[__name__], _last, _namespace(_name))

def __getattr__(name: str) -> Any:
  """The names of torch itself, on first use."""
  if name.startswith("__"): raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  table = _importlib.import_module("tinyhw.compat.torch.table")
  found = table.find("", name)
  globals()[name] = found
  return found

def __dir__() -> list[str]:
  table = _importlib.import_module("tinyhw.compat.torch.table")
  return sorted({*globals(), *table.names("")})
