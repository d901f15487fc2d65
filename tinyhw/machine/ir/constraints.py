"""Register constraints of one instruction, derived from its row and from the values that end at it.

`Demands` reduces fixed registers, ties, early writes and clobbers to few cases. Pressure (liveness.py, spill.py) and
placement (place.py) both read it, so they agree.

- home: a value must be in a fixed register when the instruction starts.
- copies: a fixed register needs a copy. The value lives on and the register is overwritten, or a second fixed register
  needs the value too.
- inherits: a written operand takes the register of the value tied to it, which ends here.
- clones: a written operand is tied to a value that lives on, so it starts with a copy.
- early: a written operand needs a register that no read has.

Values that live across may not be in an overwritten or fixed register. Values that end may not be in a fixed one.
"""
from __future__ import annotations
from collections.abc import Collection, Sequence

from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.machine.ir.registers import RegisterConstraints

class Demands:
  """The demands of one instruction. Sources are numbered as in RegisterConstraints: only_reads, then ties.

  `exchange`: two sources whose values must be exchanged first (row.commutes).
  """
  __slots__ = ("home", "copies", "inherits", "clones", "early", "exchange")

  def __init__(self) -> None:
    self.home: dict[int, int] = {}                 # value -> unit
    self.copies: list[tuple[int, int]] = []        # (source, unit)
    self.inherits: list[tuple[int, int]] = []      # (operand written, value)
    self.clones: list[tuple[int, int]] = []        # (operand written, source)
    self.early: list[int] = []                     # operands written
    self.exchange: tuple[int, int] | None = None

def sources_of(inst: MInst) -> list[Reg | None]:
  """The registers that an instruction reads as operands, by source number."""
  operands = inst.operands
  values: list[Reg | None] = [operands[i] for i in inst.row.only_reads]
  values += inst.ties or [operands[i] for i in inst.row.both]
  return values

def demands_of(shape: RegisterConstraints, inst: MInst, ends: Collection[int]) -> Demands:
  """Derive the demands of the instruction from the values that end at it."""
  found, values = Demands(), sources_of(inst)
  for source, unit in shape.fixed_reads.items():
    value = values[source]
    if value is None or value.index is not None: continue
    bits = shape.source_masks[source]
    bank, taken = bits[0], bits[1] << unit
    if value.id in found.home:
      if found.home[value.id] != unit: found.copies.append((source, unit))
    elif value.id in ends or not shape.overwritten[bank] & taken: found.home[value.id] = unit
    else: found.copies.append((source, unit))
  used = set(found.home)
  for tie in shape.ties:
    if tie.source in shape.fixed_reads: continue
    value, written = values[tie.source], inst.operands[tie.write]
    if value is None or written is None or written.index is not None: continue
    if value.index is None and value.id in ends and value.id not in used:
      found.inherits.append((tie.write, value.id))
      used.add(value.id)
    elif (other := _partner(shape, values, tie.source, ends, used)) is not None:
      found.exchange = (tie.source, other)
      found.inherits.append((tie.write, _id(values[other])))
      used.add(_id(values[other]))
    else: found.clones.append((tie.write, tie.source))
  found.early = [i for i in shape.early if inst.operands[i] is not None and inst.operands[i].index is None
                 and i not in shape.fixed_writes]
  return found

def _id(value: Reg | None) -> int:
  assert value is not None
  return value.id

def _partner(shape: RegisterConstraints, values: Sequence[Reg | None], source: int, ends: Collection[int],
             used: set[int]) -> int | None:
  """The source that commutes with this one, if its value ends here and has the same class."""
  if source not in shape.commutes: return None
  other = shape.commutes[0] if shape.commutes[1] == source else shape.commutes[1]
  value, mine = values[other], values[source]
  if value is None or mine is None or other in shape.fixed_reads: return None
  if value.index is not None or mine.index is not None or value.cls is not mine.cls: return None
  return other if value.id in ends and value.id not in used else None

def pressure_of(shape: RegisterConstraints, inst: MInst, ends: Collection[int],
                weight: Sequence[int]) -> tuple[int, int]:
  """The additional pressure of an instruction: first to that of all values live into it, second to that of the values
  live across it."""
  if not shape.rigid:
    ties = inst.ties
    if len(ties) == 1 and ties[0].id in ends: return 0, sum([weight[r.id] for r in inst.writes() if r.index is None])
  demands = demands_of(shape, inst, ends)
  before = shape.demand_before - sum(weight[v] for v in demands.home)
  before += sum(weight[inst.operands[i].id] for i, _ in demands.clones) + sum(weight[inst.operands[i].id]
                                                                              for i in demands.early)
  after = shape.demand_after
  # a block with a fixed value that lives on is lost to wide values
  for source, value in enumerate(sources_of(inst)) if demands.home else ():
    if value is not None and source in shape.reserves and value.id in demands.home and value.id not in ends:
      after += shape.reserves[source] - weight[value.id]
  for i in shape.row.writes:
    r = inst.operands[i]
    if r is not None and r.index is None and i not in shape.fixed_writes: after += weight[r.id]
  return before, after
