"""SHFL: lanes of a warp read a register of each other.

The third source has a clamp in its lowest five bits. Bits 8 to 12 select the bits of a lane's number that form its
segment. A lane whose partner is beyond the clamp keeps its own value, and its predicate becomes false. Source: PTX ISA,
shfl.sync. It leaves one case open, which is an error here: a partner that does not execute the instruction. Sources
must be written in all lanes that execute it (strict.py).
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.nvidia.warp.operands import Operands, Source
from tinyhw.emulator.nvidia.warp.state import ALL, LANES, Warp, lanes_of, mask_of
from tinyhw.threads import once

Step = Callable[[Warp, int], None]
Partners = tuple[list[int], int]   # the lane that each lane reads, and the lanes that the clamp lets read another one
FIELD = LANES - 1    # bits of a lane's number
SEGMENT_AT = 8       # position of the segment bits in the third source

def partner(mode: str, lane: int, distance: int, clamp: int) -> tuple[int, bool]:
  """Return the lane that a lane reads, and whether the clamp allows it. If not, it reads itself."""
  segment, limit, distance = clamp >> SEGMENT_AT & FIELD, clamp & FIELD, distance & FIELD
  first = lane & segment
  last = first | limit & ~segment
  found = {"IDX": first | distance & ~segment, "UP": lane - distance, "DOWN": lane + distance,
           "BFLY": lane ^ distance}[mode]
  allowed = found >= last if mode == "UP" else found <= last
  return (found, True) if allowed else (lane, False)

def partners_of(mode: str, distances: list[int], clamps: list[int]) -> Partners:
  found = [partner(mode, *each) for each in zip(range(LANES), distances, clamps)]
  return [other for other, _ in found], mask_of([allowed for _, allowed in found])

@once
def same_partners(mode: str, distance: int, clamp: int) -> Partners:
  return partners_of(mode, [distance] * LANES, [clamp] * LANES)

def step(o: Operands, mode: str, partners: Callable[[Warp], Partners]) -> Step:
  """Return the function of the instruction. partners: the partner of each lane."""
  read, put, put_truth = o.raw("a", "u"), o.sink("d"), o.sink("pu", "p")
  def run(warp: Warp, mask: int) -> None:
    others, allowed = partners(warp)
    if mask != ALL: check_partners(mode, others, mask)
    values = read(warp)
    put(warp, [values[other] for other in others], mask)
    put_truth(warp, allowed, mask)
  return run

def check_partners(mode: str, others: list[int], mask: int) -> None:
  """Check that lanes which execute the instruction read lanes that do. Raises StrictError."""
  for lane in lanes_of(mask):
    if not mask >> others[lane] & 1:
      raise StrictError(f"SHFL.{mode}: lane {lane} reads lane {others[lane]}, which does not execute it; have all "
                        f"lanes that are read run")

def shuffle(o: Operands) -> Step:
  """SHFL with the distance, or the clamp, or both, in registers."""
  mode, distances, clamps = o.word("shfl"), either(o, "n", "b"), either(o, "m", "c")
  return step(o, mode, lambda warp: partners_of(mode, distances(warp), clamps(warp)))

def constant_shuffle(o: Operands) -> Step:
  """SHFL with two constants, the common case: partners are found once."""
  mode = o.word("shfl")
  found = same_partners(mode, o.number("n"), o.number("m"))
  return step(o, mode, lambda warp: found)

def either(o: Operands, number: str, register: str) -> Source:
  """Return a constant in all lanes, if the form has one, else a register."""
  if not o.has(number): return o.raw(register, "u")
  same = [o.number(number)] * LANES
  return lambda warp: same

SEMANTICS: dict[str, Callable[[Operands], Step]] = {"SHFL": shuffle, "SHFL.M": shuffle, "SHFL.L": shuffle,
                                                    "SHFL.LM": constant_shuffle}
