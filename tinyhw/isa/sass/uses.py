"""Which registers an instruction reads and writes, and how it is waited for: what scheduling and the emulator's checks ask."""
from __future__ import annotations
import functools

from tinyhw.isa.sass import regs
from tinyhw.isa.sass.branch import BRANCH
from tinyhw.isa.sass.form import Form
from tinyhw.machine.inst import Access, Inst, MInst, Reg, RegClass
from tinyhw.named_tuple import NamedTuple

Unit = tuple[str, int]
ALWAYS_GUARD = frozenset({"branch", "sync", "warp", "memory"})  # pipes whose predicates are wanted as early as a guard

MAKES, WANTS = "makes_view", "wants_view"
PRODUCTS = "gmma"   # the pipe of products of a warpgroup; registers are handed over to them, and are there again
ARRIVAL, PRODUCTS_DONE = "WARPGROUP", "WARPGROUP.DEPBAR"

NOTHING = {regs.VECTOR: regs.ZERO, regs.UNIFORM: regs.ZERO, regs.PREDICATE: regs.TRUE, regs.UNIFORM_PREDICATE: regs.TRUE}

class Uses(NamedTuple):
  """reads: (unit, whether it decides what is executed). board: the result wants a scoreboard. late: sources are read later than at issue.

  product: it is an asynchronous product of a warpgroup, which has its vector registers until its group has been waited for. view: MAKES, what was
  written to shared memory is made visible to the asynchronous proxy, which a scoreboard tells; WANTS, that must have been waited for; or "".
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

@functools.lru_cache(maxsize=None)
def units_from(cls: RegClass, index: int) -> tuple[Unit, ...]:
  """The same of the register of a class with an index. Barriers of lanes that part are the branch unit's, and want no schedule."""
  return () if cls.bank is regs.BARRIER or index == NOTHING.get(cls.bank) else tuple((cls.bank.name, index + k) for k in range(cls.units))

@functools.lru_cache(maxsize=None)
def reads_from(cls: RegClass, index: int, guard: bool) -> tuple[tuple[Unit, bool], ...]:
  """The same with whether it decides what is executed."""
  return tuple((unit, guard) for unit in units_from(cls, index))

@functools.lru_cache(maxsize=None)
def roles_of(row: Inst) -> tuple[tuple[tuple[int, Access, bool], ...], Uses]:
  """Of each operand that may be a register its position, what is done with it, and whether it decides what is executed; Uses without registers."""
  roles = tuple((i, o.access, o.name == "guard" or row.pipe in ALWAYS_GUARD) for i, o in enumerate(row.operands))
  if row.encoding is BRANCH: return roles, Uses((), (), False, False)
  form: Form = row.isa
  roles = tuple([role for role, spec in zip(roles, form.specs) if spec.register])
  view = next((word for word in (MAKES, WANTS) if word in form.properties), "")
  return roles, Uses((), (), form.result == "board", form.sources == "board", row.pipe == PRODUCTS, view)

def uses_of(inst: MInst) -> Uses:
  """What a physical instruction uses."""
  reads: list[tuple[Unit, bool]] = []
  writes: list[Unit] = []
  roles, common = roles_of(inst.row)
  for i, access, guard in roles:
    value = inst.operands[i]
    if value.__class__ is not Reg: continue
    if access & Access.READ: reads += reads_from(value.cls, value.index, guard)
    if access & Access.WRITE: writes += units_from(value.cls, value.index)
  return Uses(tuple(reads), tuple(writes), common.board and bool(writes), *common[3:])
