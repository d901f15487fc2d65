"""Turn tensor graphs into a schedule: kernels in order, and the storage of each.

The passes, in order:
- canonicalize: buffers become numbers, bound variables become variables, realized nodes become their buffers. Equal
  work is then one object. A BITCAST to another size becomes shifts, by regroup.py.
- distribute: tensors on several devices become the part of each device (multi.py).
- broadcast: computes a reduction once for axes along which its operand is the same (broadcast.py).
- weights: puts weights of convolutions in the order in which a GPU's lanes copy them (weights.py).
- operands: stores operands of products as the lanes of a CPU read them best (operands.py).
- split: cuts large reductions into partial results and their sum (split.py).
- mask: finds what a causal mask hides, and hides it in products whose users ignore it (masks.py).
- fuse: selects the nodes that get a buffer (fuse.py).
- lower: builds each kernel's expression over ranges (lower.py).
- order: kernels run after the writers of their operands, and readers of a buffer before the ASSIGN into it.
- group: merges kernels over the same elements (group.py).
- plan: assigns storage that lives only inside the schedule (memory.py).

A schedule depends only on the canonical graph, so it is kept. The next step of a training loop finds it.
"""
from __future__ import annotations
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tinyhw import trace
from tinyhw.config import DEBUG, VIZ, of_variables
from tinyhw.data_class import dataclass, field, replace
from tinyhw.device import on_disk, opened
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import multi
from tinyhw.engine.memory.disk import piece_node, resolve, truth
from tinyhw.engine.schedule.fuse import Fusion, fused
from tinyhw.engine.schedule.group import group_kernels
from tinyhw.engine.schedule.lower import Kernel, Lowering, storage_of
from tinyhw.engine.schedule.memory import MemoryPlan, plan_memory, thrifty_order
from tinyhw.engine.schedule.multi import Distribution, Local, distribute, is_multi
from tinyhw.engine.schedule.numbers import with_arguments
from tinyhw.engine.schedule.regroup import regrouped, regroups
from tinyhw.engine.schedule.split import split_reductions
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import KernelInfo, UOp, same_shape, to_indices

if TYPE_CHECKING:
  from tinyhw.engine.schedule.masks import Hidden

CACHE_SIZE = 512
MOST_INPUTS = 1 << 12
DROPPED = frozenset({Ops.DETACH, Ops.CONTIGUOUS_BACKWARD})
IN_MEMORY = frozenset({Ops.BUFFER, Ops.MULTI})

@dataclass
class Canonical:
  """A graph with its buffers and bound values taken out.

  inputs: BUFFERs by number. assigns: executed ASSIGN nodes, canonical → original. new: all nodes, original → canonical.
  tags: the distinctions between otherwise equal nodes, numbered in order of discovery. definitions: variables, by name.
  constant_roots: the roots before changing numbers became variables (numbers.py), if there are any; `new` has their
  nodes.
  """
  roots: tuple[UOp, ...] = ()
  inputs: list[UOp] = field(default_factory=list)
  variables: dict[str, int] = field(default_factory=dict)
  assigns: dict[UOp, UOp] = field(default_factory=dict)
  new: dict[UOp, UOp] = field(default_factory=dict)
  tags: dict[object, int] = field(default_factory=dict)
  definitions: dict[str, dict[UOp, None]] = field(default_factory=dict)
  constant_roots: tuple[UOp, ...] = ()

@dataclass
class Schedule:
  """A list of kernels to run.

  kernels: in order. by_device: the same, with adjacent kernels of one device together. By canonical node, `storage`
  has the BUFFER or AFTER of each root's value, and `inner` the temporary BUFFER of another value. `local` has the
  distribution of either on several devices, as far as it is needed. `plans` has memory plans by the temporary BUFFERs
  that outlive the schedule.
  """
  kernels: list[Kernel]
  by_device: list[tuple[str | tuple[str, ...] | None, list[Kernel]]]
  storage: dict[UOp, UOp]
  plan: MemoryPlan
  device: str | tuple[str, ...]
  local: dict[UOp, Local]
  inner: dict[UOp, UOp]
  plans: dict[frozenset[UOp], MemoryPlan] = field(default_factory=dict)

  def plan_keeping(self, inner: frozenset[UOp]) -> MemoryPlan:
    """Return the plan under which some of the temporary BUFFERs outlive the schedule."""
    found = self.plans.get(inner)
    if found is None:
      kept = list(dict.fromkeys([*self.plan.kept, *filter(inner.__contains__, self.inner.values())]))
      found = self.plans[inner] = replace(plan_memory(self.kernels, set(kept)), kept=kept)
    return found

  def placed(self, node: UOp, buffer: UOp) -> UOp:
    """Return the value of a canonical node in a BUFFER. On several devices each has a part, or all of it."""
    if not is_multi(node): return buffer
    if node not in self.local: self.local[node] = Distribution().of(node)
    return multi(buffer, self.local[node].node.shape, self.local[node].axis)

