"""Moves from the lanes to the uniform datapath, which has one value for a warp, in UR and UP. Arithmetic there has
the semantics of the lanes' instructions (semantics/integer.py).

A value from the lanes must be the same in all that run. If it is not, no source says which lane R2UR takes.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.execute.control import VOTES
from tinyhw.emulator.nvidia.warp.operands import Operands, put_uniform, put_uniform_predicate
from tinyhw.emulator.nvidia.warp.state import Warp, lanes_of
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]

def the_same(warp: Warp, words: list[int], mask: int) -> int:
  """Return the value that all lanes of a mask hold. Raises EmulatorError."""
  found = {words[lane] for lane in lanes_of(mask)}
  if len(found) > 1:
    raise EmulatorError(f"lanes hold {len(found)} different values: which of them R2UR takes is not known")
  return found.pop()

def from_lanes(o: Operands) -> Step:
  """R2UR."""
  read, index = o.raw("a", "u"), o.values["ud"].index
  if o.values["pu"] is not regs.PT: raise UnknownInstruction("R2UR with a predicate is not supported yet")
  return lambda warp, mask: put_uniform(warp, index, the_same(warp, read(warp), mask))

def vote(o: Operands) -> Step:
  """VOTEU: of the lanes that run."""
  word, condition, index, truth = o.word("vote"), o.predicate("pp"), o.values["ud"].index, o.values["qu"].index
  def run(warp: Warp, mask: int) -> None:
    yes = condition(warp) & mask
    put_uniform(warp, index, yes)
    put_uniform_predicate(warp, truth, VOTES[word](yes, mask))
  return run

def elect(o: Operands) -> Step:
  """ELECT: the lowest one of the lanes that run. Its number goes to a uniform register."""
  if o.values["pp"] is not regs.PT: raise UnknownInstruction("ELECT with a condition is not supported yet")
  truth, index = o.sink("pu", "p"), o.values["ud"].index
  def run(warp: Warp, mask: int) -> None:
    lane = lanes_of(mask)[0]
    truth(warp, 1 << lane, mask)
    put_uniform(warp, index, lane)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "R2UR": from_lanes, "VOTEU": vote, "ELECT": elect,
}
