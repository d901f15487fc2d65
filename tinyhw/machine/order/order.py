"""Order instructions inside blocks so that fewer values are live at once.

A block whose register pressure is within the limits keeps its order. Selection interleaved independent chains on
purpose, to hide latency. Other blocks are scheduled from their end upwards, in stretches between barriers and calls.

While there is room, the next instruction is the last one of the source order. Near the limit it is one that defines a
live value, so that started computations are finished before new ones. Preferred are instructions that lower the
pressure most, then those of the value that became live last. The result is accepted only if it exceeds the limits by
less than the source order does.

These stay in order:

- reads after writes of registers;
- stores, and loads against stores, unless Target.region separates them;
- the readers of flags and their writer, as no other writer may come between;
- the jumps at the end.

Cost: near linear in the instructions, for crowded blocks only. A step considers at most WINDOW candidates.
"""
from __future__ import annotations
from bisect import insort

from tinyhw.machine.ir.constraints import pressure_of
from tinyhw.machine.ir.inst import Effect, Function
from tinyhw.machine.ir.liveness import Line, Liveness, first_jump
from tinyhw.machine.ir.registers import FIELD, TargetRegisters, registers_of
from tinyhw.machine.ir.target import Target

WINDOW = 64
MARGIN = 4  # units below the limit that count as near it

class DependenceGraph:
  """Dependences among some lines. needs[i]: lines that must precede line i. users[i]: the number of lines that need
  i."""
  def __init__(self, lines: list[Line], target: Target):
    self.needs: list[list[int]] = [[] for _ in lines]
    self.users = [0] * len(lines)
    defined: dict[int, int] = {}
    for i, line in enumerate(lines):
      for v in line.reads:
        if v in defined: self._add(i, defined[v])
      for v in line.writes: defined[v] = i
    self._memory(lines, target)
    self._flags(lines)
    jumps = [i for i, line in enumerate(lines) if line.inst.row.effects & (Effect.JUMP | Effect.END)]
    for i in range(jumps[0] if jumps else 0): self._add(jumps[0], i)
    for earlier, later in zip(jumps, jumps[1:]): self._add(later, earlier)

  def _add(self, later: int, earlier: int) -> None:
    self.needs[later].append(earlier)
    self.users[earlier] += 1

  def _memory(self, lines: list[Line], target: Target) -> None:
    """Add the dependences of memory. A store waits for all accesses of its region. A store of unknown region (None)
    waits for all accesses, and all later ones wait for it."""
    region = target.region
    stored: dict[object, int] = {}        # region -> its last store
    loaded: dict[object, list[int]] = {}  # region -> loads since then
    for i, line in enumerate(lines):
      effects = line.inst.row.effects
      if not effects & (Effect.LOAD | Effect.STORE): continue
      place = region(line.inst) if region is not None else None
      if effects & Effect.STORE:
        for other in ({*stored, *loaded} if place is None else (place, None)):
          if other in stored: self._add(i, stored[other])
          for load in loaded.get(other, ()): self._add(i, load)
        if place is None:
          stored.clear()
          loaded.clear()
        stored[place], loaded[place] = i, []
      else:
        for other in (stored if place is None else (place, None)):
          if other in stored: self._add(i, stored[other])
        loaded.setdefault(place, []).append(i)

  def _flags(self, lines: list[Line]) -> None:
    """Add the dependences of flags. A group is a writer and its readers. Earlier writers stay before it, and later
    writers after it."""
    writer, readers = -1, -1      # the current writer of the flags; the last reader of the current group
    pending: list[int] = []       # writers since the last group
    previous = -1                   # the last reader of the previous group
    for i, line in enumerate(lines):
      effects = line.inst.row.effects
      if effects & Effect.READ_FLAGS:
        if readers < 0:
          if writer >= 0:
            for other in pending:
              if other != writer: self._add(writer, other)
          pending = []
        before = readers if readers >= 0 else writer
        if before >= 0: self._add(i, before)
        readers = i
      if effects & Effect.WRITE_FLAGS:
        if readers >= 0: previous, readers = readers, -1
        if previous >= 0 and previous != i: self._add(i, previous)
        writer = i
        pending.append(i)

class Above(dict[int, int]):
  """Pressure -> units above the limits, computed at first use."""
  def __init__(self, file: TargetRegisters):
    super().__init__()
    self.file = file

  def __missing__(self, pressure: int) -> int:
    found = 0
    if self.file.over(pressure):
      for bank in self.file.banks: found += max(0, (pressure >> FIELD * bank.position & (1 << FIELD) - 1) - bank.limit)
    self[pressure] = found
    return found

