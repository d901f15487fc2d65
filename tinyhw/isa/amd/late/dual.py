"""Combine two operations into one instruction (VOPD): RDNA's vector unit does both at once, in waves of 32 lanes.

For each instruction that can be one of two, the pass searches the following ones for a partner. No instruction in
between may conflict: then the partner moves up, or the instruction down. The encoder decides which pairs exist, as it
knows the rules of banks and scalar values. Operands that may change places are tried both ways. No instruction moves
across a wait, a jump, a barrier, or a write of exec.

Needs: physical code with its waits, before hazards. Cost: linear in the instructions, times WINDOW.
"""
from __future__ import annotations
from typing import Any

from tinyhw.isa.amd.asm.encode import compiled
from tinyhw.isa.amd.late.drop_copies import vector
from tinyhw.isa.amd.late.hazards import EXEC_BITS, named
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Form
from tinyhw.isa.amd.table.table import Table, table
from tinyhw.machine.ir.inst import Effect, Function, Inst, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

WINDOW = 24  # instructions that are searched for a partner
COMMUTATIVE = frozenset({"v_dual_fmac_f32", "v_dual_fmaak_f32", "v_dual_mul_f32", "v_dual_add_f32", "v_dual_add_nc_u32",
                         "v_dual_and_b32"})
REVERSED = {"v_dual_sub_f32": "v_dual_subrev_f32", "v_dual_subrev_f32": "v_dual_sub_f32"}
PAIRED = frozenset({"valu", "dot"})  # pipes of instructions that may be one of two
SECOND = {"v_dual_fmamk_f32": 3}  # the operand that must be a vector register, as the result must; by default operand 2
Operation = tuple[str, tuple[Any, ...]]  # an operation and its operands

def pair_operations(function: Function, target: Target) -> Function:
  """Combine pairs of operations into one instruction, on RDNA."""
  rows = table(target.table.generation.arch)
  if rows.generation.cdna or rows.generation.wave != 32: return function
  for block in function.blocks:
    operations = [operations_of(inst, rows) for inst in block.insts]
    if sum(map(bool, operations)) > 1: block.insts = Pairs(block.insts, operations, rows).run()
  return function

class Pairs:
  """The pass over one block.

  - reads, writes: the registers of each instruction, as bits; empty if it was merged into another one.
  - operations: those that each instruction could be in a pair.
  - ends: the end of each instruction's search, the next instruction that no other may cross.
  """
  def __init__(self, insts: list[MInst], operations: list[tuple[Operation, ...]], rows: Table):
    self.rows, self.operations = rows, operations
    self.insts: list[MInst | None] = list(insts)
    self.reads = [touched(inst, inst.row.reads) | (named(inst.row.isa.reads) & ~EXEC_BITS) << SCALARS for inst in insts]
    self.writes = [touched(inst, inst.row.writes) | named(inst.row.isa.writes) << SCALARS for inst in insts]
    self.ends = [0] * len(insts)
    end = len(insts)
    for at in range(len(insts) - 1, -1, -1):
      self.ends[at] = min(end, at + WINDOW)
      if is_wall(insts[at], self.writes[at]): end = at

  def run(self) -> list[MInst]:
    for at in range(len(self.insts)):
      if self.operations[at]: self.look(at)
    return [inst for inst in self.insts if inst is not None]

  def look(self, at: int) -> None:
    """Find a partner for an instruction, and join both."""
    reads, writes = self.reads, self.writes
    between_reads = between_writes = 0
    for other in range(at + 1, self.ends[at]):
      if self.operations[other] and not (reads[other] | writes[other]) & writes[at]:
        up = not (reads[other] & between_writes or writes[other] & (between_reads | between_writes))
        down = not (between_reads & writes[at] or between_writes & (writes[at] | reads[at]))
        if (up or down) and self.join(at, other, at if up else other): return
      between_reads, between_writes = between_reads | reads[other], between_writes | writes[other]

  def join(self, at: int, other: int, place: int) -> bool:
    """Join two instructions at the place of either, if there is a dual instruction for them."""
    first, second = self.insts[at], self.insts[other]
    assert first is not None and second is not None
    mine, others = self.operations[at], self.operations[other]
    pair = next((pair for x, y in ((mine, others), (others, mine))
                 for a in x for b in y if (pair := self.made(a, b)) is not None), None)
    if pair is None: return False
    pair.origin, pair.comment = first.origin, first.comment
    gone = at + other - place
    self.reads[place] |= self.reads[gone]
    self.writes[place] |= self.writes[gone]
    self.reads[gone] = self.writes[gone] = 0
    self.operations[at] = self.operations[other] = ()
    self.insts[gone], self.insts[place] = None, pair
    return True

  def made(self, a: Operation, b: Operation) -> MInst | None:
    """The dual instruction of two operations, if the encoder accepts it."""
    if not (a[1][0].index ^ b[1][0].index) & 1: return None
    row = pair_row(self.rows, a[0], b[0])
    if row is None: return None
    operands = [*a[1], *b[1]]
    # all registers are physical
    banks = tuple([o.index % BANKS for o in operands if o.__class__ is Reg and o.cls is WORD])  # type: ignore[operator]
    return MInst(row, operands) if (in_banks(row, banks) if len(banks) == len(operands)
                                    else is_encodable(row, operands)) else None