_inputs: dict[tuple[int, Any, Any, int], UOp] = {}     # canonical BUFFERs, by number, type, device and size
_schedules: OrderedDict[tuple[UOp, ...], Schedule] = OrderedDict()

def realized_as(u: UOp) -> UOp | None:
  """Return the buffer that holds u's value, or None."""
  return u.realized

def canonicalize(roots: list[UOp], known: Callable[[UOp], UOp | None] = realized_as,
                 more: Canonical | None = None) -> Canonical:
  """Return the graph below roots in canonical form. A node whose value is known is replaced by its buffer.

  more: an earlier canonical graph, to which the roots are added. It walks with a stack.
  """
  out = Canonical() if more is None else more
  new = out.new
  stack = roots[::-1]
  pop = stack.pop
  while stack:
    u = pop()
    if u in new: continue
    if u.realized is not None and (held := known(u)) is not None:
      if held in new: new[u] = new[held]
      else: stack += u, held
      continue
    for s in u.src:
      if s in new: continue
      if s.src or s.realized is not None:
        stack += u, s
        break
      new[s] = _leaf(s, out)
    else: _add(u, out)
  out.roots += tuple([new[u] for u in roots])
  if out.definitions and any(len(found) > 1 for found in out.definitions.values()): _one_definition(out)
  if are_lines_followed(): _follow(new)
  return out

def _add(u: UOp, out: Canonical) -> None:
  """Add a node whose sources are in the canonical graph."""
  new, op = out.new, u.op
  src = tuple([new[s] for s in u.src])
  if op in _SAME and u.tag is None and src != u.src: made = new[u] = UOp(op, u.dtype, src, u.arg)
  else: made = new[u] = _canonical_node(u, src, out)
  if op not in DROPPED: made.line = u.line   # of this run: equal graphs are one, wherever they were written
  if op is Ops.ASSIGN: out.assigns[made] = u

@of_variables
def are_lines_followed() -> bool:
  """Do rewrites pass on the lines of tensor operations, for listings?"""
  return DEBUG >= 7 or bool(VIZ)

def _follow(new: dict[UOp, UOp]) -> None:
  """Give the canonical nodes the lines of the tensor operations. A node without one gets that of a user.

  new: canonical nodes by original ones, sources first.
  """
  trace.unfollow()
  for u, v in new.items(): trace.follow(v, trace.origin(u))
  for v in reversed(new.values()):
    for s in v.src: trace.same_line(s, v)

# A value that depends on no storage would be the user's own node, which keeps its result alive. The cache of schedules
# has another node with this tag.
OWN = 0
_SAME = frozenset((Ops.CAST, Ops.REDUCE_AXIS, Ops.EXPAND, Ops.PERMUTE, *GroupOp.ALU))  # over other sources
COMPUTES = frozenset((Ops.IOTA, Ops.CONTIGUOUS, Ops.CAST, Ops.BITCAST, Ops.REDUCE_AXIS, *GroupOp.ALU))

def _leaf(u: UOp, out: Canonical) -> UOp:
  if u.op is Ops.CONST: return u
  if u.op is not Ops.BUFFER: return _canonical_node(u, (), out)
  _, device, size = u.arg
  key = len(out.inputs), u.dtype, device, size
  out.inputs.append(u)
  found = _inputs.get(key)
  if found is None:
    if len(_inputs) >= MOST_INPUTS: _inputs.clear()
    found = _inputs.setdefault(key, UOp(Ops.BUFFER, u.dtype, (), (("in", key[0]), device, size)))
  return found

