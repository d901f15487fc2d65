"""The two classes of one tensor: plain (`tinyhw.Tensor`, tinygrad's meaning) and dressed (`TorchTensor`, PyTorch's).

What computes works on plain tensors. `dressed` makes of such a function one that takes and returns dressed ones. The
handles share the node, and a write through one shows in the other.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import importlib
import inspect
from typing import Any

from tinyhw.dtype import DType, dtypes, to_dtype
from tinyhw.errors import ArgumentError, DTypeError, TinyError
from tinyhw.functional.operands import rank
from tinyhw.methods.base import Handle, complex_room
from tinyhw.tensor import Tensor

class Dressed:
  """The class of dressed tensors; tensors.py sets it."""
  kind: type[Tensor] = Tensor

def plain(x: Any) -> Any:
  """Return x with each dressed tensor in it as a plain one."""
  if isinstance(x, Dressed.kind):
    if x.holds_complex: return complex_room().made(*x._planes)
    found = x._view(x.uop)
    found.__class__ = Tensor
    return found
  if isinstance(x, (tuple, list)):
    items = [plain(y) for y in x]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
  if isinstance(x, dict): return {key: plain(y) for key, y in x.items()}
  if callable(x) and not isinstance(x, type) and not isinstance(x, DType) and not isinstance(x, Handle):
    return lambda *args: plain(x(*dress(args)))       # a function of the user's works on dressed tensors
  return x

def dress(x: Any) -> Any:
  """Return x with each plain tensor in it as a dressed one. A tensor that was made for this is changed in place."""
  if type(x) is Tensor:
    x.__class__ = Dressed.kind
    return x
  if isinstance(x, Handle) and x.holds_complex:
    if not isinstance(x, Dressed.kind):
      x.__class__ = importlib.import_module("tinyhw.compat.torch.complexes").TorchComplex
    return x
  if isinstance(x, (tuple, list)):
    items = [dress(y) for y in x]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
  return x

def dressed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
  """Return a function of plain tensors as one of dressed tensors. It takes `out=`, too, and writes there.

  Raises ArgumentError for arguments that the function does not take.
  """
  parameters = _parameters(function)
  takes_out = "out" in parameters
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    if keywords and not keywords.keys().isdisjoint(NUMPYS_NAMES): keywords = _renamed(keywords, parameters)
    out = None if takes_out else keywords.pop("out", None)
    try: found = function(*plain(args), **{key: plain(value) for key, value in keywords.items()})
    except TypeError as error:
      if isinstance(error, TinyError): raise
      raise _explained(function, name, args, keywords, error) from error
    return dress(found) if out is None else _written(out, dress(found), name in OUT_OF_THE_TYPE)
  return called

# NumPy's names of parameters, which PyTorch's functions take, too.
NUMPYS_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input"}

def _renamed(keywords: dict[str, Any], parameters: Any) -> dict[str, Any]:
  """Return keywords with NumPy's names replaced where a function has only PyTorch's."""
  return {NUMPYS_NAMES[k] if k in NUMPYS_NAMES and k not in parameters and NUMPYS_NAMES[k] in parameters else k: v
          for k, v in keywords.items()}

def _parameters(function: Callable[..., Any]) -> Any:
  try: return inspect.signature(function).parameters
  except (TypeError, ValueError): return {}

def _explained(function: Callable[..., Any], name: str, args: Any, keywords: Any, error: TypeError) -> Exception:
  """Return the error to raise for a TypeError: an ArgumentError if the arguments do not fit the parameters."""
  try: inspect.signature(function).bind(*args, **keywords)
  except TypeError as misfit: return ArgumentError(f"{name}: {misfit}; it takes {inspect.signature(function)}")
  kinds = ", ".join([type(x).__name__ for x in (*args, *keywords.values())])
  return ArgumentError(f"{name} does not take arguments of these kinds ({kinds}): {error}")

# Functions whose out has the type of the result, and is not cast to.
OUT_OF_THE_TYPE = frozenset("complex gather take aminmax amax amin multinomial index_select".split())

def _written(out: Any, found: Any, exact: bool) -> Any:
  if isinstance(out, (tuple, list)): return type(out)([_written(a, b, exact) for a, b in zip(out, found)])
  if not isinstance(out, Handle): raise ArgumentError(f"out is a tensor, not {out!r}")
  if exact and found.dtype is not out.dtype or rank(found.dtype) > rank(out.dtype):
    raise DTypeError(f"a result of {found.dtype} is not written into out of {out.dtype}; give an out of that type")
  return out.assign(found.cast(out.dtype))

def kind_of(dtype: Any) -> DType | None:
  """Return a dtype, or None for None. Python's int and bool are PyTorch's int64 and bool."""
  if dtype is None: return None
  if dtype is int: return dtypes.int64
  if dtype is float: return dtypes.default_float
  if dtype is bool: return dtypes.bool
  return to_dtype(dtype)
