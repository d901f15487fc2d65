"""BITCAST between types of different sizes, as shifts of integers. The last axis becomes longer or shorter, low bytes
first.

In the tensor graph a BITCAST is one node, so that views and writes see the memory below it (methods/graph/memory.py).
Schedules replace it by these shifts.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, same_shape, sint, to_indices

_WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}   # by bytes

def regroups(u: UOp) -> bool:
  """Is u a BITCAST of a tensor to a type of another size?"""
  return u.op is Ops.BITCAST and u.dtype.itemsize != u.src[0].dtype.itemsize

def regrouped(x: UOp, dtype: DType) -> UOp:
  """Return the shifts for a BITCAST of x."""
  have, want, shape = x.dtype.itemsize, dtype.itemsize, x.bitcast(dtype).shape
  words, wide = x.bitcast(_WORDS[have]), _WORDS[want]
  bits, k = 8 * min(have, want), max(have, want) // min(have, want)
  if want < have:
    pieces = (*x.shape, k)
    device = () if x.device is None else (UOp(Ops.DEVICE, dtypes.void, (), x.device),)
    places = UOp(Ops.IOTA, words.dtype, (*to_indices((k,)), *device))
    # no buffer for so few numbers
    shifts = _expanded(_reshaped(places, (*(1,) * len(x.shape), k)), pieces) * _number(words.dtype, bits, pieces)
    return _reshaped((_expanded(_reshaped(words, (*x.shape, 1)), pieces) >> shifts).cast(wide), shape).bitcast(dtype)
  rows = _reshaped(words, (*shape, k)).cast(wide)
  whole = _column(rows, 0)
  for i in range(1, k): whole = whole | (_column(rows, i) << _number(wide, i * bits, whole.shape))
  return whole.bitcast(dtype)

def _number(dtype: DType, value: int, shape: tuple[sint, ...]) -> UOp:
  return _expanded(_reshaped(UOp.const(dtype, value), (1,) * len(shape)), shape)

def _reshaped(u: UOp, shape: tuple[sint, ...]) -> UOp:
  return u if same_shape(u.shape, shape) else UOp(Ops.RESHAPE, u.dtype, (u, *to_indices(shape)))

def _expanded(u: UOp, shape: tuple[sint, ...]) -> UOp:
  return u if same_shape(u.shape, shape) else UOp(Ops.EXPAND, u.dtype, (u, *to_indices(shape)))

def _column(rows: UOp, i: int) -> UOp:
  """Return element i of each row of the last axis."""
  shape = rows.shape[:-1]
  pairs = [x for d in shape for x in (0, d)] + [i, i + 1]
  return _reshaped(UOp(Ops.SHRINK, rows.dtype, (rows, *to_indices(pairs))), shape)
