"""Merge elementwise kernels of a schedule that visit the same elements into one kernel with several stores.

An optimizer's step is the typical case. Momentum, variance and parameter are three ASSIGNs over one shape, and the
third reads, at the same element, the results of the first two. After merging each buffer is read once, and a value from
an earlier store of the kernel is used from its register.

Input: kernels in order. A kernel joins an earlier one under three conditions. Both loop over the same sizes without
reductions. It reads the other's results only at the element that is stored. It may run that early: all its other
operands are there, and no kernel in between needs the contents that it overwrites. Cost: one look at the groups of
equal shape for each kernel.
"""
from __future__ import annotations

from tinyhw.engine.schedule.lower import Kernel, storage_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

MAX_STORES = 8      # more would need too many registers
MAX_BUFFERS = 24

def group_kernels(kernels: list[Kernel], most: int = 0) -> list[Kernel]:
  """Return the schedule with kernels merged where that is possible. most: buffers that the device gives to a kernel; 0:
  any number."""
  out: list[Kernel] = []
  most = min(most or MAX_BUFFERS, MAX_BUFFERS)
  open_groups: dict[tuple[object, ...], list[int]] = {}     # loop sizes -> positions in `out`
  for k in kernels:
    shape = loops_of(k)
    if shape is not None:
      merged = False
      for position in reversed(open_groups.get(shape, [])[-4:]):
        joined = join(out[position], k) if may_join(out, position, k, most) else None
        if joined is not None:
          out[position] = joined
          merged = True
          break
      if merged: continue
      open_groups.setdefault(shape, []).append(len(out))
    out.append(k)
  return out

def loops_of(k: Kernel) -> tuple[object, ...] | None:
  """Return the device and loops, which must agree for two kernels to be merged; None for kernels that reduce or
  copy."""
  if k.sink.op is not Ops.SINK or any(u.op is Ops.REDUCE for u in k.sink.toposort()): return None
  ranges = tuple(s for s in k.sink.src[0].src[2:] if s.op is Ops.RANGE)
  return (k.buffers[0].arg[1], ranges) if ranges else None

def may_join(out: list[Kernel], position: int, k: Kernel, most: int = MAX_BUFFERS) -> bool:
  """May k run as part of out[position], before all kernels after it?"""
  target = out[position]
  if len(target.sink.src) + len(k.sink.src) > MAX_STORES or len(target.buffers) + len(k.buffers) > most:
    return False
  written = {storage_of(w) for w in k.writes}
  if written & set(target.buffers): return False        # it would overwrite operands or results of the other
  results = {storage_of(w): w for w in target.writes}
  if any(storage_of(w) in results for w in k.late): return False
  if any(storage_of(r) in results and results[storage_of(r)] is not r for r in k.reads): return False
  shares = any(r in target.reads or storage_of(r) in results for r in k.reads)
  if not shares: return False                           # nothing to gain
  for other in out[position + 1:]:
    if written & set(other.buffers): return False
    if any(w in k.reads or w in k.late for w in other.writes): return False
  return True

def join(a: Kernel, b: Kernel) -> Kernel | None:
  """Return one kernel that does both; None if b reads a's results at other elements than a stores."""
  buffers = list(a.buffers)
  changes: dict[UOp, UOp] = {}
  params = {u.arg[0]: u for u in b.sink.toposort() if u.op is Ops.PARAM}
  for slot, buffer in enumerate(b.buffers):
    if buffer not in buffers: buffers.append(buffer)
    if slot in params: changes[params[slot]] = UOp.param(buffers.index(buffer), params[slot].dtype, params[slot].arg[1])
  moved = b.sink.substitute(changes)
  stored = {store.src[0]: store.src[1] for store in a.sink.src}
  outputs = {place.src[0] for place in stored}
  loads: dict[UOp, UOp] = {}
  for u in moved.toposort():
    if u.op is not Ops.LOAD or u.src[0].src[0] not in outputs: continue
    if u.src[0] not in stored or len(u.src) > 1: return None
    loads[u] = stored[u.src[0]]
  moved = moved.substitute(loads)
  reads = a.reads + [r for r in b.reads if r not in a.reads and r not in a.writes]
  return Kernel(a.node, UOp.sink(*a.sink.src, *moved.src, arg=a.sink.arg), buffers, reads, a.writes + b.writes,
                late=a.late + b.late, origin=a.origin)
