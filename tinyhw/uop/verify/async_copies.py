"""Rules of verify.py for asynchronous copies to shared memory in a Program.

They are ASYNC_COPY, TENSOR_BOX, SIGNALS, COMMIT and WAIT."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def _gate(u: UOp, at: int) -> str | None:
  """Check the optional gate at source `at`."""
  return None if len(u.src) <= at or u.src[at].dtype is dtypes.bool else f"gate of type {u.src[at].dtype}, not bool"

def _async_copy(u: UOp) -> str | None:
  if len(u.src) not in (2, 3) or u.src[0].op is not Ops.INDEX or u.src[1].op not in (Ops.INDEX, Ops.TENSOR_BOX):
    return "not (INDEX, INDEX or TENSOR_BOX, gate)"
  goal, place = u.src[0].src[0], u.src[1].src[0]
  if goal.op is not Ops.DEFINE_LOCAL or place.op is not Ops.PARAM: return "not from memory to shared memory"
  if goal.dtype is not place.dtype: return f"of {place.dtype} into shared memory of {goal.dtype}"
  if not isinstance(u.arg, int) or u.arg < 1: return f"of {u.arg!r} elements"
  if u.src[1].op is Ops.TENSOR_BOX and u.src[1].arg.count != u.arg:
    return f"of {u.arg} elements, where the box has {u.src[1].arg.count}"
  return _gate(u, 2)

def _box(u: UOp) -> str | None:
  if not isinstance(u.arg, TensorBox) or not u.src or u.src[0].op is not Ops.PARAM or u.src[0].dtype is not u.dtype:
    return "not of (PARAM, ...) and a TensorBox"
  wrong = u.arg.wrong(u.dtype.itemsize)
  if wrong is not None: return wrong
  if len(u.src) != 1 + len(u.arg.dims) or not all(dtypes.is_int(s.dtype) and s.dtype.count == 1 for s in u.src[1:]):
    return f"has not a coordinate for each of {len(u.arg.dims)} axes"
  last, size = sum((n - 1) * stride for n, stride in zip(u.arg.dims, u.arg.strides)), u.src[0].arg[1]
  return None if last < size else f"is of a tensor whose last element is {last}, of {size}"

def _is_signal(u: UOp) -> bool: return u.op is Ops.INDEX and _counts(u.src[0])

def _counts(u: UOp) -> bool: return u.op is Ops.DEFINE_LOCAL and u.dtype is dtypes.uint64

def _signals(u: UOp) -> str | None:
  if len(u.src) != 1 or not _counts(u.src[0]): return "not of shared memory of uint64"
  return None if u.arg in (None, "end") else f"neither begins nor ends, but {u.arg!r}"

def _commit(u: UOp) -> str | None:
  if u.src and (len(u.src) > 2 or not _is_signal(u.src[0])): return "neither of nothing nor of (a signal, gate)"
  return _gate(u, 1)

def _wait(u: UOp) -> str | None:
  """arg: the number of copy groups that may be left, or that number and the number of product groups."""
  left = u.arg if isinstance(u.arg, tuple) else (u.arg,)
  fine = not u.src or len(u.src) == 2 and _is_signal(u.src[0]) and dtypes.is_int(u.src[1].dtype)
  if not fine: return "neither for nothing nor for (a signal, phase)"
  return (None if len(left) in (1, 2) and all(isinstance(n, int) and n >= 0 for n in left)
          else f"leaves {u.arg!r} groups")

COPY_CHECKS: dict[Ops, Callable[[UOp], str | None]] = {
  Ops.ASYNC_COPY: _async_copy, Ops.TENSOR_BOX: _box, Ops.SIGNALS: _signals, Ops.COMMIT: _commit, Ops.WAIT: _wait}
