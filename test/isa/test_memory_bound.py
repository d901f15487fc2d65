"""Kernels that are bound by memory alone: the share of its rate that they reach on each GPU, by the listing's model,
and their results."""
from __future__ import annotations

import pytest

from test.isa.gpus import GPUS, lowered
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

ARCHS = ("gfx942", "gfx1100", "sm_80", "sm_90")

def share_of_memory(kernel: UOp, arch: str) -> float:
  """The share of the memory's rate that a kernel reaches by the model."""
  program = lowered(kernel, arch)
  found, card = GPUS[arch].bounds(program, arch), GPUS[arch].card(arch)
  assert found.memory is not None and isinstance(program.grid, int)
  rounds = -(-program.grid // (card.units * found.held.groups))
  return float(found.memory / card.memory_rate / (rounds * found.whole.cost.cycles))

def columns(terms: int, n: int) -> UOp:
  """out[i] = sum of a[x, i] over x."""
  out, a = UOp.param(0, dtypes.float32, n), UOp.param(1, dtypes.float32, terms * n)
  i, x = UOp.range(n, 0), UOp.range(terms, 1, AxisType.REDUCE)
  return UOp.sink(out.index(i).store(a.index(x * n + i).load().reduce(Ops.ADD, x), i))

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_a_matrix_is_summed_along_its_columns_as_fast_as_it_is_read(arch: str) -> None:
  """8192 rows of 4096: at most 1.5 times the time of memory.

  With one lane for each column, latencies made it 4 to 9 times.
  """
  assert share_of_memory(columns(8192, 4096), arch) >= 0.66

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_sums_of_columns_are_right(arch: str) -> None:
  kernel = columns(256, 64)
  assert lowered(kernel, arch).local_bytes, "lanes share sums"
  GPUS[arch].check(kernel, arch, tolerance=1e-5)

def rows(n: int, terms: int) -> UOp:
  """out[i] = sum of a[i, x] over x."""
  out, a = UOp.param(0, dtypes.float32, n), UOp.param(1, dtypes.float16, terms * n)
  i, x = UOp.range(n, 0), UOp.range(terms, 1, AxisType.REDUCE)
  return UOp.sink(out.index(i).store(a.index(i * terms + x).load().cast(dtypes.float32).reduce(Ops.ADD, x), i))

@pytest.mark.parametrize("arch", ARCHS)
def test_long_odd_rows_are_summed_about_as_fast_as_they_are_read(arch: str) -> None:
  """As many classes as a language model has: at most 2.5 times the time of memory.

  With one element of each lane at a time, it was 5 to 7 times.
  """
  assert share_of_memory(rows(2048, 50257), arch) >= 0.4

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_sums_of_odd_rows_are_right(arch: str) -> None:
  GPUS[arch].check(rows(3, 2087), arch, tolerance=1e-5)

def transpose(n: int) -> UOp:
  """out[i, j] = a[j, i]."""
  out, a, i, j = UOp.param(0, dtypes.float16, n * n), UOp.param(1, dtypes.float16,
                                                                n * n), UOp.range(n, 0), UOp.range(n, 1)
  return UOp.sink(out.index(i * n + j).store(a.index(j * n + i).load(), i, j))

@pytest.mark.parametrize("arch", ARCHS)
def test_a_transpose_reads_all_that_it_is_given(arch: str) -> None:
  """Lanes that each read an element of a different row took 3 to 5 times the time of memory."""
  assert share_of_memory(transpose(4096), arch) >= 0.66
