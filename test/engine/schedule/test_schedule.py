"""Schedules: readers of a buffer before its ASSIGN, copies for cycles, reuse of equal work, and the merges of
group.py."""
from __future__ import annotations
import random

import numpy as np
import pytest

from tinyhw import nn
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.engine.run.realize import realize
from tinyhw.engine.schedule import schedule as scheduling
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

DEVICE = "PYTHON"

def tensor(*values: float) -> Tensor: return Tensor([float(v) for v in values], device=DEVICE).realize()

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape, device=DEVICE)

def test_kernels_have_the_lines_of_the_run() -> None:
  """Equal graphs have one schedule with the lines of the current run; a merged kernel has the line of its result."""
  def lines(*tensors: Tensor) -> list[str]:
    kernels = schedule(canonicalize([t.uop for t in tensors])).kernels
    return ["?" if k.line is None else f"{k.line[1] - first}" for k in kernels]
  first = test_kernels_have_the_lines_of_the_run.__code__.co_firstlineno
  x, large = tensor(1, 2, 3), empty(1 << 17).realize()
  a = (x * 2).exp()                             # 7
  b = a.sum().reshape(1) if a.shape else a      # 8
  assert lines(b) == ["8"] and lines(x * 2 + 1, b) == ["9", "8"]
  c = (x * 2).exp()                             # 10
  assert lines(a) == ["7"] and lines(c) == ["7"], "the same node"
  y = tensor(4, 5, 6)
  d = (y * 2).exp()                             # 13
  e = d.sum().reshape(1)                        # 14
  assert lines(d) == ["13"] and lines(e) == ["14"] and lines(a) == ["7"], "another node, and the same schedule"
  assert lines(large.sum()) == ["16", "16"], "both halves of a sum in two steps"
  with Context(TRACEMETA=0): z = tensor(7, 8, 9).sqrt()
  assert lines(z) == ["?"]
  x.assign(x + 1)                               # 19
  assert lines(x) == ["19"]

def test_readers_come_before_the_writer() -> None:
  x = tensor(1, 2, 3)
  before = x + 10
  x.assign(x * 2)
  Tensor.realize(before, x)
  assert before.tolist() == [11, 12, 13] and x.tolist() == [2, 4, 6]

def test_the_writer_may_be_realized_first() -> None:
  x = tensor(1, 2, 3)
  before = x + 10
  x.assign(x * 2)
  Tensor.realize(x, before)
  assert before.tolist() == [11, 12, 13] and x.tolist() == [2, 4, 6]

def test_reads_elsewhere_see_the_old_values() -> None:
  """Reversing in place: each element is read after another one was written; a copy is needed."""
  x = tensor(*range(100))
  x.assign(x.flip(0)).realize()
  assert x.tolist() == list(range(99, -1, -1))

def test_a_matrix_multiplied_into_itself() -> None:
  a = np.arange(9, dtype=np.float32).reshape(3, 3)
  x = Tensor(a, device=DEVICE).realize()
  x.assign(x @ x).realize()
  np.testing.assert_array_equal(x.numpy(), a @ a)

def test_chains_of_assigns() -> None:
  x = tensor(1, 1)
  seen = []
  for k in range(4):
    x.assign(x + k)
    seen.append(x * 1.5)
  Tensor.realize(x, *seen)
  assert x.tolist() == [7, 7] and [s.tolist()[0] for s in seen] == [1.5, 3, 6, 10.5]

def test_two_buffers_exchange_their_values() -> None:
  a, b = tensor(1, 2), tensor(3, 4)
  old = a + 0
  a.assign(b + 0)
  b.assign(old)
  Tensor.realize(a, b)
  assert a.tolist() == [3, 4] and b.tolist() == [1, 2]

def test_slices_of_a_cache() -> None:
  """A KV cache: one position is written, then all positions up to it are read."""
  cache = Tensor.zeros(4, 2, device=DEVICE).contiguous().realize()
  sums = []
  for k in range(4):
    cache[k:k + 1].assign(Tensor.full((1, 2), float(k + 1), device=DEVICE).contiguous()).realize()
    sums.append(cache[:k + 1].sum().item())
  assert sums == [2, 6, 12, 20] and cache.tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]

@pytest.mark.parametrize("seed", range(20))
def test_random_assigns_are_done_in_program_order(seed: int) -> None:
  """Several buffers, random reads and assigns, realized at once in random order. Results are as if each was done
  immediately."""
  rng = random.Random(seed)
  arrays = [np.arange(4, dtype=np.float32) + 10 * k for k in range(3)]
  tensors = [Tensor(a, device=DEVICE).realize() for a in arrays]
  reads: list[tuple[Tensor, np.ndarray]] = []
  for _ in range(8):
    i, j = rng.randrange(3), rng.randrange(3)
    if rng.random() < 0.5: reads.append((tensors[i] + tensors[j].flip(0), arrays[i] + arrays[j][::-1]))
    else:
      shifted = rng.random() < 0.5
      tensors[i].assign((tensors[j].flip(0) if shifted else tensors[j]) + 1)
      arrays[i] = (arrays[j][::-1] if shifted else arrays[j]) + 1
  wanted = [t for t, _ in reads] + tensors
  rng.shuffle(wanted)
  Tensor.realize(*wanted)
  for t, want in reads: np.testing.assert_array_equal(t.numpy(), want)
  for t, want in zip(tensors, arrays): np.testing.assert_array_equal(t.numpy(), want)

# ***** merged kernels *****