BANKS, WORD = 4, regs.V[1]   # the lowest bits of a vector register's number are its bank

@once
def in_banks(row: Inst, banks: tuple[int, ...]) -> bool:
  """Whether a dual instruction exists for vector registers in these banks. Nothing else of their numbers matters."""
  return is_encodable(row, [regs.v(bank) for bank in banks])

def is_encodable(row: Inst, operands: list[Any]) -> bool:
  form: Form = row.isa
  return (form.encodings[0].encode or compiled(form, form.encodings[0]))(operands) is not None

@once
def pair_row(rows: Table, first: str, second: str) -> Inst | None: return rows.get(f"{first}::{second}")

class DualOperation(NamedTuple):
  """An instruction as one of two operations.

  - name: the operation's name in a pair.
  - shown: its operands in order.
  - usual: the values of the other operands without modifiers.
  - second: the operand that must be a vector register, if there is one of this number.
  - swapped: the operation with its first two sources exchanged, or "".
  """
  name: str
  shown: tuple[int, ...]
  usual: tuple[tuple[int, Any], ...]
  second: int
  swapped: str

@once
def shape_of(form: Form, name: str, rows: Table) -> DualOperation | None:
  """The shape of an operation by its name; None if it cannot be one of two."""
  dual = f"v_dual_{name[2:]}"
  if form.key != name or name == "v_cndmask_b32" or not rows.entry(dual): return None
  shown = tuple(i for i, spec in enumerate(form.specs) if spec.show)
  usual = tuple((i, spec.implied) for i, spec in enumerate(form.specs) if not spec.show)
  return DualOperation(dual, shown, usual, SECOND.get(dual, 2), REVERSED.get(dual, dual if dual in COMMUTATIVE else ""))

def operations_of(inst: MInst, rows: Table) -> tuple[Operation, ...]:
  """The operations that an instruction could be in a pair."""
  row, given = inst.row, inst.operands
  shape = shape_of(row.isa, row.name, rows) if row.pipe in PAIRED else None
  if shape is None: return ()
  for i, value in shape.usual:
    if given[i] != value: return ()
  operands = tuple([given[i] for i in shape.shown])
  found: list[Operation] = [(shape.name, operands)]
  if shape.swapped: found.append((shape.swapped, (operands[0], operands[2], operands[1], *operands[3:])))
  return tuple([half for half in found if len(operands) <= shape.second or vector(half[1][shape.second])])

SCALARS = regs.VGPR.count      # scalar registers follow the vector registers in a set of bits
BASES = {regs.VGPR: 0, regs.SGPR: SCALARS}

def touched(inst: MInst, places: tuple[int, ...]) -> int:
  """The registers of both banks in these operands, as bits."""
  found = 0
  for i in places:
    r = inst.operands[i]
    # all registers are physical
    if r.__class__ is Reg: found |= (1 << r.cls.units) - 1 << r.index + BASES[r.cls.bank]  # type: ignore[operator]
  return found

EXEC = 3 << regs.EXEC + SCALARS
WALLS = Effect.JUMP | Effect.END | Effect.BARRIER | Effect.CALL

def is_wall(inst: MInst, writes: int) -> bool:
  """Whether no instruction may move across this one."""
  if inst.row.effects & WALLS or writes & EXEC or inst.row.name.startswith("s_wait"): return True
  return not any(isinstance(o, Reg) for o in inst.operands)
