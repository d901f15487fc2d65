"""Choice of the values that are in registers at the start of a block, for spill.py.

A loop whose pressure fits keeps everything. In other loops, a value in memory costs a reload for each use, and a store
if it is a parameter. Uses in deeper loops count tenfold. Values that can be rematerialized count half. The most
expensive ones stay. Room is left for the other live values at the loop's peak, and for one value that comes from
memory. Values that the loop does not use stay only if there is room at that peak too.
"""
from __future__ import annotations
from collections.abc import Collection, Iterable

from tinyhw.machine.allocate.distance import FAR, Distances
from tinyhw.machine.allocate.hints import Hints
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.registers import FIELD

class Residents:
  """Choices for the blocks of one function. bodies: the blocks of a loop, by its header. repeats: values that can be
  rematerialized."""
  def __init__(self, function: Function, liveness: Liveness, distances: Distances, repeats: Collection[int]):
    self.web = Hints(function, liveness).web
    self.liveness, self.distances, self.repeats = liveness, distances, repeats
    self.flow, self.file, self.weight = liveness.flow, liveness.file, liveness.weight
    self._peaks: dict[tuple[int, frozenset[int]], int] = {}
    self.bodies: dict[int, list[int]] = {}
    for b in range(len(self.flow.blocks)):
      for header in self.flow.loops_of(b): self.bodies.setdefault(header, []).append(b)

  def crowded(self, blocks: Iterable[int]) -> int:
    """Guard bits of the banks that are above their limit somewhere in these blocks."""
    found = 0
    for b in blocks: found |= self.liveness.over[b]
    return found

  def bank_in(self, v: int, guards: int) -> bool:
    """Whether v's bank is in these guard bits."""
    return bool(guards >> FIELD - 1 & 1 << self._bank(v) * FIELD)

  def too_many(self, b: int) -> set[int]:
    """Parameters of block b that must be in memory at its start."""
    params = [p for p in self.liveness.params[b] if p in self.liveness.starts[b]]
    if not params or b == 0: return set()
    if self.flow.loop[b] == b:
      used = [v for v in self.liveness.starts[b] if self.distances.entry[b][v] < FAR or v in params]
      return set(params) - set(self.dearest(b, used))
    entry, pressure, found = self.distances.entry[b], 0, set()
    for p in sorted(params, key=lambda p: (entry[p], p)):
      if self.file.over(pressure + self.weight[p]): found.add(p)
      else: pressure += self.weight[p]
    return found

  def order(self, b: int, values: set[int], exits: list[set[int]]) -> list[int]:
    """The values live into block b, in the order in which they get registers at its start. Values that should be in
    memory are left out.

    exits: for each visited predecessor, the values that it has in registers at its end.
    """
    entry = self.distances.entry[b]
    if self.flow.loop[b] == b:
      used = [v for v in values if entry[v] < FAR]
      params = [p for p in self.liveness.params[b] if p in self.liveness.starts[b]]
      wanted = [v for v in self.dearest(b, used + params) if v in values]
      return wanted + self._idle(b, [v for v in values if entry[v] >= FAR and all(v in e for e in exits)])
    usual = {v for v in values if all(v in e for e in exits)}
    some = [v for v in values if v not in usual and entry[v] < FAR and any(v in e for e in exits)]
    return sorted(usual, key=lambda v: (entry[v], v)) + sorted(some, key=lambda v: (entry[v], v))

  def dearest(self, header: int, used: list[int]) -> list[int]:
    """The values with which a loop starts, most expensive first, out of those that it uses."""
    entry, params, body = self.distances.entry[header], set(self.liveness.params[header]), self.bodies[header]
    crowded = self.crowded(body)
    cost = {v: 1.0 if v in params else 0.0 for v in used}
    for b in body:
      factor = 10 ** min(6, self.flow.depth[b] - self.flow.depth[header])
      for v, lines in self.distances.uses[b].items():
        if v in cost: cost[v] += factor * len(lines) * (0.5 if v in self.repeats else 1)
    pressure = self._room(header, used, reserve=False) if crowded else 0
    if self.file.over(pressure + sum(self.weight[v] for v in used)): pressure = self._room(header, used, reserve=True)
    kept = []
    for v in sorted(used, key=lambda v: (-cost[v], entry[v], v)):
      if self.bank_in(v, crowded) and self.file.over(pressure + self.weight[v]): continue
      kept.append(v)
      pressure += self.weight[v]
    return kept

  def _room(self, header: int, used: list[int], reserve: bool) -> int:
    """Pressure to reserve for all values other than those that start the loop, and those that continue them (their
    webs).

    reserve: also reserve room for one value that comes from memory, in each bank.
    """
    webs = {self.web[v] for v in used}
    idle = [v for v, distance in self.distances.entry[header].items() if distance >= FAR]
    peak = self._peak(header, {v for v, web in enumerate(self.web) if web in webs}.union(used, idle))
    room = 0
    for file in self.file.banks:
      units = peak >> FIELD * file.position & (1 << FIELD) - 1
      mine = [self.weight[v] >> FIELD * file.position for v in used if reserve and self._bank(v) == file.position]
      room += min(units + max(mine, default=0), file.limit * 3 // 4) << FIELD * file.position
    return room

  def _bank(self, v: int) -> int: return (self.weight[v].bit_length() - 1) // FIELD

  def _idle(self, header: int, idle: list[int]) -> list[int]:
    """The values that live through a loop unused and fit at its peak."""
    crowded = self.crowded(self.bodies[header])
    if not crowded: return sorted(idle)
    through = {v for v, distance in self.distances.entry[header].items() if distance >= FAR}
    pressure, fitting = self._peak(header, through), []
    for v in sorted(idle, key=lambda v: (self.distances.entry[header][v], v)):
      if self.bank_in(v, crowded) and self.file.over(pressure + self.weight[v]): continue
      fitting.append(v)
      pressure += self.weight[v]
    return fitting

  def _peak(self, header: int, without: set[int]) -> int:
    """The highest pressure in a loop, bank by bank and at most the limit, without some values.

    It is cached, because a third of the calls repeat an earlier one.
    """
    key = header, frozenset(without)
    if key in self._peaks: return self._peaks[key]
    weight, seen = self.weight, {0}
    for b in self.bodies[header]:
      live = self.liveness.leaves[b] - without
      pressure = sum([weight[v] for v in live])
      for line in reversed(self.liveness.code[b]):
        if line.dead: seen.add(pressure + sum([weight[v] for v in line.dead if v not in without]))
        for v in line.writes:
          if v in live:
            live.remove(v)
            pressure -= weight[v]
        for v in line.ends:
          if v not in without:
            live.add(v)
            pressure += weight[v]
        seen.add(pressure)
    peak, field = 0, (1 << FIELD) - 1
    for bank, file in enumerate(self.file.banks):
      peak += min(max([pressure >> FIELD * bank & field for pressure in seen]), file.limit) << FIELD * bank
    self._peaks[key] = peak
    return peak
