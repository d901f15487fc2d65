"""The order of output loops: by what they read again from far caches."""
from __future__ import annotations
import itertools

import pytest

from tinyhw import Tensor
from tinyhw.codegen.kernel.access import StridedAccess, access_of
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.plan.loop_order import CACHE_SHARE, bytes_inside, cost, level_cost, ordered, steps_by_range
from tinyhw.engine.schedule.schedule import canonicalize, make_schedule
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

CACHES = (32 << 10, 512 << 10, 16 << 20)

def kernel_of(t: Tensor) -> UOp:
  """The store of the only kernel of a tensor."""
  kernel, = make_schedule(list(canonicalize([t.uop]).roots)).kernels
  return kernel.sink.src[0]

def product(rows: int, columns: int, terms: int) -> UOp:
  """x @ w.T, as a linear layer has it."""
  return kernel_of(Tensor.empty(rows, terms) @ Tensor.empty(columns, terms).T)

def reads_of(store: UOp) -> list[StridedAccess]: return [access_of(u) for u in store.toposort() if u.op is Ops.LOAD]

def test_steps_count_the_last_tile() -> None:
  rows, columns = ranges_of(product(10, 7, 16))
  assert steps_by_range((rows, columns), {rows: 4, columns: 7}) == {rows: 3, columns: 1}

def test_bytes_are_those_of_the_inner_loops() -> None:
  store = product(12, 6, 16)
  rows, columns = ranges_of(store)
  steps = {rows: 3, columns: 2}
  found = {bytes_inside(access, frozenset((rows,)), steps) for access in reads_of(store)}
  assert found == {4 * 16 * 4, 6 * 16 * 4}, "a tile of four rows of x; all of w"

def test_a_byte_costs_more_from_further_away() -> None:
  costs = [level_cost(size, CACHES) for size in (1 << 10, 1 << 17, 1 << 22, 1 << 28)]
  assert costs == sorted(set(costs)) and level_cost(1, ()) == costs[-1]

def test_what_is_read_once_costs_nothing() -> None:
  """Each loop's operand that does not depend on it has one iteration of it."""
  store = product(4, 3, 16)
  ranges = ranges_of(store)
  assert cost(ranges, dict.fromkeys(ranges, 1), reads_of(store), CACHES) == 0

@pytest.mark.parametrize("shape, outside", [
  ((128, 8192, 2048), 1),    # w comes from memory
  ((8192, 128, 2048), 0),    # x does
  ((128, 3072, 768), 1),     # x stays in the second cache
])
def test_the_operand_that_fits_no_cache_is_read_once(shape: tuple[int, int, int], outside: int) -> None:
  store = product(*shape)
  ranges = ranges_of(store)
  steps = steps_by_range(ranges, dict.fromkeys(ranges, 4))
  assert ordered(ranges, steps, reads_of(store), CACHES)[0] is ranges[outside]

def test_the_order_is_the_best_of_all() -> None:
  store = kernel_of(Tensor.empty(5, 64, 4096).matmul(Tensor.empty(4096, 96)))
  ranges = ranges_of(store)
  steps, reads = steps_by_range(ranges, dict.fromkeys(ranges, 1)), reads_of(store)
  found = cost(ordered(ranges, steps, reads, CACHES), steps, reads, CACHES)
  assert found == min(cost(order, steps, reads, CACHES) for order in itertools.permutations(ranges))

def test_the_given_order_stays_if_no_other_is_better() -> None:
  store = product(64, 64, 8)
  ranges = ranges_of(store)
  assert ordered(ranges, dict.fromkeys(ranges, 1), reads_of(store), CACHES) == list(ranges)
  assert ordered(ranges, dict.fromkeys(ranges, 4), reads_of(store), ()) == list(ranges), "unknown caches"
  assert ordered(ranges, dict.fromkeys(ranges, 16), reads_of(store), CACHES) == list(ranges), "equal costs"

def test_what_others_read_in_between_counts() -> None:
  """All of x fits into the second cache alone, but not beside a tile of w that is read before x is read again."""
  store = product(128, 3072, 768)
  rows, columns = ranges_of(store)
  steps, reads = steps_by_range((rows, columns), {rows: 4, columns: 64}), reads_of(store)
  x = next(bytes_inside(a, frozenset((columns,)), steps) for a in reads if not a.depends(columns))
  beside = sum(bytes_inside(a, frozenset((columns,)), steps) for a in reads)
  alone, both = (cost((columns, rows), steps, reads, (32 << 10, int(n / CACHE_SHARE) + 1, 16 << 20))
                 for n in (x, beside))
  assert x < beside and both < alone

def test_of_orders_that_cost_nearly_the_same_the_given_one_stays() -> None:
  ranges = ranges_of(product(64, 64, 64))
  steps, reads = steps_by_range(ranges, dict.fromkeys(ranges, 8)), reads_of(product(64, 64, 64))
  assert ordered(ranges, steps, reads, CACHES) == list(ranges)
  assert ordered(ranges[::-1], steps, reads, CACHES) == list(ranges[::-1])
