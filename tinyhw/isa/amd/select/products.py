"""Products of float32 on the vector unit of RDNA: a macro of fused multiply-adds, ordered so that pairs can become one
instruction (dual.py).

A lane has a square of accumulators (matrix.VECTOR). Each k step has an element of each row and of each column. Two
operations in one instruction must write an even and an odd register. Their first sources must be in different banks,
and so must their second ones; the sources of one may be exchanged. So the possible pairs depend on the registers that
the allocator gives to the factors. The steps of one accumulator stay in order. An operation without a partner may find
one in the next macro.
"""
from __future__ import annotations
import functools
import math
from typing import Any

from tinyhw.isa.amd.macros.macros import registers
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Access, Inst, MInst, Operand, RegClass
from tinyhw.machine.select.macros import MACRO
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

BANKS = 4       # banks of vector registers, by the lowest bits of their numbers
LATENCY = 5     # instructions between two additions to the same accumulator that avoid a stall

Place = tuple[int, int]  # an element: a source of the macro, and the number of one of its registers

class MultiplyAdd(NamedTuple):
  """One operation: numbers of the accumulator, and of the elements of both factors."""
  sum: int
  a: int
  b: int

@once
def products_row(generation: Generation, cls: RegClass, sources: tuple[RegClass, ...],
                 places: tuple[Place, ...]) -> Inst:
  """A macro that adds products to a square of accumulators.

  places: those of the first factor's elements, row by row, then of the second's, column by column.
  """
  operands = [Operand("d", Access.BOTH, cls), *(Operand(f"a{k}", Access.READ, c) for k, c in enumerate(sources))]
  return Inst(f"products_{cls.name}", MACRO, tuple(operands), "valu", 0,
              isa=(generation, functools.partial(products, places)))

def products(places: tuple[Place, ...], generation: Generation, operands: list[Any]) -> list[MInst]:
  sums, words, row = registers(operands[0]), [registers(source)
                                              for source in operands[1:]], table(generation.arch)["v_fmac_f32"]
  factors = [words[source][number] for source, number in places]
  # all are physical
  order = in_pairs(tuple([r.index % BANKS for r in factors]), math.isqrt(len(sums)))  # type: ignore[operator]
  return [build(row, sums[fused.sum], factors[fused.a], factors[fused.b]) for fused in order]

@once
def in_pairs(banks: tuple[int, ...], side: int) -> tuple[MultiplyAdd, ...]:
  """Order the operations of a square so that partners are adjacent. banks: those of the elements of both factors.

  Operations with the fewest remaining partners go first.
  """
  steps, count = len(banks) // 2 // side, side * side
  every = [MultiplyAdd(y * side + x, y * steps + step, (side + x) * steps + step) for step in range(steps)
           for y in range(side) for x in range(side)]
  partners = [sum([1 << k for k, g in enumerate(every) if are_partners(f, g, banks)]) for f in every]   # as bits
  left, now = (1 << len(every)) - 1, 0
  # of each accumulator: its next operation, and the time of its last addition
  following, added = list(range(count)), [-LATENCY] * count
  found: list[MultiplyAdd] = []
  def pair_of(ready: list[int]) -> list[int]:
    among = sum([1 << k for k in ready])
    for k in sorted(ready, key=lambda k: (partners[k] & left).bit_count()):
      fitting = partners[k] & among
      if fitting: return [k, (fitting & -fitting).bit_length() - 1]
    return []
  while left:
    ready = [k for k in following if k < len(every)]
    for k in pair_of([k for k in ready if added[k % count] + LATENCY <= now]) or pair_of(ready) or ready[:1]:
      following[k % count], added[k % count] = k + count, now
      left &= ~(1 << k)
      found.append(every[k])
    now += 1
  return tuple(found)

def are_partners(f: MultiplyAdd, g: MultiplyAdd, banks: tuple[int, ...]) -> bool:
  """Whether two operations can be one instruction."""
  a, b, c, d = banks[f.a], banks[f.b], banks[g.a], banks[g.b]
  return (f.sum ^ g.sum) & 1 == 1 and (a != c and b != d or a != d and b != c)
