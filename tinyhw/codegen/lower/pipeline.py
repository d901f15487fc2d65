"""Prefetch the operands that the next iteration stages while this one computes, for targets whose lanes are threads.

This is software pipelining through registers. A loop that fills shared memory waits for memory in each iteration:
loads, stores to shared memory, a barrier, products. Here each load of such a loop becomes a variable. It starts with
the load of the first iteration. After the barrier the loop loads for the next iteration (the last one repeats its
loads), and the products run meanwhile. Only loads of buffers that the kernel does not write move, with all nodes of
their addresses and gates.

Input and output are the uops of a Program, in order; they compute the same. Cost: a few walks for each such loop.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.arithmetic import operation
from tinyhw.dtype import dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

SIGNALS_BYTES = 64  # of shared memory, for the signals that count boxes (prefetch.py)
WORKGROUPS = 2   # that should fit into shared memory: one computes while the other one waits
MOST_BYTES = 256  # of a lane's variables; more would take registers from the sums

class Body(NamedTuple):
  """A loop that stages: the position of its RANGE, and of the barrier after its fillings."""
  start: int
  barrier: int

_OPENING, _CLOSING = frozenset({Ops.RANGE, Ops.IF}), frozenset({Ops.END, Ops.ENDIF})
_STATEMENTS = _OPENING | _CLOSING | {Ops.STORE, Ops.BARRIER, Ops.ASYNC_COPY, Ops.COMMIT, Ops.WAIT, Ops.SIGNALS, Ops.ACC,
                                     Ops.ASSIGN_ACC, Ops.PARAM,
                                     Ops.DEFINE_VAR}

def pipeline(uops: list[UOp], written: frozenset[int]) -> list[UOp]:
  """Load the operands that a loop stages one iteration early. written: slots of buffers."""
  for body in reversed(bodies_of(uops)):   # from the last one on, so that positions stay valid
    loads = loads_of(uops, body, written)
    if loads: uops = without_unused(moved(uops, body, loads))
  return uops

def bodies_of(uops: list[UOp]) -> list[Body]:
  """Return the loops that fill shared memory before any loop inside of them, and may have two iterations."""
  found: list[Body] = []
  opened: list[int] = []
  filling = False      # has shared memory been written since the innermost loop was opened?
  for at, u in enumerate(uops):
    if u.op in _OPENING or u.op in _CLOSING:
      if u.op in _OPENING: opened.append(at)
      else: opened.pop()
      filling = False
    elif u.op is Ops.STORE and u.src[0].src[0].op is Ops.DEFINE_LOCAL: filling = True
    elif u.op is Ops.BARRIER and filling and opened:
      loop = uops[opened[-1]]
      filling = False
      first = not any(v.op in _OPENING for v in uops[opened[-1] + 1:at])
      reduces = loop.op is Ops.RANGE and loop.arg[1] is AxisType.REDUCE
      if first and reduces and loop.src[0].vmin > 0 and loop.src[0].vmax > 1: found.append(Body(opened[-1], at))
  return found

def loads_of(uops: list[UOp], body: Body, written: frozenset[int]) -> list[UOp]:
  """Return the loads that may move: they depend on the loop's counter, and on nothing else that changes in it."""
  inside = uops[body.start + 1:body.barrier]
  changing, fixed = set(inside), {uops[body.start]}
  loads: list[UOp] = []
  for u in inside:
    if u.op in _STATEMENTS or any(s.op is Ops.ACC or s in changing and s not in fixed for s in u.src): continue
    if u.op is Ops.LOAD and (u.src[0].src[0].op is not Ops.PARAM or u.src[0].src[0].arg[0] in written): continue
    fixed.add(u)
    if u.op is Ops.LOAD: loads.append(u)
  addresses = cone(loads)
  loads = [load for load in loads if load not in addresses]
  return loads if sum(load.dtype.itemsize for load in loads) <= MOST_BYTES else []

def cone(loads: list[UOp]) -> set[UOp]:
  """Return the nodes that the addresses and gates of loads need."""
  return {u for load in loads for s in load.src for u in s.toposort()}

