"""Make room for one instruction if a free register is not enough: fixed registers, clobbers, ties to values that live
on, and wide values that find only scattered free units.

First try to move only the values in the way. If that fails, pack the bank again. Values that live across are placed
from the lowest unit up, in order of falling alignment. Values that end here, and those that begin here, are placed from
the highest unit down. Sizes are rounded to alignments that divide each other. So both meet in the middle only if the
pressure is above the limit.

Output: copies that happen at once before the instruction, and the units of its written operands.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.constraints import Demands, demands_of, sources_of
from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.machine.ir.liveness import Line, bits
from tinyhw.machine.ir.registers import RegisterConstraints, RegClassInfo

if TYPE_CHECKING:
  from tinyhw.machine.allocate.allocate import RegisterAllocator

class Placement:
  """The units of all values when the instruction starts (`new`: values, `written`: operands) and after it."""
  def __init__(self, allocator: RegisterAllocator, line: Line, shape: RegisterConstraints, demands: Demands):
    self.allocator, self.line, self.shape, self.demands = allocator, line, shape, demands
    self.ends = set(line.ends)
    self.heirs = {v for _, v in demands.inherits}
    self.new: dict[int, int] = dict(demands.home)
    self.written: dict[int, int] = {}
    self.fixed = [0] * len(shape.touched)  # units that fixed reads need
    for source, unit in shape.fixed_reads.items():
      bank, mask = shape.source_masks[source]
      self.fixed[bank] |= mask << unit

  def begins(self) -> list[tuple[int, int, RegClassInfo]]:
    """Written operands that choose a register only after the reads: (operand, value, view)."""
    operands, settled = (self.line.inst.operands, {i for i, _ in self.demands.inherits + self.demands.clones}
                         | set(self.demands.early))
    found = []
    for i in self.shape.row.writes:
      r = operands[i]
      if r is None or r.index is not None or i in settled or i in self.shape.fixed_writes: continue
      found.append((i, r.id, self.allocator.views[r.id]))
    return sorted(found, key=lambda item: -item[2].weight)

  def starts(self) -> list[tuple[int, int, RegClassInfo]]:
    """Written operands that need a register of their own while the reads are still live."""
    operands = self.line.inst.operands
    positions = [i for i, _ in self.demands.clones] + self.demands.early
    return [(i, operands[i].id, self.allocator.views[operands[i].id]) for i in positions]

  def finish(self) -> None:
    """Set the units of the operands that follow from the others."""
    for i, v in self.demands.inherits: self.written[i] = self.new.get(v, self.allocator.where[v])
    for i, unit in self.shape.fixed_writes.items():
      if self.line.inst.operands[i] is not None: self.written[i] = unit

  # ***** moving little *****

  def gentle(self) -> bool:
    """Move only the values in the way. Return False if a value does not fit."""
    allocator, shape = self.allocator, self.shape
    where, views = allocator.where, allocator.views
    files = allocator.file.banks
    taken = [file.free & ~free for file, free in zip(files, allocator.free)]
    movers = []
    for v, unit in where.items() if any(shape.touched) else ():
      view = views[v]
      mask = view.mask << unit
      bad = self.fixed if v in self.ends and v not in self.heirs else shape.touched
      if v in self.new: taken[view.bank] &= ~mask
      elif mask & bad[view.bank]:
        movers.append((v, view, bad[view.bank]))
        taken[view.bank] &= ~mask
    movers.sort(key=lambda item: -item[1].weight)
    for v, view, bad_units in movers:
      unit = allocator.pick(v, files[view.bank].free & ~taken[view.bank] & ~bad_units & ~self.fixed[view.bank])
      if unit < 0: return False
      self.new[v] = unit
      taken[view.bank] |= view.mask << unit
    for v, unit in self.demands.home.items(): taken[views[v].bank] |= views[v].mask << unit
    return self._gentle_writes(taken)

  def _gentle_writes(self, taken: list[int]) -> bool:
    """Choose registers for results. Results that must not share a register with the reads are first. taken: units of
    each bank that are occupied by values that stay. Return False as above."""
    allocator, shape, files = self.allocator, self.shape, self.allocator.file.banks
    where, views, operands = allocator.where, allocator.views, self.line.inst.operands
    sources = sources_of(self.line.inst)
    clones = dict(self.demands.clones)
    for i, v, view in self.starts():
      b = view.bank
      unit = allocator.pick(v, files[b].free & ~taken[b] & ~shape.touched[b])
      if unit < 0: return False
      taken[b] |= view.mask << unit
      source = sources[clones[i]] if i in clones else None
      if source is not None and source.index is None and source.id not in self.new and source.id not in self.ends:
        # the value that lives on makes room if its register is the one that the result wants
        if allocator.wish(v) == where[source.id] and views[source.id].mask == view.mask:
          self.new[source.id], unit = unit, where[source.id]
      self.written[i] = unit
    before = list(taken)
    for v in self.ends - self.heirs:
      view = views[v]
      taken[view.bank] &= ~(view.mask << self.new.get(v, where[v]))
    for v, unit in self.demands.home.items():
      if v not in self.ends: taken[views[v].bank] |= views[v].mask << unit
    for i, v, view in self.begins():
      b = view.bank
      unit = allocator.pick(v, files[b].free & ~taken[b] & ~shape.overwritten[b])
      if unit < 0: unit = self._clear(view, before, taken)
      if unit < 0: return False
      taken[b] |= view.mask << unit
      self.written[i] = unit
    self.finish()
    return all(operands[i] is None or operands[i].index is not None or i in self.written for i in shape.row.writes)

  def _clear(self, view: RegClassInfo, before: list[int], after: list[int]) -> int:
    """Free an aligned run for a wide result by moving the fewest units of values that live across. Return its start, or
    -1.

    before, after: units taken when the instruction starts and when it ends. Both change.
    """
    allocator, b, views = self.allocator, view.bank, self.allocator.views
    room = allocator.file.banks[b].free & ~self.shape.touched[b]
    movable = {v: self.new.get(v, unit) for v, unit in allocator.where.items()
               if views[v].bank == b and v not in self.ends and v not in self.demands.home}
    held = 0
    for v, unit in movable.items(): held |= views[v].mask << unit
    windows = []
    for start in bits(view.runs(room & ~(after[b] & ~held))):
      window = view.mask << start
      inside = [v for v, unit in movable.items() if views[v].mask << unit & window]
      windows.append((sum(views[v].units for v in inside), start, inside))
    for _, start, inside in sorted(windows)[:4]:
      taken_before, taken_after, targets = before[b], after[b] | view.mask << start, {}
      for v in sorted(inside, key=lambda v: -views[v].units):
        unit = views[v].find(room & ~taken_before & ~taken_after)
        if unit < 0: break
        targets[v] = unit
        taken_before |= views[v].mask << unit
        taken_after |= views[v].mask << unit
      else:
        for v in inside:
          after[b] &= ~(views[v].mask << movable[v])
          after[b] |= views[v].mask << targets[v]
          before[b] |= views[v].mask << targets[v]
        self.new.update(targets)
        return start
    return -1

  # ***** packing again *****

  def pack(self) -> bool:
    """Place all values again. It fails only if the pressure is above the limit."""
    allocator, files = self.allocator, self.allocator.file.banks
    where, views = allocator.where, allocator.views
    self.new, self.written = dict(self.demands.home), {}
    stay: list[tuple[int, int, RegClassInfo]] = [(-1, v, views[v]) for v in where if v not in self.new
                                                 and (v not in self.ends or v in self.heirs)]
    leave = [(-1, v, views[v]) for v in where if v not in self.new and v in self.ends and v not in self.heirs]
    room = [file.free & ~_blocks(file.block, touched) for file, touched in zip(files, self.shape.touched)]
    for item in _falling(stay + self.starts()):
      _, v, view = item
      if not self._put(item, view.find_first(room[view.bank]), room): return False
    before = list(room)
    for i, v, view in _falling(leave):
      unit = view.find_first(before[view.bank])
      if not self._put((i, v, view), unit, before): return False
    after = [file.free & ~_blocks(file.block, gone) for file, gone in zip(files, self.shape.overwritten)]
    staying = [(v, unit) for v, unit in self.new.items() if v not in self.ends or v in self.heirs]
    for v, unit in staying + [(self.line.inst.operands[i].id, unit) for i, unit in self.written.items()]:
      after[views[v].bank] &= ~(views[v].mask << unit)
    for i, v, view in _falling(self.begins()):
      unit = view.find_first(after[view.bank])
      if not self._put((i, v, view), unit, after): return False
    self.finish()
    return True

  def _put(self, item: tuple[int, int, RegClassInfo], unit: int, room: list[int]) -> bool:
    operand, v, view = item
    if unit < 0: return False
    room[view.bank] &= ~(view.mask << unit)
    if operand < 0: self.new[v] = unit
    else: self.written[operand] = unit
    return True

def _falling(items: list[tuple[int, int, RegClassInfo]]) -> list[tuple[int, int, RegClassInfo]]:
  return sorted(items, key=lambda item: (-item[2].cls.align, -item[2].cls.units))

def _blocks(block: int, units: int) -> int:
  """The aligned blocks that contain these units."""
  found, whole = 0, (1 << block) - 1
  while units:
    start = (units & -units).bit_length() - 1
    start -= start % block
    found |= whole << start
    units &= ~(whole << start)
  return found

def place(allocator: RegisterAllocator, line: Line,
          shape: RegisterConstraints) -> tuple[list[tuple[Reg, Reg]], dict[int, int]]:
  """Place the values of an instruction. Update allocator.where for the values that move, and the instruction's
  operands.

  Return the copies that must happen before it and the units of its written operands. Raises AllocationError if spill
  left too much pressure.
  """
  inst = line.inst
  demands = demands_of(shape, inst, line.ends)
  if demands.exchange is not None: _exchange(inst, *demands.exchange)
  plan = Placement(allocator, line, shape, demands)
  if not plan.gentle() and not plan.pack():
    raise AllocationError(f"{allocator.function.name}: no registers for {inst!r}: pressure is above the limit; spill "
                          f"must run before allocate")
  where, views = allocator.where, allocator.views
  sources = sources_of(inst)
  pairs = [(views[v].regs[unit], views[v].regs[where[v]]) for v, unit in plan.new.items() if where[v] != unit]
  for source, unit in demands.copies: pairs.append(_copy(allocator, sources[source], unit))
  for i, source in demands.clones:
    value = sources[source]
    assert value is not None
    view = views[inst.operands[i].id]
    pairs.append((view.regs[plan.written[i]], view.regs[where[value.id]] if value.index is None else value))
  where.update(plan.new)
  _rewrite_sources(allocator, inst, shape, plan)
  return pairs, plan.written

def _copy(allocator: RegisterAllocator, value: Reg | None, unit: int) -> tuple[Reg, Reg]:
  assert value is not None
  view = allocator.views[value.id]
  return view.regs[unit], view.regs[allocator.where[value.id]]

def _exchange(inst: MInst, a: int, b: int) -> None:
  """Exchange the values of two sources."""
  values, reads = sources_of(inst), len(inst.row.only_reads)
  values[a], values[b] = values[b], values[a]
  for i, value in zip(inst.row.only_reads, values): inst.operands[i] = value
  inst.ties = tuple(v for v in values[reads:] if v is not None)

def _rewrite_sources(allocator: RegisterAllocator, inst: MInst, shape: RegisterConstraints, plan: Placement) -> None:
  """Set physical registers for operands that are read. The caller writes BOTH operands."""
  tied = {tie.source: tie.write for tie in shape.ties}
  for source, (i, regs) in enumerate(shape.reads):
    r = inst.operands[i]
    if r is None or r.index is not None: continue
    if source in shape.fixed_reads: inst.operands[i] = regs[shape.fixed_reads[source]]
    elif source in tied and tied[source] in plan.written: inst.operands[i] = regs[plan.written[tied[source]]]
    else: inst.operands[i] = regs[allocator.where[r.id]]