def _canonical_node(u: UOp, src: tuple[UOp, ...], out: Canonical) -> UOp:
  op = u.op
  if op is Ops.BUFFER: return _leaf(u, out)
  if op is Ops.BIND:
    return _named(u.src[0], u.src[1].arg, out)
  if op in DROPPED: return src[0]
  if op is Ops.RESHAPE and src[0].op is Ops.RESHAPE and u.tag is src[0].tag is None:   # an index needs no division then
    made = UOp(op, u.dtype, (src[0].src[0], *src[1:]), u.arg)
    return made.src[0] if same_shape(made.shape, made.src[0].shape) else made
  if op is Ops.BITCAST and regroups(u): return regrouped(src[0], u.dtype)
  if op is Ops.COPY and on_disk(src[0].device): return _from_disk(src[0], src[1], out)
  if op is Ops.COPY and not is_multi(src[0]) and not is_multi(src[1]):
    base = src[0]
    while base.op is Ops.RESHAPE: base = base.src[0]
    source = base if base.op is Ops.BUFFER and base.size == src[0].size else UOp(Ops.CONTIGUOUS, u.dtype, (src[0],))
    return (_reshaped(UOp(Ops.COPY, u.dtype, (source, src[1])), u.src[0]) if source is base
            else UOp(Ops.COPY, u.dtype, (source, src[1])))
  tag = None if u.tag in (None, OWN) else out.tags.setdefault(u.tag, len(out.tags) + 1)
  if tag is None and src == u.src and op in COMPUTES and u.dtype is not dtypes.weakint: tag = OWN
  return u if src == u.src and tag == u.tag else UOp(op, u.dtype, src, u.arg, tag)

def _named(variable: UOp, value: int, out: Canonical) -> UOp:
  """Return the variable under a unique name. A Variable with several values in one graph becomes several arguments of
  the kernels."""
  name, count = variable.expr, 1
  while out.variables.setdefault(name, value) != value:
    count += 1
    name = f"{variable.expr}#{count}"
  if count > 1: variable = variable.replace(arg=(name, *variable.arg[1:]))
  out.definitions.setdefault(name, {})[variable] = None
  return variable

def _one_definition(out: Canonical) -> None:
  """Give a variable with different bounds in parts of the graph the intersection of these bounds everywhere."""
  changes: dict[UOp, UOp] = {}
  for name, found in out.definitions.items():
    if len(found) == 1: continue
    factor = {v.arg[3:] for v in found}
    bounds = max(v.arg[1] for v in found), min(v.arg[2] for v in found)
    one = UOp.variable(name, *bounds, next(iter(found)).dtype, *(factor.pop() if len(factor) == 1 else ()))
    changes.update({v: one for v in found if v is not one})
  new = dict(zip(out.new, UOp.sink(*out.new.values()).substitute(changes).src))
  changed = dict(zip(out.new.values(), new.values()))
  out.new.update(new)
  out.assigns = {changed[u]: original for u, original in out.assigns.items()}
  out.roots = tuple([changed[u] for u in out.roots])

def _from_disk(u: UOp, device: UOp, out: Canonical) -> UOp:
  """Return a copy of just the part of a file that u needs."""
  piece = resolve(u)
  node = piece_node(piece._replace(node=out.inputs[piece.node.arg[0][1]]))
  out.inputs.append(node)
  number = ("in", len(out.inputs) - 1)
  value = piece.on(UOp(Ops.COPY, node.dtype, (UOp(Ops.BUFFER, node.dtype, (), (number, *node.arg[1:])), device)))
  return value if node.dtype is u.dtype else truth(value)

def _reshaped(u: UOp, like: UOp) -> UOp:
  return UOp(Ops.RESHAPE, u.dtype, (u,) + to_indices(like.shape))

def strip(root: UOp) -> UOp:
  """Return the node under a root's reshapes, which gets a buffer."""
  while root.op is Ops.RESHAPE or root.op in DROPPED: root = root.src[0]
  return root

def schedule_of_any_numbers(canonical: Canonical) -> tuple[Canonical, Schedule]:
  """Return a canonical graph and its schedule.

  Numbers that changed from run to run are variables of the returned graph (numbers.py).
  """
  found = _schedules.get(canonical.roots)
  if found is None:
    roots, values = with_arguments(canonical.roots)
    if values:
      canonical = replace(canonical, roots=roots, variables={**canonical.variables, **values},
                          constant_roots=canonical.roots)
    return canonical, schedule(canonical)
  _schedules.move_to_end(canonical.roots)
  return canonical, found

