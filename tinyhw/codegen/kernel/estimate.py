"""Estimate the work of a kernel in arithmetic operations and bytes moved, for DEBUG=2 and for comparison with the
hardware's peak.

The kernel is as the schedule made it, before tiles are chosen. The estimate does not depend on the unit that does the
work, or on how often a tile computes an element again.

Operations: each operation on data (not on indices) counts once for each iteration of the loops that it depends on. A
MULACC counts twice, a conversion not at all. Bytes: a perfect cache moves each element of a buffer once however often
it is used, and never more than the buffer holds. Both are ints, or expressions of the kernel's variables.
"""
from __future__ import annotations

from tinyhw.dtype import dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint

def iterations(ranges: tuple[UOp, ...]) -> sint:
  """Return how often the body of these loops runs."""
  count: sint = 1
  for r in ranges:
    end: sint = r.src[0].arg if r.src[0].op is Ops.CONST else r.src[0]
    count = end * count if isinstance(end, UOp) else count * end
  return count

def added(a: sint, b: sint) -> sint: return b + a if isinstance(b, UOp) and not isinstance(a, UOp) else a + b

def estimate(kernel: UOp) -> tuple[sint, sint]:
  """Return (operations, bytes moved) of a kernel without opts."""
  work: dict[tuple[UOp, ...], int] = {}
  touched: dict[tuple[UOp, bool], dict[tuple[UOp, ...], None]] = {}  # (buffer, stored?) -> the loops of each access
  for u in kernel.toposort():
    op = u.op
    if op is Ops.REDUCE: work[u.src[0].ranges] = work.get(u.src[0].ranges, 0) + 1
    elif op in GroupOp.ALU:
      if (u.dtype.scalar() is not dtypes.weakint and u.src[-1].dtype.scalar() is not dtypes.weakint
          and op is not Ops.WHERE):
        work[u.ranges] = work.get(u.ranges, 0) + (2 if op is Ops.MULACC else 1)
    elif op in (Ops.LOAD, Ops.STORE) and u.src[0].src[0].op is Ops.PARAM:
      touched.setdefault((u.src[0].src[0], op is Ops.STORE), {})[u.src[0].src[1].ranges] = None
  operations: sint = 0
  for ranges, count in work.items(): operations = added(operations, iterations(ranges) * count)
  moved: sint = 0
  for (buffer, _), accesses in touched.items():
    elements: sint = 0
    for ranges in accesses: elements = added(elements, iterations(ranges))
    if isinstance(elements, int): elements = min(elements, buffer.arg[1])
    moved = added(moved, elements * buffer.dtype.itemsize)
  return operations, moved
