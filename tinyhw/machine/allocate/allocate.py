"""Assign physical registers to virtual ones, block by block in reverse postorder.

Needs: pressure at most the limit everywhere (spill.py). Then assignment cannot fail. A value that finds only scattered
or unsuitable registers moves its neighbors with a parallel copy (place.py).

A block's first visited predecessor decides where the block expects its parameters and live values. The other
predecessors bring them there with a parallel copy on the edge. That copy is empty if all wishes of hints.py were met.
So a value is in one register at a time, but may be in different ones at different times.

Operands are rewritten in place, and `parallel` pseudo instructions are inserted. Registers are sets of units as ints.
Cost: O(instructions x operands), 5 µs an instruction, more only if place.py has to act.
"""
from __future__ import annotations

from tinyhw.errors import AllocationError
from tinyhw.machine.allocate.edges import put_on_edge
from tinyhw.machine.allocate.hints import Hints
from tinyhw.machine.allocate.place import place
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.liveness import Edge, Line, Liveness, bits
from tinyhw.machine.ir.pseudo import PARALLEL
from tinyhw.machine.ir.registers import BankFile, registers_of
from tinyhw.machine.ir.target import Target

Pairs = list[tuple[Reg, Reg]]

class RegisterAllocator:
  """The state of the walk.

  - where: unit of each value that is live here.
  - free: units per bank.
  - entry: per block, the units in which it expects its values.
  """
  def __init__(self, function: Function, target: Target):
    self.function, self.target = function, target
    self.file = registers_of(target)
    self.liveness: Liveness = function.liveness or Liveness(function, self.file)
    self.flow = self.liveness.flow
    self.hints = Hints(function, self.liveness)
    self.views = self.hints.views
    self.where: dict[int, int] = {}
    self.all = [file.free for file in self.file.banks]
    self.free = list(self.all)
    self.entry: list[dict[int, int] | None] = [None] * len(self.flow.blocks)
    self.calm = [~units for units in self.hints.avoid]
    self.reaches = [iter(self._reaches(file)) for file in self.file.banks]
    self.reach = [next(reaches) for reaches in self.reaches]  # where values are put as long as they fit
    # loop header -> units of the parameters of it and of the loops around it
    self.kept: dict[int, list[int]] = {-1: [0] * len(self.all)}
    self.prefix: dict[int, list[MInst]] = {}
    self.out: list[MInst] = []
    self.hoisted: Edge | None = None  # the edge whose copies precede the jumps of the current block

  def _reaches(self, file: BankFile) -> list[int]:
    """The reaches of a bank, without those that are too small for the peak. To fill these first would put values into
    registers that a loop's parameters need."""
    if len(file.reaches) == 1: return file.reaches
    peak = self.liveness.peak(file.position)
    return [reach for reach in file.reaches[:-1] if reach.bit_count() >= peak] + file.reaches[-1:]

  def wish(self, v: int) -> int:
    """The unit that v's web wants, or -1."""
    return self.hints.unit[self.hints.web[v]]

  def pick(self, v: int, free: int) -> int:
    """A unit for v among the free ones of its bank, or -1. Preferred are the unit that its web wants, then a unit that
    no fixed operand or loop parameter needs, then any. The reach grows only if it must."""
    view, web = self.views[v], self.hints.web[v]
    unit, bank = self.hints.unit[web], view.bank
    if unit >= 0:
      mask = view.mask << unit
      if free & mask == mask: return unit
    while True:
      near = free & self.reach[bank]
      found = view.find(near & self.calm[bank])
      if found < 0: found = view.find(near)
      if found >= 0 or near == free: break
      self.reach[bank] = next(self.reaches[bank])
    if unit < 0 <= found: self.hints.unit[web] = found
    return found

  # one block

  def block(self, b: int) -> None:
    """Assign registers in a block for which the units of values at its start are known."""
    entry = self.entry[b]
    assert entry is not None, f"block {self.flow.blocks[b]} was reached before its predecessors"
    self.where = dict(entry)
    self._count_free()
    kept = self.kept[self.flow.loop[b]]
    self.calm = [~(avoid | units) for avoid, units in zip(self.hints.avoid, kept)]
    self.out = self.prefix.pop(b, [])
    self._assign(self.liveness.code[b])
    self._leave(b)

  def _assign(self, lines: list[Line]) -> None:
    """Assign registers to the results of instructions in order.

    Most rows only need registers of a class. They are done here, in a loop without calls. `_hard` does the others, and
    wide values that find only scattered registers.
    """
    out, free, where, views, shapes, everything = (self.out, self.free, self.where, self.views, self.file.shapes,
                                                   self.all)
    web, wishes = self.hints.web, self.hints.unit
    for line in lines:
      inst = line.inst
      shape = shapes[inst.row]
      if not shape.plain and not self._easy(line):
        self._hard(line)
        free = self.free
        continue
      operands, saved = inst.operands, list(free)
      for v in line.ends:
        view = views[v]
        free[view.bank] |= view.mask << where[v] & everything[view.bank]
      written = []
      for k, (i, regs) in enumerate(shape.both):
        unit = where[inst.ties[k].id]
        written.append((operands[i].id, unit))
        view = views[operands[i].id]
        free[view.bank] &= ~(view.mask << unit)
        operands[i] = regs[unit]
      for i, regs in shape.writes:
        r = operands[i]
        if r is None or r.index is not None: continue
        v = r.id
        view = views[v]
        unit = wishes[web[v]]
        if unit < 0 or free[view.bank] >> unit & view.mask != view.mask:
          unit = self.pick(v, free[view.bank])
          if unit < 0: break
        free[view.bank] &= ~(view.mask << unit)
        written.append((v, unit))
      else:
        for i, regs in shape.reads:
          r = operands[i]
          if r is not None and r.index is None: operands[i] = regs[where[r.id]]
        for v in line.ends: del where[v]
        k = len(shape.both)
        for i, regs in shape.writes:
          r = operands[i]
          if r is None or r.index is not None: continue
          operands[i] = regs[written[k][1]]
          k += 1
        for v, unit in written: where[v] = unit
        if inst.ties: inst.ties = ()
        out.append(inst)
        if line.dead: self._drop(line.dead)
        continue
      self.free = free = saved  # a wide value does not fit
      self._hard(line)
      free = self.free

  def _easy(self, line: Line) -> bool:
    """Whether every tie of the row is with a value that ends here, and there are no other constraints."""
    shape = self.file.shapes[line.inst.row]
    ties = line.inst.ties
    if shape.rigid or len(shape.ties) != len(ties) or len(shape.writes): return False
    if len(ties) == 1: return ties[0].id in line.ends
    return len({t.id for t in ties}) == len(ties) and all(t.index is None and t.id in line.ends for t in ties)

  def _count_free(self) -> None:
    views, free = self.views, list(self.all)
    for v, unit in self.where.items():
      view = views[v]
      free[view.bank] &= ~(view.mask << unit)
    self.free = free

  def _drop(self, values: list[int]) -> None:
    for v in values:
      view = self.views[v]
      self.free[view.bank] |= view.mask << self.where.pop(v) & self.all[view.bank]

  def _hard(self, line: Line) -> None:
    """Assign registers for an instruction that needs a copy or needs other values to move."""
    inst = line.inst
    shape = self.file.shapes[inst.row]
    pairs, written = place(self, line, shape)
    if pairs: self.out.append(self.parallel(pairs, self.free))
    for i, regs in shape.both + shape.writes:
      if i in written:
        self.where[inst.operands[i].id] = written[i]
        inst.operands[i] = regs[written[i]]
    for v in line.ends: del self.where[v]
    for v in line.dead: del self.where[v]
    inst.ties = ()
    self._count_free()
    self.out.append(inst)

  def parallel(self, pairs: Pairs, free: list[int]) -> MInst:
    """Make an instruction for copies that happen at once.

    `free` are the units that are free before. Those that no copy writes may be used to break cycles.
    """
    free, scratch = list(free), []
    for dst, _ in pairs:
      view = self.file.views[dst.cls]
      free[view.bank] &= ~(view.mask << self.file.banks[view.bank].unit_of[dst.index or 0])
    for bank in sorted({self.file.views[dst.cls].bank for dst, _ in pairs}):
      cls = self.file.unit_class[bank]
      if free[bank] and cls is not None: scratch.append(self.file.views[cls].regs[free[bank].bit_length() - 1])
    return MInst(PARALLEL, [r for pair in pairs for r in pair], arguments=(scratch,))

  # ***** edges *****

  def _leave(self, b: int) -> None:
    """Move all values to the units where the successors expect them."""
    block, edges = self.flow.blocks[b], self.flow.out[b]
    block.insts = self.out
    self.hoisted = None
    for edge in edges:
      if self.entry[edge.target] is None: self.entry[edge.target] = self._expect(edge)
    for edge in edges:
      edge.jump.arguments = ()
      pairs = self._pairs(edge)
      if pairs: put_on_edge(self, edge, pairs)

  def _pairs(self, edge: Edge) -> Pairs:
    entry, where, views = self.entry[edge.target], self.where, self.views
    assert entry is not None
    passed = dict(zip(self.liveness.params[edge.target], edge.arguments))
    pairs = []
    for v, unit in entry.items():
      argument = passed.get(v)
      if argument is None: at = where[v]
      elif argument.index is None: at = where[argument.id]
      else:
        pairs.append((views[v].regs[unit], argument))
        continue
      if at != unit: pairs.append((views[v].regs[unit], views[v].regs[at]))
    return pairs

  def _expect(self, edge: Edge) -> dict[int, int]:
    """Choose the units of the values at the target of the first edge into it. They are the current ones if that is
    possible."""
    s, where, views = edge.target, self.where, self.views
    live_in, starts = self.liveness.live_in[s], self.liveness.starts[s]
    entry: dict[int, int] = {}
    taken = [0] * len(self.all)
    for v in bits(live_in):
      unit = entry[v] = where[v]
      taken[views[v].bank] |= views[v].mask << unit
    rest = []
    deeper = self.flow.depth[s] > self.flow.depth[edge.source]
    for p, a in zip(self.liveness.params[s], edge.arguments):
      if p not in starts: continue
      if a.index is None and not live_in >> a.id & 1 and views[a.id].mask == views[p].mask:
        unit, view = where[a.id], views[p]
        mask = view.mask << unit
        if (not mask & taken[view.bank] and mask & self.all[view.bank] == mask
            and not (deeper and mask & self.hints.avoid[view.bank])):
          entry[p] = unit
          taken[view.bank] |= mask
          if self.wish(p) < 0: self.hints.unit[self.hints.web[p]] = unit
          continue
      rest.append(p)
    rest.sort(key=lambda p: -views[p].weight)
    for p in rest:
      view = views[p]
      unit = self.pick(p, self.all[view.bank] & ~taken[view.bank])
      if unit < 0: return self._keep(s, self._pack([*entry, *rest]))
      entry[p] = unit
      taken[view.bank] |= view.mask << unit
    return self._keep(s, entry)

  def _pack(self, values: list[int]) -> dict[int, int]:
    """Pack all values at the start of a block again, widest first, because the free registers are scattered."""
    views, room, entry = self.views, list(self.all), {}
    for v in sorted(set(values), key=lambda v: (-views[v].cls.align, -views[v].cls.units)):
      view = views[v]
      unit = view.find_first(room[view.bank])
      if unit < 0:
        raise AllocationError(f"{self.function.name}: too many values at the start of a block; spill must run before "
                              f"allocate")
      entry[v] = unit
      room[view.bank] &= ~(view.mask << unit)
    return entry

  def _keep(self, s: int, entry: dict[int, int]) -> dict[int, int]:
    """Record the registers of a loop's parameters. Other values avoid them if they can."""
    if self.flow.loop[s] == s:
      kept = list(self.kept[self.flow.parent[s]])
      for p in self.liveness.params[s]:
        if p in entry: kept[self.views[p].bank] |= self.views[p].mask << entry[p]
      self.kept[s] = kept
    return entry

  def start(self) -> None:
    """Choose the units of the entry's parameters."""
    block, entry = self.flow.blocks[0], {}
    taken = [0] * len(self.all)
    for i, p in enumerate(block.params):
      view = self.views[p.id]
      if i in self.function.fixed_params: unit = self.file.banks[view.bank].unit_of[self.function.fixed_params[i]]
      else: continue
      entry[p.id] = unit
      taken[view.bank] |= view.mask << unit
    for i, p in enumerate(block.params):
      if p.id in entry: continue
      view = self.views[p.id]
      unit = entry[p.id] = self.pick(p.id, self.all[view.bank] & ~taken[view.bank])
      if unit < 0: raise AllocationError(f"{self.function.name}: more parameters than registers; pass them in memory")
      taken[view.bank] |= view.mask << unit
    block.params = [self.views[p.id].regs[entry[p.id]] for p in block.params]
    self.entry[0] = self._keep(0, {v: unit for v, unit in entry.items() if v in self.liveness.starts[0]})

def allocate(function: Function, target: Target) -> Function:
  """Replace virtual registers by physical ones.

  Blocks lose their parameters, and jumps their arguments. The entry's parameters become physical.
  """
  allocator = RegisterAllocator(function, target)
  allocator.start()
  for b in range(len(allocator.flow.blocks)): allocator.block(b)
  for block in allocator.flow.blocks[1:]: block.params = []
  function.liveness = None
  return function
