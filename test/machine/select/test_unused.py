"""Unused instructions are dropped, and instructions that only they needed. Instructions with effects stay, and so do
the results of the function."""
from __future__ import annotations
from hypothesis import given, settings, strategies as st
from generators.invented import Build, cisc, inputs, lanes, random_function, run

from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.target import assemble, capabilities
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.select.unused import drop_unused
from tinyhw.machine.verify.ssa import verify
from tinyhw.uop.enums import AxisType
from tinyhw.uop.ops import UOp

def names(function: Function) -> list[str]: return [inst.row.name for block in function.blocks for inst in block.insts]

@settings(max_examples=60)
@given(st.integers(0, 1 << 30), st.integers(4, 20), st.booleans())
def test_meaning_stays(seed: int, pressure: int, gpu: bool) -> None:
  target = lanes(16, 3) if gpu else cisc(7, 4)
  function, data = random_function(target, seed, pressure, 60), inputs(seed)
  try: expected = run(function, *data)
  except TimeoutError: return
  before = len(names(function))
  assert run(verify(drop_unused(function, target), target), *data) == expected
  after = len(names(function))
  assert after <= before and len(names(drop_unused(function, target))) == after

def test_a_chain_goes_and_what_a_store_needs_stays() -> None:
  b = Build(cisc())
  a, = b.params("r64")
  x, y, z, w = b.many("r64", 4)
  b.emit("movi", x, 1)
  b.emit("movi", y, 2)
  b.emit("load", z, y, 3)
  b.emit("lea", w, z, x, 0)
  b.emit("store", a, 0, x)
  b.emit("ret", a)
  assert names(drop_unused(b.function, b.target)) == ["movi", "store", "ret"]

def test_flags_that_are_read_keep_their_writer() -> None:
  """Also if their reader is dropped itself, which is not known then."""
  for read, used, left in ((True, True, ["inc", "setl", "store", "ret"]), (True, False, ["inc", "store", "ret"]),
                           (False, False, ["store", "ret"])):
    b = Build(cisc())
    a, = b.params("r64")
    x, y, z = b.many("r64", 3)
    b.emit("inc", x, ties=(a,))
    if read: b.emit("setl", y)
    b.emit("inc", z, ties=(a,))
    b.emit("store", a, 0, y if used else a)
    b.emit("ret", a)
    assert names(drop_unused(b.function, b.target)) == left

def test_indices_that_loads_have_swallowed_go() -> None:
  """A load of eight contiguous elements is two instructions of four elements. None computes the addresses of the
  others."""
  a, r = UOp.param(1, dtypes.float32, 32 * 8), UOp.range(32, 0, AxisType.LOCAL)
  total = a.index(r * 8).load()
  for k in range(1, 8): total = total + a.index(r * 8 + k).load()
  kernel = UOp.sink(UOp.param(0, dtypes.float32, 32).index(r).store(total, r))
  function = assemble(lower(kernel, capabilities("gfx1100"), "neighbours"), "gfx1100")[0]
  assert len([name for name in names(function) if name.startswith("v_add_nc_u32")]) <= 1
