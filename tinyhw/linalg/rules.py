"""What the rooms of linalg share: checks of matrices, loops whose index is data.

A step of a factorization differs from the next only in an index. The index is read from memory, so that all steps run
the same few kernels, which are compiled once.
"""
from __future__ import annotations
import functools
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.engine.thread import this_thread
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import checked, sizes
from tinyhw.tensor import Tensor

BLOCK = 32      # columns of a panel: more than these are a product of matrices

def matrices(what: str, x: Any, square: bool = False) -> Tensor:
  """Return x, which must be matrices (..., m, n) of floats."""
  found = checked(what, x)
  if found.ndim < 2: raise ShapeError(f"{what} wants matrices, (..., m, n), not {found.shape}")
  if not dtypes.is_float(found.dtype): raise DTypeError(f"{what} wants floats, not {found.dtype}; cast with .float()")
  if found.dtype.itemsize < 4:
    raise DTypeError(f"{what} wants float32 or float64, not {found.dtype}; cast with .float()")
  if square and sizes(found)[-1] != sizes(found)[-2]:
    raise ShapeError(f"{what} wants square matrices, not {found.shape}")
  return found

def transposed(x: Tensor) -> Tensor: return x.transpose(-2, -1)

def rows_of(x: Tensor) -> Tensor:
  """Return the index of each row, (m, 1)."""
  return Tensor.arange(sizes(x)[-2], dtype=dtypes.int32).unsqueeze(1)

def columns_of(x: Tensor) -> Tensor:
  """Return the index of each column, (1, n)."""
  return Tensor.arange(sizes(x)[-1], dtype=dtypes.int32).unsqueeze(0)

def index(k: int) -> Tensor:
  """Return a number in memory, which kernels read. Inside of a function, where nothing is computed, it is expressed."""
  return _stored(k) if this_thread.traced is None else Tensor([k], dtype=dtypes.int32)

@functools.lru_cache(4096)
def _stored(k: int) -> Tensor: return Tensor([k], dtype=dtypes.int32).realize()

def row_at(x: Tensor, at: Tensor) -> Tensor:
  """Return row `at`, (..., 1, n)."""
  return x.gather(-2, at.reshape((1,) * x.ndim).expand(*sizes(x)[:-2], 1, sizes(x)[-1]))

def column_at(x: Tensor, at: Tensor) -> Tensor:
  """Return column `at`, (..., m, 1)."""
  return x.gather(-1, at.reshape((1,) * x.ndim).expand(*sizes(x)[:-1], 1))

def identity(x: Tensor, n: int | None = None) -> Tensor:
  """Return an identity matrix of x's type."""
  return Tensor.eye(sizes(x)[-1] if n is None else n, dtype=x.dtype)

def first_bad(what: str, info: Tensor, reason: str) -> None:
  """Raise ArgumentError if an entry of info is not 0, and name the entry of the batch. Inside of a function, where
  nothing is computed, nothing is checked."""
  if this_thread.traced is not None: return
  flat = info.reshape(-1).tolist()
  bad = next((i for i, k in enumerate(flat) if k), None)
  if bad is not None:
    where = f"the matrix {bad} of the batch" if len(flat) > 1 else "the matrix"
    raise ArgumentError(f"{what}: {where} {reason} (at column {flat[bad]})")
