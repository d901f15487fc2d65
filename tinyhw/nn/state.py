"""The state of models: their tensors by name, and the files that hold such tensors.

Each format has a module of its own: safetensors, PyTorch's, NumPy's, tar and zip archives. All their names are
available here.
"""
from __future__ import annotations
import importlib
import sys
from typing import TYPE_CHECKING, Any

from tinyhw.config import DEBUG
from tinyhw.device import on_disk
from tinyhw.errors import ArgumentError
from tinyhw.files.progress import tqdm
from tinyhw.methods.checks import flag
from tinyhw.methods.graph.memory import storage_view
from tinyhw.tensor import Tensor
if TYPE_CHECKING:
  from tinyhw.nn.npy import npy_load as npy_load, npy_save as npy_save, npz_load as npz_load, npz_save as npz_save
  from tinyhw.nn.safetensors import (inverse_safe_dtypes as inverse_safe_dtypes, safe_dtypes as safe_dtypes,
                                     safe_load as safe_load,
                                     safe_load_metadata as safe_load_metadata, safe_save as safe_save)
  from tinyhw.nn.tar_archive import tar_extract as tar_extract
  from tinyhw.nn.tensor_io import TensorIO as TensorIO
  from tinyhw.nn.torch_file import torch_load as torch_load
  from tinyhw.nn.zip_archive import zip_extract as zip_extract

# Name -> the module of tinyhw.nn that defines it. It is loaded when the name is first used, since training needs no
# formats.
_FORMATS = {
  **dict.fromkeys(("safe_load", "safe_save", "safe_load_metadata", "safe_dtypes", "inverse_safe_dtypes"),
                  "safetensors"), "torch_load": "torch_file",
  **dict.fromkeys(("npy_load", "npy_save", "npz_load", "npz_save"), "npy"), "tar_extract": "tar_archive",
  "zip_extract": "zip_archive",
  "TensorIO": "tensor_io",
}

def __getattr__(name: str) -> Any:
  """Load the names of the formats on first use."""
  if name not in _FORMATS: raise AttributeError(f"module 'tinyhw.nn.state' has no attribute {name!r}")
  found = globals()[name] = getattr(importlib.import_module(f"tinyhw.nn.{_FORMATS[name]}"), name)
  return found

# the keys of a dict, all strings
__all__ = ["get_parameters", "get_state_dict", "load_state_dict", *_FORMATS]  # noqa: PLE0604

def __dir__() -> list[str]: return sorted({*globals(), *_FORMATS})

# The number of parts through which a model is walked, at most. A model that refers to itself in many ways has more
# names than atoms.
_MOST_STEPS = 1 << 20

# ***** names *****

def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
  """Return the Tensors in an object by name: attributes, items of lists and dicts, at any depth: "layers.0.weight".

  A part that is reached in two ways has two names. A part that contains itself is entered once. Raises ArgumentError
  for an object with too many names.

  >>> from tinyhw import nn
  >>> {name: t.shape for name, t in get_state_dict(nn.Linear(3, 2)).items()}
  {'weight': (2, 3), 'bias': (2,)}
  """
  found: dict[str, Any] = {}
  stack: list[tuple[str, Any, bool]] = [(prefix.rstrip("."), obj, False)]
  inside: set[int] = set()      # the objects from the root to here
  for _ in range(_MOST_STEPS):
    if not stack: return found
    name, x, left = stack.pop()
    if left: inside.discard(id(x))
    elif isinstance(x, tensor_type): found[name] = x
    elif id(x) not in inside and (items := _items(x)):
      inside.add(id(x))
      stack.append((name, x, True))
      stack.extend((f"{name}.{key}" if name else str(key), value, False) for key, value in reversed(items))
  raise ArgumentError(f"{type(obj)} refers to itself in so many ways that its tensors have more than {_MOST_STEPS} "
                      f"names; walk a part of it")

def _items(x: Any) -> list[tuple[Any, Any]] | None:
  """Return the items of an object, or None if it is no container."""
  if isinstance(x, tuple) and hasattr(x, "_asdict"): return list(x._asdict().items())
  if isinstance(x, (list, tuple)): return list(enumerate(x))
  if isinstance(x, dict): return list(x.items())
  if isinstance(x, type) or callable(getattr(x, "__code__", None)): return None
  slots = [name for kind in type(x).__mro__ for name in _slots(kind)]
  return ([*[(name, getattr(x, name)) for name in slots if hasattr(x, name)], *getattr(x, "__dict__", {}).items()]
          or None)

