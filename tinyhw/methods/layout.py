"""Where the elements of a view of storage lie: movements of a BUFFER as strides, for who reads the memory itself.

Not here: what the engine does with movements (engine/indexing.py), which needs no strides.
"""
from __future__ import annotations

from tinyhw.engine.writes import is_room
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.shapetracker import View

def layout(u: UOp) -> tuple[UOp, View] | None:
  """The BUFFER and the strided view of its elements that u is; None if strides cannot say it, or u is a value or has a symbolic size."""
  chain: list[UOp] = []
  while u.op is not Ops.BUFFER:
    if u.op not in (Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.EXPAND) and not is_room(u): return None
    if not all(isinstance(d, int) for d in u.shape): return None
    chain.append(u)
    u = u.src[0]
  view: View | None = View.create(u.shape)  # type: ignore[arg-type]  # a BUFFER has a number as its size
  for movement in reversed(chain):
    if view is None: return None
    view = _moved(view, movement)
  return None if view is None else (u, view)

def _moved(view: View, u: UOp) -> View | None:
  """A movement of a view."""
  if u.op is Ops.PERMUTE: return view.permute(u.arg)
  if u.op is Ops.FLIP: return view.flip(u.arg)
  if u.op is Ops.EXPAND: return view.expand([int(d) for d in u.shape])
  if u.op is Ops.RESHAPE: return view.reshape([int(d) for d in u.shape])
  if u.op is Ops.PAD: return View.create(tuple([int(d) for d in u.shape]), view.strides, view.offset)   # what it adds is cut off again
  if any(d.op is not Ops.CONST for d in u.src[1:]): return None
  ends = [d.arg for d in u.src[1:]]
  return view.shrink(list(zip(ends[::2], ends[1::2])))
