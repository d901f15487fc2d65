"""Groups of registers: vectors of all types are loaded, split into elements, joined and stored. The results are
compared with the interpreter's."""
from __future__ import annotations

import pytest

from test.codegen.kernels import axis, wild, data_for
from test.isa.amd.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

TYPES = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.float16, dtypes.int32, dtypes.float32,
         dtypes.int64, dtypes.float64)
LANES = 32

def neighbours(dtype: DType, copies: int, changed: bool, gated: bool = False, uniform: bool = False) -> UOp:
  """Each lane has `copies` adjacent elements. changed: reversed, and added to the first one, so that elements are
  extracted and packed."""
  n = LANES * copies
  out, a, lane, k = UOp.param(0, dtype, n), UOp.param(1, dtype, n), axis(LANES, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  base = UOp.const(dtypes.weakint, 0) if uniform else lane * copies
  def element(at: UOp) -> UOp: return a.index(base + at).load(lane < 5) if gated else a.index(base + at).load()
  value = element((k * -1 + (copies - 1)) if changed else k)
  if changed: value = value + element(k)
  return UOp.sink(out.index(lane * copies + k).store(value, lane, k))

def names(kernel: UOp, arch: str) -> list[str]:
  return [inst.row.name for block in assemble(lower(kernel, capabilities(arch), "k"), arch)[0].blocks
          for inst in block.insts]

@pytest.mark.parametrize("changed", (False, True))
@pytest.mark.parametrize("dtype", TYPES, ids=[d.name for d in TYPES])
@pytest.mark.parametrize("arch", ARCHS)
def test_every_type_and_width(arch: str, dtype: DType, changed: bool) -> None:
  most = 16 // dtype.itemsize
  for copies in {2, most // 2, most} - {1}:
    kernel = neighbours(dtype, copies, changed)
    bits = 8 * dtype.itemsize * copies
    made = names(kernel, arch)
    assert f"global_store_b{bits}" in made and (f"global_load_b{bits}" if bits > 16 else "global_load_u16") in made
    assert sum(name.startswith("global") for name in made) == 2
    check(kernel, arch, data_for(kernel, make=wild) if not changed else None, optimized=False,
          what=f"{dtype} x{copies}")

@pytest.mark.slow
@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.float16, dtypes.float32, dtypes.float64), ids=str)
def test_one_gate_for_a_vector(dtype: DType) -> None:
  for arch in ARCHS: check(neighbours(dtype, 16 // dtype.itemsize, True, gated=True), arch, optimized=False)

@pytest.mark.slow
@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.int32, dtypes.float32, dtypes.int64), ids=str)
def test_what_all_lanes_read_is_one_scalar_load(dtype: DType) -> None:
  for arch in ARCHS:
    for changed in (False, True):
      kernel = neighbours(dtype, 16 // dtype.itemsize, changed, uniform=True)
      made = names(kernel, arch)
      assert ("s_load_b128" in made) == (dtype.itemsize >= 4) and any(name.startswith("global_load")
                                                                      for name in made) == (dtype.itemsize < 4)
      check(kernel, arch, optimized=False)

@pytest.mark.parametrize("value", (0.0, 1.5))
@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.float16, dtypes.float32, dtypes.int64), ids=str)
def test_constants(dtype: DType, value: float) -> None:
  copies, lane = 16 // dtype.itemsize, axis(LANES, 0, "LOCAL")
  k, out = axis(copies, 1, "UPCAST"), UOp.param(0, dtype, LANES * copies)
  for arch in ARCHS:
    check(UOp.sink(out.index(lane * copies + k).store(UOp.const(dtype, dtype.const(value)), lane, k)), arch,
          optimized=False)

@pytest.mark.slow
def test_local_memory_is_read_in_wide_pieces() -> None:
  out, a, lane, k = UOp.param(0, dtypes.float32, 128), UOp.param(1, dtypes.float32,
                                                                 128), axis(LANES, 0, "LOCAL"), axis(4, 1, "UPCAST")
  turn = axis(4, 2, "STAGE")
  stage = UOp(Ops.STAGE, dtypes.float32, (a.index(turn * LANES + lane).load(), turn, lane), (0,))
  value = UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, dtypes.float32, (stage, lane * 4 + k)),))
  kernel = UOp.sink(out.index(lane * 4 + k).store(value, lane, k))
  for arch in ARCHS:
    assert "ds_load_b128" in names(kernel, arch)
    check(kernel, arch, optimized=False)

@pytest.mark.parametrize("dtype", (dtypes.int16, dtypes.float16), ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_a_block_of_halves_is_turned_by_permutations(arch: str, dtype: DType) -> None:
  """Each lane has two rows of four, and stores them as four columns of two: no element is extracted by itself."""
  out, a, lane = UOp.param(0, dtype, LANES * 8), UOp.param(1, dtype, LANES * 8), axis(LANES, 0, "LOCAL")
  column, row = axis(4, 1, "UPCAST"), axis(2, 2, "UPCAST")
  kernel = UOp.sink(out.index(column * LANES * 2 + lane * 2 + row).store(a.index(lane * 8 + row * 4 + column).load(),
                                                                         lane, column, row))
  made = names(kernel, arch)
  assert made.count("v_perm_b32") == 4 and not any("bfe" in name or "lshl_or" in name for name in made)
  check(kernel, arch, data_for(kernel, make=wild), optimized=False)