def _slots(kind: type) -> list[str]:
  """Return the attributes that a user's class keeps in slots. Classes of tinyhw have no tensors of a model in
  theirs."""
  if kind.__module__.partition(".")[0] == "tinyhw": return []
  slots = kind.__dict__.get("__slots__", ())
  return [name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")]

def get_parameters(obj: Any) -> list[Tensor]:
  """Return the Tensors in an object.

  >>> from tinyhw import nn
  >>> len(get_parameters([nn.Linear(3, 2), nn.LayerNorm(2)]))
  4
  """
  return list(get_state_dict(obj).values())

# ***** loading *****

def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False,
                    realize: bool = True) -> list[Tensor]:
  """Assign the values of state_dict to a model's tensors, cast to their types and moved to their devices. Return the
  model's tensors.

  A tensor with storage is written in place, as by assign(): a captured TinyJit stays valid, and views of the tensor see
  the values. A tensor without storage gets a copy, so training does not change state_dict.

  - strict: every tensor of the model must have a value. DEBUG=1 reports entries that the model does not have.
  - consume: a tensor without storage gets the tensor of state_dict itself. Entries are removed one by one, so that both
    are not in memory.
  - realize: convert and move now. Otherwise this happens when the tensors are used.

  Raises ArgumentError, before it changes anything, for a name that is missing, a shape that differs, or an entry that
  is no Tensor.

  >>> from tinyhw import nn
  >>> model = nn.Linear(3, 2)
  >>> loaded = load_state_dict(model, {"weight": Tensor.ones(2, 3), "bias": Tensor.zeros(2)}, verbose=False)
  >>> model.weight.tolist()
  [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
  """
  if not isinstance(state_dict, dict):
    raise ArgumentError(f"load_state_dict wants a dict of Tensors by name, not {type(state_dict)}")
  strict, verbose, consume, realize = (flag(*x) for x in (("strict", strict), ("verbose", verbose),
                                                          ("consume", consume), ("realize", realize)))
  own = get_state_dict(model)
  missing = [name for name in own if name not in state_dict]
  if strict and missing:
    raise ArgumentError(f"the state has no {missing[0]!r}" + (f" and {len(missing) - 1} more" if len(missing) > 1
                                                              else "") +
                        f"; it has {', '.join(map(str, list(state_dict)[:8]))}; strict=False loads what is there")
  values = {name: _fitting(name, tensor, state_dict[name]) for name, tensor in own.items() if name in state_dict}
  unused = [str(name) for name in state_dict if name not in own]
  if DEBUG >= 1 and unused:
    sys.stderr.write(f"load_state_dict: {len(unused)} entries that the model does not have: {', '.join(unused[:8])}\n")
  loaded = []
  for name in tqdm(list(values), desc="loading", disable=not verbose or len(values) < 2):
    tensor = own[name]
    _load(tensor, values.pop(name), consume)
    if realize: tensor.realize()
    if consume: del state_dict[name]
    loaded.append(tensor)
  return loaded

def _fitting(name: str, tensor: Tensor, value: Any) -> Tensor:
  """Return a value in tensor's shape. (1,) and () count as the same. Raises ArgumentError."""
  if not isinstance(value, Tensor):
    raise ArgumentError(f"{name!r} is {type(value)} in the state, not a Tensor; make one with Tensor(...)")
  if tensor.shape == value.shape: return value
  if {tensor.shape, value.shape} == {(), (1,)}: return value.reshape(tensor.shape)
  raise ArgumentError(f"{name!r} has shape {tensor.shape} in the model and {value.shape} in the state; was it saved "
                      f"from a model of other sizes?")

def _load(tensor: Tensor, value: Tensor, consume: bool) -> None:
  """Give a tensor a value of its shape: in the storage that it has, else in a copy, or in the storage of the value if
  that may be consumed."""
  if value is tensor: return
  keeps = storage_view(tensor.uop) is not None
  # only that part of the file is read
  if on_disk(value.device): value = value.to(tensor.device if isinstance(tensor.device, str) else None)
  elif not keeps and not consume: value = value.copied()
  value = value.shard_like(tensor).cast(tensor.dtype)
  if keeps: tensor.assign(value.detach())
  else: tensor.replace(value)