def moved(uops: list[UOp], body: Body, loads: list[UOp]) -> list[UOp]:
  """Return the uops with the loads of one body moved."""
  counter, inside = uops[body.start], uops[body.start + 1:body.barrier + 1]
  needed = cone(loads).union(loads)
  kept = [u for u in inside if u in needed]
  copier = Copier(uops, body)
  first = copier.copy(kept, counter, UOp.const(counter.dtype, 0), loads)
  number = 1 + max((u.arg for u in uops if u.op is Ops.ACC), default=-1)
  variables = [UOp(Ops.ACC, load.dtype, (copy,), number + k) for k, (load, copy) in enumerate(zip(loads, first))]
  before, copier.made = copier.made, []
  copier.visible.update((counter, *inside))
  following = copier.put(UOp(Ops.ADD, counter.dtype, (counter, copier.put(UOp.const(counter.dtype, 1)))))
  more = copier.put(UOp(Ops.CMPLT, dtypes.bool, (following, counter.src[0])))
  later = copier.copy(kept, counter, copier.put(UOp(Ops.WHERE, counter.dtype, (more, following, counter))), loads)
  assigned = [UOp(Ops.ASSIGN_ACC, v.dtype, (v, copy)) for v, copy in zip(variables, later)]
  for load, copies in zip(loads, zip(variables, assigned)):
    for u in copies: trace.inherit(u, load)
  changes = dict(zip(loads, variables))
  at = sum(u not in changes for u in inside)
  rest = [substituted(u, changes) for u in uops[body.start + 1:] if u not in changes]
  return [*uops[:body.start], *before, *variables, counter, *rest[:at], *copier.made, *assigned, *rest[at:]]

def substituted(u: UOp, changes: dict[UOp, UOp]) -> UOp:
  """Return a node over its changed sources."""
  src = tuple([changes.get(s, s) for s in u.src])
  if src == u.src: return u
  new = changes[u] = UOp(u.op, u.dtype, src, u.arg, u.tag)
  trace.inherit(new, u)
  return new

class Copier:
  """Makes copies of nodes with another counter.

  visible: nodes that may be used at the position of the copies. made: the new nodes, in order.
  """

  def __init__(self, uops: list[UOp], body: Body):
    self.known, self.made = set(uops), list[UOp]()
    self.tagged: dict[UOp, UOp] = {}   # nodes that exist out of scope -> their replacements
    scopes: list[list[UOp]] = [[]]
    for u in uops[:body.start]:
      if u.op in _CLOSING: scopes.pop()
      else:
        if u.op in _OPENING: scopes.append([])
        scopes[-1].append(u)
    self.visible = {u for scope in scopes for u in scope}

  def put(self, u: UOp) -> UOp:
    """Return a node, made here unless an equal one is visible.

    An equal node that is out of scope is told apart by a tag.
    """
    if u in self.visible: return u
    if self.tagged.get(u) in self.visible: return self.tagged[u]
    if u in self.known: self.tagged[u] = u = UOp(u.op, u.dtype, u.src, u.arg, f"early {len(self.known)}")
    self.known.add(u)
    self.visible.add(u)
    self.made.append(u)
    return u

  def copy(self, nodes: list[UOp], counter: UOp, value: UOp, wanted: list[UOp]) -> list[UOp]:
    """Copy nodes, sources first, with `value` in place of the counter. Return the copies of those wanted."""
    new = {counter: self.put(value)}
    for u in nodes:
      src = tuple([new.get(s, s) for s in u.src])
      if src == u.src and u in self.visible: continue
      made = new[u] = self.put(simple(UOp(u.op, u.dtype, src, u.arg)))
      trace.inherit(made, u)
    return [new.get(u, u) for u in wanted]

_FOLDED = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.SHL, Ops.SHR})

def simple(u: UOp) -> UOp:
  """Fold an operation of constants, or a sum or product with 0, as in addresses of the first iterations."""
  if u.op in _FOLDED and all(s.op is Ops.CONST for s in u.src):
    return UOp(Ops.CONST, u.dtype, (), operation(u.op.name, u.dtype)(*[s.arg for s in u.src]))
  zeros = [s.op is Ops.CONST and s.arg == 0 for s in u.src]
  if u.op is Ops.ADD and any(zeros): return u.src[1 if zeros[0] else 0]
  if u.op in (Ops.MUL, Ops.AND) and any(zeros) or u.op in (Ops.SHL, Ops.SHR, Ops.IDIV, Ops.MOD) and zeros[0]:
    return u.src[zeros.index(True)]
  return u

def without_unused(uops: list[UOp]) -> list[UOp]:
  """Return the uops without values that nothing uses."""
  wanted: set[UOp] = set()
  kept: list[UOp] = []
  for u in reversed(uops):
    if u not in wanted and u.op not in _STATEMENTS: continue
    wanted.update(u.src)
    kept.append(u)
  return kept[::-1]
