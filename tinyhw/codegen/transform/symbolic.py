"""Cut loops whose size depends on Variables, so that tiles and lanes fit: whole steps, then vectors with gates.

    for r in n: sum += s[r]         VECTOR 16, UPCAST 4

    for r in n // 64                64 elements at a time, without gates
    for t in (n % 64 + 15) // 16    vectors: a lane whose element is outside of n has a closed gate

A closed gate loads nothing and stores nothing, and its term is the result of a reduction of nothing. The size of the
first loop is written as a multiple of the factor, which `tiling.split` divides. A range of the grid is cut into work
items first: item g has the smaller of 64 and n - 64 g elements.

A tile is chosen for the largest values of the Variables (`largest`). Cost: a walk over the kernel for each such loop
that has a tile.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.kernel.affine import make, number
from tinyhw.codegen.kernel.grid import ranges_of, values_of
from tinyhw.codegen.transform.fold import start_of
from tinyhw.codegen.transform.tiling import (
  NO_FACTORS, OF_ONE, Opt, OptOps, at_most, factor_of, lanes_along, rebuilt, size_of, substitute)
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def largest(sink: UOp) -> UOp:
  """Return the kernel for the largest values of its Variables. All its sizes are numbers."""
  return substitute(sink, {u: number(int(u.vmax)) for u in sink.toposort() if u.op is Ops.DEFINE_VAR})

def cut_symbolic(sink: UOp, opts: tuple[Opt, ...]) -> tuple[UOp, tuple[Opt, ...]]:
  """Return the kernel with cut loops, and the opts for its loops."""
  for r in sorted((u for u in sink.toposort() if u.op is Ops.RANGE and not size_of(u)), key=lambda r: r.arg):
    factor, lanes = factor_of(r, opts), lanes_along(r, opts)
    if factor == 1: continue
    fresh = 1 + max(u.arg[0] for u in sink.toposort() if u.op is Ops.RANGE)
    if any(o.op is OptOps.GRID and o.axis == r.arg[0] for o in opts):
      sink, item = _with_work_items(sink, r, factor, fresh)
      opts = tuple([o._replace(axis=fresh) if o.axis == r.arg[0] and o.op not in NO_FACTORS else o for o in opts])
      r, fresh = item, fresh + 1
    sink = _with_steps(sink, _steps_of(r, factor, lanes, fresh))
    if lanes > 1: opts = (*opts, Opt(OptOps.VECTOR, fresh, lanes))
  return sink, opts

def _with_work_items(sink: UOp, r: UOp, size: int, fresh: int) -> tuple[UOp, UOp]:
  """Return the kernel with r in work items of `size` iterations, and the loop over the iterations of an item."""
  n = r.src[0]
  items = make(Ops.IDIV, dtypes.weakint, (make(Ops.ADD, dtypes.weakint, (n, number(size - 1))), number(size)))
  outer = r.replace(src=(items,))
  begin = make(Ops.MUL, dtypes.weakint, (outer, number(size)))
  left = make(Ops.SUB, dtypes.weakint, (n, begin))
  inner = UOp(Ops.RANGE, r.dtype, (_not_negative(at_most(left, size)),), (fresh, r.arg[1]))
  return rebuilt(sink, {r: make(Ops.ADD, dtypes.weakint, (begin, inner))}, {r: [outer, inner]}), inner

def _not_negative(size: UOp) -> UOp:
  """Return a size whose bounds tell that it is 0 at least. No size is less. But n // 4 and n % 4 of bounds below 0
  would name elements outside."""
  return size if size.vmin >= 0 else UOp(Ops.MAX, dtypes.weakint, (size, number(0)))

class CutLoop(NamedTuple):
  """A loop, the loop of its whole steps, and the loop of its remainder: its value, and the gate of its lanes. A part is
  None where it never has an iteration."""
  loop: UOp
  whole: UOp | None
  rest: UOp | None
  value: UOp
  gate: UOp | None

def _steps_of(r: UOp, factor: int, lanes: int, fresh: int) -> CutLoop:
  """Cut a loop into steps of `factor` iterations, and vectors of lanes. The loop of the remainder has the id `fresh`.
  """
  n = _not_negative(r.src[0])
  whole = make(Ops.MUL, dtypes.weakint, (make(Ops.IDIV, dtypes.weakint, (n, number(factor))), number(factor)))
  left = make(Ops.MOD, dtypes.weakint, (n, number(factor)))
  vectors = make(Ops.IDIV, dtypes.weakint, (make(Ops.ADD, dtypes.weakint, (left, number(lanes - 1))), number(lanes)))
  rest = UOp(Ops.RANGE, r.dtype, (make(Ops.MUL, dtypes.weakint, (vectors, number(lanes))),), (fresh, r.arg[1]))
  gate = make(Ops.CMPLT, dtypes.bool, (rest, left)) if lanes > 1 else None
  return CutLoop(r, r.replace(src=(whole,)) if whole.vmax > 0 else None, rest if left.vmax > 0 else None,
                 make(Ops.ADD, dtypes.weakint, (whole, rest)), gate)

def _with_steps(sink: UOp, cut: CutLoop) -> UOp:
  """Return the kernel with a loop in two. A reduction becomes two, whose results are folded. A store becomes two, and
  stores of a kernel are cut alike."""
  new: dict[UOp, UOp] = {}
  for u in sink.toposort():
    if u.op is Ops.SINK: break
    src = tuple([new[s] for s in u.src])
    new[u] = v = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
    if u.op is not Ops.REDUCE or cut.loop not in ranges_of(v): continue
    first, *others = _parts(v, cut)
    new[u] = UOp(u.arg, u.dtype, (first, *others), None, OF_ONE) if others else first
  trace.hand_on(new)
  stores = [_parts(new[s], cut) if cut.loop in ranges_of(new[s]) else [new[s]] for s in sink.src]
  return UOp.sink(*[parts[0] for parts in stores], *[s for parts in stores for s in parts[1:]], arg=sink.arg)

def _parts(u: UOp, cut: CutLoop) -> list[UOp]:
  """Return a REDUCE or STORE in whole steps, and in gated vectors."""
  parts: list[UOp] = []
  if cut.whole is not None:
    values = [substitute(s, {cut.loop: cut.whole}) for s in values_of(u)]
    parts.append(u.replace(src=(*values, *[cut.whole if r is cut.loop else r for r in ranges_of(u)])))
  if cut.rest is not None:
    values = [_gated(substitute(s, {cut.loop: cut.value}), cut.rest, cut.gate) for s in values_of(u)]
    if cut.gate is not None and u.op is Ops.REDUCE:
      values = [UOp(Ops.WHERE, u.dtype, (cut.gate, values[0], start_of(u.arg, u.dtype)))]
    elif cut.gate is not None:
      values[2:] = [cut.gate if len(values) < 3 else make(Ops.AND, dtypes.bool, (cut.gate, values[2]))]
    parts.append(u.replace(src=(*values, *[cut.rest if r is cut.loop else r for r in ranges_of(u)])))
  return parts

def _gated(u: UOp, rest: UOp, gate: UOp | None) -> UOp:
  """Return an expression whose loads in the loop of the remainder have gates."""
  if gate is None: return u
  new: dict[UOp, UOp] = {}
  for v in u.toposort():
    src = tuple([new[s] for s in v.src])
    if v.op is Ops.LOAD and rest in v.ranges:
      both = gate if len(src) == 1 else make(Ops.AND, dtypes.bool, (gate, src[1]))
      src = (src[0], both, src[2] if len(src) > 1 else UOp(Ops.CONST, v.dtype, (), v.dtype.const(0)))
    new[v] = v if src == v.src else UOp(v.op, v.dtype, src, v.arg, v.tag)
  trace.hand_on(new)
  return new[u]
