"""Registers in the form that the passes use: renumbered units, sets as ints, and the constraints of each row of the
table.

A bank whose values all fill one unit is renumbered, so that the lowest bit of a set is the best register. A bank with
wider classes keeps its numbers, because alignment refers to them. `TargetRegisters` translates. Everything inside of
spill, allocate and moves uses the new numbers ("units").

Pressure is one int for all banks with 16 bits a bank, so that adding and comparing costs one operation.
"""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.machine.ir.inst import Bank, Inst, Operand, Reg, RegClass

if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target

FIELD = 16  # bits of a bank's pressure; the top one is a guard

class BankFile:
  """One bank. `free` is the set of units that may be allocated. `limit` is the number of units that can be filled for
  sure, whatever the alignment of the values."""
  __slots__ = ("bank", "position", "free", "limit", "numbers", "unit_of", "block", "wide", "solid", "reaches")

  def __init__(self, bank: Bank, position: int, classes: list[RegClass], allocatable: tuple[int, ...],
               steps: tuple[int, ...] = ()):
    self.bank, self.position = bank, position
    self.wide = any(c.units > 1 or c.align > 1 for c in classes)
    self.numbers = list(range(bank.count)) if self.wide else list(dict.fromkeys((*allocatable, *range(bank.count))))
    self.unit_of = {number: unit for unit, number in enumerate(self.numbers)}
    self.free = sum(1 << self.unit_of[i] for i in allocatable)
    self.block = 1
    while self.block < max((size_of(c) for c in classes), default=1): self.block *= 2
    self.solid = self.whole_blocks(self.free)  # any set of values whose sizes fit in sum can be packed there
    self.limit = self.solid.bit_count()
    # Growing sets of units: the allocator leaves one only if a value does not fit in it. An incomplete block at the end
    # of a set is added later. Otherwise it would be taken for a hole that small values should fill.
    reaches: dict[int, None] = {}
    for step in (*steps, bank.count):
      below = self.free & ((1 << step) - 1 if self.wide
                           else sum(1 << self.unit_of[i] for i in range(min(step, bank.count))))
      reaches.update(dict.fromkeys((self.whole_blocks(below), below)))
    self.reaches = [reach for reach in reaches if reach]

  def whole_blocks(self, units: int) -> int:
    """The units of the aligned blocks that are completely among `units`."""
    lengths = [1 << k for k in range(self.block.bit_length() - 1)]   # 1, 2 ... half a block
    for length in lengths: units &= units >> length
    # starts of blocks
    units &= ((1 << -(-self.bank.count // self.block) * self.block) - 1) // ((1 << self.block) - 1)
    for length in lengths: units |= units << length
    return units

  def blocked(self, units: int) -> int:
    """The share of the limit that is lost when these units are taken: their whole blocks."""
    count, whole, units = 0, (1 << self.block) - 1, units & self.solid
    while units:
      start = (units & -units).bit_length() - 1
      start -= start % self.block
      count += self.block
      units &= ~(whole << start)
    return count

def size_of(cls: RegClass) -> int:
  """Units that a value of the class counts for: its size, rounded up to its alignment."""
  return -(-cls.units // cls.align) * cls.align

class RegClassInfo:
  """The allocator's data of a class: position of its bank, units, and the physical Reg for each unit that it can start
  at."""
  __slots__ = ("cls", "bank", "units", "mask", "starts", "weight", "regs", "single", "steps", "bigger")

  def __init__(self, cls: RegClass, file: BankFile):
    self.cls, self.bank, self.units = cls, file.position, cls.units
    self.mask = (1 << cls.units) - 1
    self.starts = sum(1 << file.unit_of[i] for i in range(0, file.bank.count - cls.units + 1, cls.align))
    self.weight = size_of(cls) << FIELD * file.position
    self.regs = [Reg(cls, -1, number) for number in file.numbers]
    self.single = not file.wide
    self.steps: list[int] = []
    length = 1
    while length < cls.units:
      self.steps.append(min(length, cls.units - length))
      length += self.steps[-1]
    twice = size_of(cls) * 2
    self.bigger = sum(1 << i for i in range(0, file.bank.count - twice + 1, twice)) if twice <= file.block else 0

  def find(self, free: int) -> int:
    """The best unit at which a value fits into the free units, or -1.

    Holes are filled before larger aligned runs are broken up.
    """
    if self.single: return (free & -free).bit_length() - 1
    found = self.runs(free)
    if self.bigger and found & found - 1:
      size = size_of(self.cls)
      large = found & found >> size & self.bigger
      found = found & ~(large | large << size) or found
    return (found & -found).bit_length() - 1

  def find_first(self, free: int) -> int:
    """The lowest unit at which a value fits, or -1."""
    found = self.runs(free)
    return (found & -found).bit_length() - 1

  def runs(self, free: int) -> int:
    """All units at which a value fits into the free units."""
    for step in self.steps: free &= free >> step
    return free & self.starts

class Tie:
  """A written operand that must be in the register of a value that is read. `source` counts only_reads, then ties."""
  __slots__ = ("write", "source")

  def __init__(self, write: int, source: int): self.write, self.source = write, source

class RegisterConstraints:
  """The register constraints of a row, in units. A row without fixed, early, tied or clobbered registers is `plain`."""
  __slots__ = ("row", "plain", "rigid", "reads", "writes", "both", "fixed_reads", "fixed_writes", "ties", "early",
               "overwritten", "touched",
               "source_masks", "demand_before", "demand_after", "reserves", "commutes")

  def __init__(self, row: Inst, file: TargetRegisters):
    operands = row.operands
    self.row = row
    self.reads = tuple((i, file.view(_class(operands[i])).regs) for i in row.only_reads)
    self.writes = tuple((i, file.view(_class(operands[i])).regs) for i in row.writes if i not in row.both)
    self.both = tuple((i, file.view(_class(operands[i])).regs) for i in row.both)
    sources = row.only_reads + row.both
    views = [file.view(_class(operands[i])) for i in sources]
    self.source_masks = [(view.bank, view.mask) for view in views]
    unit = {i: file.by_bank[o.cls.bank].unit_of[o.fixed] for i, o in enumerate(operands) if o.cls is not None
            and o.fixed is not None}
    for i in row.writes:  # a fixed register holds for both operands of a tie
      tie = operands[i].tie
      if tie is not None and tie in unit: unit.setdefault(i, unit[tie])
      elif tie is not None and i in unit: unit.setdefault(tie, unit[i])
    self.fixed_reads = {s: unit[i] for s, i in enumerate(sources) if i in unit}
    self.fixed_writes = {i: unit[i] for i in row.writes if i in unit}
    ties = [Tie(i, sources.index(i)) for i in row.both]
    ties += [Tie(i, sources.index(t)) for i in row.writes if (t := operands[i].tie) is not None]
    self.ties = tuple(ties)
    tied = {t.write for t in ties}
    self.early = tuple(i for i in row.writes if operands[i].early and i not in tied)
    self.overwritten = [0] * len(file.banks)
    for bank, number in row.clobbers:
      if bank in file.by_bank: self.overwritten[file.by_bank[bank].position] |= 1 << file.by_bank[bank].unit_of[number]
    for i, u in self.fixed_writes.items(): self._mark(self.overwritten, file.view(_class(operands[i])), u)
    self.touched = list(self.overwritten)
    for s, u in self.fixed_reads.items(): self._mark(self.touched, file.view(_class(operands[sources[s]])), u)
    self.demand_before = sum(bank.blocked(units) << FIELD * bank.position
                             for bank, units in zip(file.banks, self.touched))
    self.demand_after = sum(bank.blocked(units) << FIELD * bank.position
                            for bank, units in zip(file.banks, self.overwritten))
    self.reserves = {s: file.banks[view.bank].blocked(view.mask << unit[i]) << FIELD * view.bank
                     for s, (i, view) in enumerate(zip(sources, views)) if i in unit}
    self.rigid = any(self.touched) or bool(self.early)
    self.plain = not self.rigid and not ties
    self.commutes = tuple(sources.index(i) for i in row.commutes) if row.commutes else ()

  @staticmethod
  def _mark(sets: list[int], view: RegClassInfo, unit: int) -> None:
    sets[view.bank] |= view.mask << unit

def _class(operand: Operand) -> RegClass:
  assert operand.cls is not None, f"operand {operand.name} is no register"
  return operand.cls

class Weights(dict[RegClass, int]):
  """The pressure of one value of a class, computed at first use."""
  def __init__(self, file: TargetRegisters):
    super().__init__()
    self.file = file

  def __missing__(self, cls: RegClass) -> int:
    return self.setdefault(cls, self.file.view(cls).weight)

class TargetRegisters:
  """The registers of a target, made once per target. `limits` and `guard` are for pressure: see `over`."""

  def __init__(self, target: Target):
    self.by_bank: dict[Bank, BankFile] = {}
    for position, bank in enumerate(target.banks):
      classes = [c for c in target.classes if c.bank is bank]
      self.by_bank[bank] = BankFile(bank, position, classes, tuple(target.allocatable.get(bank.name, bank.allocatable)),
                                    target.steps.get(bank.name, ()))
    self.banks = list(self.by_bank.values())
    self.guard = sum(1 << FIELD * b.position + FIELD - 1 for b in self.banks)
    self.limits = sum(b.limit << FIELD * b.position for b in self.banks)
    self.roof = self.limits | self.guard
    self.views: dict[RegClass, RegClassInfo] = {}
    self.weights = Weights(self)
    self.shapes: dict[Inst, RegisterConstraints] = {}
    self.unit_class: list[RegClass | None] = [None] * len(self.banks)
    for cls in target.classes:
      self.view(cls)
      position, best = self.by_bank[cls.bank].position, self.unit_class[self.by_bank[cls.bank].position]
      if cls.units == 1 and (best is None or cls.bits > best.bits): self.unit_class[position] = cls

  def view(self, cls: RegClass) -> RegClassInfo:
    view = self.views.get(cls)
    if view is None:
      assert cls.bank in self.by_bank, (f"class {cls.name} is of bank {cls.bank.name}, which the target does not list "
                                        f"in `banks`")
      view = self.views.setdefault(cls, RegClassInfo(cls, self.by_bank[cls.bank]))
    return view

  def shape(self, row: Inst) -> RegisterConstraints:
    shape = self.shapes.get(row)
    if shape is None: shape = self.shapes.setdefault(row, RegisterConstraints(row, self))
    return shape

  def over(self, pressure: int) -> int:
    """The guard bits of the banks whose limit this pressure exceeds. It is 0 if the pressure fits."""
    return (self.roof - pressure) & self.guard ^ self.guard

def registers_of(target: Target) -> TargetRegisters:
  """The registers of the target, made at first use."""
  found: TargetRegisters | None = vars(target).get("registers")
  if found is None: found = vars(target).setdefault("registers", TargetRegisters(target))
  return found

