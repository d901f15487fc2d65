"""No constant makes cost jump: one more element is at most 10 % more counted work, or a step that
test/support/cliffs.py explains.

Sizes go from 16 on, around each limit in the tables of docs/design/, and around other thresholds. Counts
(test/support/work.py) cover the instructions of Programs on AVX2 and AVX-512, kernels and bytes, each weighted by its
cost. So nothing here depends on the machine. test/campaigns/cliffs.py sweeps all sizes.
"""
from __future__ import annotations

import pytest

from test.support.cliffs import (
  EXPLAINED, FAMILIES, STEEP, STEP, conv, conv_gradients, empty, excess, gradients_of, image_norm, sizes_of, works)
from test.support.work import kernel_work, work_of
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.tensor import Tensor

ARCHS = ("x86_64:avx2", "x86_64:avx512")

@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("arch", ARCHS)
def test_one_element_more_is_little_more_work(arch: str, family: str) -> None:
  found = {n: more for n in sizes_of(family, arch) if (more := excess(family, n, arch))}
  assert not found, f"{family} on {arch}: " + "; ".join(f"{n} -> {n + 1}: {more}" for n, more in found.items())

def test_explained_steps_are_of_families_that_there_are_and_small() -> None:
  for step in (*EXPLAINED, *STEEP): assert set(step.families.split("; ")) <= set(FAMILIES), step
  for step in EXPLAINED: assert STEP <= step.most <= 1.5, step
  for step in STEEP: assert step.sizes and step.most <= 1.71, step

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("width", (7, 9, 14, 32, 56, 64, 128, 256))
def test_a_convolution_to_one_channel_is_no_more_work_than_to_eight(arch: str, width: int) -> None:
  one, eight = (work_of([conv(16, outputs, width)[2]], arch) for outputs in (1, 8))
  assert (one.instructions < 0.6 * eight.instructions and one.operations < 0.8 * eight.operations
          and one.kernels == eight.kernels)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel, stride", ((3, 2), (4, 2), (3, 3), (1, 2), (2, 2), (5, 2)))
def test_the_image_gradient_of_a_strided_convolution_multiplies_no_zeros_between_windows(arch: str, kernel: int,
                                                                                         stride: int) -> None:
  """Work relative to the necessary products: it was once stride**2 times as much, 4 to 10.

  Phases with fewer elements of a kernel have some zeros.
  """
  x, _, y = conv(32, 32, 48, kernel, stride=stride)
  forward, back = work_of([y], arch), work_of(gradients_of((y * empty(*y.shape)).sum(), x), arch)
  zeros = (-(-kernel // stride) * min(kernel, stride) / kernel) ** 2
  assert back.operations < 2 * zeros * forward.operations

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("width, most", ((7, 26), (14, 15), (28, 9), (64, 9), (256, 9)))
def test_depthwise_convolutions_and_gradients_have_lanes(arch: str, width: int, most: float) -> None:
  """An upper bound of steps per product and per eight lanes. One element at a time took more than 140."""
  y = conv(32, 32, width, groups=32)[2]
  products = 9 * int(y.numel()) / 8
  assert work_of([y], arch).instructions < most * products
  assert work_of(conv_gradients(32, 32, width, groups=32), arch).instructions < 2.5 * most * products

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_groups_of_channels_cost_what_channels_do(arch: str) -> None:
  """The gradient of GroupNorm, whose groups are flattened: it had no lanes, and took nearly five times as long."""
  channels = work_of(image_norm(64, 64, 32), arch)
  for groups in (1, 8, 32):
    work = work_of(image_norm(64, groups, 32), arch)
    assert work.instructions < 1.25 * channels.instructions and work.operations < 1.25 * channels.operations

def test_a_row_that_registers_do_not_hold_computes_its_exponentials_once() -> None:
  """It was 2.25 times the work of one element less."""
  for n in (32, 64):
    less, more = works("softmax", n, "x86_64:avx512")
    assert more.operations < 1.45 * less.operations

@pytest.mark.parametrize("arch, n, most", (("x86_64:avx2", 17, 45_000), ("x86_64:avx512", 17, 30_000),
                                           ("x86_64:avx512", 33, 40_000)))
def test_a_tile_covers_a_whole_range_that_is_no_multiple_of_registers(arch: str, n: int, most: int) -> None:
  """Each of its registers was once a loop of its own, which loaded the other operand again: 59,160, 35,632, 53,496
  instructions."""
  assert work_of(FAMILIES["matmul n"][0](n), arch).instructions < most

def test_what_is_counted() -> None:
  """4 rows of 20 elements by eight lanes: three steps of eight, so 24 products a row."""
  out = (empty(4, 20) * empty(4, 1).expand(4, 20)).contiguous()
  work = work_of([out], "x86_64:avx2")
  assert work.kernels == 1 and work.bytes == 4 * (80 + 80 + 4) and work.operations == 4 * 24
  (kernel,) = schedule(canonicalize([out.uop])).kernels
  assert kernel_work(kernel.sink, "x86_64:avx2") == work and kernel_work(kernel.sink, "python").operations == 80

def test_scalar_work_is_counted_as_more_instructions() -> None:
  a, b = (work_of([Tensor.empty(n, device="NULL") + 1], "x86_64:avx2") for n in (3, 1024))
  assert a.instructions / 3 > 4 * b.instructions / 1024

@pytest.mark.parametrize("family, arch, most", (("cumsum", "x86_64:avx2", 40_000), ("cumsum", "x86_64:avx512", 20_000),
                                                ("attention", "x86_64:avx2", 190_000),
                                                ("attention", "x86_64:avx512", 105_000)))
def test_sums_of_few_terms_have_lanes_along_their_results(family: str, arch: str, most: int) -> None:
  """Folding the lanes of each result costs more than the sum. For 32 terms it was 64,000, 45,000, 250,000 and 165,000
  instructions."""
  assert work_of(FAMILIES[family][0](32), arch).instructions < most

@pytest.mark.slow
@pytest.mark.parametrize("family", ("cat", "stack"))
def test_many_parts_are_joined_in_groups(family: str) -> None:
  """Four times as many parts once took 16 times as much work. Now it grows with n * sqrt(n)."""
  few, many = (work_of(FAMILIES[family][0](n), "x86_64:avx2") for n in (16, 64))
  assert (many.operations < 8 * few.operations and many.instructions < 8 * few.instructions
          and many.bytes < 4.2 * few.bytes)
