"""Which registers an instruction reads and writes, and how it is waited for: what scheduling and the emulator's checks
ask."""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.form import Form
from tinyhw.machine.ir.inst import Access, Inst, MInst, Reg, RegClass
from tinyhw.named_tuple import NamedTuple
from tinyhw.once import once

Unit = tuple[str, int]
ALWAYS_GUARD = frozenset({"branch", "sync", "warp", "memory"})  # pipes whose predicates are wanted as early as a guard

MAKES, WANTS = "makes_view", "wants_view"
PRODUCTS = "gmma"   # the pipe of products of a warpgroup; registers are handed over to them, and are there again
ARRIVAL, PRODUCTS_DONE = "WARPGROUP", "WARPGROUP.DEPBAR"

NOTHING = {regs.VECTOR: regs.ZERO, regs.UNIFORM: regs.ZERO, regs.PREDICATE: regs.TRUE,
           regs.UNIFORM_PREDICATE: regs.TRUE}

class Uses(NamedTuple):
  """reads: (unit, whether it decides what is executed). board: the result wants a scoreboard. late: sources are read
  later than at issue.

  product: it is an asynchronous product of a warpgroup, which has its vector registers until its group has been waited
  for. view: MAKES, what was written to shared memory is made visible to the asynchronous proxy, which a scoreboard
  tells; WANTS, that must have been waited for; or "".
  """
  reads: tuple[tuple[Unit, bool], ...]
  writes: tuple[Unit, ...]
  board: bool
  late: bool
  product: bool = False
  view: str = ""

def units_of(reg: Reg) -> list[Unit]:
  """The single registers of an operand, but for those that are always zero or true."""
  assert reg.index is not None, f"{reg!r} is virtual"
  return list(units_from(reg.cls, reg.index))

@once
def units_from(cls: RegClass, index: int | None) -> tuple[Unit, ...]:
  """The same of the register of a class with an index.

  Barriers of lanes that part are the branch unit's, and want no schedule.
  """
  assert index is not None, "a physical register has an index"
  return () if cls.bank is regs.BARRIER or index == NOTHING.get(cls.bank) else tuple((cls.bank.name, index + k)
                                                                                     for k in range(cls.units))

@once
def reads_from(cls: RegClass, index: int | None, guard: bool) -> tuple[tuple[Unit, bool], ...]:
  """The same with whether it decides what is executed."""
  return tuple((unit, guard) for unit in units_from(cls, index))

class Roles(NamedTuple):
  """The operands of a row that may be registers: positions of those that are read, each with whether it decides what is
  executed, and of those that
  are written. uses: of an instruction without registers."""
  reads: tuple[tuple[int, bool], ...]
  writes: tuple[int, ...]
  uses: Uses

@once
def roles_of(row: Inst) -> Roles:
  """What the operands of a row are."""
  guards = [o.name == "guard" or row.pipe in ALWAYS_GUARD for o in row.operands]
  form: Form | None = None if row.encoding is BRANCH else row.isa
  registers = [i for i in range(len(guards)) if form is None or form.specs[i].register]
  reads = tuple([(i, guards[i]) for i in registers if row.operands[i].access & Access.READ])
  writes = tuple([i for i in registers if row.operands[i].access & Access.WRITE])
  if form is None: return Roles(reads, writes, Uses((), (), False, False))
  view = next((word for word in (MAKES, WANTS) if word in form.properties), "")
  return Roles(reads, writes, Uses((), (), form.result == "board", form.sources == "board", row.pipe == PRODUCTS, view))

def uses_of(inst: MInst) -> Uses:
  """What a physical instruction uses."""
  operands, (reading, writing, common) = inst.operands, roles_of(inst.row)
  reads: list[tuple[Unit, bool]] = []
  writes: list[Unit] = []
  for i, guard in reading:
    value = operands[i]
    if value.__class__ is Reg: reads += reads_from(value.cls, value.index, guard)
  for i in writing:
    value = operands[i]
    if value.__class__ is Reg: writes += units_from(value.cls, value.index)
  return Uses(tuple(reads), tuple(writes), common.board and bool(writes), common.late, common.product, common.view)
