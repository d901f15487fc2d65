"""The memory plan: two buffers that are alive at one time never overlap, on random schedules."""
from __future__ import annotations
import random

import pytest

from tinyhw.dtype import dtypes
from tinyhw.engine.lower import Kernel
from tinyhw.engine.memory import ALIGNMENT, is_temporary, plan_memory
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
