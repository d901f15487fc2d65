"""Which kernels become one, and that it computes the same as they did."""
from __future__ import annotations

from tinyhw.engine.schedule.group import MAX_STORES, group_kernels, loops_of
from tinyhw.engine.schedule.schedule import canonicalize, make_schedule, schedule
from tinyhw.tensor import Tensor

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape, device="PYTHON")

def count(*tensors: Tensor) -> int: return len(schedule(canonicalize([t.uop for t in tensors])).kernels)

def test_kernels_that_share_nothing_stay_apart() -> None: assert count(empty(64) + 1, empty(64) + 2) == 2

def test_other_loops_stay_apart() -> None:
  x = empty(8, 8)
  assert count(x + 1, x.permute(1, 0)[:4] + 1) == 2

def test_reductions_stay_apart() -> None:
  x = empty(8, 8)
  assert count(x.sum(1), x.max(1)) == 2

def test_a_kernel_has_a_bounded_number_of_stores() -> None:
  x = empty(64)
  made = schedule(canonicalize([(x + k).uop for k in range(20)]))
  assert max(len(k.sink.src) for k in made.kernels) <= MAX_STORES and len(made.kernels) == 3

def test_grouping_again_changes_nothing() -> None:
  x = empty(64)
  made = make_schedule(list(canonicalize([(x + 1).uop, (x * 2).uop]).roots))
  assert len(group_kernels(made.kernels)) == 1 and loops_of(made.kernels[0]) is not None

def test_values_written_by_an_earlier_store_are_used_from_the_register() -> None:
  x = Tensor([1.0, 2.0, 3.0], device="PYTHON").realize()
  a = (x + 1).contiguous()
  b = a * 2
  Tensor.realize(a, b)
  assert a.tolist() == [2, 3, 4] and b.tolist() == [4, 6, 8] and count((x + 1).contiguous() * 2) <= 2
