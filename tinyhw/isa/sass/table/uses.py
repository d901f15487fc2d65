"""Registers that an instruction reads and writes, and how others wait for it. Scheduling and the emulator's checks use
this."""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.form import Form
from tinyhw.machine.ir.inst import Access, Inst, MInst, Reg, RegClass
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

Unit = tuple[str, int]
ALWAYS_GUARD = frozenset({"branch", "sync", "warp", "memory"})  # pipes that need their predicates as early as a guard

MAKES, WANTS = "makes_view", "wants_view"
# the pipe of products of a warpgroup; it takes over registers and gives them back
PRODUCTS = "gmma"
ARRIVAL, PRODUCTS_DONE = "WARPGROUP", "WARPGROUP.DEPBAR"

NOTHING = {regs.VECTOR: regs.ZERO, regs.UNIFORM: regs.ZERO, regs.PREDICATE: regs.TRUE,
           regs.UNIFORM_PREDICATE: regs.TRUE}

class Uses(NamedTuple):
  """The uses of an instruction.

  reads: (unit, whether it is needed as early as a guard). board: the result needs a scoreboard. late: sources are read
  later than at issue.
  product: it is an asynchronous product of a warpgroup, which owns its vector registers until a wait for its group.
  view: MAKES if it makes writes to shared memory visible to the asynchronous proxy, which a scoreboard tells. WANTS if
  it needs that to be done. Else "".
  """
  reads: tuple[tuple[Unit, bool], ...]
  writes: tuple[Unit, ...]
  board: bool
  late: bool
  product: bool = False
  view: str = ""

def units_of(reg: Reg) -> list[Unit]:
  """Return the single registers of an operand, without those that are always zero or true."""
  assert reg.index is not None, f"{reg!r} is virtual"
  return list(units_from(reg.cls, reg.index))

@once
def units_from(cls: RegClass, index: int | None) -> tuple[Unit, ...]:
  """Return the single registers of a register of a class with an index.

  Convergence barriers belong to the branch unit and need no schedule.
  """
  assert index is not None, "a physical register has an index"
  return () if cls.bank is regs.BARRIER or index == NOTHING.get(cls.bank) else tuple((cls.bank.name, index + k)
                                                                                     for k in range(cls.units))

@once
def reads_from(cls: RegClass, index: int | None, guard: bool) -> tuple[tuple[Unit, bool], ...]:
  """Return the same, each with whether it is needed as early as a guard."""
  return tuple((unit, guard) for unit in units_from(cls, index))

class Roles(NamedTuple):
  """The operands of a row that may be registers.

  reads: positions of those that are read, each with whether it is needed as early as a guard. writes: positions of
  those that are written. uses: of an instruction without registers.
  """
  reads: tuple[tuple[int, bool], ...]
  writes: tuple[int, ...]
  uses: Uses

@once
def roles_of(row: Inst) -> Roles:
  """Return the roles of the operands of a row."""
  guards = [o.name == "guard" or row.pipe in ALWAYS_GUARD for o in row.operands]
  form: Form | None = None if row.encoding is BRANCH else row.isa
  registers = [i for i in range(len(guards)) if form is None or form.specs[i].register]
  reads = tuple([(i, guards[i]) for i in registers if row.operands[i].access & Access.READ])
  writes = tuple([i for i in registers if row.operands[i].access & Access.WRITE])
  if form is None: return Roles(reads, writes, Uses((), (), False, False))
  view = next((word for word in (MAKES, WANTS) if word in form.properties), "")
  return Roles(reads, writes, Uses((), (), form.result == "board", form.sources == "board", row.pipe == PRODUCTS, view))

def uses_of(inst: MInst) -> Uses:
  """Return the uses of a physical instruction."""
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
