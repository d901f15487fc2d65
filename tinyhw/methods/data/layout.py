"""Memory layout of a view of storage: movements of a BUFFER as strides, for code that reads the memory itself.

Not here: the engine's treatment of movements (engine/schedule/indexing.py), which needs no strides.
"""
from __future__ import annotations

from tinyhw.engine.memory.writes import is_room
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.shapetracker import View

def layout(u: UOp) -> tuple[UOp, View] | None:
  """Return the BUFFER of u and the strided view of its elements. None if strides cannot describe it, or u is a value or
  has a symbolic size."""
  chain: list[UOp] = []
  while u.op is not Ops.BUFFER:
    if u.op not in (Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.EXPAND, Ops.BITCAST) and not is_room(u):
      return None
    if not all(isinstance(d, int) for d in u.shape): return None
    chain.append(u)
    u = u.src[0]
  view: View | None = View.create(u.shape)  # type: ignore[arg-type]  # a BUFFER has a number as its size
  for movement in reversed(chain):
    if view is None: return None
    view = _moved(view, movement)
  return None if view is None else (u, view)

def _moved(view: View, u: UOp) -> View | None:
  """Apply a movement or a BITCAST to a view."""
  if u.op is Ops.BITCAST: return _regrouped(view, u)
  if u.op is Ops.PERMUTE: return view.permute(u.arg)
  if u.op is Ops.FLIP: return view.flip(u.arg)
  if u.op is Ops.EXPAND: return view.expand([int(d) for d in u.shape])
  if u.op is Ops.RESHAPE: return view.reshape([int(d) for d in u.shape])
  # the elements that it adds are cut off again
  if u.op is Ops.PAD: return View.create(tuple([int(d) for d in u.shape]), view.strides, view.offset)
  if any(d.op is not Ops.CONST for d in u.src[1:]): return None
  ends = [d.arg for d in u.src[1:]]
  return view.shrink(list(zip(ends[::2], ends[1::2])))

def _regrouped(view: View, u: UOp) -> View | None:
  """Return the same bytes as elements of another size, with strides in these. None where the bytes of an element would
  not be contiguous."""
  have, want = u.src[0].dtype.itemsize, u.dtype.itemsize
  if have == want: return view
  if view.strides[-1] != 1 and view.shape[-1] > 1: return None
  steps = [s * have for s in (*view.strides[:-1], view.offset)]
  if any(s % want for s in steps): return None
  return View.create(tuple([int(d) for d in u.shape]), (*(s // want for s in steps[:-1]), 1), steps[-1] // want)
