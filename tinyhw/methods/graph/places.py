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
  scale, shrink_axis, where)
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

LEAST_CHUNKS = 16      # loops that workers can share
LEAST_LOOPS = 8        # over parts of rows, so that all workers have some
COLUMNS = 16           # adjacent places of a row that one loop writes: a cache line
TURNS = 4              # copies that a loop writes to in turn: a value then rarely waits for the one before it
COPY_GAIN = 4          # values for each place of a private copy, from which it pays

def runs_in_order(u: UOp) -> bool:
  """Is a worker of u's device fast at a long loop?"""
  device = u.device
  return not isinstance(device, tuple) and Device[device or Device.DEFAULT].runs_in_order

def written(base: UOp, index: UOp, value: UOp, op: Ops | None = None, kind: str = "after") -> UOp:
  """Return base after values were written to the places that index names, or folded in by `op`.

  index: of any shape; places in the flattened base. Others write nothing. value: of the same shape, or with one axis
  more. An index is then the place of the first of these adjacent values. kind "before": return, for each value, what
  its place held before it. "whole": each place is named once, so base only gives the shape.
  """
  shape = index.shape if kind == "before" else base.shape
  return node(Ops.SCATTER, base.dtype, (base, index, value), (op, kind), shape)

_SAME = frozenset({Ops.DETACH, Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD})

def is_same_along(u: UOp, axis: int) -> bool:
  """Are all elements of a tensor along an axis the same, by the way it was made?"""
  if u.op is Ops.CONST: return True
  if u.op is Ops.EXPAND: return u.src[0].shape[axis] == 1 and u.shape[axis] != 1 or is_same_along(u.src[0], axis)
  return (u.op in GroupOp.Elementwise or u.op in _SAME) and all([is_same_along(s, axis) for s in u.src])

def _width(rest: int) -> int:
  """Return the number of adjacent values that a step writes: few enough that several workers have a loop."""
  found = [c for c in range(COLUMNS, rest + 1) if rest % c == 0]
  return max([c for c in found if rest // c >= LEAST_LOOPS], default=min(found, default=rest))

class ScatterPoints:
  """The points of a scatter along an axis, in the form of a SCATTER: `rows` loops, which write to different places.

  shape: of the tensor with the places. index: for each value its place along axis `dim`; its other sizes are those of
  shape. If the index is the same along all later axes, a step of a loop writes adjacent values at once.
  """
  def __init__(self, shape: tuple[Any, ...], dim: int, index: UOp) -> None:
    self.shape, self.given = shape, index.shape
    lead, self.n, rest = math.prod(shape[:dim]), int(index.shape[dim]), math.prod(shape[dim + 1:])
    self.whole_rows = rest > 1 and all([is_same_along(index, k) for k in range(dim + 1, len(shape))])
    if self.whole_rows: self.columns = _width(rest)
    else: self.columns = next(c for c in range(min(rest, COLUMNS), 0, -1) if rest % c == 0)
    self.form = lead, self.n, rest // self.columns, self.columns
    self.rows, self.count = lead * self.form[2], int(math.prod(shape))
    kind, m = place_type(self.count + 1), shape[dim]
    at = cast(reshape(index, (lead, self.n, rest)), kind)
    inside = binary(Ops.AND, compare(Ops.CMPLT, like(at, -1), at), compare(Ops.CMPLT, at, like(at, m)))
    place = add(scale(add(scale(positions(at, 0, kind), m), at), rest), positions(at, 2, kind))
    each = where(inside, place, like(place, -1))
    self.each = reshape(each, self.given)      # the place of each value
    self.place = self.arranged(each)
    if self.whole_rows: self.place = reshape(shrink_axis(self.place, 2, 0, 1), (self.rows, self.n))

  def arranged(self, u: UOp) -> UOp:
    """Return values with the loop of each as a row: (rows, values), or (rows, steps, adjacent values)."""
    u = permute(reshape(u, self.form), (0, 2, 1, 3))
    return reshape(u, (self.rows, self.n, self.columns) if self.whole_rows else (self.rows, self.n * self.columns))

  def folded(self, value: UOp, op: Ops, identity: ConstType) -> UOp:
    """Return the fold of the values of each place."""
    place, value = self.place, self.arranged(value)
    loops, each = self._copies()
    copies = loops * each
    if copies > 1:
      size = ceildiv(self.n, loops)
      place, value = (reshape(pad_axis(u, 1, 0, loops * size - self.n), (loops, size)) for u in
                      (add(place, like(place, 1)), value))
      place = add(place, like(place, -1))
      kind, none = place.dtype, compare(Ops.CMPLT, place, like(place, 0))
      turn = positions(place, 1, kind)
      copy = add(scale(positions(place, 0, kind), each), binary(Ops.MOD, turn, like(turn, each)))
      place = where(none, place, add(place, scale(copy, self.count)))
    start = full((copies, self.count), value.dtype, identity, value.device)
    found = written(start, place, value, op)
    return reshape(fold(found, op, (0,)), self.shape)

  def onto(self, base: UOp, value: UOp, op: Ops) -> UOp | None:
    """Return base with the values folded in; None where private copies of the places are better."""
    return written(base, self.place, self.arranged(value), op) if self._copies() == (1, 1) else None

  def last(self, value: UOp, others: UOp) -> UOp:
    """Return the last value of each place, and the element of `others` where there is none."""
    return written(others, self.place, self.arranged(value))

  def _copies(self) -> tuple[int, int]:
    """Return the number of loops over parts of the values, and of the private copies of all places in each."""
    if self.rows > 1 or self.columns > 1: return 1, 1
    copies = self.n // (COPY_GAIN * max(self.count, 1))
    loops = max(min(LEAST_CHUNKS, copies), 1)
    return loops, max(min(TURNS, copies // loops), 1)
