"""Compute a reduction once for all elements of an axis along which its operand is the same, and broadcast the result.

The gradient of y.sum() is 1 everywhere. So the gradient of the weights of attention is a sum over v alone, the same for
each query: 12 x 2048 sums instead of 12 x 2048 x 2048. Batches that share an operand are another case.

    REDUCE_AXIS(x)  ->  EXPAND(REDUCE_AXIS(SHRINK(x, 0:1 along the axis)))

Axes are numbered by bits. Input and output are tensor graphs. Cost: linear in the graph.
"""
from __future__ import annotations
from collections.abc import Iterable

from tinyhw.engine.schedule.indexing import blocks
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint, to_indices

_SAME = frozenset({Ops.CONTIGUOUS, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD, Ops.FLIP, Ops.SHRINK})   # as their operand

def reduce_once(roots: list[UOp], came: dict[UOp, UOp] | None = None) -> list[UOp]:
  """Return the same graph with such reductions broadcast. came: receives, for each new node, the node that it replaces.
  """
  nodes = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  varying: dict[UOp, int] = {}
  new: dict[UOp, UOp] = {}
  changed = False
  for u in nodes:
    varying[u] = varying_axes(u, varying)
    src = tuple([new[s] for s in u.src])
    v = new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is Ops.REDUCE_AXIS and (axes := same_axes(u, varying)):
      new[u] = _once(v, axes)
      changed = True
  if not changed: return roots
  if came is not None: came.update((v, came.get(u, u)) for u, v in new.items() if v is not u)
  return [new[r] for r in roots]

def varying_axes(u: UOp, known: dict[UOp, int]) -> int:
  """Return the axes along which a node's elements may differ. known: those of its sources."""
  op = u.op
  if op is Ops.CONST or not u.src and not u.shape: return 0
  if op in GroupOp.Elementwise:
    found = 0
    for s in u.src: found |= known[s]
    return found
  if op in _SAME: return known[u.src[0]]
  if op is Ops.REDUCE_AXIS: return known[u.src[0]] & ~_bits(u.arg[1])
  if op is Ops.EXPAND:
    return _bits([k for k, (n, m) in enumerate(zip(u.src[0].shape, u.shape)) if _bit(known[u.src[0]], k) and n == m])
  if op is Ops.PERMUTE: return _bits([k for k, axis in enumerate(u.arg) if _bit(known[u.src[0]], axis)])
  if op is Ops.PAD: return known[u.src[0]] | _bits([k for k, pair in enumerate(u.pairs) if pair != (0, 0)])
  if op is Ops.RESHAPE: return _reshaped(u.src[0].shape, u.shape, known[u.src[0]])
  return (1 << len(u.shape)) - 1

def _bit(axes: int, k: int) -> int: return axes >> k & 1

def _bits(axes: Iterable[int]) -> int: return sum([1 << axis for axis in axes])

def _reshaped(old: tuple[sint, ...], new: tuple[sint, ...], axes: int) -> int:
  """Return the axes of a new shape: those of a block vary if one of the old shape does there."""
  found = 0
  for i, i_end, j, j_end in blocks(old, new):
    if any(_bit(axes, k) for k in range(i, i_end)): found |= (1 << j_end) - (1 << j)
  return found

def same_axes(u: UOp, varying: dict[UOp, int]) -> list[int]:
  """Return the axes of a reduction's result along which all its elements are the same."""
  return [k for k, n in enumerate(u.shape) if k not in u.arg[1] and not _bit(varying[u.src[0]], k)
          and not (isinstance(n, int) and n <= 1)]

def _once(u: UOp, axes: list[int]) -> UOp:
  pairs = [bound for k, n in enumerate(u.src[0].shape) for bound in ((0, 1) if k in axes else (0, n))]
  first = UOp(Ops.SHRINK, u.dtype, (u.src[0], *to_indices(tuple(pairs))))
  once = UOp(Ops.REDUCE_AXIS, u.dtype, (first,), u.arg, u.tag)
  return UOp(Ops.EXPAND, u.dtype, (once, *to_indices(u.shape)))
