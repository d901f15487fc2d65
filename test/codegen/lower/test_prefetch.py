"""Prefetching to shared memory some iterations ahead: the new loop, equal results, and the loops that stay
unchanged."""
from __future__ import annotations
from dataclasses import replace

import pytest

from test.codegen.kernels import axis, compare, data_for
from test.codegen.products import product
from tinyhw.codegen.lower.prefetch import STAGES
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

CAPABLE = capabilities("sm_80")

def lowered(kernel: UOp, local_bytes: int = CAPABLE.local_bytes) -> Program:
  capable = replace(CAPABLE, local_bytes=local_bytes)
  return lower(optimize(kernel, capable), capable, "kernel")

def count(program: Program, op: Ops) -> int: return sum(u.op is op for u in program.uops)

def groups(program: Program) -> int:
  """Return the groups of copies. Those before the loop may be in a loop of their own."""
  found, times = 0, 1
  for u in program.uops:
    if u.op is Ops.RANGE and u.arg[1] is AxisType.LOOP: times = u.src[0].arg
    if u.op is Ops.END and u.src[0].arg[1] is AxisType.LOOP: times = 1
    if u.op is Ops.COMMIT: found += times
  return found

def same(kernel: UOp, program: Program) -> None:
  verify(program, 2)
  data = data_for(kernel)
  expected, found = ({slot: list(values) for slot, values in data.items()} for _ in range(2))
  evaluate(kernel, expected)
  evaluate(program, found)
  compare("prefetch", expected, found, 0.0)

@pytest.mark.slow
@pytest.mark.parametrize("transposed", (False, True))
def test_a_product(transposed: bool) -> None:
  kernel = product(16, 8, 1024, dtypes.float16, dtypes.float32, transposed)
  program = lowered(kernel)
  assert groups(program) == STAGES[0] and [u.arg for u in program.uops if u.op is Ops.WAIT] == [STAGES[0] - 2]
  assert count(program, Ops.BARRIER) == 1 and not any(u.op is Ops.STORE and u.src[0].src[0].op is Ops.DEFINE_LOCAL
                                                      for u in program.uops)
  order = [u.op for u in program.uops]
  loop = max(at for at, u in enumerate(program.uops) if u.op is Ops.RANGE)
  assert (order[loop + 1:loop + 3] == [Ops.WAIT, Ops.BARRIER] and order.index(Ops.MMA) > len(order) - 1
          - order[::-1].index(Ops.COMMIT))
  same(kernel, program)

@pytest.mark.slow
def test_arrays_are_as_many_as_fit() -> None:
  kernel = product(16, 8, 1024, dtypes.float16, dtypes.float32)
  for local_bytes, stages in ((100 << 10, 4), (5200, 2), (2100, 0)):
    program = lowered(kernel, local_bytes)
    assert groups(program) == stages
    same(kernel, program)

def test_no_more_than_there_are_iterations() -> None:
  for k, commits in ((64, 0), (128, 2), (192, 2), (256, 4)):   # iterations of 64 steps
    program = lowered(product(16, 8, k, dtypes.float16, dtypes.float32))
    assert groups(program) == commits, k

@pytest.mark.slow
def test_what_is_computed_before_it_is_stored_is_stored() -> None:
  out, a, b = UOp.param(0, dtypes.float32, 128), UOp.param(1, dtypes.float32,
                                                           16 * 512), UOp.param(2, dtypes.float16, 512 * 8)
  i, j, x = axis(16, 0), axis(8, 1), axis(512, 2, "REDUCE")
  left = a.index(i * 512 + x).load().cast(dtypes.float16).cast(dtypes.float32)
  kernel = UOp.sink(
    out.index(i * 8 + j).store((left * b.index(x * 8 + j).load().cast(dtypes.float32)).reduce(Ops.ADD, x), i, j))
  program = lowered(kernel)
  assert count(program, Ops.MMA) and not count(program, Ops.ASYNC_COPY) and count(program, Ops.BARRIER) > 1
  same(kernel, program)

@pytest.mark.slow
def test_lanes_of_a_batch_meet_before_arrays_are_filled_again() -> None:
  """In a nested loop, all reads of one pass must be done before the first fillings of the next pass start."""
  n, m, k = 3, 16, 512
  out, a, b = UOp.param(0, dtypes.float32, m * 8), UOp.param(1, dtypes.float16,
                                                             n * m * k), UOp.param(2, dtypes.float16, n * k * 8)
  i, j, batch, x = axis(m, 0), axis(8, 1), axis(n, 2, "REDUCE"), axis(k, 3, "REDUCE")
  left, right = a.index(batch * (m * k) + i * k + x).load(), b.index(batch * (k * 8) + x * 8 + j).load()
  kernel = UOp.sink(out.index(i * 8 + j).store((left.cast(dtypes.float32)
                                                * right.cast(dtypes.float32)).reduce(Ops.ADD, batch, x), i, j))
  same(kernel, lowered(kernel))

