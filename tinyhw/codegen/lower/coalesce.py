"""Coalesce adjacent loads or stores of a lane into one wide access, for targets whose lanes are threads
(`Capabilities.lanes`).

Copies of a body (UPCAST, UNROLL) access `i + 0`, `i + 1`, … of one buffer: the indices differ in their constant only. A
run of such accesses under one gate, at most `vector_bytes` long, becomes one access. A LOAD gives a vector, of which
each copy takes an element. A STORE takes a VECTORIZE. The length of a run is a power of two.

Shared memory requires addresses that are multiples of the access size. The factors of the index must prove that. Other
memory accepts any multiple of an element, unless `Capabilities.aligned` requires the same. Stores of a SINK or GROUP
may run over their ranges in any order (docs/design/uop.md), and loads come before them.

On a CPU lanes are elements of vectors, which vectorize.py makes. Cost: one walk, and one look at the sum of each index.
"""
from __future__ import annotations
import functools
import math
from collections.abc import Callable

from tinyhw import trace
from tinyhw.codegen.kernel.access import gate_of
from tinyhw.codegen.kernel.affine import common_factor, linear, make, number
from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class CoalescedRun(NamedTuple):
  """The elements first, first + 1, …, relative to the common part of their accesses."""
  first: int
  size: int

class ElementAccess(NamedTuple):
  """One access of a possible run.

  common: the part that all accesses of a run share. at: the constant of the index.
  step: a number of bytes that divides the non-constant part of the address (0: there is none); None if any address will
  do.
  """
  common: tuple[object, ...]
  at: int
  step: int | None

# of an index without its last constant: the terms, the rest of the constant, the common factor of the terms
Sums = dict[UOp, tuple[frozenset[tuple[UOp, int]], int, int]]

def access_of(u: UOp, sums: Sums, aligned: bool = False, truths: bool = False) -> ElementAccess | None:
  """Return the access of a LOAD or STORE of one element; None if it cannot be part of a run.

  sums: known sums, which copies of a body share. aligned: all memory requires multiples, not only shared memory.
  truths: coalesce bools too.
  """
  buffer, i = u.src[0].src
  value = u if u.op is Ops.LOAD else u.src[1]
  if value.dtype.count > 1 or i.dtype is not dtypes.weakint or value.dtype is dtypes.bool and not truths: return None
  if u.op is Ops.LOAD and len(u.src) > 1 and u.src[2].op is not Ops.CONST: return None
  base, last = (i.src[0], i.src[1].arg) if i.op is Ops.ADD and i.src[1].op is Ops.CONST else (i, 0)
  if base not in sums:
    terms, more = linear(base)
    sums[base] = frozenset(terms.items()), more, common_factor(terms)
  shared, more, factor = sums[base]
  rest: tuple[object, ...] = u.src[1:] if u.op is Ops.LOAD else u.src[2:]
  gate = gate_of(u)
  if gate is not None: rest = (meaning_of(gate), *rest[1:])
  step = factor * value.dtype.itemsize if aligned or is_local(buffer) else None
  return ElementAccess((buffer, shared, *rest), more + last, step)

