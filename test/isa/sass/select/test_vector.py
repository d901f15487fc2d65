"""Groups of registers: vectors of all types that are loaded, split, assembled and stored. Results are compared with the
interpreter."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis, data_for, wild
from test.isa.amd.select.test_vector import TYPES, neighbours
from test.isa.sass.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select.vector import gathering, selector
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def texts(kernel: UOp, arch: str) -> list[str]:
  return [show(inst) for _, inst, _ in assemble(lower(kernel, capabilities(arch), "k"), arch)[2]]

@pytest.mark.parametrize("changed", (False, True))
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_neighbours_of_all_types(dtype: DType, changed: bool) -> None:
  for k, copies in enumerate((2, 4, 8)):
    for gated in (False, True):
      kernel = neighbours(dtype, copies, changed, gated)
      check(kernel, ARCHS[k], data=data_for(kernel, 3, wild if not changed else None), optimized=False,
            what=f"{copies} {dtype}")

def test_accesses_are_as_wide_as_memory_allows() -> None:
  wide = texts(neighbours(dtypes.float32, 4, False), "sm_90")
  assert sum("LDG.E.128" in line for line in wide) == sum("STG.E.128" in line for line in wide) == 1
  assert (sum("LDG.E.64" in line for line in texts(neighbours(dtypes.float32, 6, False), "sm_90"))
          == 3), "six begin at multiples of 8 bytes"

def test_selectors() -> None:
  assert [hex(selector(first, size, signed)) for first, size, signed in ((0, 1, False), (3, 1, True), (0, 2, False),
                                                                         (2, 2, True))] == [
    "0x4440", "0xbbb3", "0x4410", "0xbb32"]

def test_bytes_of_several_registers() -> None:
  """Gather two halves of two words, a word, and four bytes of three registers."""
  made = gathering((4, 2), ((0, 2), (0, 3), (1, 4), (1, 5), *((0, 12 + k) for k in range(4))))
  assert made.lines == ("PRMT d.0, s0.0, 0x5432, s1.1", "MOV d.1, s0.3")
  made = gathering((1, 1, 1), ((0, 0), (1, 0), (2, 0), (2, 3)))
  assert made.lines == ("PRMT t, s0, 0x40, s1", "PRMT d, s2, 0x30, RZ",
                        "PRMT d, t, 0x5410, d") and [name for name, _, _ in made.operands][-1] == "t"
  assert gathering((0,), ((0, 0), (0, 1), (0, 2), (0, 3))).lines == ("MOV d, s0",)

def test_what_is_turned_takes_one_instruction_a_word() -> None:
  """Join the halves of two loads: the first of each, then the second. A factor with adjacent steps is stored like
  this."""
  out, a = UOp.param(0, dtypes.float16, 256), UOp.param(1, dtypes.float16, 256)
  lane, k, h = axis(32, 0, "LOCAL"), axis(4, 1, "UPCAST"), axis(2, 2, "UPCAST")
  kernel = UOp.sink(out.index(lane * 8 + k * 2 + h).store(a.index(lane * 8 + h * 4 + k).load(), lane, k, h))
  found = texts(kernel, "sm_90")
  assert sum(line.startswith("PRMT") for line in found) == 4 and not any(line.startswith("MOV") for line in found)
  check(kernel, "sm_90", optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16), ids=str)
def test_halves_are_converted_where_they_are_and_rounded_in_pairs(dtype: DType, arch: str) -> None:
  lane, k = axis(32, 0, "LOCAL"), axis(8, 1, "UPCAST")
  place = lane * 8 + k
  value = UOp.param(1, dtype, 256).index(place).load()
  kernel = UOp.sink(UOp.param(0, dtype, 256).index(place).store(value + value + value, lane, k))
  found = [line.split()[0] for line in texts(kernel, arch)]
  assert sum(name.startswith("F2FP") for name in found) == 4
  assert sum(name.startswith(("HADD2", "PRMT", "LOP3")) for name in found) == 8, "one for each element"
  check(kernel, arch, data=data_for(kernel, 6, wild), optimized=False)

@pytest.mark.parametrize("copies", (1, 4))
@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.uint8, dtypes.int16), ids=str)
def test_what_memory_does_not_take_is_not_extended(dtype: DType, copies: int) -> None:
  """Sums of narrow integers are stored without extension. As numbers they are extended."""
  lane, k = axis(32, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  place, n = lane * copies + k, 32 * copies
  x, y = (UOp.param(slot, dtype, n).index(place).load() for slot in (1, 2))
  kernel = UOp.sink(UOp.param(0, dtype, n).index(place).store(x + y, lane, k))
  assert not any(line.startswith(("SGXT", "LOP3")) for line in texts(kernel, "sm_90"))
  check(kernel, "sm_90", data=data_for(kernel, 8, wild), optimized=False)
  wider = UOp.sink(UOp.param(0, dtypes.int32, n).index(place).store((x + y).cast(dtypes.int32), lane, k))
  check(wider, "sm_90", data=data_for(wider, 8, wild), optimized=False)
  gated = UOp(Ops.LOAD, dtype,
              (UOp.param(3, dtype, n).index(place), UOp(Ops.CMPLT, dtypes.bool, (lane, lane.const_like(9))), x + y))
  gated = UOp.sink(UOp.param(0, dtypes.int32, n).index(place).store(gated.cast(dtypes.int32), lane, k))
  check(gated, "sm_90", data=data_for(gated, 8, wild), optimized=False)

@pytest.mark.slow
@pytest.mark.parametrize("copies", (2, 4, 8, 16))
def test_truths_are_loaded_and_stored_together(copies: int) -> None:
  """A bool is a byte. Compare, negate and combine bools, choose by them, with gates and constants."""
  lane, k = axis(32, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  place, n = lane * copies + k, 32 * copies
  a, b = (UOp.param(slot, dtypes.bool, n).index(place).load() for slot in (1, 2))
  x = UOp.param(3, dtypes.float32, n).index(place).load()
  gate = UOp(Ops.CMPLT, dtypes.bool, (lane, lane.const_like(9)))
  for number in (False, True):
    some = UOp(Ops.LOAD, dtypes.bool, (UOp.param(1, dtypes.bool, n).index(place), gate, UOp.const(dtypes.bool, number)))
    for value in (UOp(Ops.CMPLT, dtypes.bool, (x, UOp.const(dtypes.float32, 0.5))), UOp(Ops.AND, dtypes.bool, (a, b)),
                  UOp(Ops.XOR, dtypes.bool, (some, b)),
                  UOp(Ops.WHERE, dtypes.float32, (a, x, UOp.const(dtypes.float32, 2.0))), some):
      kernel = UOp.sink(UOp.param(0, value.dtype, n).index(place).store(value, lane, k))
      found = texts(kernel, "sm_90")
      assert not any("LDG.E.U8" in line or "STG.E.U8" in line for line in found)
      check(kernel, ARCHS[copies % 3], data=data_for(kernel, 9, wild), optimized=False,
            what=f"{copies} of {value.op.name}")
