"""The memory plan: two buffers that are live at one time never overlap, on random schedules."""
from __future__ import annotations
import random

import pytest

from test.support.lines import lines_executed
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.memory import ALIGNMENT, Arena, is_temporary, plan_memory, thrifty_order
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def buffer(kind: str, number: int, size: int, device: str = "PYTHON") -> UOp:
  return UOp(Ops.BUFFER, dtypes.float32, (), ((kind, number), device, size))

def chain(rng: random.Random, count: int) -> tuple[list[Kernel], set[UOp]]:
  """Kernels that each read a few of the buffers made before and write one."""
  known = [buffer("in", k, 16) for k in range(2)]
  kernels = []
  for n in range(count):
    reads = rng.sample(known, min(len(known), rng.randint(1, 3)))
    out = buffer("new", n, rng.choice([0, 1, 16, 100, 1000]), rng.choice(["PYTHON", "PYTHON", "CPU"]))
    kernels.append(Kernel(out, UOp.sink(), [out, *reads], reads, [out]))
    known.append(out)
  return kernels, {kernels[-1].node, rng.choice(kernels).node}

@pytest.mark.parametrize("seed", range(30))
def test_live_buffers_do_not_overlap(seed: int) -> None:
  """Simulated: each byte of each arena remembers who wrote it, and every read must find its own."""
  kernels, kept = chain(random.Random(seed), 25)
  plan = plan_memory(kernels, kept)
  owner: dict[tuple[str, int], UOp] = {}
  for k in kernels:
    for b in k.reads:
      for unit in units(b, plan.offsets): assert owner[unit] is b, f"{b} was overwritten"
    for b in k.writes:
      taken = {u for r in k.reads for u in units(r, plan.offsets)}
      for unit in units(b, plan.offsets):
        assert unit not in taken, "a kernel writes what it reads"
        owner[unit] = b
  assert set(plan.kept) == kept and not kept & set(plan.offsets)
  assert set(plan.offsets) == {k.node for k in kernels} - kept
  for b, offset in plan.offsets.items():
    assert offset % ALIGNMENT == 0 and offset + b.arg[2] * 4 <= plan.arena_bytes[b.arg[1]]

def units(b: UOp, offsets: dict[UOp, int]) -> list[tuple[str, int]]:
  if b not in offsets: return []
  return [(b.arg[1], offsets[b] // ALIGNMENT + k) for k in range(-(-max(b.arg[2] * 4, 1) // ALIGNMENT))]

def test_a_chain_needs_two_buffers() -> None:
  buffers = [buffer("in", 0, 64)] + [buffer("new", k, 64) for k in range(9)]
  kernels = [Kernel(b, UOp.sink(), [b, a], [a], [b]) for a, b in zip(buffers, buffers[1:])]
  assert plan_memory(kernels, {buffers[-1]}).arena_bytes == {"PYTHON": 2 * 64 * 4}

def test_inputs_and_results_are_not_temporary() -> None:
  a, b, c = buffer("in", 0, 4), buffer("new", 0, 4), buffer("snapshot", 0, 4)
  assert [is_temporary(x, {b}) for x in (a, b, c)] == [False, False, True]

@pytest.mark.parametrize("seed", range(20))
def test_a_thrifty_order_is_one_and_holds_no_more(seed: int) -> None:
  kernels, kept = chain(random.Random(seed), 25)
  writer = {k.node: k for k in kernels}
  after = {id(k): {id(writer[r]) for r in k.reads if r in writer} for k in kernels}
  order = thrifty_order(kernels, after, kept)
  done: set[int] = set()
  for k in order:
    assert after[id(k)] <= done
    done.add(id(k))
  assert len(order) == len(kernels)

def test_a_thrifty_order_uses_values_up_first() -> None:
  """Ten values that are each read once: made one at a time, not all of them first."""
  made = [buffer("new", n, 1000) for n in range(10)]
  results = [buffer("new", 10 + n, 1) for n in range(10)]
  kernels = [Kernel(b, UOp.sink(), [b], [], [b]) for b in made] + [Kernel(r, UOp.sink(), [r, b], [b], [r])
                                                                   for r, b in zip(results, made)]
  after = {id(k): {id(kernels[made.index(r)]) for r in k.reads} for k in kernels}
  plain, thrifty = (plan_memory(order, set(results)).arena_bytes["PYTHON"]
                    for order in (kernels, thrifty_order(kernels, after, set(results))))
  assert thrifty * 9 < plain

def forth_and_back(count: int) -> tuple[list[Kernel], list[UOp]]:
  """Values of layers, of several sizes, all of which are read again in the end, the last one first; and one result for
  each."""
  made = [buffer("new", n, 100 * (n % 7 + 1)) for n in range(count)]
  results = [buffer("new", count + n, 1) for n in range(count)]
  forth = [Kernel(b, UOp.sink(), [b, *made[n - 1:n]], made[n - 1:n], [b]) for n, b in enumerate(made)]
  return forth + [Kernel(r, UOp.sink(), [r, b], [b], [r]) for r, b in zip(results[::-1], made[::-1])], results

def test_twice_the_kernels_are_twice_the_work() -> None:
  def plan(count: int) -> int:
    kernels, results = forth_and_back(count)
    return lines_executed(lambda: plan_memory(kernels, set(results)))
  def order(count: int) -> int:
    kernels, results = forth_and_back(count)
    return lines_executed(lambda: thrifty_order(kernels, {id(k): set() for k in kernels}, set(results)))
  assert plan(1000) <= 2.2 * plan(500) and order(1000) <= 2.2 * order(500)

def test_a_buffer_takes_the_smallest_gap_that_holds_it() -> None:
  arena = Arena()
  a, b, c, d, e = (arena.take(size) for size in (256, 64, 128, 64, 64))
  arena.give_back(a, 256)
  arena.give_back(c, 128)
  assert arena.take(128) == c and arena.take(64) == a and arena.most == e + 64

def test_gaps_beside_each_other_are_one() -> None:
  arena = Arena()
  a, b, c = (arena.take(64) for _ in range(3))
  for offset in (a, c, b): arena.give_back(offset, 64)
  assert arena.gaps == [(192, 0)] and arena.take(256) == 0 and arena.most == 256
