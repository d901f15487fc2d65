"""Every operation on vectors in capabilities.py, at every number of lanes, executed by the processor in Python."""
import struct

from generators.program_builder import Builder
import pytest
from x86 import kernels as x86_kernels
from x86 import operations as x86_operations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import LEVELS
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops

CASES = [pytest.param(op, dtype, arch, id=f"{op.name}-{dtype.name}-{arch[7:]}")
         for arch, level in LEVELS.items() for op, dtype in x86_operations.by_name(level[2])]

@pytest.mark.parametrize("op, dtype, arch", CASES)
def test_operations(op: Ops, dtype: DType, arch: str) -> None:
  for lanes in x86_operations.lanes_of(dtype, arch): x86_operations.run(op, dtype, lanes, arch)

FACTORS = [(dtypes.uint8, dtypes.int8, "vpmaddwd"), (dtypes.int16, dtypes.uint8, "vpmaddwd"),
           (dtypes.uint8, dtypes.uint8, "vpmaddwd"),
           (dtypes.int8, dtypes.int8, "vpmulld"), (dtypes.uint16, dtypes.uint8, "vpmulld"),
           (dtypes.int32, dtypes.uint8, "vpmulld")]

@pytest.mark.parametrize("a, b, row", FACTORS, ids=str)
def test_products_of_short_factors(a: DType, b: DType, row: str) -> None:
  """All pairs of corners; the fast instruction is used where it is exact."""
  lanes = 8
  corners = [[d.min, d.max, 0, 1, d.max // 2, d.max - 1, 3, d.min + 1] for d in (a, b)]
  pairs = [(int(x), int(y)) for x in corners[0] for y in corners[1]]
  build = Builder("short")
  out, x, y = build.param(0, dtypes.int32, 64), build.param(1, a, 64), build.param(2, b, 64)
  with build.loop(64 // lanes, AxisType.GLOBAL) as g:
    factors = [build.add(build.load(p, g * lanes, lanes).cast(dtypes.int32.vec(lanes))) for p in (x, y)]
    build.store(out, g * lanes, build.add(factors[0] * factors[1]))
  memory = [bytes(256),
            *[struct.pack(f"<64{d.fmt}", *column) for d, column in zip((a, b), zip(*pairs, strict=True), strict=True)]]
  for arch in ("x86_64:avx2", "x86_64:avx512"):
    x86_kernels.run(build.program(), arch, memory)
    rows = [inst.row.name for block in target(arch).select(build.program(), target(arch)).blocks
            for inst in block.insts]
    assert (row in rows) and not {"vpmaddwd", "vpmulld"} - {row} & set(rows)
