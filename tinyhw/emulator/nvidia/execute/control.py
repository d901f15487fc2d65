"""Branches, barriers, votes, and the end."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import EmulatorError, OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, Warp
from tinyhw.isa.sass.table import regs

Step = Callable[[Warp, int], None]

def branch(o: Operands) -> Step:
  """Branch to a target. Lanes that diverge reconverge at a barrier (convergence.py)."""
  distance, condition = o.number("t"), o.predicate("pp")
  def run(warp: Warp, mask: int) -> None:
    taken = mask & condition(warp)
    if taken == warp.active: warp.pc += distance
    elif taken: return warp.convergence.part(warp, taken, warp.pc + distance)
    if warp.convergence.ready: warp.convergence.switch(warp)
  return run

def set_convergence_barrier(o: Operands) -> Step:
  """BSSY: the current lanes will reconverge, and go on at the target."""
  number, distance = o.values["bar"].index, o.number("t")
  o.word("reconv")
  return lambda warp, mask: warp.convergence.set(number, mask, warp.pc + distance)

def wait_at_convergence_barrier(o: Operands) -> Step:
  """BSYNC: these lanes have come to the point where they reconverge with the others."""
  number, condition = o.values["bar"].index, o.predicate("pp")
  o.word("reconv")
  return lambda warp, mask: warp.convergence.arrive(warp, number, mask & condition(warp))

def leave(o: Operands) -> Step:
  condition = o.predicate("pp")
  def run(warp: Warp, mask: int) -> None: warp.convergence.leave(warp, mask & condition(warp))
  return run

def barrier(o: Operands) -> Step:
  """BAR.SYNC of all warps of the block."""
  o.word("defer")
  number, threads = o.number("id"), o.number("n")
  if threads: raise UnknownInstruction("a barrier for some threads of a block is not supported yet")
  def run(warp: Warp, mask: int) -> None:
    if number >= warp.launch.barriers:
      raise OutOfBounds(f"barrier {number}: the launch has {warp.launch.barriers}; raise BARRIER_COUNT")
    if mask != warp.active or warp.convergence.parted:
      raise EmulatorError("some lanes of a warp are at a barrier, others are not")
    warp.waiting = True
  return run

VOTES: dict[str, Callable[[int, int], bool]] = {  # from lanes with the predicate, and lanes that take part
  "ALL": lambda yes, mask: yes == mask, "ANY": lambda yes, mask: yes != 0, "EQ": lambda yes, mask: yes in (0, mask)}

def vote(o: Operands) -> Step:
  """VOTE: a predicate over all lanes. With ANY, a register gets the lanes whose predicate is true."""
  word, condition, ballot, put_truth = o.word("vote"), o.predicate("pp"), o.sink("d"), o.sink("pu", "p")
  if word != "ANY" and o.values["d"] != regs.RZ:
    raise UnknownInstruction(f"VOTE.{word} with a register is not supported yet")
  def run(warp: Warp, mask: int) -> None:
    yes = condition(warp) & mask
    put_truth(warp, ALL if VOTES[word](yes, mask) else 0, mask)
    ballot(warp, [yes] * LANES, mask)
  return run

def ordered(o: Operands) -> Step:
  """MEMBAR of a block. A warp's accesses to the block's memory are in order here.

  Raises UnknownInstruction for wider ones.
  """
  o.word("order")
  if o.word("mem") != "CTA": raise UnknownInstruction(f"MEMBAR of {o.word('mem')} is not supported yet")
  return lambda warp, mask: None

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "BRA": branch, "BSSY": set_convergence_barrier, "BSYNC": wait_at_convergence_barrier, "EXIT": leave,
  "BAR": barrier, "VOTE": vote, "MEMBAR": ordered,
  "NOP": lambda o: lambda warp, mask: None,
}
