"""The order of the products of a square. Each occurs once, sums proceed step by step, and two adjacent ones form one
instruction."""
from __future__ import annotations
import random

import pytest

from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.macros.macros import instructions
from tinyhw.isa.amd.select.products import BANKS, LATENCY, are_partners, in_pairs, products_row
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import MInst

SIDE, STEPS = 4, 4

def banks_of(starts: list[int], by_steps: tuple[bool, bool]) -> tuple[int, ...]:
  """Banks of elements that were loaded in groups of four, starting at these banks. A group belongs to a row or column,
  or to a step."""
  groups = [[(start + k) % BANKS for k in range(4)] for start in starts]
  return tuple(groups[SIDE * factor + (step if by_steps[factor] else line)][line if by_steps[factor] else step]
               for factor in range(2) for line in range(SIDE) for step in range(STEPS))

CASES = [banks_of([random.Random(seed).randrange(BANKS) if seed else 0 for _ in range(2 * SIDE)], order)
         for seed in range(6) for order in ((False, False), (False, True), (True, True))]

@pytest.mark.parametrize("banks", CASES)
def test_each_product_is_there_once_and_in_order(banks: tuple[int, ...]) -> None:
  order = in_pairs(banks, SIDE)
  terms: dict[int, list[tuple[int, int]]] = {}
  for f in order: terms.setdefault(f.sum, []).append((f.a, f.b))
  assert terms == {y * SIDE + x: [(y * STEPS + step, (SIDE + x) * STEPS + step) for step in range(STEPS)]
                   for y in range(SIDE) for x in range(SIDE)}

@pytest.mark.parametrize("banks", CASES)
def test_nearly_all_have_a_partner(banks: tuple[int, ...]) -> None:
  order, slots, at = in_pairs(banks, SIDE), 0, 0
  while at < len(order):
    at += 2 if at + 1 < len(order) and are_partners(order[at], order[at + 1], banks) else 1
    slots += 1
  assert slots <= 1.1 * len(order) / 2

def test_sums_rest() -> None:
  """Most accumulators are added to again only after the last addition is finished."""
  order = in_pairs(CASES[0], SIDE)
  last: dict[int, int] = {}
  near = 0
  for at, f in enumerate(order):
    near += at - last.get(f.sum, -2 * LATENCY) < 2 * LATENCY - 1   # two operations an instruction
    last[f.sum] = at
  assert near * 3 <= len(order)

@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200"))
def test_partners_are_what_the_encoder_takes(arch: str) -> None:
  rows, generation = table(arch), Generation(arch)
  pair, checked = rows["v_dual_fmac_f32::v_dual_fmac_f32"], 0
  for seed in range(4):
    places = tuple((group, k) for group in range(8) for k in range(4))
    starts = [64 + 5 * k + random.Random(seed).randrange(4) for k in range(8)]
    row = products_row(generation, regs.V[16], (regs.V[4],) * 8, places)
    made = instructions(MInst(row, [regs.v(16, 16), *(regs.v(start, 4) for start in starts)]))
    assert len(made) == 64 and {inst.row.name for inst in made} == {"v_fmac_f32"}
    order = in_pairs(tuple((starts[group] + k) % BANKS for group, k in places), SIDE)
    for (f, first), (g, second) in zip(list(zip(order, made))[::2], list(zip(order, made))[1::2]):
      (d, a, b), (e, x, y) = first.operands[:3], second.operands[:3]
      banks = tuple((starts[group] + k) % BANKS for group, k in places)
      if not are_partners(f, g, banks): continue
      if a.index % BANKS == x.index % BANKS or b.index % BANKS == y.index % BANKS: x, y = y, x
      assert encode(build(pair, d, a, b, e, x, y))
      checked += 1
  assert checked > 60
