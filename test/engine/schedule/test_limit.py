"""Kernels of no more buffers than a device gives to one: their number, and that they compute the same."""
from __future__ import annotations
from collections import OrderedDict
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from generators import tensor_programs

from test.helpers import HOME
from tinyhw.device import Device
from tinyhw.engine.schedule import schedule as schedules
from tinyhw.engine.schedule.fuse import fused
from tinyhw.engine.schedule.limit import too_large, within_limit
from tinyhw.engine.schedule.schedule import canonicalize, schedule, strip
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

Setter = Callable[[int], None]

@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setter]:
  """Return a function that sets how many buffers the devices of tests give to a kernel."""
  own = {name: Device[name].most_buffers for name in (HOME, "NULL")}
  def set_limit(most: int) -> None:
    monkeypatch.setattr(schedules, "_schedules", OrderedDict())
    for name in own: monkeypatch.setattr(Device[name], "most_buffers", min(most, own[name]) if own[name] else most)
  yield set_limit

def sizes(*tensors: Tensor) -> list[int]:
  """Return the numbers of buffers of a schedule's kernels."""
  made = schedule(canonicalize([t.uop for t in tensors]))
  return [len(set(k.buffers)) for k in made.kernels if k.sink.op is not Ops.COPY]

def empty(n: int, *shape: int) -> list[Tensor]: return [Tensor.empty(*shape, device="NULL") for _ in range(n)]

@pytest.mark.parametrize("most", [3, 4, 8, 32, 46])
def test_a_sum_of_many_tensors(limit: Setter, most: int) -> None:
  limit(most)
  ts = empty(45, 8)
  assert len(sizes(sum(ts[1:], ts[0]))) == -(-44 // (most - 2))
  terms = [Tensor(np.full(5, k, np.float32), device=HOME).realize() for k in range(45)]
  total = sum(terms[1:], terms[0])
  assert max(sizes(total)) <= most and total.tolist() == [990.0] * 5

def test_what_fits_is_left_as_it_is(limit: Setter) -> None:
  limit(8)
  a, b, c, d, e, f, g = empty(7, 8, 8)
  assert sizes(a + b + c + d + e + f + g) == [8] and sizes((a @ b).relu() + c) == [4]
  canonical = canonicalize([(a + b).uop])
  roots = [strip(r) for r in canonical.roots]
  fusion = fused(roots)
  assert within_limit(fusion, roots, 3) is fusion and not too_large(fusion, 3) and len(too_large(fusion, 2)) == 1

@pytest.mark.parametrize("form", ["balanced", "cat", "reduced", "moved", "written", "stacked maxima", "twice"])
def test_forms(limit: Setter, form: str) -> None:
  """Expressions of 20 tensors, on a device of 8 buffers."""
  arrays = [np.random.default_rng(k).integers(-9, 9, (4, 6)).astype(np.float32) for k in range(20)]
  def computed() -> Tensor:
    ts = [Tensor(a, device=HOME).realize() for a in arrays]
    if form == "balanced":
      while len(ts) > 1: ts = [sum(ts[k + 1:k + 3], ts[k]) for k in range(0, len(ts), 3)]
      return ts[0]
    if form == "cat": return ts[0].cat(*ts[1:], dim=1)
    if form == "reduced": return sum(t.sum(1) for t in ts) * ts[0].max() + sum(ts[1:], ts[0]).sum(0).max()
    if form == "moved": return sum((t.T.reshape(4, 6).flip(1) for t in ts[1:]), ts[0])
    if form == "stacked maxima": return Tensor.stack(*ts).max(0) - ts[3]
    if form == "twice": return (total := sum(ts[1:], ts[0])) * total.sum() + total.T.reshape(4, 6)
    for t in ts[1:]: ts[0].assign(ts[0] + t * ts[2])
    return ts[0]
  want = computed().numpy()
  limit(8)
  got = computed()
  assert max(sizes(got), default=0) <= 8
  np.testing.assert_array_equal(got.numpy(), want)

def test_stores_of_one_kernel(limit: Setter) -> None:
  """Kernels that are merged have the limit, too."""
  for most in (8, 0):
    limit(most)
    x, *others = empty(9, 64)
    assert max(sizes(*[x * y + k for k, y in enumerate(others)])) == (7 if most else 17)   # 7 and 3 might be 10

def test_values_that_are_computed_again(limit: Setter) -> None:
  """A checkpoint keeps nothing for its gradients. It computes values twice, with the same buffers."""
  def slopes() -> list[float]:
    ts = [Tensor([1.0 * k, 2.0], device=HOME, requires_grad=True) for k in range(12)]
    def total(*given: Tensor) -> Tensor: return (sum(given[1:], given[0]).tanh() * given[3]).exp()
    Tensor.checkpoint(total, *ts).sum().backward()
    return [g for t in ts for g in t.grad.tolist()]    # type: ignore[union-attr]
  want = slopes()
  limit(8)
  assert slopes() == want

@pytest.mark.parametrize("part", range(4))
def test_random_programs(limit: Setter, part: int) -> None:
  for seed in range(40 * part, 40 * (part + 1)):
    limit(5)
    program = tensor_programs.make(seed)
    tensor_programs.check(program, tensor_programs.run(program, HOME))
