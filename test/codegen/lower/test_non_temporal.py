"""Stores of whole lines to buffers that no cache holds go past the caches, and no others do."""
from __future__ import annotations
from collections.abc import Callable

import pytest

from test.codegen.kernels import AVX2, axis, check
from tinyhw.codegen.lower.non_temporal import whole_lines
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.data_class import replace
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import NON_TEMPORAL, Ops
from tinyhw.uop.ops import UOp

SMALL = (1 << 10, 2 << 10, 4 << 10)
SMALL_AVX2 = replace(AVX2, cache_bytes=SMALL)
SMALL_AVX512 = replace(capabilities("x86_64:avx512"), cache_bytes=SMALL)
F32 = dtypes.float32

def doubled(n: int, dtype: DType = F32, first: int = 0, step: int = 1, in_place: bool = False) -> UOp:
  out, x = (UOp.param(k, dtype, step * n + first) for k in range(2))
  i = axis(n, 0)
  return UOp.sink(out.index(i * step + first).store((out if in_place else x).index(i).load() * 2, i))

def past_caches(kernel: UOp, opts: tuple[Opt, ...], target: Capabilities) -> list[bool]:
  """Return for each store of the Program whether it goes past the caches; its results are the kernel's."""
  program = check(with_opts(kernel, opts), target)
  return [u.tag == NON_TEMPORAL for u in program.uops if u.op is Ops.STORE]

def lanes(n: int, repetitions: int = 1) -> tuple[Opt, ...]:
  return (Opt(OptOps.VECTOR, 0, n), *[Opt(OptOps.UPCAST, 0, repetitions)] * (repetitions > 1))

def test_a_vector_of_a_line() -> None: assert past_caches(doubled(2048), lanes(16), SMALL_AVX512) == [True]

def test_a_buffer_that_a_cache_holds() -> None: assert past_caches(doubled(1024), lanes(16), SMALL_AVX512) == [False]

def test_vectors_that_have_no_such_store() -> None:
  """Eight vectors of 8 bytes fill a line, but the target stores 16 bytes at least."""
  assert past_caches(doubled(8192, dtypes.int8), lanes(8, 8), SMALL_AVX512) == [False] * 8
  assert past_caches(doubled(8192, dtypes.int8), lanes(16, 4), SMALL_AVX512) == [True] * 4

def test_a_small_part_of_a_large_buffer() -> None:
  """A token's row of a cache stays near: what counts is what the kernel writes."""
  out, x, i = UOp.param(0, F32, 1 << 16), UOp.param(1, F32, 1 << 16), axis(1024, 0)
  kernel = UOp.sink(out.index(i + 4096).store(x.index(i).load() * 2, i))
  assert past_caches(kernel, lanes(16), SMALL_AVX512) == [False]

def test_rows_of_a_loop_count() -> None:
  out, x, i, j = UOp.param(0, F32, 64 * 64), UOp.param(1, F32, 64 * 64), axis(64, 0), axis(64, 1)
  kernel = UOp.sink(out.index(i * 64 + j).store(x.index(i * 64 + j).load() * 2, i, j))
  assert past_caches(kernel, (Opt(OptOps.VECTOR, 1, 16), Opt(OptOps.GRID, 0)), SMALL_AVX512) == [True]

def test_unknown_caches() -> None:
  assert past_caches(doubled(2048), lanes(16), replace(SMALL_AVX512, cache_bytes=())) == [False]

def test_a_target_without_such_stores() -> None:
  assert past_caches(doubled(2048), lanes(16), replace(SMALL_AVX512, non_temporal=False)) == [False]

def test_halves_of_a_line_need_each_other() -> None:
  assert past_caches(doubled(2048), lanes(8), SMALL_AVX2) == [False]
  assert past_caches(doubled(2048), lanes(8, 2), SMALL_AVX2) == [True, True]
  assert past_caches(doubled(2040), lanes(8, 3), SMALL_AVX2) == [False] * 3, "each third line is cut"

@pytest.mark.parametrize("dtype", (dtypes.float64, dtypes.float16, dtypes.int8), ids=str)
def test_other_elements(dtype: DType) -> None:
  n = 64 // dtype.itemsize
  assert all(past_caches(doubled(64 * n + 4096, dtype), lanes(n), SMALL_AVX512))

@pytest.mark.parametrize("kernel", (
  lambda: doubled(2048, first=1), lambda: doubled(2048, first=8), lambda: doubled(2048, in_place=True)))
def test_lines_that_are_cut_or_read(kernel: Callable[[], UOp]) -> None:
  assert not any(past_caches(kernel(), lanes(16), SMALL_AVX512))

@pytest.mark.parametrize("stores, whole", (
  ([(0, 16), (8, 16)], [True, False]),                        # the second one has halves of two lines
  ([(8, 16), (16, 8), (24, 8)], [False, True, True]),
  ([(0, 4), (4, 8), (12, 4)], [False] * 3),                   # a half that begins at a quarter
  ([(0, 4), (4, 4), (8, 8)], [True] * 3), ([(0, 16), (16, 8)], [True, False])), ids=str)
def test_vectors_are_aligned(stores: list[tuple[int, int]], whole: list[bool]) -> None:
  """Each begins at a multiple of its size: others raise a fault. stores: the place and the lanes of each one."""
  buffer, first = UOp.param(0, F32, 4096), axis(64, 0) * 64
  block = [UOp(Ops.STORE, dtypes.void, (buffer.index(first + place), UOp.const(F32.vec(n), 1.0)))
           for place, n in stores]
  found = whole_lines(block)
  assert [u in found for u in block] == whole

def test_scattered_lanes() -> None: assert not any(past_caches(doubled(1024, step=2), lanes(16), SMALL_AVX512))

def test_a_last_step_that_overlaps() -> None:
  """It begins early enough to be whole: at a line only if the size is a multiple of one."""
  assert past_caches(doubled(2048 + 16), lanes(16, 2), SMALL_AVX512) == [True, True]
  assert past_caches(doubled(2048 + 8), lanes(16, 2), SMALL_AVX512) == [False, False]

def test_one_of_two_buffers() -> None:
  """Only the one that the kernel does not read."""
  out, both, i = UOp.param(0, F32, 2048), UOp.param(1, F32, 2048), axis(2048, 0)
  value = both.index(i).load()
  kernel = UOp.sink(out.index(i).store(value * 2, i), both.index(i).store(value + 1, i))
  assert sorted(past_caches(kernel, lanes(16), SMALL_AVX512)) == [False, True]
