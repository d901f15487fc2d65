"""The uniform datapath: one value for a warp, in UR and UP, and moves from the lanes to it.

A value from the lanes must be the same in all that run. If it is not, no source says which lane R2UR takes.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.execute.control import VOTES
from tinyhw.emulator.nvidia.execute.operands import Operands
from tinyhw.emulator.nvidia.execute.state import ALL, Warp, lanes_of
from tinyhw.emulator.nvidia.semantics.integer import addend, from_table, shift_of
from tinyhw.emulator.nvidia.semantics.numbers import WORD
from tinyhw.isa.sass.asm.special import names
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]

def put(warp: Warp, index: int, word: int) -> None:
  """Write a uniform register. URZ discards it."""
  if index != regs.ZERO: warp.uniform[index], warp.known["UR", index] = word & WORD, ALL

def put_truth(warp: Warp, index: int, truth: bool) -> None:
  """Write a uniform predicate. UPT discards it."""
  if index != regs.TRUE: warp.uniform_predicates[index], warp.known["UP", index] = ALL * truth, ALL

def the_same(warp: Warp, words: list[int], mask: int) -> int:
  """Return the value that all lanes of a mask hold. Raises EmulatorError."""
  found = {words[lane] for lane in lanes_of(mask)}
  if len(found) > 1:
    raise EmulatorError(f"lanes hold {len(found)} different values: which of them R2UR takes is not known")
  return found.pop()

def from_lanes(o: Operands) -> Step:
  """R2UR."""
  read, index = o.raw("a", "u"), o.values["ud"].index
  if o.values["pu"] is not regs.PT: raise UnknownInstruction("R2UR with a predicate has no meaning here yet")
  return lambda warp, mask: put(warp, index, the_same(warp, read(warp), mask))

def move(o: Operands) -> Step:
  read, index = o.raw("ub", "u"), o.values["ud"].index
  return lambda warp, mask: put(warp, index, read(warp)[0])

def add(o: Operands) -> Step:
  """UIADD3, with carries."""
  exact = o.has("qp")  # .X: of a longer sum
  o.word("s32")
  sources = [o.source(name, "u", inverse=True) if exact else addend(o, name) for name in ("ua", "ub", "uc")]
  carries = [o.predicate(name) for name in ("qp", "qq")] if exact else []
  index, truths = o.values["ud"].index, [o.values[name].index for name in ("qu", "qv")]
  def run(warp: Warp, mask: int) -> None:
    total = sum(read(warp)[0] for read in sources) + sum(read(warp) & 1 for read in carries)
    put(warp, index, total)
    for k, truth in enumerate(truths): put_truth(warp, truth, total >> 32 > k)
  return run

def combine(o: Operands) -> Step:
  """ULOP3.LUT."""
  lut, index, truth = o.number("lut"), o.values["ud"].index, o.values["qu"].index
  sources, other = [o.source(name) for name in ("ua", "ub", "uc")], o.predicate("qp")
  def run(warp: Warp, mask: int) -> None:
    a, b, c = (read(warp)[0] for read in sources)
    found = from_table(lut, a, b, c, WORD)
    put(warp, index, found)
    put_truth(warp, truth, bool(found) or bool(other(warp) & 1))
  return run

def shift(o: Operands) -> Step:
  """USHF."""
  function, index, sources = shift_of(o), o.values["ud"].index, [o.source(name) for name in ("ua", "ub", "uc")]
  return lambda warp, mask: put(warp, index, function(*[read(warp)[0] for read in sources]))

def scaled_sum(o: Operands) -> Step:
  """ULEA: a shifted, plus b."""
  first, second, places, index = addend(o, "ua"), o.source("ub"), o.number("n"), o.values["ud"].index
  if o.values["qu"] is not regs.UPT: raise UnknownInstruction("ULEA with a carry has no meaning here yet")
  return lambda warp, mask: put(warp, index, (first(warp)[0] << places) + second(warp)[0])

SPECIAL: dict[str, Callable[[Warp], int]] = {"SR_CTAID.X": lambda warp: warp.block, "SR_CgaCtaId": lambda warp: 0}

def special(o: Operands) -> Step:
  """S2UR."""
  name = names(o.form.generation).get(o.number("sr"), "")
  if name not in SPECIAL: raise UnknownInstruction(f"S2UR of {name or o.number('sr')} has no meaning here yet")
  read, index = SPECIAL[name], o.values["ud"].index
  return lambda warp, mask: put(warp, index, read(warp))

def vote(o: Operands) -> Step:
  """VOTEU: of the lanes that run."""
  word, condition, index, truth = o.word("vote"), o.predicate("pp"), o.values["ud"].index, o.values["qu"].index
  def run(warp: Warp, mask: int) -> None:
    yes = condition(warp) & mask
    put(warp, index, yes)
    put_truth(warp, truth, VOTES[word](yes, mask))
  return run

def elect(o: Operands) -> Step:
  """ELECT: the lowest one of the lanes that run. Its number goes to a uniform register."""
  if o.values["pp"] is not regs.PT: raise UnknownInstruction("ELECT with a condition has no meaning here yet")
  truth, index = o.sink("pu", "p"), o.values["ud"].index
  def run(warp: Warp, mask: int) -> None:
    lane = lanes_of(mask)[0]
    truth(warp, 1 << lane, mask)
    put(warp, index, lane)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "R2UR": from_lanes, "UMOV": move, "UIADD3": add, "UIADD3.X": add, "ULOP3.LUT": combine, "USHF": shift,
  "ULEA": scaled_sum, "S2UR": special,
  "VOTEU": vote, "ELECT": elect,
}
