"""Interleaving moves loads forward and interleaves equal chains, within the registers that cost nothing. It changes no
results."""
from __future__ import annotations
from hypothesis import given, settings, strategies as st
from generators.invented import Build, cisc, inputs, lanes, random_function, run

from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order.interleave import interleave

SLOW = {"vload": PipeCost(100), "vadd": PipeCost(5), "vfma": PipeCost(5), "call": PipeCost(50)}

def slow(target: Target, free: int = 100) -> Target:
  target.latency = SLOW
  target.steps = {bank.name: (free,) for bank in target.banks}
  return target

def names(function: Function) -> list[str]: return [i.row.name for b in function.blocks for i in b.insts]

@settings(max_examples=40)
@given(st.integers(0, 1 << 30), st.integers(2, 14), st.booleans())
def test_meaning_stays(seed: int, pressure: int, gpu: bool) -> None:
  target = slow(lanes(16, 3) if gpu else cisc(7, 4), seed % 20)
  function = random_function(target, seed, pressure, 60)
  data = inputs(seed)
  try: expected = run(function, *data)
  except TimeoutError: return
  interleave(function, target)
  assert run(function, *data) == expected

def chains(count: int, vectors: int = 12, free: int = 100) -> Build:
  """Repeat a load, two additions and a store. Source order finishes one chain before it begins the next."""
  b = Build(slow(cisc(10, vectors), free))
  a = b.params("r64")[0]
  b.target.region = lambda inst: inst.row.name
  for k in range(count):
    x, y, z = b.many("v", 3)
    b.emit("vload", x, a, k)
    b.emit("vadd", y, x, x)
    b.emit("vadd", z, y, x)
    b.emit("vstore", a, k + 40, z)
  b.emit("ret", a)
  return b

def test_chains_are_side_by_side() -> None:
  b = chains(4)
  interleave(b.function, b.target)
  assert names(b.function) == ["vload"] * 4 + ["vadd"] * 8 + ["vstore"] * 4 + ["ret"]

def test_no_more_registers_than_are_free() -> None:
  """As many chains are begun as there are registers."""
  b = chains(40, vectors=100, free=20)
  interleave(b.function, b.target)
  assert names(b.function)[:8] == ["vload"] * 8 and "vstore" in names(b.function)[:60]
  b = chains(4, free=2)
  before = list(b.at.insts)
  interleave(b.function, b.target)
  assert b.at.insts == before

def test_room_is_what_the_most_crowded_block_takes() -> None:
  """Or the registers of the first step."""
  for crowd, free, moved in (2, 2, False), (12, 2, True), (2, 12, True):
    b = chains(4, vectors=100, free=free)
    a = b.at.params[0]
    b.at.insts.pop()
    entry, end = b.at, b.block("crowd")
    values = b.many("v", crowd)
    for k, r in enumerate(values): b.emit("vload", r, a, k)
    for k, r in enumerate(values): b.emit("vstore", a, k, r)
    b.emit("ret", a)
    b.at = entry
    b.emit("jmp", end, arguments=([],))
    before = names(b.function)
    interleave(b.function, b.target)
    assert (names(b.function) != before) is moved, (crowd, free)

def test_crowded_blocks_are_left_alone() -> None:
  b = Build(slow(cisc(10, 6)))
  a = b.params("r64")[0]
  values = b.many("v", 12)
  for k, r in enumerate(values): b.emit("vload", r, a, k)
  for k, r in enumerate(values): b.emit("vstore", a, k, r)
  b.emit("ret", a)
  before = list(b.at.insts)
  interleave(b.function, b.target)
  assert b.at.insts == before

def test_nothing_crosses_a_call() -> None:
  b = Build(slow(cisc(10, 12)))
  a = b.params("r64")[0]
  b.emit("vadd", early := b.new("v"), x := b.new("v"), x)
  b.emit("vload", x, a, 0)
  b.at.insts.reverse()
  b.emit("call", a, c := b.new("r64"))
  b.emit("vload", y := b.new("v"), a, 1)
  b.emit("vstore", a, 1, early)
  b.emit("vstore", a, 2, y)
  b.emit("ret", c)
  b.target.region = lambda inst: inst.row.name
  interleave(b.function, b.target)
  found = names(b.function)
  assert found.index("call") == 2 and found[3] == "vload" and found[-1] == "ret"