class Scheduler:
  """Schedules one stretch of lines, given the values that are live after it."""
  def __init__(self, file: TargetRegisters, weight: list[int], target: Target):
    self.file, self.weight, self.target = file, weight, target
    self.units = [w >> (w.bit_length() - 1) // FIELD * FIELD for w in weight]  # units of a value, in whichever bank
    self._above = Above(file)

  def stretch(self, lines: list[Line], live: set[int]) -> list[Line]:
    """Return the best order found."""
    above = self.excess(lines, live)
    if not above: return lines
    order = self._schedule(lines, DependenceGraph(lines, self.target), set(live))
    return order if self.excess(order, live) < above else lines

  def excess(self, lines: list[Line], live: set[int]) -> int:
    """Units above the limits, summed over the lines.

    A stretch has few distinct pressures, so each is computed once and looked up.
    """
    weight, live, total, above = self.weight, set(live), 0, self._above
    shapes, shape_of = self.file.shapes, self.file.shape
    pressure = sum([weight[v] for v in live])
    for line in reversed(lines):
      written, inst = 0, line.inst
      for v in line.writes:
        written += weight[v]
        if v in live: live.remove(v)
        else: pressure += weight[v]
      total += above[pressure]
      pressure -= written
      ends = []
      for v in line.reads:
        if v not in live:
          live.add(v)
          ends.append(v)
          pressure += weight[v]
      shape = shapes.get(inst.row) or shape_of(inst.row)
      if shape.plain or not shape.rigid and len(inst.ties) == 1 and inst.ties[0].id in ends: total += above[pressure]
      else: total += above[pressure + pressure_of(shape, inst, ends, weight)[0]]
    return total

  def _schedule(self, lines: list[Line], graph: DependenceGraph, live: set[int]) -> list[Line]:
    """Schedule lines from the last one up: the latest ready line while there is room, else one that ends live
    values."""
    weight, users = self.weight, graph.users
    ready = [i for i, count in enumerate(users) if not count]
    near = sum(max(0, bank.limit - MARGIN) << FIELD * bank.position for bank in self.file.banks) | self.file.guard
    pressure = sum(weight[v] for v in live)
    since = {v: -1 for v in live}  # the time when a value became live
    order: list[Line] = []
    while ready:
      at = len(ready) - 1
      guards = (near - pressure) & self.file.guard ^ self.file.guard
      if guards: at = self._closing(lines, ready, live, since)
      line = lines[ready[at]]
      for earlier in graph.needs[ready.pop(at)]:
        users[earlier] -= 1
        if not users[earlier]: insort(ready, earlier)
      for v in line.writes:
        if v in live:
          live.remove(v)
          pressure -= weight[v]
      for v in line.reads:
        if v not in live:
          live.add(v)
          since[v] = len(order)
          pressure += weight[v]
      order.append(line)
    order.reverse()
    return order

  def _closing(self, lines: list[Line], ready: list[int], live: set[int], since: dict[int, int]) -> int:
    """Position in `ready` of the line that defines live values at the least cost."""
    units, best, chosen = self.units, (0, 0, 0, 0), -1
    for at in range(len(ready) - 1, max(-1, len(ready) - 1 - WINDOW), -1):
      line = lines[ready[at]]
      grown, latest, root = 0, 0, 1
      for v in line.reads:
        if v not in live: grown += units[v]
      for v in line.writes:
        if v in live:
          grown, latest, root = grown - units[v], max(latest, since[v]), 0
      key = (root, grown if grown > 0 else 0, -latest, grown)
      if chosen < 0 or key < best: best, chosen = key, at
    return chosen

def order(function: Function, target: Target) -> Function:
  """Reorder the blocks whose register pressure is above the limit, in SSA form. Sets function.liveness."""
  file = registers_of(target)
  liveness = function.liveness = function.liveness or Liveness(function, file)
  if not any(liveness.over): return function
  scheduler = Scheduler(file, liveness.weight, target)
  for b, block in enumerate(liveness.flow.blocks):
    if not liveness.over[b]: continue
    lines, first = liveness.code[b], first_jump(block)
    ordered = _block(scheduler, lines[:first], lines[first:], set(liveness.leaves[b]))
    if any(new is not old for new, old in zip(ordered, lines)):
      block.insts = [line.inst for line in ordered]
      liveness.reorder(b, ordered)
  return function

def _block(scheduler: Scheduler, lines: list[Line], jumps: list[Line], live: set[int]) -> list[Line]:
  """Schedule the stretches of a block from the last one up.

  A jump that reads flags belongs to the last stretch, as its fixed end.
  """
  done: list[list[Line]] = []
  stretch = jumps[::-1]
  for line in reversed(lines):
    if line.inst.row.effects & (Effect.BARRIER | Effect.CALL):
      done += [_settle(scheduler, stretch[::-1], live), [line]]
      live = _above_line(line, live)
      stretch = []
    else: stretch.append(line)
  done.append(_settle(scheduler, stretch[::-1], live))
  return [line for part in reversed(done) for line in part]

def _settle(scheduler: Scheduler, lines: list[Line], live: set[int]) -> list[Line]:
  """Schedule a stretch and update `live` to the values that are live before it."""
  order = scheduler.stretch(lines, live)
  for line in reversed(order):
    above = _above_line(line, live)
    live.clear()
    live.update(above)
  return order

def _above_line(line: Line, live: set[int]) -> set[int]:
  return live - set(line.writes) | set(line.reads)
