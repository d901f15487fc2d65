"""Asynchronous copies from global to shared memory: LDGSTS, and the instructions that wait for them, LDGDEPBAR and
DEPBAR.LE.

A copy may write to shared memory at any time until its warp has waited for it. So from its start on no warp may read or
write those bytes. Other warps may not have done so since the last barrier either. After the wait, the warp may read the
bytes; other warps may after the next barrier.

LDGDEPBAR makes a group of the copies that the warp has started since the last group, and counts it in a scoreboard.
Groups are done in order, and DEPBAR.LE waits until the scoreboard counts at most n. A copy that is never waited for is
never seen.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import MissingWait, UnknownInstruction
from tinyhw.emulator.memory.lds import Access, WRITE
from tinyhw.emulator.nvidia.memory.transfer import aligned, based, hints
from tinyhw.emulator.nvidia.warp.numbers import LONG, WORD
from tinyhw.emulator.nvidia.warp.operands import Operands, Source
from tinyhw.emulator.nvidia.warp.state import Warp, lanes_of
from tinyhw.isa.sass.table.control import NONE
from tinyhw.named_tuple import NamedTuple

Step = Callable[[Warp, int], None]
SIZES = {"": 4, "64": 8, "128": 16}
BYPASS = 16

class PendingCopy(NamedTuple):
  """Bytes that a copy will write to an address of shared memory."""
  address: int
  data: bytes

class AsynchronousCopies:
  """The copies of one warp. open: started, in no group yet. groups: scoreboard and copies, the oldest first."""
  __slots__ = ("open", "groups")

  def __init__(self) -> None:
    self.open: list[PendingCopy] = []
    self.groups: list[tuple[int, list[PendingCopy]]] = []

  def unfinished(self) -> list[Access]:
    """Return the accesses to shared memory that may still happen."""
    return [(copy.address, len(copy.data), WRITE) for copies in (self.open, *(group for _, group in self.groups))
            for copy in copies]

  def finish(self, board: int, left: int) -> list[PendingCopy]:
    """Remove and return the copies that are done when a scoreboard counts at most `left` groups."""
    mine = [at for at, (other, _) in enumerate(self.groups) if other == board]
    done = set(mine[:max(0, len(mine) - left)])
    found = [copy for at in sorted(done) for copy in self.groups[at][1]]
    self.groups = [group for at, group in enumerate(self.groups) if at not in done]
    return found

def start(o: Operands) -> Step:
  """LDGSTS: shared memory = global memory, asynchronously."""
  read, far = o.raw("a", "q"), o.number("g")
  return started(o, lambda warp: [x + far & LONG for x in read(warp)])

def based_start(o: Operands) -> Step:
  """LDGSTS with a base in uniform registers."""
  return started(o, based(o, "uc", "g"))

def started(o: Operands, place: Source) -> Step:
  size = SIZES[o.word("copy")]
  if o.word("bypass") and size != BYPASS:
    raise UnknownInstruction(f"LDGSTS.BYPASS of {size} bytes: it copies {BYPASS} (cp.async.cg)")
  o.word("ltcs")  # use of the second cache
  hints(o)
  if o.word("zfill"): raise UnknownInstruction("LDGSTS that fills with zeros is not supported yet")
  goal, near = o.raw("d", "u"), o.number("s")
  condition = o.predicate("pp")
  def run(warp: Warp, mask: int) -> None:
    lanes = lanes_of(mask & condition(warp))
    goals, places = goal(warp), place(warp)
    goals = aligned([goals[lane] + near & WORD for lane in lanes], size)
    data = warp.memory.gather(aligned([places[lane] for lane in lanes], size), size)
    for address, piece in zip(goals, data):
      warp.shared.start(warp.number, address, len(piece))
      warp.copies.open.append(PendingCopy(address, bytes(piece)))
  return run

def commit(o: Operands) -> Step:
  """LDGDEPBAR: make a group of the started copies."""
  board = o.control.write
  def run(warp: Warp, mask: int) -> None:
    if board == NONE: raise MissingWait("LDGDEPBAR takes no scoreboard: nothing tells when its copies are done")
    warp.copies.groups.append((board, warp.copies.open))
    warp.copies.open = []
  return run

def wait(o: Operands) -> Step:
  """DEPBAR.LE: finish the copies of older groups."""
  board, left = o.number("board"), o.number("n")
  if o.number("boards"): raise UnknownInstruction("DEPBAR for several scoreboards is not supported yet")
  def run(warp: Warp, mask: int) -> None:
    for copy in warp.copies.finish(board, left): warp.shared.finish(warp.number, copy.address, copy.data)
  return run

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "LDGSTS": start, "LDGSTS.plain": start, "LDGSTS.U": based_start, "LDGDEPBAR": commit, "DEPBAR.LE": wait}
