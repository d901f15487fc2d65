"""Ordering lowers pressure where it is too high and changes nothing elsewhere. It keeps memory, flags, barriers and
jumps in order."""
from __future__ import annotations
from hypothesis import given, settings, strategies as st
from generators.invented import Build, cisc, inputs, lanes, matmul_loop, random_function, run

from tinyhw.machine.allocate.spill import spill
from tinyhw.machine.ir.inst import Effect, Function
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.order.order import order

@settings(max_examples=40)
@given(st.integers(0, 1 << 30), st.integers(8, 30), st.booleans())
def test_meaning_stays(seed: int, pressure: int, gpu: bool) -> None:
  target = lanes(16, 3) if gpu else cisc(7, 4)
  function = random_function(target, seed, pressure, 60)
  data = inputs(seed)
  try: expected = run(function, *data)
  except TimeoutError: return
  order(function, target)
  assert run(function, *data) == expected

def products(count: int) -> Build:
  """All loads, then all products, then all stores. Twice as many values as products are live."""
  b = Build(cisc(10, 6))
  a = b.params("r64")[0]
  x, y, z = (b.many("v", count) for _ in range(3))
  for k in range(count):
    b.emit("vload", x[k], a, k)
    b.emit("vload", y[k], a, k + 20)
  for k in range(count): b.emit("vadd", z[k], x[k], y[k])
  for k in range(count): b.emit("vstore", a, k + 40, z[k])
  b.emit("ret", a)
  b.target.region = lambda inst: "in" if inst.row.effects & Effect.LOAD else "out"
  return b

def names(function: Function) -> list[str]: return [i.row.name for b in function.blocks for i in b.insts]

def test_crowded_block_needs_no_spill_after_ordering() -> None:
  b = products(12)
  assert any(Liveness(b.function, registers_of(b.target)).over)
  order(b.function, b.target)
  spill(b.function, b.target)
  assert b.function.spills == 0 and len(names(b.function)) == 49

def test_order_that_fits_is_kept() -> None:
  b = products(3)
  before = list(b.at.insts)
  order(b.function, b.target)
  assert b.at.insts == before
  target = cisc(10, 15)
  function = matmul_loop(target, 12, 2)
  before = list(function.blocks[1].insts)
  order(function, target)
  assert function.blocks[1].insts == before

def test_stores_and_loads_of_one_region_keep_their_order() -> None:
  b = products(12)
  b.target.region = None
  before = [i for i in b.at.insts if i.row.name == "vstore"]
  loads = len([i for i in b.at.insts if i.row.name == "vload"])
  order(b.function, b.target)
  assert [i for i in b.at.insts if i.row.name == "vstore"] == before
  assert names(b.function).index("vstore") > loads, "no load may cross a store that may touch its memory"

def test_flags_reach_their_readers() -> None:
  """No other writer of flags is between cmp and setl, though everything else is moved."""
  b = Build(cisc(7, 4))
  a = b.params("r64")[0]
  values = b.many("r64", 12)
  for k, r in enumerate(values): b.emit("load", r, a, k)
  flags = b.many("r64", 6)
  for k, r in enumerate(flags):
    b.emit("cmp", values[k], values[k + 1])
    b.emit("setl", r)
    b.emit("add", s := b.new("r64"), values[k + 5], ties=(r,))
    b.emit("store", a, k, s)
  b.emit("ret", a)
  memory = {k: k * 7 % 5 for k in range(61)}
  expected = run(b.function, [30], memory)
  order(b.function, b.target)
  assert run(b.function, [30], memory) == expected
  about_flags = [n for n in names(b.function) if n in ("cmp", "setl", "add")]
  assert [about_flags[k - 1] for k, n in enumerate(about_flags) if n == "setl"] == ["cmp"] * 6

def test_nothing_crosses_a_call_and_jumps_stay_last() -> None:
  b = Build(cisc(7, 4))
  a = b.params("r64")[0]
  values = b.many("v", 8)
  for k, r in enumerate(values): b.emit("vload", r, a, k)
  b.emit("call", a, c := b.new("r64"))
  for k, r in enumerate(values): b.emit("vstore", a, k, r)
  b.emit("ret", c)
  order(b.function, b.target)
  found = names(b.function)
  assert found.index("call") == 8 and found[-1] == "ret"
