"""Addresses: a base in uniform registers and 32 bits of each lane, if these suffice."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis
from test.isa.sass.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.helpers import Context
from tinyhw.isa.sass.asm.syntax import show
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.select.address import PAIRS
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
FOUR_GIB = 1 << 30   # elements of float32

def texts(kernel: UOp, arch: str = "sm_90") -> list[str]:
  return [show(inst) for _, inst, _ in assemble(lower(kernel, capabilities(arch), "k"), arch)[2]]

def sums(buffers: int) -> UOp:
  """Return a program of the sum of `buffers` buffers, element by element."""
  r = axis(32, 0, "LOCAL")
  total = UOp.param(1, F32, 32).index(r).load()
  for k in range(2, buffers + 1): total = total + UOp.param(k, F32, 32).index(r).load()
  return UOp.sink(UOp.param(0, F32, 32).index(r).store(total, r))

def test_buffers_share_an_offset() -> None:
  found = texts(sums(2))
  assert [line for line in found if "ULDC" in line] == ["ULDC.64 UR0, c[0x0][0x218]", "ULDC.64 UR2, c[0x0][0x220]",
                                                        "ULDC.64 UR4, c[0x0][0x210]"]
  assert sum("SHF" in line or "WIDE" in line for line in found) == 1
  offsets = {line.partition("[")[2].partition("]")[0] for line in found if line[:3] in ("LDG", "STG")}
  (register,) = {offset.partition(".")[0] for offset in offsets}
  assert offsets == {f"{register}.U32+UR{k}" for k in (0, 2, 4)}

def test_only_addresses_that_lanes_have_are_loaded_into_their_registers() -> None:
  assert not any(line.startswith("LDC") for line in texts(sums(2)))
  with Context(NV_BASES=0):
    found = texts(sums(2))
    slots = [line.partition(", ")[2] for line in found if line.startswith("LDC.64")]
    assert sorted(slots) == ["c[0x0][0x210]", "c[0x0][0x218]", "c[0x0][0x220]"]

@pytest.mark.parametrize("arch", ARCHS)
def test_more_buffers_than_uniform_registers(arch: str) -> None:
  kernel = sums(len(PAIRS) + 3)
  check(kernel, arch, optimized=False)
  found = texts(kernel, arch)
  assert sum("ULDC.64" in line for line in found) == len(PAIRS) == sum(".U32+UR" in line for line in found)
  assert sum("IMAD.WIDE" in line for line in found) == 4, "three more that are read, and the result"

@pytest.mark.parametrize("arch", ARCHS)
def test_a_card_may_do_without(arch: str) -> None:
  with Context(NV_BASES=0):
    found = texts(sums(2), arch)
    assert not any("+UR" in line or "ULDC" in line for line in found) and sum("IMAD.WIDE" in line
                                                                              for line in found) == 3
    check(sums(2), arch, optimized=False)

@pytest.mark.parametrize("arch", ARCHS)
def test_indices_of_one_element(arch: str) -> None:
  """No lane adds anything to a constant index."""
  r = axis(32, 0, "LOCAL")
  a, out = UOp.param(1, F32, 32), UOp.param(0, F32, 32)
  kernel = UOp.sink(out.index(r).store(a.index(UOp.const(dtypes.weakint, 5)).load(), r))
  check(kernel, arch, optimized=False)
  assert any("[RZ.U32+UR0+0x14]" in line for line in texts(kernel, arch))

def moved(elements: int, more: int, factor: int = 1) -> list[str]:
  """Compile a copy from a buffer of `elements` elements. The index is the lane's number times `factor` plus `more`."""
  r = axis(32, 0, "LOCAL")
  return texts(UOp.sink(UOp.param(0, F32,
                                  32).index(r).store(UOp.param(1, F32, elements).index(r * factor + more).load(), r)))

def loads(lines: list[str]) -> str: return next(line for line in lines if line.startswith("LDG"))

def test_what_32_bits_are_enough_for() -> None:
  assert "UR" in loads(moved(FOUR_GIB, 5)) and "UR" in loads(moved(8 * FOUR_GIB, 5)), "the index is short"
  assert "UR" in loads(moved(FOUR_GIB, 0, -1)), "the buffer is short, whatever the sign"
  far = moved(FOUR_GIB, FOUR_GIB // 2)
  assert "UR" in loads(far) and any(line.startswith("IADD3") and "0x80000000" in line
                                    for line in far), "the buffer is short: one sum of 32 bits"
  assert "UR" not in loads(moved(8 * FOUR_GIB, 7 * FOUR_GIB)), "too far for a lane"
  assert "UR" not in loads(moved(8 * FOUR_GIB, 0, FOUR_GIB // 16)), "too far, from some lane on"

@pytest.mark.parametrize("arch", ARCHS)
def test_a_bias_where_an_index_may_be_negative(arch: str) -> None:
  """Read every second element backwards, with the two after it. The lanes' part of the index is negative; the constants
  make it valid."""
  r = axis(32, 0, "LOCAL")
  a, out = UOp.param(1, F32, 80), UOp.param(0, F32, 32)
  value = a.index(r * -2 + 70).load() + a.index(r * -2 + 71).load() * 2 + a.index(r * -2 + 72).load() * 3
  kernel = UOp.sink(out.index(r).store(value, r))
  check(kernel, arch, optimized=False)
  places = sorted(line.partition("[")[2] for line in texts(kernel, arch) if line.startswith("LDG"))
  assert len({place.partition(".")[0] for place in places}) == 1, "one register"
  assert [place.partition("+")[2] for place in places] == ["UR0+0x20]", "UR0+0x28]"], ("62 elements have been added; "
                                                                                       "two are loaded at once")

@pytest.mark.slow
def test_what_a_loop_leaves_is_scaled_before_it() -> None:
  """Sum the rows of a matrix. An iteration makes an index by one instruction."""
  r, x = axis(32, 0, "LOCAL"), axis(100, 1, "REDUCE")
  total = UOp.param(1, F32, 32 * 100).index(r + x * 32).load().reduce(Ops.ADD, x)
  kernel = UOp.sink(UOp.param(0, F32, 32).index(r).store(total, r))
  for arch in ARCHS: check(kernel, arch, optimized=False)
  function, _, _ = assemble(lower(kernel, capabilities("sm_90"), "k"), "sm_90")
  (loop,) = [block for block in function.blocks if block.depth]
  assert sorted(inst.row.name for inst in loop.insts) == ["FADD", "IADD3", "IMAD", "ISETP", "LDG.U", "jump_if"]

@pytest.mark.parametrize("arch", ARCHS)
def test_loops_in_loops(arch: str) -> None:
  """Each loop adds its own part of an index to the part before it. There are two buffers, one with larger elements."""
  r, x, y = axis(32, 0, "LOCAL"), axis(10, 1, "REDUCE"), axis(4, 2, "REDUCE")
  index = r * 3 + x * 7 + y * 100
  value = UOp.param(1, F32, 480).index(index).load() + UOp.param(2, dtypes.float64, 480).index(index).load().cast(F32)
  total = (value.reduce(Ops.ADD, x) * (y + 1).cast(F32)).reduce(Ops.ADD, y)
  kernel = UOp.sink(UOp.param(0, F32, 32).index(r).store(total, r))
  check(kernel, arch, optimized=False)
  function, _, _ = assemble(lower(kernel, capabilities(arch), "k"), arch)
  (inner,) = [block for block in function.blocks if block.depth == 2]
  names = [inst.row.name for inst in inner.insts]
  assert names.count("IMAD") == names.count("LDG.U") == 2 and "SHF" not in names, "one instruction for each address"