def meaning_of(gate: UOp) -> object:
  """Return a form in which equal gates are the same object: `8*i + 3 < 40` is `i < 5`."""
  if gate.op is Ops.AND: return frozenset(meaning_of(s) for s in gate.src)
  if gate.op is not Ops.CMPLT or gate.src[0].dtype is not dtypes.weakint: return gate
  terms, constant = linear(make(Ops.SUB, dtypes.weakint, (gate.src[0], gate.src[1])))
  step = math.gcd(*terms.values()) or 1
  return frozenset((t, c // step) for t, c in terms.items()), -(constant // step)

def is_local(buffer: UOp) -> bool:
  return buffer.op is Ops.DEFINE_LOCAL or buffer.op is Ops.AFTER and buffer.src[0].op is Ops.DEFINE_LOCAL

def coalesced_runs(places: list[int], itemsize: int, step: int | None, most: int) -> list[CoalescedRun]:
  """Return disjoint runs of at least two of the elements, each of at most `most` bytes."""
  found: list[CoalescedRun] = []
  known = set(places)
  for at in sorted(known):
    if found and at < found[-1].first + found[-1].size: continue
    size = 1 << max(most // itemsize, 1).bit_length() - 1
    while size > 1 and not (all(at + k in known for k in range(size)) and fits(at * itemsize, step, size * itemsize)):
      size //= 2
    if size > 1: found.append(CoalescedRun(at, size))
  return found

def fits(offset: int, step: int | None, size: int) -> bool:
  """May an address that is this offset plus a multiple of step be accessed with this size? step None: any address may.
  """
  return step is None or offset % size == step % size == 0

class Coalescer:
  """The state: `new[u]`, and for each load of a run the run and its access."""

  def __init__(self, order: list[UOp], capabilities: Capabilities):
    self.most = most = capabilities.vector_bytes
    self.kinds = capabilities.aligned, capabilities.truths
    self.converts = functools.partial(capabilities.supports, Ops.CAST)
    self.new: dict[UOp, UOp] = {}
    self.loads: dict[UOp, tuple[CoalescedRun, ElementAccess]] = {}
    self.wide: dict[tuple[CoalescedRun, tuple[object, ...], DType], UOp] = {}
    self.sums: Sums = {}
    together: dict[tuple[tuple[object, ...], DType], dict[UOp, ElementAccess]] = {}
    for u in order:
      access = access_of(u, self.sums, *self.kinds) if u.op is Ops.LOAD else None
      if access is not None: together.setdefault((access.common, u.dtype), {})[u] = access
    for (_, dtype), loads in together.items():
      if len(loads) < 2: continue
      accesses = list(loads.values())
      for run in coalesced_runs([a.at for a in accesses], dtype.itemsize, accesses[0].step, most):
        self.loads.update((u, (run, a)) for u, a in loads.items() if 0 <= a.at - run.first < run.size)

  def visit(self, u: UOp) -> None:
    src = tuple([self.new[s] for s in u.src])
    if u in self.loads: self.new[u] = self.element(u, src)
    else:
      if u.op in _TOGETHER: src = self.stores(src)
      self.new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)

  def element(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
    """Return one element of a wide load."""
    run, access = self.loads[u]
    key = run, access.common, u.dtype
    found = self.wide.get(key)
    if found is None:
      dtype = u.dtype.vec(run.size)
      rest = (src[1], UOp(Ops.CONST, dtype, (), src[2].arg)) if len(src) > 1 else ()
      found = self.wide[key] = UOp(Ops.LOAD, dtype, (moved(src[0], run.first - access.at), *rest))
    return UOp(Ops.GEP, u.dtype, (found,), access.at - run.first)

  def stores(self, src: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """Return stores that are done together, with each run as one store."""
    together: dict[tuple[tuple[object, ...], DType], dict[int, UOp]] = {}
    steps: dict[tuple[object, ...], int | None] = {}
    for s in src:
      access = access_of(s, self.sums, *self.kinds) if s.op is Ops.STORE and s.arg is None else None
      if access is None: continue
      together.setdefault((access.common, s.src[1].dtype), {})[access.at] = s
      steps[access.common] = access.step
    wide: dict[UOp, UOp | None] = {}
    for (common, dtype), stores in together.items():
      for run in coalesced_runs(list(stores), dtype.itemsize, steps[common], self.most) if len(stores) > 1 else ():
        members = [stores[run.first + k] for k in range(run.size)]
        first = members[0]
        value = whole(tuple([s.src[1] for s in members]), self.converts)
        wide.update(dict.fromkeys(members))
        wide[first] = UOp(Ops.STORE, dtypes.void, (first.src[0], value, *first.src[2:]))
    return tuple([t for s in src if (t := wide.get(s, s)) is not None])

_TOGETHER = frozenset({Ops.SINK, Ops.GROUP, Ops.AFTER})

def moved(place: UOp, elements: int) -> UOp:
  """Return the index some elements further."""
  if not elements: return place
  return UOp(Ops.INDEX, place.dtype, (place.src[0], make(Ops.ADD, dtypes.weakint, (place.src[1], number(elements)))))

def whole(values: tuple[UOp, ...], converts: Callable[[DType], bool]) -> UOp:
  """Return a vector of values.

  Adjacent elements of one vector become a part of it. Conversions become one vector conversion if the target has it.
  """
  dtype = values[0].dtype.vec(len(values))
  if all(v.op is Ops.CAST and v.src[0].dtype is dtypes.float32 for v in values) and converts(dtype):
    source = whole(tuple([v.src[0] for v in values]), converts)
    if source.op is not Ops.VECTORIZE: return UOp(Ops.CAST, dtype, (source,))
  if values[0].op is not Ops.GEP: return UOp(Ops.VECTORIZE, dtype, values)
  source, first = values[0].src[0], values[0].arg
  if first % len(values) or any(v.op is not Ops.GEP or v.src[0] is not source or v.arg != first + k
                                for k, v in enumerate(values)):
    return UOp(Ops.VECTORIZE, dtype, values)
  return source if source.dtype is dtype else UOp(Ops.GEP, dtype, (source,), first)

def coalesce(sink: UOp, capabilities: Capabilities) -> UOp:
  """Merge loads and stores of adjacent elements into wide ones."""
  if not capabilities.lanes or capabilities.vector_bytes < 2: return sink
  order = list(sink.toposort())
  walk = Coalescer(order, capabilities)
  for u in order: walk.visit(u)
  trace.hand_on(walk.new)
  return walk.new[sink]