def schedule(canonical: Canonical) -> Schedule:
  """Return the schedule of a canonical graph, from the cache if it was made before."""
  found = _schedules.get(canonical.roots)
  if found is not None:
    _schedules.move_to_end(canonical.roots)
    return found
  recorder = trace.recorder
  if recorder is not None: recorder.begin("schedule", "", canonical.roots)
  made = _schedules[canonical.roots] = make_schedule(canonical.roots)
  if recorder is not None: recorder.done(canonical, made)
  while len(_schedules) > CACHE_SIZE: _schedules.popitem(last=False)
  return made

def make_schedule(wanted: Sequence[UOp]) -> Schedule:
  """Make the schedule of canonical roots. Its results are found by the node under a root's reshapes."""
  passed = _not_recorded if trace.recorder is None else trace.recorder.passed
  asked = {strip(r): r for r in wanted}
  given = [r for r in asked if r.op not in IN_MEMORY]
  came: dict[UOp, UOp] = {}
  local = dict(zip(given, distribute(given, came)))
  roots = [_computed(x.node) for x in local.values()]
  ops = {u.op for u in UOp.sink(*roots).toposort()}
  if Ops.REDUCE_AXIS in ops and Ops.EXPAND in ops:
    from tinyhw.engine.schedule.broadcast import reduce_once  # 0.3 ms to load, for graphs that repeat an operand
    roots = reduce_once(roots, came)
  passed("broadcast", roots)
  if Ops.REDUCE_AXIS in ops and Ops.EXPAND in ops and opened(roots[0].device).copies_operands:
    from tinyhw.engine.schedule.weights import order_weights  # 0.3 ms to load, for products of GPUs
    roots = order_weights(roots, came)
  passed("weights", roots)
  if Ops.REDUCE_AXIS in ops and Ops.EXPAND in ops and opened(roots[0].device).shares_operands:
    from tinyhw.engine.schedule.operands import store_operands  # 0.3 ms to load, for products of CPUs
    roots = store_operands(roots, came)
  passed("operands", roots)
  if Ops.REDUCE_AXIS in ops: roots = split_reductions(roots, came)
  roots = [strip(r) for r in roots]
  passed("split", roots)
  hidden: dict[UOp, Hidden] = {}
  differ: set[UOp] = set()     # from the nodes that they replace, where a mask hides
  if Ops.REDUCE_AXIS in ops and Ops.IOTA in ops and Ops.WHERE in ops:
    from tinyhw.engine.schedule import masks  # 0.4 ms to load, for graphs with masks of indices
    roots = masks.hide_products(roots, came, differ)
    hidden = masks.hidden_values(list(UOp.sink(*roots).toposort()))
  passed("mask", roots)
  most = opened(roots[0].device).most_buffers if roots else 0
  fusion = fused_within(roots, most)
  lowering = Lowering(fusion, hidden)
  kernels = lowering.kernels()
  if lowering.still:     # an index that is loaded is another one in each iteration
    roots = with_loaded_indices(roots, lowering.still, came)
    fusion = fused_within(roots, most)
    lowering = Lowering(fusion, hidden)
    kernels = lowering.kernels()
  passed("fuse", fusion)
  find_origins(kernels, fusion.nodes, came, {r: asked[g] for g, r in zip(given, roots)})
  passed("lower", kernels)
  storage = {u: b if u.op is Ops.ASSIGN else storage_of(b) for u, b in lowering.storage.items()}
  storage.update((g, storage[r]) for g, r in zip(given, roots))
  kept = {storage[r] for r in roots}
  kernels = order_kernels(kernels, kept)
  passed("order", kernels)
  kernels = group_kernels(kernels, most)
  passed("group", kernels)
  plan = plan_memory(kernels, kept)
  passed("plan", plan)
  kernels = [k for k in kernels if not stores_nothing(k)]
  inner = _inner({u: b for u, b in storage.items() if u not in differ}, plan, came)
  by_device = [(device, list(adjacent)) for device, adjacent in groupby(kernels, devices_of)]
  return Schedule(kernels, by_device, storage, plan, next((d for d in (r.device for r in roots) if d), ""),
                  {g: x for g, x in local.items() if is_multi(g)}, inner)

