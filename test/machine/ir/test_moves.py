"""Sequences of parallel copies have the same effect for any permutation, with scratch register or swaps, of narrow and
wide registers."""
from __future__ import annotations
import random

import pytest
from hypothesis import given, settings, strategies as st
from generators.invented import Machine, cisc, lanes

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg
from tinyhw.machine.ir.moves import Pairs, expand, moves, sequence, units_of
from tinyhw.machine.ir.pseudo import PARALLEL, PSEUDO, copy
from tinyhw.machine.ir.target import Target

def execute(target: Target, pairs: Pairs, scratch: list[Reg]) -> int:
  """Expand the copies and run them on numbered units. Return the number of instructions."""
  function = Function("copies")
  block = function.new_block()
  block.insts = [MInst(PARALLEL, [r for pair in pairs for r in pair], arguments=(scratch,))]
  expand(moves(function, target), target)
  machine, banks = Machine({}, random.Random(1)), {r.cls.bank for pair in pairs for r in pair}
  before = {(bank.name, i): i + 100 for bank in banks for i in range(bank.count)}
  machine.units = dict(before)
  for inst in block.insts:
    assert inst.row.encoding is not PSEUDO
    reads = [machine.get(inst.operands[i]) for i in inst.row.only_reads + inst.row.both]
    for i, value in zip(inst.row.writes, inst.row.isa(machine, reads, [])): machine.put(inst.operands[i], value)
  wanted = dict(before)
  for dst, src in pairs:
    for d, s in zip(units_of(dst), units_of(src)): wanted[d] = before[s]
  free = {unit for r in scratch for unit in units_of(r)}
  assert {u: v for u, v in machine.units.items() if u not in free} == {u: v for u, v in wanted.items() if u not in free}
  return len(block.insts)

@settings(max_examples=60)
@given(st.permutations(list(range(8))), st.integers(1, 8), st.booleans())
def test_any_partial_permutation(targets: list[int], count: int, with_scratch: bool) -> None:
  target = cisc(15, 16)
  cls = target.classes[0]
  pairs = [(Reg(cls, -1, d), Reg(cls, -1, s)) for s, d in enumerate(targets[:count])]
  execute(target, pairs, [Reg(cls, -1, 12)] if with_scratch else [])

@settings(max_examples=60)
@given(st.integers(0, 1 << 30), st.booleans())
def test_mixed_widths(seed: int, with_scratch: bool) -> None:
  """Pairs, quads and singles of a bank are exchanged."""
  rng, target = random.Random(seed), lanes(16)
  by_units = {c.units: c for c in target.classes if c.bank.name == "data" and c.align == c.units}
  sizes = [rng.choice((1, 2, 4)) for _ in range(5)]

  def place() -> list[int] | None:
    taken: set[int] = set()
    starts = []
    for size in sizes:
      free = [k for k in range(0, 15, size) if not taken & set(range(k, k + size)) and k + size <= 15]
      if not free: return None
      starts.append(rng.choice(free))
      taken |= set(range(starts[-1], starts[-1] + size))
    return starts

  old, new = place(), place()
  if old is None or new is None: return
  pairs = [(Reg(by_units[n], -1, d), Reg(by_units[n], -1, s)) for n, d, s in zip(sizes, new, old)]
  execute(target, pairs, [Reg(by_units[1], -1, 15)] if with_scratch else [])

def test_one_value_for_many() -> None:
  target = cisc()
  cls = target.classes[0]
  assert execute(target, [(Reg(cls, -1, d), Reg(cls, -1, 0)) for d in (1, 2, 3)], []) == 3

def test_copies_to_themselves_vanish_and_chains_need_no_scratch() -> None:
  target = cisc()
  r = [Reg(target.classes[0], -1, k) for k in range(6)]
  assert sequence([(r[1], r[1])], [], target) == []
  assert execute(target, [(r[1], r[0]), (r[2], r[1]), (r[3], r[2])], []) == 3

def test_cycle_costs() -> None:
  """n + 1 copies with a free register, n - 1 exchanges without. With xor an exchange of vectors is three
  instructions."""
  target = cisc()
  for cls, without in ((target.classes[0], 2), (target.classes[2], 6)):
    r = [Reg(cls, -1, k) for k in range(4)]
    cycle = [(r[0], r[1]), (r[1], r[2]), (r[2], r[0])]
    assert execute(target, cycle, [r[3]]) == 4
    assert execute(target, cycle, []) == without

def test_narrow_and_wide_values_of_one_bank_are_exchanged_whole() -> None:
  """A 32-bit and a 64-bit value are exchanged: the exchange must be 64 bits wide."""
  target = cisc()
  r64, r32 = target.classes[0], target.classes[1]
  names = [i.row.name for i in sequence([(Reg(r32, -1, 1), Reg(r32, -1, 2)), (Reg(r64, -1, 2), Reg(r64, -1, 1))], [],
                                        target)]
  assert names == ["swap"]
  assert sequence([(Reg(r32, -1, 1), Reg(r32, -1, 2)), (Reg(r64, -1, 2), Reg(r64, -1, 1))], [],
                  target)[0].operands[0].cls is r64

def test_cycle_without_any_help_is_refused() -> None:
  target = cisc(swap=False)
  r = [Reg(target.classes[0], -1, k) for k in range(2)]
  with pytest.raises(AllocationError, match="no swap"): sequence([(r[0], r[1]), (r[1], r[0])], [], target)

def test_expand_tells_where_code_is_from() -> None:
  target = cisc()
  function = Function("f")
  block: Block = function.new_block()
  r = [Reg(target.classes[0], -1, k) for k in range(2)]
  block.insts = [copy(r[0], r[1]), copy(r[0], r[0])]
  expand(function, target)
  assert [i.comment for i in block.insts] == ["copy"] and function.used["gpr"] == {0}
