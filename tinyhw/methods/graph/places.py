"""Writes to places that values name (SCATTER), and reductions by place.

A SCATTER is a loop that sees its own writes. Points along the last axis run in order. Points that differ in other axes
run at once, so they must name different places. So a reduction into few places works on private copies of them, which
are folded afterwards. Their number depends on shapes only, so results are the same in each run.

`runs_in_order` says where that pays: on CPUs. No worker of a GPU is fast at a long loop. There each index is compared
with each place, or values are sorted (methods/scattering.py).
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.device import Device
from tinyhw.dtype import ConstType
from tinyhw.helpers import ceildiv
from tinyhw.methods.graph.graph import (
  add, binary, cast, compare, fold, full, like, node, pad_axis, permute, place_type, positions, reshape,
  scale, where)
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LEAST_CHUNKS = 16      # loops that workers can share
COLUMNS = 16           # adjacent places of a row that one loop writes: a cache line
COPY_GAIN = 4          # values for each place of a private copy, from which it pays

def runs_in_order(u: UOp) -> bool:
  """Is a worker of u's device fast at a long loop?"""
  device = u.device
  return not isinstance(device, tuple) and Device[device or Device.DEFAULT].runs_in_order

def written(base: UOp, index: UOp, value: UOp, op: Ops | None = None, kind: str = "after") -> UOp:
  """Return base after values were written to the places that index names, or folded in by `op`.

  index: of any shape; places in the flattened base. Others write nothing. kind "before": return, for each value, what
  its place held before it. "whole": each place is named once, so base only gives the shape.
  """
  shape = index.shape if kind == "before" else base.shape
  return node(Ops.SCATTER, base.dtype, (base, index, value), (op, kind), shape)

class Points:
  """The points of a scatter along an axis, in the form of a SCATTER: `rows` loops, which write to different places.

  shape: of the tensor with the places. index: for each value its place along axis `dim`; its other sizes are those of
  shape.
  """
  def __init__(self, shape: tuple[Any, ...], dim: int, index: UOp) -> None:
    self.shape, self.given = shape, index.shape
    lead, self.n, rest = math.prod(shape[:dim]), int(index.shape[dim]), math.prod(shape[dim + 1:])
    self.columns = next(c for c in range(min(rest, COLUMNS), 0, -1) if rest % c == 0)
    self.form = lead, self.n, rest // self.columns, self.columns
    self.rows, self.count = lead * self.form[2], int(math.prod(shape))
    kind, m = place_type(self.count + 1), shape[dim]
    at = cast(reshape(index, (lead, self.n, rest)), kind)
    inside = binary(Ops.AND, compare(Ops.CMPLT, like(at, -1), at), compare(Ops.CMPLT, at, like(at, m)))
    place = add(scale(add(scale(positions(at, 0, kind), m), at), rest), positions(at, 2, kind))
    self.place = self.arranged(where(inside, place, like(place, -1)))

  def arranged(self, u: UOp) -> UOp:
    """Return values with the loop of each as a row: (rows, values)."""
    return reshape(permute(reshape(u, self.form), (0, 2, 1, 3)), (self.rows, self.n * self.columns))

  def back(self, u: UOp) -> UOp:
    """Undo `arranged`."""
    lead, n, blocks, columns = self.form
    return reshape(permute(reshape(u, (lead, blocks, n, columns)), (0, 2, 1, 3)), self.given)

  def folded(self, value: UOp, op: Ops, identity: ConstType) -> UOp:
    """Return the fold of the values of each place."""
    place, value = self.place, self.arranged(value)
    copies = self._copies()
    if copies > 1:
      size = ceildiv(self.n, copies)
      place, value = (reshape(pad_axis(u, 1, 0, copies * size - self.n), (copies, size)) for u in
                      (add(place, like(place, 1)), value))
      place = add(place, like(place, -1))
      none = compare(Ops.CMPLT, place, like(place, 0))
      place = where(none, place, add(place, scale(positions(place, 0, place.dtype), self.count)))
    start = full((copies, self.count), value.dtype, identity, value.device)
    found = written(start, place, value, op)
    return reshape(fold(found, op, (0,)), self.shape)

  def last(self, value: UOp, others: UOp) -> UOp:
    """Return the last value of each place, and the element of `others` where there is none."""
    return written(others, self.place, self.arranged(value))

  def _copies(self) -> int:
    """Return the number of private copies of all places."""
    if self.rows > 1 or self.columns > 1: return 1
    return max(min(LEAST_CHUNKS, self.n // (COPY_GAIN * max(self.count, 1))), 1)
