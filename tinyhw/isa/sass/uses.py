"""Which registers an instruction reads and writes, and how it is waited for: what scheduling and the emulator's checks ask."""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.isa.sass import regs
from tinyhw.isa.sass.branch import BRANCH
from tinyhw.isa.sass.form import Form
from tinyhw.machine.inst import Access, MInst, Reg

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
  if reg.index == NOTHING.get(reg.cls.bank): return []
  return [(reg.cls.bank.name, reg.index + k) for k in range(reg.cls.units)]

def uses_of(inst: MInst) -> Uses:
  """What a physical instruction uses."""
  reads: list[tuple[Unit, bool]] = []
  writes: list[Unit] = []
  form: Form | None = None if inst.row.encoding is BRANCH else inst.row.isa
  for operand, value in zip(inst.row.operands, inst.operands):
    if not isinstance(value, Reg): continue
    units = units_of(value)
    guard = operand.name == "guard" or inst.row.pipe in ALWAYS_GUARD
    if operand.access & Access.READ: reads += [(unit, guard) for unit in units]
    if operand.access & Access.WRITE: writes += units
  if form is None: return Uses(tuple(reads), tuple(writes), False, False)
  view = next((word for word in (MAKES, WANTS) if word in form.properties), "")
  return Uses(tuple(reads), tuple(writes), form.result == "board" and bool(writes), form.sources == "board", inst.row.pipe == PRODUCTS, view)