def fused_within(roots: list[UOp], most: int) -> Fusion:
  """Return the fusion of a graph. most: the buffers that one kernel may have; 0: any number."""
  fusion = fused(roots)
  if not most: return fusion
  from tinyhw.engine.schedule.limit import within_limit  # for devices that limit the buffers of a kernel
  return within_limit(fusion, roots, most)

def with_loaded_indices(roots: list[UOp], nodes: Sequence[UOp], came: dict[UOp, UOp]) -> list[UOp]:
  """Return the graph with buffers for the indices of some SCATTERs. came: receives the nodes that new nodes replace."""
  changes = {u: u.replace(src=(u.src[0], UOp(Ops.CONTIGUOUS, u.src[1].dtype, (u.src[1],)), u.src[2])) for u in nodes}
  old = [u for u in UOp.sink(*roots).toposort() if u.op is not Ops.SINK]
  new = UOp.sink(*old).substitute(changes).src
  came.update((v, came.get(u, u)) for u, v in zip(old, new) if v is not u)
  return [dict(zip(old, new))[r] for r in roots]

def _inner(storage: dict[UOp, UOp], plan: MemoryPlan, came: dict[UOp, UOp]) -> dict[UOp, UOp]:
  """Return the temporary BUFFERs that hold values of canonical nodes. came: the nodes that new nodes replace."""
  found: dict[UOp, UOp] = {}
  for u, b in storage.items():
    if b not in plan.offsets or not b.arg[2]: continue
    while u in came: u = came[u]
    found[u] = b
  return found

def find_origins(kernels: list[Kernel], nodes: Sequence[UOp], came: dict[UOp, UOp], asked: dict[UOp, UOp]) -> None:
  """Tell kernels the canonical node from which they take their line: the origin of their own node, or a user of it if
  that has no line.

  nodes: of the lowered graph, sources first. came: the nodes that new nodes replace. asked: the canonical roots, by
  lowered node.
  """
  found = dict(asked)
  for v in reversed(nodes):
    u = v
    while u in came: u = came[u]
    if u.line is not None: found[v] = u
    elif v not in found: continue
    for s in v.src: found.setdefault(s, found[v])
  for k in kernels: k.origin = found.get(k.node)

TRANSFER = "transfer"

def devices_of(kernel: Kernel) -> str | tuple[str, ...] | None:
  """Return the device, or devices, on which a kernel runs; None for the default one; TRANSFER for a copy."""
  return TRANSFER if kernel.sink.op is Ops.COPY else kernel.buffers[0].device

def _computed(u: UOp) -> UOp:
  """Return the node that has a kernel: u without its reshapes, or a copy of storage."""
  root = strip(u)
  return root if root.op is not Ops.BUFFER else UOp(Ops.CONTIGUOUS, u.dtype, (u,))

def _not_recorded(name: str, made: object) -> None: pass

def stores_nothing(kernel: Kernel) -> bool:
  """Does the kernel write no elements? Then there is nothing to run, and its operands are not read."""
  if kernel.sink.op is Ops.COPY: return kernel.sink.size == 0
  return any(r.src[0].vmax == 0 for store in kernel.sink.src for r in store.src[2:] if r.op is Ops.RANGE)

# the default is never mutated
def order_kernels(kernels: list[Kernel], kept: set[UOp] = frozenset()) -> list[Kernel]:  # type: ignore[assignment]
  """Order kernels after the writers of their operands, and before an ASSIGN into a buffer that they read. Copies break
  cycles.

  If something is computed twice to save memory (AFTER), the order is the one that holds least. kept: buffers that
  outlive the schedule.
  """
  writer: dict[UOp, Kernel] = {w: k for k in kernels for w in k.writes}
  after: dict[int, set[int]] = {id(k): {id(writer[r]) for r in k.reads + k.late if r in writer and writer[r] is not k}
                                for k in kernels}
  for k in kernels:  # a write to the result of an earlier one
    for w in k.writes:
      if w.op is Ops.AFTER and w.src[0] in writer: after[id(k)].add(id(writer[w.src[0]]))
  before: dict[int, set[int]] = {i: set() for i in after}     # the same edges, reversed
  for i, needed in after.items():
    for n in needed: before[n].add(i)
  snapshots: list[Kernel] = []
  readers: dict[UOp, list[Kernel]] = {}
  for k in kernels:
    for r in k.reads: readers.setdefault(r, []).append(k)
  for assign in kernels:
    if assign.node.op is not Ops.ASSIGN: continue
    version = assign.writes[0].src[0]
    early = [k for k in readers.get(version, []) if k is not assign]
    late = _dependents(assign, before) if early else set()
    conflicts = [k for k in early if id(k) in late]
    if _reads_elsewhere(assign, version): conflicts.append(assign)
    if conflicts:
      snapshots.append(_snapshot(version, conflicts, after, len(snapshots)))
      after[id(snapshots[-1])].update(id(writer[w]) for w in (version,) if w in writer)
    for k in early:
      if k in conflicts: continue
      after[id(assign)].add(id(k))
      before[id(k)].add(id(assign))
    if conflicts: after[id(assign)].add(id(snapshots[-1]))
  everything = snapshots + kernels
  if any(k.late for k in kernels): return thrifty_order(everything, after, kept)
  return _topological(everything, after, {id(k): k for k in everything})

