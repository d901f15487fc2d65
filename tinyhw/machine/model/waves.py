"""Lower bound of a loop's cycles on a GPU's compute unit: by the shared resources that its waves take, and by the waits
of a workgroup.

Input: a laid out function, its loops, the number of waves (occupancy.py), and a `Model`, in which an ISA gives the
costs of its instructions. Output: `Cost` of a loop, in cycles of one unit for one iteration by all waves that it holds.
The greatest of these bounds holds:

- each resource: the cycles of it that an instruction of one wave takes, times the number of waves that share it (those
  of a SIMD, or of the unit);
- a workgroup alone: one wave executes the code in order. It waits for operands and counters as the instructions
  require. At barriers it waits for all waves of its workgroup, which take their share of the resources since the last
  barrier. Several workgroups hide each other's waits, one does not.

It is a bound, not a simulation. Waves delay each other in no other way, instructions are always in the cache, and every
branch of a condition is executed. A few iterations of an inner loop are followed. The rest take as long as the last of
them. Cost: O(instructions x depth).
"""
from __future__ import annotations
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from tinyhw.data_class import dataclass, field
from tinyhw.machine.ir.inst import Effect, Function, MInst
from tinyhw.machine.ir.moves import units_of
from tinyhw.machine.model.listing import Loop
from tinyhw.machine.model.occupancy import Residency, ComputeUnit

Cycles = defaultdict[str, float]  # by resource

FOLLOWED = 3  # iterations of an inner loop; the state of pipes repeats from the second on

@dataclass(frozen=True)
class Model:
  """An ISA's data about the instructions of one card.

  - takes: resource -> cycles of it that one wave's instruction takes.
  - scopes: resource -> "simd" or "unit", whose waves share it.
  - names: of resources, in words.
  - latency: cycles until the result is available.
  - issue: cycles until the wave's next instruction.
  - counters: those that it increments until it is done.
  - waits: counter -> its allowed rest, for an instruction that waits.
  - meets: it waits for the other waves of the workgroup.
  - early: cycles until a counter reports an event before the result. None: the counter reports the result.
  """
  unit: ComputeUnit
  takes: Callable[[MInst], Mapping[str, float]]
  scopes: Mapping[str, str]
  names: Mapping[str, str]
  latency: Callable[[MInst], float]
  issue: Callable[[MInst], float]
  counters: Callable[[MInst], Sequence[str]]
  waits: Callable[[MInst], Mapping[str, int]]
  meets: Callable[[MInst], bool]
  early: Callable[[MInst, str], float | None] = lambda inst, counter: None

@dataclass(frozen=True)
class Cost:
  """Cost of one iteration of a loop (or of a whole kernel), for all waves of a unit.

  - resources: cycles of each.
  - alone: cycles of a workgroup that has the unit for itself.
  - waves: of the unit.
  """
  resources: Mapping[str, float]
  alone: float
  waves: int

  @property
  def cycles(self) -> float: return max([self.alone, *self.resources.values()])

  def binding(self, near: float = 1.0) -> list[str]:
    """The resources, or "latency", that take as long as the loop. near: the least share of the loop's cycles."""
    bounds = [*self.resources.items(), ("latency", self.alone)]
    return [name for name, cycles in sorted(bounds, key=lambda bound: -bound[1]) if cycles >= near * self.cycles - 1e-9
            and cycles > 0]

