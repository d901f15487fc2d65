"""What a listing says of a GPU's instructions beside what they came from: waits and what they wait for, hazards,
scattered accesses.

A wait's note names the counter, what it may still be, and the instruction in flight that the next one needs:
`vmcnt<=1: v3 of 336` is the load at offset 336. It is looked for backwards in the order of the code; in a loop also in
the iteration before, which is then said.
"""
from __future__ import annotations
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tinyhw.machine.ir.inst import Effect, Function, MInst, Reg
from tinyhw.machine.ir.moves import units_of
from tinyhw.machine.model.listing import find_loops, innermost, uop_text
from tinyhw.machine.model.traffic import Touched, Traffic
from tinyhw.machine.model.waves import Model
from tinyhw.uop.ops import UOp

FARTHEST = 2000  # instructions that are looked through for what a wait waits for

def written(inst: MInst, counter: str) -> Iterable[Reg]:
  """Registers of an instruction under way that may not be touched before the counter says so: usually its results."""
  return inst.writes()

@dataclass(frozen=True)
class Noted:
  """What an ISA tells for notes. touched: bytes of an access. local: whether it is one of local memory, private: of
  each lane alone.

  conflicts: cycles more that it takes since its registers are in the same bank. only_waits: it does nothing but wait,
  for the sake of the next one.
  held: the registers of an instruction that a counter tells of.
  """
  touched: Touched
  local: Callable[[MInst], bool]
  private: Callable[[MInst], bool]
  conflicts: Callable[[MInst], int]
  only_waits: Callable[[MInst], bool]
  held: Callable[[MInst, str], Iterable[Reg]] = written

class Notes:
  """The notes of one function, `found` by the id of the instruction. offsets: where instructions are, by id."""

  def __init__(self, isa: Noted, model: Model, traffic: Traffic, function: Function, offsets: Mapping[int, int]):
    self.isa, self.model, self.traffic, self.offsets = isa, model, traffic, offsets
    self.insts = [inst for block in function.blocks for inst in block.insts]
    self.loop_of: list[tuple[int, int]] = []  # of each instruction, where its innermost loop begins and ends; all of
                                              # the code without one
    starts = [0]
    for block in function.blocks: starts.append(starts[-1] + len(block.insts))
    loops = find_loops(function)
    for number, block in enumerate(function.blocks):
      loop = innermost(loops, number)
      self.loop_of += [(starts[loop.first], starts[loop.last + 1]) if loop is not None else (0, 0)] * len(block.insts)
    texts = {id(inst): self.note(inst, at) for at, inst in enumerate(self.insts)}
    self.found = {key: text for key, text in texts.items() if text}

  def note(self, inst: MInst, at: int) -> str:
    """What to say of instruction number `at`, or ""."""
    waits = [self.wait(counter, left, at) for counter, left in self.model.waits(inst).items()]
    if self.isa.only_waits(inst): return ", ".join(waits)
    parts = [", ".join(waits), self.access(inst), inst.comment]
    if not any(parts): return ""
    return "; ".join([part for part in parts if part] + ([uop_text(inst.origin)] if isinstance(inst.origin, UOp)
                                                         else []))

  def access(self, inst: MInst) -> str:
    """Lanes that get in each other's way: `banks x4`, `32 sectors, not 2`; sources that do: `registers +1`."""
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
    """`vmcnt<=1: v3 of 336`"""
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
    """The instructions before number `at`, nearest first, and whether it is in the loop's iteration before that they
    come first."""
    first, end = self.loop_of[at]
    places = [(at - 1, first, False), (end - 1, at + 1, True), (first - 1, 0, False)]
    order = ((n, again) for last, start, again in places for n in range(last, start - 1, -1))
    for n, again in itertools.islice(order, FARTHEST): yield self.insts[n], again
