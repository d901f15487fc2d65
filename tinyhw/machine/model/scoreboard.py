"""Lower bound of a loop's cycles: by the throughput of execution ports, by issue width and by the dependence chain
across iterations.

Input: the instructions of one iteration and a table pipe -> `PipeCost`. Registers are physical, or virtual with the
values that the back-edge passes. Output: `Bound`, in cycles an iteration. It is a bound, not a simulation. Caches
always hit, branches are always predicted, and there are no stalls other than those of the table.

Ports. Each micro-operation may use one of a set of ports. The least time of any assignment is the maximum over sets S
of ports of (micro-operations that can only use ports of S) / |S|. This is Hall's theorem for fractional assignments. It
is enough to test unions of the port sets that occur.

Latency. The time of each register is followed through several iterations with unlimited ports. The increase per
iteration in the end is the mean weight of the heaviest cycle. Cost: O(instructions x iterations + 2^(distinct port
sets)).
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Mapping, Sequence

from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Effect, MInst, Reg
from tinyhw.named_tuple import NamedTuple

class Bound(NamedTuple):
  """The least cycles of an iteration, by reason.

  `unknown` lists pipes without a row in the table, which cost nothing.
  """
  ports: float
  issue: float
  latency: float
  memory: float
  micro_operations: int
  busiest: str
  unknown: tuple[str, ...] = ()

  @property
  def cycles(self) -> float:
    return max(self.ports, self.issue, self.latency)

  @property
  def reason(self) -> str:
    """The limit in words: "latency", "issue", "memory" or "ports 01"."""
    if self.latency >= self.cycles: return "latency"
    if self.memory >= self.cycles: return "memory"
    return f"ports {self.busiest}" if self.ports >= self.cycles else "issue"

def port_bound(groups: Mapping[str, int]) -> tuple[float, str]:
  """Cycles that micro-operations need, and the set of ports that is the bottleneck.

  groups: set of ports -> micro-operations that can use any of them.
  """
  unions = {frozenset(ports) for ports in groups}
  for ports in list(groups):
    # more distinct sets than any known chip has; the bound stays valid, but may be lower than possible
    if len(unions) > 4096: break
    unions |= {union | frozenset(ports) for union in unions}
  best, busiest = 0.0, ""
  for union in unions:
    time = sum(count for ports, count in groups.items() if union.issuperset(ports)) / len(union)
    name = "".join(sorted(union))
    if (time, -len(union), name) > (best, -len(busiest), busiest): best, busiest = time, name
  return best, busiest

ADDRESS = ("base", "index")  # names, in all tables, of a row's operands that form an address
# followed by latency_bound; a heaviest cycle through n registers shows after n iterations, and real ones have one or
# two
ITERATIONS = 24

def latency_bound(insts: Sequence[MInst], table: Mapping[str, PipeCost],
                  carried: Sequence[tuple[Reg, Reg]] = ()) -> float:
  """Cycles by which the slowest chain through registers grows in an iteration. carried: (parameter, value that the
  back-edge passes) in SSA form.

  Only the registers of an address delay the load. The other operands meet the loaded value later.
  """
  flags = object()
  # registers of the address, their latency until the write; other operands, their latency until the write; writes
  lines: list[tuple[list[object], int, list[object], int, list[object]]] = []
  for inst in insts:
    first: list[object] = []
    reads: list[object] = []
    writes = [k for r in inst.writes() for k in _keys(r)]
    operands = inst.row.operands
    for i in inst.row.only_reads if inst.ties else inst.row.reads:
      if inst.operands[i] is not None: (first if operands[i].name in ADDRESS else reads).extend(_keys(inst.operands[i]))
    reads += [k for r in inst.ties for k in _keys(r)] + [k for values in inst.arguments for r in values
                                                         for k in _keys(r)]
    if inst.row.effects & Effect.READ_FLAGS: reads.append(flags)
    if inst.row.effects & Effect.WRITE_FLAGS: writes.append(flags)
    costs = costs_of(inst, table)
    own = costs[0].latency if costs else 0
    lines.append((first, sum([cost.latency for cost in costs]), reads, own, writes))
  pairs = list(zip([k for parameter, _ in carried for k in _keys(parameter)],
                   [k for _, value in carried for k in _keys(value)]))
  times: dict[object, int] = {}
  tops: list[int] = []
  for _ in range(ITERATIONS):
    for first, whole, reads, own, writes in lines:
      done = max([times.get(r, 0) + whole for r in first] + [times.get(r, 0) + own for r in reads], default=whole)
      for w in writes: times[w] = done
    times.update([(parameter, times.get(value, 0)) for parameter, value in pairs])
    tops.append(max(times.values(), default=0))
  half = ITERATIONS // 2
  return (tops[-1] - tops[half - 1]) / (ITERATIONS - half)

def bound(insts: Sequence[MInst], table: Mapping[str, PipeCost], issue_width: int,
          carried: Sequence[tuple[Reg, Reg]] = ()) -> Bound:
  """The bounds of a loop whose body is `insts`."""
  groups: Counter[str] = Counter()
  memory: Counter[str] = Counter()
  unknown: dict[str, None] = {}
  slots = 0
  for inst in insts:
    costs = costs_of(inst, table)
    if inst.row.pipe not in table: unknown[inst.row.pipe] = None
    slots += costs[0].slots if costs else 1
    for cost in costs:
      parts = [part for part in cost.ports.split("|") if part]
      groups.update(parts)
      if cost.memory: memory.update(parts)
  ports, busiest = port_bound(groups)
  return Bound(ports, slots / issue_width, latency_bound(insts, table, carried), port_bound(memory)[0], slots, busiest,
               unknown=tuple(unknown))

def costs_of(inst: MInst, table: Mapping[str, PipeCost]) -> list[PipeCost]:
  """The cost of the row's pipe, then those of "load" and "store" if a row of another pipe has a memory operand. Pipes
  that are not in the table are left out.

  A table may have several rows for a pipe: "shuffle/512" for the widest register operand, "vec_mov/memory" with a
  memory operand.
  """
  row = inst.row
  memory = row.effects & (Effect.LOAD | Effect.STORE)
  width = f"/{max([o.cls.bits for o in row.operands if o.cls is not None], default=0)}"
  cost = table.get(f"{row.pipe}/memory{width}") or table.get(f"{row.pipe}/memory") if memory else None
  cost = cost or table.get(row.pipe + width) or table.get(row.pipe)
  costs = [] if cost is None else [cost]
  if cost is not None and cost.memory: return costs
  for effect, pipe in ((Effect.LOAD, "load"), (Effect.STORE, "store")):
    if row.effects & effect:
      found = table.get(pipe + width) or table.get(pipe)
      if found is not None: costs.append(found)
  return costs

def _keys(reg: Reg) -> list[object]:
  """The keys that a reader waits for: a virtual register itself, or the physical units. Views of one register have the
  same keys."""
  return [reg] if reg.index is None else [(reg.cls.bank.name, reg.index + unit) for unit in range(reg.cls.units)]
