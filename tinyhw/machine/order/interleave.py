"""Order instructions for a processor that issues them in order: loads early, independent chains interleaved.

This is a list scheduler. It works block by block, in stretches between barriers and calls. Of the instructions whose
operands would be available, the one on the longest path to the stretch's end is next, by `Target.latency`. Among
equals, the first in the source order is next. So copies of one expression are interleaved, instruction by instruction.

A result is accepted if it needs no more registers than the most crowded block of the function, or than cost no
occupancy (the first of `Target.steps`). Otherwise instructions are moved by smaller distances, and at last not at all.
A block that is so crowded that it may spill is not changed.

order.DependenceGraph defines the order that must be kept. Needs: SSA form. Cost: near linear in the instructions.
"""
from __future__ import annotations
from bisect import insort
from collections.abc import Iterator

from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Effect, Function, MInst
from tinyhw.machine.ir.liveness import Line, Liveness
from tinyhw.machine.ir.registers import FIELD, TargetRegisters, registers_of
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.order import DependenceGraph

# the largest distance of an instruction from the first waiting one that it may overtake, tried in turn
WINDOWS = (1 << 30, 128, 64, 32, 16, 8)
ENDS = Effect.BARRIER | Effect.CALL
UNKNOWN = PipeCost(1)

def interleave(function: Function, target: Target) -> Function:
  """Move loads forward, and alternate independent chains, within each block. Sets function.liveness."""
  file = registers_of(target)
  liveness = function.liveness = function.liveness or Liveness(function, file)
  roomy = room(peak(liveness, file), file, target)
  for b, block in enumerate(liveness.flow.blocks):
    lines = liveness.code[b]
    if liveness.over[b] or len(lines) < 3: continue
    ordered = reordered(lines, liveness.leaves[b], liveness.weight, roomy, file.guard, target)
    if ordered is None: continue
    block.insts = [line.inst for line in ordered]
    liveness.reorder(b, ordered)
  return function

def reordered(lines: list[Line], leaves: set[int], weight: list[int], roomy: int, guard: int,
              target: Target) -> list[Line] | None:
  """The best order of a block that registers allow, or None to keep its order. roomy: the result of `room`. guard: the
  guard bits of all banks."""
  stretches: list[list[Line]] = [[]]
  for line in lines:
    if line.inst.row.effects & ENDS: stretches += [[line], []]
    else: stretches[-1].append(line)
  prepared = [Stretch(stretch, target) for stretch in stretches if stretch]
  longest = max(len(stretch.lines) for stretch in prepared)
  for window in WINDOWS:
    if longest * 2 < window * 3 < WINDOWS[0]: continue   # nearly the same as the previous window
    found = [line for stretch in prepared for line in stretch.schedule(window)]
    if found == lines: return None
    if fits(found, leaves, weight, roomy, guard): return found
  return None

def room(taken: list[int], file: TargetRegisters, target: Target) -> int:
  """Registers that values may have at no cost: the larger number of those that the function uses and those of its first
  step, for each bank. A bank without steps costs nothing up to its limit. Each bank's field has its guard bit."""
  steps = [target.steps.get(bank.bank.name, (bank.limit,))[0] for bank in file.banks]
  return file.guard + sum(max(a, b) << FIELD * bank.position for a, b, bank in zip(taken, steps, file.banks))

def taken(lines: list[Line], leaves: set[int], weight: list[int]) -> Iterator[int]:
  """Yield the weight of the live values before each line, from the last line to the first."""
  live, now = set(leaves), sum([weight[v] for v in leaves])
  for line in reversed(lines):
    for v in line.writes:
      if v not in live: continue
      live.remove(v)
      now -= weight[v]
    for v in line.reads:
      if v in live: continue
      live.add(v)
      now += weight[v]
    yield now

def fits(lines: list[Line], leaves: set[int], weight: list[int], roomy: int, guard: int) -> bool:
  """Whether values never need more registers than `roomy`."""
  for now in taken(lines, leaves, weight):
    if roomy - now & guard != guard: return False
  return True

def peak(liveness: Liveness, file: TargetRegisters) -> list[int]:
  """The most registers of each bank that are live at once anywhere in the function, without blocks that will spill."""
  weight, times = liveness.weight, set[int]()
  for lines, leaves, over in zip(liveness.code, liveness.leaves, liveness.over):
    if not over: times.update(taken(lines, leaves, weight))
  return [max([now >> FIELD * bank.position & (1 << FIELD) - 1 for now in times], default=0) for bank in file.banks]

class Stretch:
  """Consecutive lines of a block that may be reordered. latency, slots: of each line.

  height: cycles from a line's start to the end of the last line that waits for it.
  """
  def __init__(self, lines: list[Line], target: Target):
    self.lines = lines
    needs = DependenceGraph(lines, target).needs
    self.needed = [len(n) for n in needs]
    self.users: list[list[int]] = [[] for _ in lines]
    for i, earlier in enumerate(needs):
      for k in earlier: self.users[k].append(i)
    costs = [cost_of(line.inst, target) for line in lines]
    self.latency = [cost.latency for cost in costs]
    self.slots = [cost.ports.count("|") + 1 for cost in costs]
    self.height = [0] * len(lines)
    for i in range(len(lines) - 1, -1, -1):
      self.height[i] = self.latency[i] + max([self.height[user] for user in self.users[i]], default=0)
    self.known: dict[int, list[Line]] = {}

  def schedule(self, window: int) -> list[Line]:
    """The lines in their new order. Windows that are longer than the stretch are equal."""
    window = min(window, len(self.lines))
    found = self.known.get(window)
    if found is None: found = self.known[window] = self.scheduled(window)
    return found

  def scheduled(self, window: int) -> list[Line]:
    """Issue the lines for a new window, and return them in that order.

    - first: the first line in the source order that has not been issued.
    - when: the cycle from which on a line's operands are available.
    - waiting: lines whose operands have all been issued, by that cycle.
    - ready: waiting lines whose cycle has come.
    - far: lines that are beyond the window from `first`.

    A line and its sort key are one number. The lists are sorted with the next line last, so numbers are stored negated.
    """
    lines, height, latency, count = self.lines, self.height, self.latency, len(self.lines)
    lacking, when, done = list(self.needed), [0] * count, [False] * count
    ready: list[int] = []      # height * count - line: may be next
    waiting = sorted([-i for i, n in enumerate(lacking) if not n])  # -(when * count + line)
    far: list[int] = []        # -line, beyond the window
    order: list[Line] = []
    now = first = 0
    while len(order) < count:
      while far and -far[-1] < first + window:
        i = -far.pop()
        insort(waiting, -(when[i] * count + i))
      while waiting and -waiting[-1] < (now + 1) * count:
        i = -waiting.pop() % count
        if i < first + window: insort(ready, height[i] * count - i)
        else: insort(far, -i)
      if not ready:
        now = -waiting[-1] // count
        continue
      i = -ready.pop() % count
      order.append(lines[i])
      done[i] = True
      while first < count and done[first]: first += 1
      there = now + latency[i]
      for user in self.users[i]:
        if when[user] < there: when[user] = there
        lacking[user] -= 1
        if not lacking[user]: insort(waiting, -(when[user] * count + user))
      now += self.slots[i]
    return order

def cost_of(inst: MInst, target: Target) -> PipeCost:
  """The cost of an instruction, if it is known."""
  return target.latency.get(inst.row.name) or target.latency.get(inst.row.pipe) or UNKNOWN
