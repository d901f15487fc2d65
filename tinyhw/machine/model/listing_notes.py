"""Notes on a GPU's instructions in a listing, in addition to their origin: waits and their causes, hazards, scattered
accesses.

A wait's note names the counter, its allowed value, and the instruction in flight that the next one needs. `vmcnt<=1: v3
of 336` is the load at offset 336. The search goes backwards in the order of the code. In a loop it continues in the
previous iteration, and the note tells so.
"""
from __future__ import annotations
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from tinyhw.data_class import dataclass
from tinyhw.machine.ir.inst import Effect, Function, MInst, Reg
from tinyhw.machine.ir.moves import units_of
from tinyhw.machine.model.listing import find_loops, innermost, uop_text
from tinyhw.machine.model.traffic import Touched, Traffic
from tinyhw.machine.model.waves import Model
from tinyhw.uop.ops import UOp

FARTHEST = 2000  # instructions that are searched for the cause of a wait

def written(inst: MInst, counter: str) -> Iterable[Reg]:
  """Registers of an instruction in flight that may not be accessed before the counter allows it, usually its
  results."""
  return inst.writes()

@dataclass(frozen=True)
class Noted:
  """An ISA's data for notes.

  - touched: bytes of an access.
  - local: whether it accesses shared memory.
  - private: whether it accesses memory of each lane alone.
  - conflicts: additional cycles because its registers are in the same bank.
  - only_waits: it only waits, for the next instruction.
  - held: the registers of an instruction that a counter protects.
  """
  touched: Touched
  local: Callable[[MInst], bool]
  private: Callable[[MInst], bool]
  conflicts: Callable[[MInst], int]
  only_waits: Callable[[MInst], bool]
  held: Callable[[MInst, str], Iterable[Reg]] = written

class Notes:
  """The notes of one function: `found`, by the id of the instruction. offsets: of instructions, by id."""

  def __init__(self, isa: Noted, model: Model, traffic: Traffic, function: Function, offsets: Mapping[int, int]):
    self.isa, self.model, self.traffic, self.offsets = isa, model, traffic, offsets
    self.insts = [inst for block in function.blocks for inst in block.insts]
    # for each instruction, the start and end of its innermost loop; (0, 0) without one
    self.loop_of: list[tuple[int, int]] = []
    starts = [0]
    for block in function.blocks: starts.append(starts[-1] + len(block.insts))
    loops = find_loops(function)
    for number, block in enumerate(function.blocks):
      loop = innermost(loops, number)
      self.loop_of += [(starts[loop.first], starts[loop.last + 1]) if loop is not None else (0, 0)] * len(block.insts)
    texts = {id(inst): self.note(inst, at) for at, inst in enumerate(self.insts)}
    self.found = {key: text for key, text in texts.items() if text}

  def note(self, inst: MInst, at: int) -> str:
    """The note on instruction number `at`, or ""."""
    waits = [self.wait(counter, left, at) for counter, left in self.model.waits(inst).items()]
    if self.isa.only_waits(inst): return ", ".join(waits)
    parts = [", ".join(waits), self.access(inst), inst.comment]
    if not any(parts): return ""
    return "; ".join([part for part in parts if part] + ([uop_text(inst.origin)] if isinstance(inst.origin, UOp)
                                                         else []))

  def access(self, inst: MInst) -> str:
    """Lanes that conflict: `banks x4`, `32 sectors, not 2`. Sources that conflict: `registers +1`."""
    more = self.isa.conflicts(inst)
    if more: return f"registers +{more}"
    size = self.isa.touched(inst)
    if not size or self.isa.private(inst) or not inst.row.effects & (Effect.LOAD | Effect.STORE): return ""
    if self.isa.local(inst):
      times = self.traffic.conflict(inst, size)
      return f"banks x{times:g}" if times > 1 else ""
    count, least = self.traffic.scattered(inst, size)
    return f"{count} sectors, not {least}" if count > least + 1 else ""

  def wait(self, counter: str, left: int, at: int) -> str:
    """A wait, such as `vmcnt<=1: v3 of 336`."""
    text = f"{counter}<={left}"
    user = next((inst for inst in self.insts[at:] if not self.isa.only_waits(inst)), None)
    if user is None: return text
    wanted = {unit for r in user.operands if isinstance(r, Reg) for unit in units_of(r)}
    under_way = [(inst, again) for inst, again in self.backwards(at) if counter in self.model.counters(inst)]
    for inst, again in under_way[left:]:
      where = f"{self.offsets.get(id(inst), 0)}{', last time' if again else ''}"
      got = [r for r in self.isa.held(inst, counter) if wanted.intersection(units_of(r))]
      if got: return f"{text}: {got[0]!r} of {where}"
      if self.model.meets(user): return f"{text}: {inst.row.isa.mnemonic} of {where}"
    return text

  def backwards(self, at: int) -> Iterator[tuple[MInst, bool]]:
    """Yield the instructions before number `at`, nearest first, each with a flag that it is in the previous iteration
    of the loop."""
    first, end = self.loop_of[at]
    places = [(at - 1, first, False), (end - 1, at + 1, True), (first - 1, 0, False)]
    order = ((n, again) for last, start, again in places for n in range(last, start - 1, -1))
    for n, again in itertools.islice(order, FARTHEST): yield self.insts[n], again
