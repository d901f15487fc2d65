"""Split reductions that have few results and many terms: partial results first, so that all workers have something to do.

sum(x) of 64 M elements becomes 256 sums in one kernel, and their sum in a second. The order of additions changes; it depends only on shapes, so
results are the same in each run and for any number of threads. Input and output are tensor graphs.
"""
from __future__ import annotations

from tinyhw.engine.fuse import size_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, to_indices

FEW_RESULTS = 16        # more results than this are enough to share among workers
MANY_TERMS = 1 << 16    # fewer terms than this are added faster than a second kernel starts
MAX_PARTS = 256

def split_reductions(roots: list[UOp]) -> list[UOp]:
  """The same graph with large reductions in two steps."""
  new: dict[UOp, UOp] = {}
  changed = False
  for u in UOp.sink(*roots).toposort():
    src = tuple([new[s] for s in u.src])
    v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if u.op is Ops.REDUCE_AXIS and size_of(u.shape) <= FEW_RESULTS and size_of(u.src[0].shape) >= MANY_TERMS * max(1, size_of(u.shape)):
      halves = in_two_steps(v)
      changed |= halves is not v
      v = halves
    new[u] = v
  return [new[r] for r in roots] if changed else roots

def in_two_steps(u: UOp) -> UOp:
  """The reduction of reductions; u itself if no reduced axis divides well."""
  shape = u.src[0].shape
  for axis in sorted(u.arg[1]):
    n = shape[axis]
    if not isinstance(n, int) or n < 2 * FEW_RESULTS: continue
    parts = next((p for p in range(min(MAX_PARTS, n), FEW_RESULTS - 1, -1) if n % p == 0), 0)
    if not parts: continue
    shifted = tuple(a + (a > axis) for a in u.arg[1] if a != axis)
    apart = UOp(Ops.RESHAPE, u.dtype, (u.src[0],) + to_indices(shape[:axis] + (parts, n // parts) + shape[axis + 1:]))
    partial = UOp(Ops.CONTIGUOUS, u.dtype, (UOp(Ops.REDUCE_AXIS, u.dtype, (apart,), (u.arg[0], tuple(sorted(shifted + (axis + 1,))))),))
    whole = UOp(Ops.REDUCE_AXIS, u.dtype, (partial,), (u.arg[0], (axis,)))
    return UOp(Ops.RESHAPE, u.dtype, (whole,) + to_indices(u.shape))
  return u
