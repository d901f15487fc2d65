"""Operands: tensors and numbers promoted as PyTorch promotes them, axes, shapes.

A tensor without axes is as weak as a number: it decides the type only if it is of a higher kind (bool, integer, float)
than the tensors with axes.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.dtype import DType, complex_of, dtypes, least_upper_dtype, to_dtype
from tinyhw.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number, plain, whole
from tinyhw.tensor import Tensor

def rank(dtype: DType) -> int:
  """Return the kind of a type: 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
  return 3 if dtype in dtypes.complexes else 2 if dtypes.is_float(dtype) else int(dtype is not dtypes.bool)

def number_type(x: Any) -> DType:
  """Return the type that PyTorch gives a Python number."""
  if isinstance(x, bool): return dtypes.bool
  if isinstance(x, complex): return complex_of(dtypes.default_float)
  return dtypes.int64 if isinstance(x, int) else dtypes.default_float

def is_scalar(x: Any) -> bool:
  """Is x a number, real or complex?"""
  return is_number(x) or isinstance(x, complex)

def result_type(*operands: Any) -> DType:
  """Return the type of an operation between tensors and numbers."""
  groups: list[list[DType]] = [[], [], []]   # tensors with axes, tensors without, numbers
  for x in operands:
    if isinstance(x, Handle): groups[0 if x.ndim else 1].append(x.dtype)
    elif is_scalar(x): groups[2].append(number_type(plain(x)))
    else: raise ArgumentError(f"cannot compute with {x!r}; give a Tensor or a number")
  found: DType | None = None
  for group in groups:
    if not group: continue
    upper = least_upper_dtype(*group)
    if found is None: found = upper
    elif rank(upper) > rank(found): found = complex_of(found) if rank(upper) == 3 and rank(found) == 2 else upper
  if found is None: raise ArgumentError("an operation wants a tensor or a number at least")
  return found

def tensor(x: Any, like: Tensor | None = None, dtype: DType | None = None) -> Tensor:
  """Return x, a tensor or a number, as a tensor of a type."""
  if isinstance(x, Handle): found = x._self()
  elif is_scalar(x):
    x = plain(x)
    found = Tensor(x, dtype=dtype or number_type(x), device=None if like is None else like.device)
  else: raise ArgumentError(f"cannot compute with {x!r}; give a Tensor or a number")
  return found if dtype is None else found.cast(dtype)

def tensors(*operands: Any) -> list[Tensor]:
  """Return operands as tensors of their common type."""
  dtype = result_type(*operands)
  first = next((x for x in operands if isinstance(x, Handle)), None)
  return [tensor(x, None if first is None else first._self(), dtype) for x in operands]

def floats(*operands: Any) -> list[Tensor]:
  """Return operands as tensors of their common float or complex type; that of integers is the default float type."""
  dtype = result_type(*operands)
  first = next((x for x in operands if isinstance(x, Handle)), None)
  return [tensor(x, None if first is None else first._self(), dtype if rank(dtype) > 1 else dtypes.default_float)
          for x in operands]

def checked(what: str, x: Any) -> Tensor:
  """Return x, which must be a Tensor. Raises ArgumentError."""
  if isinstance(x, Handle): return x._self()
  raise ArgumentError(f"{what} wants a Tensor, not {x!r}; make one with tensor(...)")

def want_float(what: str, *xs: Tensor) -> None:
  """Raise DTypeError unless all are floats."""
  for x in xs:
    if not dtypes.is_float(x.dtype): raise DTypeError(f"{what} wants floats, not {x.dtype}; cast with .float()")

def want_inexact(what: str, *xs: Tensor) -> None:
  """Raise DTypeError unless all are floats or complex numbers."""
  for x in xs:
    if rank(x.dtype) < 2: raise DTypeError(f"{what} wants floats or complex numbers, not {x.dtype}; cast with .float()")

def want_int(what: str, *xs: Tensor) -> None:
  """Raise DTypeError unless all are integers."""
  for x in xs:
    if not dtypes.is_int(x.dtype): raise DTypeError(f"{what} wants integers, not {x.dtype}; cast with .long()")

def axis_of(x: Tensor, dim: Any, extra: int = 0) -> int:
  """Return an axis counted from the front; a tensor without axes has axis 0, as in PyTorch. Raises IndexRangeError."""
  n = max(x.ndim + extra, 1)
  found = whole("dim", dim)
  if not -n <= found < n:
    raise IndexRangeError(f"dim {found} is outside of {-n}..{n - 1} for a tensor of shape {x.shape}")
  return found % n

def axes_of(x: Tensor, dim: Any) -> tuple[int, ...]:
  """Return axes counted from the front, in their order. None and () are all. Raises ArgumentError for one twice."""
  if dim is None or isinstance(dim, (tuple, list)) and not dim: return tuple(range(x.ndim))
  found = tuple([axis_of(x, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])
  if len(set(found)) != len(found): raise ArgumentError(f"dim {dim!r} names an axis twice")
  return found if x.ndim else ()

def sizes(x: Tensor) -> tuple[int, ...]:
  """Return the shape as ints."""
  return tuple([int(d) for d in x.shape])

def as_row(x: Tensor) -> Tensor:
  """Return a tensor without axes as one of one element."""
  return x if x.ndim else x.reshape(1)

def spread(what: str, x: Any, n: int) -> tuple[int, ...]:
  """Return n whole numbers, from one or a sequence of n."""
  if isinstance(x, (tuple, list)):
    if len(x) == 1: return (whole(what, x[0]),) * n
    if len(x) != n: raise ArgumentError(f"{what} is one number or {n}, not {tuple(x)}")
    return tuple([whole(what, k) for k in x])
  return (whole(what, x),) * n

def broadcast(*xs: Tensor) -> list[Tensor]:
  """Return tensors expanded to their common shape. Raises ShapeError."""
  shape = common_shape(*[sizes(x) for x in xs])
  return [x.expand(shape) if sizes(x) != shape else x for x in xs]

def common_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
  """Return the shape to which shapes broadcast. Raises ShapeError."""
  n = max((len(s) for s in shapes), default=0)
  found = []
  for i in range(-n, 0):
    here = {s[i] for s in shapes if len(s) >= -i} - {1}
    if len(here) > 1:
      raise ShapeError(f"cannot broadcast the shapes {', '.join(str(tuple(s)) for s in shapes)}: axis {i} is "
                       f"{' and '.join(map(str, sorted(here)))}")
    found.append(here.pop() if here else 1)
  return tuple(found)

def reduced(x: Tensor, reduction: str) -> Tensor:
  """Return the mean, the sum or all of losses. Raises ArgumentError for another reduction."""
  if reduction not in ("mean", "sum", "none"):
    raise ArgumentError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
  if reduction == "mean": want_inexact("a mean", x)
  return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x

def dtype_or(dtype: Any, otherwise: DType) -> DType: return otherwise if dtype is None else to_dtype(dtype)
