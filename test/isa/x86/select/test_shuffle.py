"""SHUFFLEs, executed by the processor in Python; the instructions that they take."""
from __future__ import annotations
import random

from generators.program_builder import Builder
import pytest
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.select.shuffle import code_of_places, is_half_and_half, places_in_parts
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32, F64 = dtypes.float32, dtypes.float64
AVX2, AVX512 = "x86_64:avx2", "x86_64:avx512"
VECTORS = [(arch, dtype, size // dtype.itemsize) for arch, most in ((AVX2, 32), (AVX512, 64))
           for dtype in (F32, F64, dtypes.int32, dtypes.uint64) for size in (16, 32, 64) if size <= most]
SIZE = 128

def shuffled(dtype: DType, lanes: tuple[int, ...], count: int, sources: int = 2) -> Program:
  """Return the program of out = lanes of x, or of x and y, which have `count` lanes each."""
  build = Builder("shuffled")
  out, x, y = [build.param(k, dtype, SIZE) for k in range(3)]
  with build.loop(SIZE // max(len(lanes), count), AxisType.GLOBAL) as g:
    values = tuple([build.load(p, g * count, count) for p in (x, y)[:sources]])
    value = build.add(UOp(Ops.SHUFFLE, dtype.vec(len(lanes)), values, lanes))
    build.store(out, g * len(lanes), build.add(value.alu(Ops.ADD, value)))
  return build.program()

def run(program: Program, arch: str, dtype: DType) -> None:
  rng = random.Random(1)
  size = SIZE * dtype.itemsize
  x86_kernels.run(program, arch, [bytes(size), rng.randbytes(size), rng.randbytes(size)])

def rows(program: Program, arch: str) -> list[str]:
  """Return the instructions of a program that move lanes."""
  found = [inst.row.name.partition("_")[0] for block in target(arch).select(program, target(arch)).blocks
           for inst in block.insts]
  return [name for name in found if name.startswith(("vperm", "vshuf", "vunpck", "vblend", "vinsert"))]

@pytest.mark.parametrize("arch, dtype, count", VECTORS)
def test_any_lanes(arch: str, dtype: DType, count: int) -> None:
  rng = random.Random(count)
  for sources in (1, 2):
    for _ in range(6):
      lanes = tuple(rng.randrange(sources * count) for _ in range(count))
      run(shuffled(dtype, lanes, count, sources), arch, dtype)

@pytest.mark.parametrize("arch, dtype, count", VECTORS)
def test_the_usual_lanes(arch: str, dtype: DType, count: int) -> None:
  each = 16 // dtype.itemsize
  for places in ((0, 4, 1, 5), (2, 6, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7), (3, 1, 7, 4)) if each == 4 else (
      (0, 2), (1, 3), (1, 2)):
    lanes = tuple(start + (k if k < each else k - each + count) for start in range(0, count, each) for k in places)
    run(shuffled(dtype, lanes, count), arch, dtype)
    assert len(rows(shuffled(dtype, lanes, count), arch)) == 1, "the same in each part"
  for first in (0, 1): run(shuffled(dtype, tuple(range(first, 2 * count, 2)), count), arch, dtype)
  run(shuffled(dtype, tuple(range(count))[::-1], count, 1), arch, dtype)
  run(shuffled(dtype, tuple(range(count)), count, 1), arch, dtype)
  half = count // 2
  if half * dtype.itemsize >= 16: run(shuffled(dtype, tuple(range(count)), half), arch, dtype)

@pytest.mark.parametrize("arch, count", [(AVX2, 8), (AVX2, 16), (AVX512, 8), (AVX512, 16), (AVX512, 32)])
@pytest.mark.parametrize("dtype", (dtypes.int16, dtypes.uint16), ids=lambda d: d.name)
def test_elements_of_two_bytes_in_turns(arch: str, count: int, dtype: DType) -> None:
  for first, name in ((0, "vpunpcklwd"), (4, "vpunpckhwd")):
    lanes = tuple(start + k + count * which for start in range(first, count, 8) for k in range(4) for which in (0, 1))
    program = shuffled(dtype, lanes, count)
    run(program, arch, dtype)
    found = [inst.row.name.partition("_")[0] for block in target(arch).select(program, target(arch)).blocks
             for inst in block.insts]
    assert found.count(name) == 1
  if count == 8: run(shuffled(dtype, tuple(range(16)), 8), arch, dtype)

@pytest.mark.parametrize("arch, lanes, count, names", [
  (AVX2, tuple(range(8)), 4, ["vinsertf128"]),
  (AVX512, tuple(range(16)), 8, ["vinsertf64x4"]),
  (AVX2, tuple(range(0, 16, 2)), 8, ["vshufps", "vpermpd"]),
  (AVX2, tuple(range(1, 16, 2)), 8, ["vshufps", "vpermpd"]),
  (AVX2, (7, 6, 5, 4, 3, 2, 1, 0), 8, ["vpermps"]),
  (AVX2, (0, 9, 3, 8, 5, 6, 1, 15), 8, ["vpermps", "vpermps", "vblendps"]),
  (AVX2, (3, 2, 1, 0, 7, 6, 5, 4), 8, ["vpermilps"]),
  (AVX512, tuple(range(0, 32, 2)), 16, ["vpermt2ps"]),
  (AVX512, tuple(range(16))[::-1], 16, ["vpermps"]),
])
def test_instructions(arch: str, lanes: tuple[int, ...], count: int, names: list[str]) -> None:
  sources = 2 if max(lanes) >= count else 1
  assert rows(shuffled(F32, lanes, count, sources), arch) == names

def test_lanes_that_stay_take_no_instruction() -> None:
  assert rows(shuffled(F32, tuple(range(8)), 8), AVX2) == []
  assert rows(shuffled(F32, tuple(range(8, 16)), 8), AVX2) == [], "all of the second vector"

def test_places_in_parts() -> None:
  assert places_in_parts((0, 8, 1, 9, 4, 12, 5, 13), 8, 4) == (0, 4, 1, 5)
  assert places_in_parts((0, 8, 1, 9, 4, 12, 5, 14), 8, 4) is None, "another place in the second part"
  assert places_in_parts((0, 8, 1, 9, 0, 12, 5, 13), 8, 4) is None, "from another part"
  assert is_half_and_half((3, 1, 7, 4)) and not is_half_and_half((0, 4, 1, 5))
  assert code_of_places((3, 1, 7, 4), 2) == 0b00_11_01_11 and code_of_places((1, 2), 2) == 0b01_01
