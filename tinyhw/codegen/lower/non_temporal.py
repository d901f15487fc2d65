"""Note stores of whole cache lines to buffers that no cache holds: they need not pass through the caches.

A store to a line that is in no cache reads the line from memory first, and later writes it back. A *non-temporal* store
of a whole line only writes it, so memory moves half of the bytes. In C, on two cores of a Granite Rapids, filling
200 MB takes 4.8 ms instead of 11.7, and the product of two such buffers 16 instead of 22 ms.

A store gets the tag NON_TEMPORAL where all of this is true:

    the kernel writes more of its buffer than the last cache holds, so that the next reader finds it in memory anyway
    the kernel does not read that buffer: its lines would be in a cache
    it writes a whole line at once, if the buffer begins at one, alone or with others of its block
    it has no gate

The tag changes no result. Whether a buffer begins at a line is known when the kernel runs (isa/x86/target.py).
"""
from __future__ import annotations
from collections.abc import Iterable

from tinyhw import trace
from tinyhw.codegen.kernel.affine import common_factor, linear
from tinyhw.machine.ir.target import CACHE_LINE_BYTES, Capabilities
from tinyhw.uop.enums import NON_TEMPORAL, Ops
from tinyhw.uop.ops import UOp

LEAST_BYTES = 16    # of a vector: smaller ones have no such store
_BOUNDARIES = frozenset({Ops.RANGE, Ops.END, Ops.IF, Ops.ENDIF})

def note_non_temporal(uops: list[UOp], capabilities: Capabilities) -> list[UOp]:
  """Return the uops of a Program with the tag on such stores."""
  buffers = large_results(uops, max(capabilities.cache_bytes, default=0))
  if not buffers: return uops
  found: set[UOp] = set()
  block: list[UOp] = []
  for u in uops:
    if u.op is Ops.STORE and u.src[0].src[0] in buffers: block.append(u)
    elif u.op in _BOUNDARIES: found, block = found | whole_lines(block), []
  changes = {u: UOp(u.op, u.dtype, u.src, u.arg, NON_TEMPORAL) for u in found | whole_lines(block)}
  trace.hand_on(changes)
  return [changes.get(u, u) for u in uops]

def large_results(uops: Iterable[UOp], room: int) -> set[UOp]:
  """Return the buffers of which a Program writes more than `room` bytes, whatever its variables are, and reads none."""
  if not room: return set()
  written: dict[UOp, int] = {}
  read: set[UOp] = set()
  times = [1]     # that the code of each open bracket runs
  for u in uops:
    if u.op is Ops.RANGE: times.append(times[-1] * max(int(u.src[0].vmin), 0))
    elif u.op is Ops.IF: times.append(0)    # it may not run
    elif u.op in (Ops.END, Ops.ENDIF): times.pop()
    elif u.op is Ops.LOAD: read.add(u.src[0].src[0])
    elif u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM:
      buffer = u.src[0].src[0]
      written[buffer] = written.get(buffer, 0) + times[-1] * u.src[1].dtype.itemsize
  return {u for u, size in written.items() if size > room} - read

def whole_lines(stores: Iterable[UOp]) -> set[UOp]:
  """Return the stores of a block of code that together write whole lines.

  A line is written by one vector, or by vectors at neighbouring constant distances from the same multiple of a line.
  Each begins at a multiple of its own size: others overlap two lines, and non-temporal stores of them would fault.
  """
  halves: dict[object, dict[int, UOp]] = {}     # buffer and index without its constant -> stores by that constant
  for u in stores:
    index, value = u.src[0], u.src[1]
    if len(u.src) > 2 or value.dtype.count == 1 or index.src[1].dtype.count > 1: continue
    if value.dtype.itemsize < LEAST_BYTES: continue
    terms, constant = linear(index.src[1])
    size = value.dtype.scalar().itemsize
    if common_factor(terms) * size % CACHE_LINE_BYTES: continue
    halves.setdefault((index.src[0], frozenset(terms.items())), {})[constant * size] = u
  found: set[UOp] = set()
  for by_place in halves.values():
    for line in {place // CACHE_LINE_BYTES * CACHE_LINE_BYTES for place in by_place}:
      parts: list[UOp] = []
      at = line
      while at < line + CACHE_LINE_BYTES and at in by_place:
        parts.append(by_place[at])
        size = parts[-1].src[1].dtype.itemsize
        if at % size: break
        at += size
      if at == line + CACHE_LINE_BYTES: found.update(parts)
  return found
