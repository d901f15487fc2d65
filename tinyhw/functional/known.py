"""Checks of values: of indices, classes, probabilities.

A check reads a tensor that is at hand: in memory, or a cast of memory, while TinyJit does not capture. It never
computes a graph for its sake: such a graph would run twice, and a captured step would not check again. So a tensor that
is not computed yet passes.
"""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.engine.thread import this_thread
from tinyhw.errors import ArgumentError, IndexRangeError
from tinyhw.methods.base import Handle
from tinyhw.methods.graph.memory import constant_value, storage_view
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

_MOST_READ = 1 << 12      # elements up to which the host looks for extremes; 130 µs, and two kernels take 600 µs

def is_known(x: Any) -> bool:
  """Is x a tensor whose elements can be read without computing it?"""
  if not isinstance(x, Handle) or this_thread.capture is not None or this_thread.traced is not None: return False
  u = x._self().uop
  while u.op in (Ops.CAST, Ops.DETACH): u = u.src[0]
  return storage_view(u) is not None or constant_value(u) is not None

def at_hand(x: Tensor) -> Tensor:
  """Return x without its gradient: computed now, unless TinyJit captures. For values that are drawn from at once."""
  x = x.detach()
  return x if is_known(x) or this_thread.capture is not None or this_thread.traced is not None else (
    x.contiguous().realize())

def extent(x: Any) -> tuple[Any, Any] | None:
  """Return the least and the greatest element, if they are known. None also for no elements and complex numbers."""
  if not isinstance(x, Handle) or x.holds_complex or 0 in x.shape or not is_known(x): return None
  found = x._self().detach()
  if not all(isinstance(d, int) for d in found.shape): return None
  if int(found.numel()) > _MOST_READ: return found.min().item(), found.max().item()
  flat = found.reshape(-1).tolist()
  if dtypes.is_float(found.dtype) and any(value != value for value in flat): return float("nan"), float("nan")
  return min(flat), max(flat)

def want_index(what: str, index: Any, count: int, least: int = 0, ignored: int | None = None) -> None:
  """Raise IndexRangeError if a known element is outside of least..count-1, and is not `ignored`."""
  if not is_known(index) or 0 in index.shape: return
  bad = _outside(index._self().detach().reshape(-1), count, least, ignored)
  if bad is None: return
  raise IndexRangeError(f"{what} is {bad}; it must be from {least} to {count - 1}"
                        + ("" if ignored is None else f", or {ignored}, which is ignored"))

def _outside(flat: Tensor, count: int, least: int, ignored: int | None) -> int | None:
  if int(flat.numel()) <= _MOST_READ:
    values = flat.tolist()
    if min(values) >= least and max(values) < count: return None
    return next((v for v in values if not least <= v < count and v != ignored), None)
  bad = flat.lt(least).bitwise_or(flat.ge(count))
  if ignored is not None: bad = bad.bitwise_and(flat.ne(ignored))
  if not bad.any().item(): return None
  return int(flat[bad.int().argmax()].item())

def want_indices(x: Tensor, chosen: Any) -> None:
  """Raise IndexRangeError if a known tensor of integers in an index of x is outside of its axis."""
  items = list(chosen) if isinstance(chosen, tuple) else [chosen]
  if not any(isinstance(i, Handle) and dtypes.is_int(i.dtype) for i in items): return
  taken = sum(_axes_taken(i) for i in items)
  axis = 0
  for i in items:
    if i is Ellipsis: axis += x.ndim - taken
    elif isinstance(i, Handle) and dtypes.is_int(i.dtype) and axis < x.ndim and isinstance(d := x.shape[axis], int):
      want_index(f"an index of axis {axis}", i, d, -d)
    axis += _axes_taken(i)

def _axes_taken(item: Any) -> int:
  if item is None or item is Ellipsis or isinstance(item, bool): return 0
  return item.ndim if isinstance(item, Handle) and item.dtype is dtypes.bool else 1

def want_all(what: str, good: Tensor, *from_: Any) -> None:
  """Raise ArgumentError, with `what` as its message, unless all elements of `good` hold, if its operands are known."""
  if all(is_known(x) for x in from_ if isinstance(x, Handle)) and int(good.numel()) and not good.all().item():
    raise ArgumentError(what)
