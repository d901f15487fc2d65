"""NVIDIA's kernels in addition to those of test/emulator/mutants/mutation_kernels.py: with shuffles, asynchronous
copies, mbarriers, warpgroups."""
from __future__ import annotations
import functools
from collections.abc import Sequence

from test.codegen.products import product
from test.emulator.mutants import mutation_kernels
from test.emulator.mutants.mutation_kernels import Case, case
from test.isa.sass.select.test_async_copies import boxed
from test.isa.sass.select.test_matrix import opts_of
from tinyhw import dtypes
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

HALF = dtypes.float16

@functools.lru_cache(None)
def exchanging(arch: str) -> tuple[Case, ...]:
  """Return sums of rows that lanes share, in one warp and in several. Each term matters."""
  found = []
  for name, dtype, rows, columns in (("row of a warp", dtypes.float32, 2, 96),
                                     ("row of several warps", dtypes.int32, 1, 256)):
    out, a = UOp.param(0, dtype, rows), UOp.param(1, dtype, rows * columns)
    i, x = UOp.range(rows, 0), UOp.range(columns, 1, AxisType.REDUCE)
    found.append(case(name, "sass", arch,
                      UOp.sink(out.index(i).store(a.index(i * columns + x).load().reduce(Ops.ADD, x), i))))
  return tuple(found)

@functools.lru_cache(None)
def copying(arch: str) -> tuple[Case, ...]:
  """Return products that prefetch their operands with asynchronous copies: by two warps, of halves and of bytes."""
  halves, of_bytes = product(16, 16, 256, HALF, dtypes.float32), product(16, 16, 512, dtypes.int8, dtypes.int32, True)
  return case("copies of halves", "sass", arch, halves), case("copies of bytes", "sass", arch, of_bytes)

@functools.lru_cache(None)
def of_groups() -> tuple[Case, ...]:
  """Return products of four warps: with prefetching copies, as pieces of each lane, and as bulk tensor copies that
  mbarriers count; one of the latter twice."""
  pieces = product(64, 64, 512, HALF, dtypes.float32, True).replace(arg=KernelInfo(opts=opts_of(64, 1)))
  one, (boxes, _) = (product_of_group(64, HALF),), boxed(product(64, 64, 512, HALF, dtypes.float32))
  return (case("product of four warps", "sass", "sm_90", pieces, matrix=one),
          case("product of boxes", "sass", "sm_90", boxes),
          case("two products of boxes", "sass", "sm_90", twice(), matrix=one))

def twice() -> UOp:
  """Return a sum over two ranges, the outer one a loop. Its mbarriers end, and begin again."""
  batch, m, n, k = 2, 64, 64, 128
  out, a, b = UOp.param(0, dtypes.float32, m * n), UOp.param(1, HALF, batch * m * k), UOp.param(2, HALF, batch * k * n)
  i, j, z, x = UOp.range(m, 0), UOp.range(n, 1), UOp.range(batch, 2, AxisType.REDUCE), UOp.range(k, 3, AxisType.REDUCE)
  left, right = (place.load().cast(dtypes.float32) for place in (a.index(z * (m * k) + i * k + x),
                                                                 b.index(z * (k * n) + x * n + j)))
  opts = *(Opt(OptOps.MATRIX, axis, 64) for axis in (0, 1, 3)), Opt(OptOps.BULK_COPY, 3, 1)
  return UOp.sink(out.index(i * n + j).store((left * right).reduce(Ops.ADD, z, x), i, j), arg=KernelInfo(opts=opts))

def cases(arch: str) -> Sequence[Case]:
  """Return all kernels of an architecture."""
  return (*mutation_kernels.cases("sass", arch), *exchanging(arch), *copying(arch),
          *(of_groups() if arch == "sm_90" else ()))