def _dependents(kernel: Kernel, before: dict[int, set[int]]) -> set[int]:
  """Return kernels that must come after this one, directly or not. Most ASSIGNs have few: they are the end of a
  step."""
  found: set[int] = set()
  stack = [id(kernel)]
  while stack:
    new = before[stack.pop()] - found
    found |= new
    stack.extend(new)
  return found

def _reads_elsewhere(kernel: Kernel, buffer: UOp) -> bool:
  """Does an ASSIGN read its target at another index than it writes?"""
  if buffer not in kernel.reads: return False
  slot = kernel.versions.index(buffer)
  store = kernel.sink.src[0]
  return any(u.op is Ops.INDEX and u is not store.src[0] and u.src[0].op is Ops.PARAM and u.src[0].arg[0] == slot
             for u in kernel.sink.toposort())

def _snapshot(version: UOp, users: list[Kernel], after: dict[int, set[int]], number: int) -> Kernel:
  """Return a kernel that copies a buffer before it is overwritten, and change its users to read the copy."""
  buffer = storage_of(version)
  copy = UOp(Ops.BUFFER, buffer.dtype, (), (("snapshot", number),) + buffer.arg[1:])
  size = buffer.arg[2]
  r = UOp.range(size, 0, AxisType.LOOP)
  source, target = UOp.param(1, buffer.dtype, size), UOp.param(0, buffer.dtype, size)
  sink = UOp.sink(target.index(r).store(source.index(r).load(), r), arg=KernelInfo())
  kernel = Kernel(copy, sink, [copy, buffer], [version], [copy], [copy, version])
  for k in users:
    k.reads = [copy if r is version else r for r in k.reads]
    # Reads and writes shared a slot. Reads get a slot of their own.
    if k.node.op is Ops.ASSIGN and k.versions[0] is version:
      old, new = UOp.param(0, buffer.dtype, size), UOp.param(len(k.buffers), buffer.dtype, size)
      loads = {u: u.replace(src=(u.src[0].substitute({old: new}),) + u.src[1:]) for u in k.sink.toposort()
               if u.op is Ops.LOAD}
      store = k.sink.src[0]
      k.sink = UOp.sink(store.replace(src=(store.src[0],) + tuple(s.substitute(loads) for s in store.src[1:])),
                        arg=k.sink.arg)
      k.buffers.append(copy)
      k.versions.append(copy)
    else: k.buffers = [copy if v is version else b for b, v in zip(k.buffers, k.versions)]
    after[id(k)].add(id(kernel))
  after[id(kernel)] = set()
  return kernel

def _topological(kernels: list[Kernel], after: dict[int, set[int]], by_id: dict[int, Kernel]) -> list[Kernel]:
  """Order kernels by `after`; otherwise keep their order."""
  done: set[int] = set()
  opened: set[int] = set()
  out: list[Kernel] = []
  for first in kernels:
    stack = [first]
    while stack:
      k = stack[-1]
      if id(k) in done:
        stack.pop()
        continue
      missing = [by_id[i] for i in after[id(k)] if i not in done]
      if missing:
        assert id(k) not in opened, "kernels depend on each other in a circle"
        opened.add(id(k))
        stack.extend(missing)
        continue
      stack.pop()
      done.add(id(k))
      out.append(k)
  return out
