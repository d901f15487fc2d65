"""SHFL: lanes of a warp read a register of each other.

The third source has a clamp in its lowest five bits, and in bits 8 to 12 the bits of a lane's number that say which segment it is in. A lane whose
partner is beyond the clamp keeps its own value, and its predicate becomes false. Source: PTX ISA, shfl.sync. What that leaves open is an error: a
partner that does not execute the instruction. Sources are the registers of all lanes that do (strict.py).
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.operands import Operands, Source
from tinyhw.emulator.nvidia.state import LANES, Warp, lanes_of

Step = Callable[[Warp, int], None]
FIELD = LANES - 1    # bits of a lane's number
SEGMENT_AT = 8       # bits of the third source that say the segment begin here

def partner(mode: str, lane: int, distance: int, clamp: int) -> tuple[int, bool]:
  """The lane that a lane reads, and whether the clamp lets it; if not it reads itself."""
  segment, limit, distance = clamp >> SEGMENT_AT & FIELD, clamp & FIELD, distance & FIELD
  first = lane & segment
  last = first | limit & ~segment
  found = {"IDX": first | distance & ~segment, "UP": lane - distance, "DOWN": lane + distance, "BFLY": lane ^ distance}[mode]
  allowed = found >= last if mode == "UP" else found <= last
  return (found, True) if allowed else (lane, False)

def shuffled(o: Operands) -> Step:
  """A register or a constant for the distance, and for the clamp."""
  mode, read, put, put_truth = o.word("shfl"), o.raw("a", "u"), o.sink("d"), o.sink("pu", "p")
  distances, clamps = either(o, "n", "b"), either(o, "m", "c")
  def run(warp: Warp, mask: int) -> None:
    values, by, clamp = read(warp), distances(warp), clamps(warp)
    found, truths = [0] * LANES, 0
    for lane in lanes_of(mask):
      other, allowed = partner(mode, lane, by[lane], clamp[lane])
      if not mask >> other & 1:
        raise StrictError(f"SHFL.{mode}: lane {lane} reads lane {other}, which does not execute it; have all lanes that are read run")
      found[lane] = values[other]
      truths |= allowed << lane
    put(warp, found, mask)
    put_truth(warp, truths, mask)
  return run

def either(o: Operands, number: str, register: str) -> Source:
  """A constant in all lanes, if the form has one, else a register."""
  if not o.has(number): return o.raw(register, "u")
  same = [o.number(number)] * LANES
  return lambda warp: same

MEANINGS: dict[str, Callable[[Operands], Step]] = {name: shuffled for name in ("SHFL", "SHFL.M", "SHFL.L", "SHFL.LM")}