@dataclass
class WaveTimeline:
  """One wave that executes the code, in a workgroup of equal waves."""
  model: Model
  group_waves: int
  now: float = 0.0
  ready: dict[tuple[str, int], float] = field(default_factory=dict)
  free: dict[str, float] = field(default_factory=dict)  # resource -> time at which this wave has finished with it
  # counter -> completion times of the instructions in flight, in order
  flights: dict[str, list[float]] = field(default_factory=dict)
  used: Cycles = field(default_factory=lambda: defaultdict(float))  # by this wave
  since: Cycles = field(default_factory=lambda: defaultdict(float)) # by this wave since the last barrier
  barrier: float = 0.0
  barriers: int = 0

  def step(self, inst: MInst) -> None:
    """Issue one instruction."""
    model = self.model
    read = [unit for r in inst.reads() for unit in units_of(r)]
    start = max([self.now, *[self.ready[unit] for unit in read if unit in self.ready]])
    for counter, left in model.waits(inst).items():
      flights = self.flights.get(counter, [])
      if len(flights) > left: start = max(start, flights[len(flights) - left - 1])
      if flights: self.flights[counter] = flights[len(flights) - left:] if left else []
    takes = model.takes(inst)
    for resource in takes: start = max(start, self.free.get(resource, 0.0))
    meets = model.meets(inst)
    if meets: start = max(start, self.barrier + self.group_time())
    for resource, cycles in takes.items():
      self.free[resource] = start + cycles
      self.used[resource] += cycles
      self.since[resource] += cycles
    done = start + model.latency(inst) + max([cycles for resource, cycles in takes.items()
                                              if model.scopes[resource] == "unit"], default=0.0)
    counters = model.counters(inst)
    for counter in counters:
      flights, early = self.flights.setdefault(counter, []), model.early(inst, counter)
      flights.append(max([done if early is None else start + early, *flights[-1:]]))
    if not counters or not inst.row.effects & Effect.STORE:
      for r in inst.writes(): self.ready.update(dict.fromkeys(units_of(r), done))
    self.now = start + model.issue(inst)
    if meets: self.barrier, self.since, self.barriers = start, defaultdict(float), self.barriers + 1

  def group_time(self) -> float:
    """Cycles of the busiest resource that all waves of the workgroup take since the last barrier."""
    return max([cycles * share(self.model, resource, self.group_waves) for resource, cycles in self.since.items()],
               default=0.0)

  def run(self, function: Function, first: int, last: int, loops: Sequence[Loop]) -> None:
    """Execute blocks first to last in layout order. loops: the outermost loops inside of them."""
    inner = {loop.first: loop for loop in loops}
    at = first
    while at <= last:
      loop = inner.get(at)
      if loop is None:
        for inst in function.blocks[at].insts: self.step(inst)
        at += 1
      else:
        self.repeat(function, loop, loop.times or 1)
        at = loop.last + 1

  def repeat(self, function: Function, loop: Loop, times: int) -> tuple[float, Cycles]:
    """Execute `times` iterations of a loop. Return the cycles and resources of the last one."""
    cycles, used, since, barriers = 0.0, self.used, self.since, 0
    for _ in range(min(times, FOLLOWED)):
      before, used, since, barriers = self.now, self.used.copy(), self.since.copy(), self.barriers
      self.run(function, loop.first, loop.last, loop.inner)
      cycles = self.now - before
    left = times - min(times, FOLLOWED)
    last: Cycles = defaultdict(float, {resource: total - used[resource] for resource, total in self.used.items()})
    self.now += left * cycles
    for resource, each in last.items(): self.used[resource] += left * each
    if barriers == self.barriers:
      for resource, total in list(self.since.items()): self.since[resource] += left * (total - since[resource])
    else: self.barrier += left * cycles
    return cycles, last

def share(model: Model, resource: str, waves: int) -> float:
  """The factor of a wave's cycles of a resource if `waves` waves are spread over the SIMDs of a unit."""
  return float(waves) if model.scopes[resource] == "unit" else float(-(-waves // model.unit.simds))

def cost_of(model: Model, held: Residency, alone: float, used: Mapping[str, float]) -> Cost:
  """The bounds of code for which a wave takes `alone` cycles and `used` of the resources."""
  group = max([alone, *[cycles * share(model, resource, held.group_waves) for resource, cycles in used.items()]])
  return Cost({resource: cycles * share(model, resource, held.waves) for resource, cycles in used.items() if cycles},
              group, held.waves)

def loop_cost(model: Model, function: Function, loop: Loop, held: Residency) -> Cost:
  """The cost of a loop's iteration in the steady state, including inner loops."""
  wave = WaveTimeline(model, held.group_waves)
  alone, used = wave.repeat(function, loop, FOLLOWED)
  return cost_of(model, held, alone, used)

def kernel_cost(model: Model, function: Function, loops: Sequence[Loop], held: Residency) -> Cost:
  """The cost of all of the code once, without rare blocks, which are after the rest."""
  wave = WaveTimeline(model, held.group_waves)
  wave.run(function, 0, sum(not block.rare for block in function.blocks) - 1,
           [loop for loop in loops if loop.parent is None])
  last = max([wave.now, *[flights[-1] for flights in wave.flights.values() if flights]])
  return cost_of(model, held, last, wave.used)
