"""Reductions of operands that are the same along an axis: computed once, with the same results."""
from __future__ import annotations
import random

import pytest

from tinyhw import Tensor
from tinyhw.engine.schedule.broadcast import reduce_once, same_axes, varying_axes
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def varying(t: Tensor) -> set[int]:
  known: dict[UOp, int] = {}
  for u in t.uop.toposort(): known[u] = varying_axes(u, known)
  return {k for k in range(t.ndim) if known[t.uop] >> k & 1}

X = Tensor.empty(3, 1, 5)

@pytest.mark.parametrize("t, axes", [
  (X.expand(3, 4, 5), {0, 2}),
  (X.expand(3, 4, 5) * 2 + 1, {0, 2}),
  (X.expand(3, 4, 5) + Tensor.empty(4, 1).expand(3, 4, 5), {0, 1, 2}),
  (X.expand(3, 4, 5).permute(1, 2, 0), {1, 2}),
  (X.expand(3, 4, 5).reshape(3, 2, 2, 5), {0, 3}),
  (X.expand(3, 4, 5).reshape(12, 5), {0, 1}),
  (X.expand(3, 4, 5).reshape(3, 20), {0, 1}),
  (X.expand(3, 4, 5).pad((None, (1, 0), None)), {0, 1, 2}),
  (X.expand(3, 4, 5).shrink((None, (1, 3), None)).flip(1), {0, 2}),
  (X.expand(3, 4, 5).sum(2, keepdim=True), {0}),
  (Tensor.arange(4).reshape(1, 4).expand(3, 4), {1}),
  (Tensor.ones(3, 4), set()),
], ids=str)
def test_axes_along_which_elements_differ(t: Tensor, axes: set[int]) -> None: assert varying(t) == axes

def reduced(t: Tensor) -> list[tuple[int, ...]]:
  """Return the shapes of the operands of reductions."""
  return [u.src[0].shape for root in reduce_once([t.uop]) for u in root.toposort() if u.op is Ops.REDUCE_AXIS]

def test_the_operand_is_narrowed() -> None:
  assert reduced(X.expand(3, 4, 5).sum(2)) == [(3, 1, 5)]
  assert reduced((X * 3).expand(3, 4, 5).max(0)) == [(3, 1, 5)]
  assert reduced(X.expand(3, 4, 5).sum(1)) == [(3, 4, 5)], "equal terms are added: a product rounds otherwise"
  assert reduced((Tensor.ones(8, 6) @ Tensor.empty(6, 7))) == [(1, 7, 6)]

def test_other_graphs_stay() -> None:
  roots = [(Tensor.empty(3, 4, 5) + X).sum(2).uop, Tensor.empty(3).exp().uop]
  assert reduce_once(roots) is roots
  known: dict[UOp, int] = {}
  for u in roots[0].toposort(): known[u] = varying_axes(u, known)
  assert all(same_axes(u, known) == [] for u in known if u.op is Ops.REDUCE_AXIS)

def test_new_nodes_know_what_they_replace() -> None:
  t, came = X.expand(3, 4, 5).sum(2), {}
  root, = reduce_once([t.uop], came)
  assert root is not t.uop and all(old in set(t.uop.toposort()) for old in came.values())

def numbers(*shape: int) -> Tensor:
  rng = random.Random(sum(shape))
  n = 1
  for d in shape: n *= d
  return Tensor([float(rng.randint(-4, 4)) for _ in range(n)]).reshape(shape).realize()

@pytest.mark.parametrize("axis", (0, 2))
def test_results_are_those_of_copies(axis: int) -> None:
  x = numbers(3, 1, 5)
  for f in (lambda t: t.sum(axis), lambda t: (t * 2 - 1).max(axis), lambda t: t.exp().prod(axis)):
    assert f(x.expand(3, 4, 5)).tolist() == f(x.expand(3, 4, 5).contiguous()).tolist()

def test_gradients_of_a_product_s_sum() -> None:
  a, b = numbers(6, 8), numbers(8, 7)
  da, db = (a @ b).sum().gradient(a, b)
  assert da.tolist() == [b.sum(1).tolist()] * 6 and db.tolist() == [[s] * 7 for s in a.sum(0).tolist()]

def kernels(t: Tensor) -> int: return len(schedule(canonicalize([t.uop])).kernels)

def test_a_long_sum_that_is_only_broadcast_has_a_kernel_of_its_own() -> None:
  """Under the kernel's outer loops its rows would be added one by one, and stored across memory."""
  assert kernels(Tensor.empty(600, 500).sum(0).reshape(500, 1).expand(500, 64).contiguous()) == 2
  assert kernels(Tensor.empty(60, 50).sum(0).reshape(50, 1).expand(50, 64).contiguous()) == 1, "few terms"

def test_rows_that_are_read_again_stay() -> None:
  x = Tensor.empty(600, 500)
  assert kernels(x / x.sum(1, keepdim=True)) == kernels(x.softmax(1)) == kernels(x.layernorm()) == 1
  assert kernels(Tensor.empty(600, 500) * x.mean(1, keepdim=True)) == 2, "another operand is read"
