"""Wait for loads in flight before their registers are touched, and for shared memory before a barrier.

Loads write their registers later, and the following instructions do not wait by themselves. A counter holds the number
of loads in flight. A wait instruction stalls the wave until the counter is low enough.

For each register in flight, the pass knows the number of later instructions with the same counter. They finish in
order, so the counter may still have that value. Scalar loads finish in any order; with one of them in flight the
counter must become 0. Where paths meet, the smaller number holds. Stores need no wait: their data is read at issue, and
the kernel's end waits for memory.

Needs: physical, laid out code. Cost: linear in the instructions, times the depth of loops.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable

from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form
from tinyhw.isa.amd.table.table import Table, build, table
from tinyhw.machine.ir.flow import rewrite
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple

class Waits(NamedTuple):
  """A family's counters with their greatest values, and a function that makes the wait instructions for given
  values."""
  counters: dict[str, int]
  instructions: Callable[[Table, dict[str, int]], list[MInst]]

def _waits_cdna(rows: Table, wanted: dict[str, int]) -> list[MInst]:
  """MI300 ISA guide, S_WAITCNT: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8."""
  vector, other = wanted.get("vmcnt", 63), wanted.get("lgkmcnt", 15)
  return [build(rows["s_waitcnt"], vector & 15 | 7 << 4 | other << 8 | vector >> 4 << 14)]

def _waits_rdna3(rows: Table, wanted: dict[str, int]) -> list[MInst]:
  """RDNA3 ISA guide, S_WAITCNT: expcnt in bits 2:0, lgkmcnt in 9:4, vmcnt in 15:10.

  Stores have a counter and an instruction of their own.
  """
  return [build(rows["s_waitcnt"], 7 | wanted.get("lgkmcnt", 63) << 4 | wanted.get("vmcnt", 63) << 10)]

def _waits_rdna4(rows: Table, wanted: dict[str, int]) -> list[MInst]:
  """RDNA4 ISA guide: one instruction for each counter."""
  return [build(rows[f"s_wait_{name}"], value) for name, value in wanted.items()]

FAMILIES = {
  "cdna": Waits({"vmcnt": 63, "lgkmcnt": 15}, _waits_cdna),
  "rdna3": Waits({"vmcnt": 63, "lgkmcnt": 63}, _waits_rdna3),
  "rdna4": Waits({"loadcnt": 63, "dscnt": 63, "kmcnt": 31}, _waits_rdna4),
}
LOCAL = {"cdna": "lgkmcnt", "rdna3": "lgkmcnt", "rdna4": "dscnt"}  # counter of accesses to shared memory

class Flight:
  """The operations in flight that one counter counts.

  - registers: bitsets of the registers of each operation, oldest first. The distance from the end is the number of
    later operations.
  - unordered: a scalar load may be in flight.
  - busy: any operation may be in flight.
  """
  __slots__ = ("registers", "unordered", "busy")

  def __init__(self) -> None:
    self.registers: list[int] = []
    self.unordered = self.busy = False

  def copy(self) -> Flight:
    new = Flight()
    new.registers, new.unordered, new.busy = list(self.registers), self.unordered, self.busy
    return new

  def meet(self, other: Flight) -> bool:
    """Merge the worse state of another one into this one. Returns whether anything changed."""
    changed = other.unordered > self.unordered or other.busy > self.busy
    self.registers = [0] * (len(other.registers) - len(self.registers)) + self.registers
    covered = 0
    for k in range(1, len(other.registers) + 1):
      covered |= self.registers[-k]
      new = other.registers[-k] & ~covered
      if new:
        self.registers[-k] |= new
        changed = True
    self.unordered, self.busy = self.unordered or other.unordered, self.busy or other.busy
    return changed

  def issue(self, registers: int, unordered: bool) -> None:
    self.registers.append(registers)
    self.unordered, self.busy = self.unordered or unordered, True

  def issued_after(self, touched: int) -> int:
    """The number of operations after the last one that uses these registers; -1 if there is none."""
    return next((k for k, registers in enumerate(reversed(self.registers)) if registers & touched), -1)

  def reached(self, value: int) -> None:
    """Update the state after a wait for this value of the counter."""
    if value: del self.registers[:-value]
    else: self.registers, self.unordered, self.busy = [], False, False

BASES = {bank: k << 8 for k, bank in enumerate(regs.BANKS)}  # first bit of each bank

def bits(registers: Iterable[Reg]) -> int:
  """A set of registers, as an int."""
  found = 0
  for r in registers:
    assert r.index is not None, f"{r!r} has no register yet"
    found |= ((1 << r.cls.units) - 1) << r.index + BASES[r.cls.bank]
  return found

State = dict[str, Flight]

class Waiter:
  """The pass over one function."""
  def __init__(self, function: Function, rows: Table):
    self.function, self.rows = function, rows
    family = rows.generation.family
    self.waits, self.local = FAMILIES[family], LOCAL[family]

  def run(self) -> None:
    rewrite(self.function.blocks, {name: Flight() for name in self.waits.counters}, self.walk, self.meet)

  def meet(self, known: State | None, state: State) -> State | None:
    """Merge the states where two paths meet. None if nothing changed."""
    if known is None: return {name: flight.copy() for name, flight in state.items()}
    return known if any([known[name].meet(flight) for name, flight in state.items()]) else None

  def walk(self, block: Block, start: State, out: list[MInst]) -> State:
    """Copy a block to `out` with its waits. Returns the operations in flight at its end."""
    state = {name: flight.copy() for name, flight in start.items()}
    for inst in block.insts:
      wanted = self.wanted(inst, state)
      if wanted:
        for name, value in wanted.items(): state[name].reached(value)
        for wait in self.waits.instructions(self.rows, wanted):
          wait.origin = inst.origin
          out.append(wait)
      form: Form = inst.row.isa
      if form.counter:
        written = bits(inst.writes())
        for name in form.counter.split("+"):
          if name in state: state[name].issue(written, inst.row.pipe in UNORDERED)
      out.append(inst)
    return state

  def wanted(self, inst: MInst, state: State) -> dict[str, int]:
    """The waits before an instruction: counter -> the greatest allowed value."""
    found: dict[str, int] = {}
    touched = -1  # not known yet
    for name, flight in state.items():
      if not flight.busy: continue
      if touched < 0: touched = bits([r for r in inst.operands if isinstance(r, Reg)])
      least = flight.issued_after(touched)
      if inst.row.effects & Effect.BARRIER and name == self.local: least = 0
      if least < 0: continue
      found[name] = 0 if flight.unordered else min(least, self.waits.counters[name])
    return found

UNORDERED = frozenset({"smem", "message"})

def add_waits(function: Function, target: Target) -> Function:
  """Insert waits (s_waitcnt) for results in flight."""
  Waiter(function, table(target.table.generation.arch)).run()
  return function
