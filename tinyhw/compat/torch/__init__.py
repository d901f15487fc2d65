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
  rows = ""     # the namespace of the table

  def __getattr__(self, name: str) -> Any:
    if name.startswith("__"): raise AttributeError(name)
    table = _importlib.import_module("tinyhw.compat.torch.table")
    found = table.find(self.rows, name)
    setattr(self, name, found)
    return found

  def __dir__(self) -> list[str]:
    table = _importlib.import_module("tinyhw.compat.torch.table")
    return sorted({*super().__dir__(), *table.names(self.rows)})

def _namespace(name: str, rows: str | None = None) -> Any:
  full = f"{__name__}.{name}"
  if full not in _sys.modules:
    made = _Namespace(full, f"Functions of PyTorch's torch.{name}.")
    made.rows = name if rows is None else rows
    above, _, last = name.rpartition(".")
    setattr(_namespace(above) if above else _sys.modules[__name__], last, made)
    _sys.modules.setdefault(full, made)
  return _sys.modules[full]

__version__ = "2.13.0+tinyhw"      # PyTorch's release whose names and meaning are these

for _name in """linalg special masked nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize
    nn.utils.parametrizations signal signal.windows fft optim optim.lr_scheduler optim.swa_utils amp random utils
    utils.data distributions distributions.transforms distributions.constraints distributions.kl
    autograd autograd.function utils.checkpoint nn.parameter cuda cuda.amp jit compiler distributed version
    testing autograd.graph nn.modules func nn.utils.stateless
    autograd.functional nn.utils.prune nn.utils.fusion nn.attention""".split(): _namespace(_name)

# Modules of PyTorch's in which programs look for names of the namespace above them.
_WITHIN = {
  "nn": "parallel",
  "nn.modules": """module linear conv batchnorm instancenorm normalization activation loss container dropout pooling
    padding rnn transformer sparse upsampling""",
  "nn.utils": "clip_grad convert_parameters",
  "optim": "optimizer sgd adam adamw rmsprop adagrad lbfgs",
  "utils.data": "dataset dataloader sampler distributed",
  "distributions": """distribution normal categorical bernoulli beta gamma dirichlet uniform exponential laplace
    multivariate_normal independent transformed_distribution mixture_same_family""",
}
for _rows, _names in _WITHIN.items():
  for _name in _names.split(): _namespace(f"{_rows}.{_name}", _rows)

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