def test_adam_is_one_kernel_for_each_parameter() -> None:
  """Momentum, variance and parameter in one; the powers of the betas are shared by all parameters."""
  parameters = [Tensor.ones(n, 8).contiguous().realize() for n in (3, 5, 7)]
  adam = nn.optim.Adam(parameters, lr=0.01)
  for p in parameters: p.grad = Tensor.empty(*p.shape)
  with Tensor.train(): out = adam.schedule_step()
  made = schedule(canonicalize([t.uop for t in out]))
  assert len([k for k in made.kernels if any(b.arg[2] >= 24 for b in k.buffers[:1])]) == 3

def test_kernels_over_one_shape_that_share_an_operand_are_one() -> None:
  x = empty(64)
  made = schedule(canonicalize([(x + 1).uop, (x * 2).uop, (x.exp()).uop]))
  assert len(made.kernels) == 1 and len(made.kernels[0].sink.src) == 3

# ***** the cache *****

def roots(*tensors: Tensor) -> list[UOp]: return [t.uop for t in tensors]

def test_a_shape_between_two_others_needs_no_division() -> None:
  """Storage of 26 x 15 elements, read as 15 x 26."""
  w = Tensor(np.arange(26 * 15, dtype=np.int32).reshape(26, 15)).realize()
  kernels = schedule(canonicalize([(w.reshape(15, 26) * 2).sum(0).uop])).kernels
  assert not {Ops.IDIV, Ops.MOD} & {u.op for kernel in kernels for u in kernel.sink.toposort()}
  assert (w.reshape(15, 26).reshape(26, 15) + 0).tolist() == np.arange(26 * 15).reshape(26, 15).tolist()

def test_equal_work_on_other_buffers_is_found_again() -> None:
  def work() -> Tensor: return (empty(8, 8) @ empty(8, 8)).relu()
  first, second = canonicalize(roots(work())), canonicalize(roots(work()))
  assert first.roots == second.roots and first.inputs != second.inputs
  assert schedule(first) is schedule(second)

def test_shared_and_separate_buffers_are_told_apart() -> None:
  x, y = empty(4), empty(4)
  assert canonicalize(roots(x + x)).roots != canonicalize(roots(x + y)).roots

def test_bound_variables_do_not_matter() -> None:
  v = UOp.variable("n", 1, 8)
  def work(n: int) -> Tensor: return empty(8)[:v.bind(n)].sum()
  a, b = canonicalize(roots(work(3))), canonicalize(roots(work(5)))
  assert a.roots == b.roots and a.variables == {"n": 3} and b.variables == {"n": 5}

def test_what_has_no_elements_has_no_kernels() -> None:
  """Such a kernel would read, before its empty loop, from buffers without elements."""
  x = Tensor(np.zeros((0, 3), np.float32), device=DEVICE).realize()
  for made in (x + 1, x.sum(1), x[:, :1].expand(0, 5), x.to("PYTHON:1")):
    assert not schedule(canonicalize([made.uop])).kernels
  assert len(schedule(canonicalize([x.sum(0).uop])).kernels) == 1
  a, b, c = x + 1, x.sum(0) + 1, x.to("PYTHON:1")
  Tensor.realize(a, b, c)
  assert a.tolist() == c.tolist() == [] and b.tolist() == [1.0] * 3
  y = tensor(1, 2, 3)
  assert y.shrink(((1, 1),)).assign(x.flatten() + 1).realize().tolist() == [] and y.tolist() == [1, 2, 3]

def test_two_values_of_a_variable_are_two_variables() -> None:
  v, x = UOp.variable("n", 1, 8), empty(8)
  assert canonicalize(roots(x[:v.bind(3)].sum() + x[:v.bind(5)].sum())).variables == {"n": 3, "n#2": 5}

def test_a_variable_with_other_bounds_has_one_definition() -> None:
  x = empty(8)
  found = canonicalize(roots(x[:UOp.variable("n", 1, 8).bind(3)].sum() + x[:UOp.variable("n", 0, 5).bind(3)].sum()))
  assert found.variables == {"n": 3} and [v.arg for v in found.roots[0].variables()] == [("n", 1, 5)]

def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(scheduling, "CACHE_SIZE", 3)
  scheduling._schedules.clear()
  for n in range(2, 9): schedule(canonicalize(roots(empty(n) + 1)))
  assert len(scheduling._schedules) == 3

def test_what_is_realized_is_not_computed_again() -> None:
  x = (tensor(1, 2) + 1).realize()
  y = x * 2
  graph = canonicalize(roots(y)).roots[0].toposort()
  assert [u.op for u in graph].count(Ops.ADD) == 0
  realize([y.uop])
  assert y.tolist() == [4, 6] and y.dtype is dtypes.float32

def test_canonicalize_visits_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
  visited: list[UOp] = []
  for name in ("_add", "_leaf"):
    plain = getattr(scheduling, name)
    monkeypatch.setattr(scheduling, name, lambda u, out, plain=plain: visited.append(u) or plain(u, out))
  x = empty(4)
  for _ in range(3000): x = x + x
  canonicalize(roots(x))
  assert len(visited) == len(set(visited)) == len(x.uop.toposort())

@pytest.mark.slow
def test_schedules_that_are_kept_hold_no_results() -> None:
  """A value that depends on no storage is its own canonical graph. Its memory is freed with its last user."""
  import gc

  from tinyhw.helpers import GlobalCounters
  gc.collect()   # what earlier tests left
  before = GlobalCounters.mem_used
  for i in range(3):
    x = Tensor.arange(5000 + i).realize()
    y = (Tensor.full((700 + i, 7), 3.0).contiguous() * 2).realize()
    late = Tensor.arange(6000 + i)
    (Tensor([1, 2]).realize() + late.sum()).realize()
    late.realize()
    del x, y, late
  gc.collect()
  assert GlobalCounters.mem_used == before