def test_several_first_fillings_are_a_loop() -> None:
  """Their code exists once, for any number of them."""
  for stages, loops, copies in ((4, 1, 2), (2, 0, 2)):
    program = lowered(product(16, 8, 1024, dtypes.float16, dtypes.float32), (100 << 10) if stages == 4 else 5200)
    assert groups(program) == stages and count(program, Ops.COMMIT) == copies
    assert sum(u.op is Ops.RANGE and u.arg[1] is AxisType.LOOP for u in program.uops) == loops

def test_targets_without_such_copies_have_none() -> None:
  capable = replace(CAPABLE, copies=())
  program = lower(optimize(product(16, 8, 1024, dtypes.float16, dtypes.float32), capable), capable, "kernel")
  assert not count(program, Ops.ASYNC_COPY) and not count(program, Ops.WAIT)

@pytest.mark.parametrize("arch", ("sm_80", "sm_89"))
@pytest.mark.parametrize("n", (512, 1024, 4096))
def test_products_of_all_sizes_are_fetched_by_several_waves(arch: str, n: int) -> None:
  """No product has a loop of copies in a lane, since such a loop cannot run ahead. Two workgroups of at least two waves
  hide latency."""
  capable = capabilities(arch)
  program = lower(optimize(product(n, n, n, dtypes.float16, dtypes.float32), capable), capable, "kernel")
  assert program.lanes >= 64 and groups(program) == STAGES[0] and 2 * program.local_bytes <= capable.local_bytes

@pytest.mark.parametrize("n", (1024, 4096))
@pytest.mark.parametrize("transposed", (False, True))
def test_products_that_read_local_memory_themselves_may_go_on(n: int, transposed: bool) -> None:
  """Copies start one iteration later than possible, so that the products of the previous iteration may go on."""
  capable = replace(capabilities("sm_90"), bulk_copies=False)
  program = lower(optimize(product(n, n, n, dtypes.float16, dtypes.float32, transposed), capable), capable, "kernel")
  assert count(program, Ops.SHARED_OPERAND) in (2, 4) and program.lanes % 128 == 0 and count(program, Ops.STORE) > 0
  assert groups(program) == STAGES[0] - 1 and [u.arg for u in program.uops if u.op is Ops.WAIT] == [(STAGES[0] - 3, 1)]
  assert program.local_bytes <= capable.local_bytes and all(u.arg[1] * u.dtype.itemsize % 1024 == 0
                                                            for u in program.uops if u.op is Ops.DEFINE_LOCAL)

def test_with_two_arrays_all_products_are_done_first() -> None:
  capable = replace(capabilities("sm_90"), local_bytes=100 << 10)
  kernel = product(4096, 4096, 4096, dtypes.float16, dtypes.float32)
  matrix = [Opt(OptOps.MATRIX, axis, size) for axis, size in enumerate((64, 256, 64))]
  opts = (*matrix, Opt(OptOps.LOCAL, 0, 2), Opt(OptOps.GRID, 0), Opt(OptOps.GRID, 1))
  program = lower(optimize(kernel.replace(arg=KernelInfo(opts=opts)), capable), capable, "kernel")
  assert groups(program) == 2 and [u.arg for u in program.uops if u.op is Ops.WAIT] == [(0, 0)]

@pytest.mark.parametrize("arch", ("sm_80", "sm_90"))
@pytest.mark.parametrize("transposed", (False, True))
def test_copies_of_an_iteration_differ_in_a_constant(arch: str, transposed: bool) -> None:
  """Each operand has one address in memory, and at most two in shared memory (the halves of the swizzle). The other
  addresses are at constant distances."""
  capable = capabilities(arch)
  program = lower(optimize(product(4096, 4096, 4096, dtypes.float16, dtypes.float32, transposed), capable), capable,
                  "kernel")
  loop = program.uops[max(at for at, u in enumerate(program.uops) if u.op is Ops.WAIT):]
  copies = [u for u in loop if u.op is Ops.ASYNC_COPY]
  def base(index: UOp) -> tuple[UOp, UOp]:
    at = index.src[1]
    return index.src[0], at.src[0] if at.op is Ops.ADD and at.src[1].op is Ops.CONST else at
  assert len(copies) >= 4 and len({base(u.src[1]) for u in copies}) == 2 and len({base(u.src[0]) for u in copies}) <= 3
