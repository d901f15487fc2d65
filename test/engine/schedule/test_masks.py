"""What a mask hides is known of buffers, too, and changes no result."""
from __future__ import annotations
import math
from collections.abc import Callable

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw import Tensor
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.indexing import GatedIndex
from tinyhw.engine.schedule.masks import Hidden, each_row_sees, hidden_values, is_of_indices, sides_at
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.uop.enums import STATED, AxisType, Ops
from tinyhw.uop.ops import UOp

N = 64

def positions(n: int = N, dtype: str = "int32") -> tuple[Tensor, Tensor]:
  return Tensor.arange(n, dtype=dtype).reshape(n, 1).expand(n, n), Tensor.arange(n, dtype=dtype).expand(n, n)

def hidden(x: Tensor) -> Hidden | None:
  root = canonicalize([x.uop]).roots[0]
  return hidden_values(list(root.toposort())).get(root)

def statements(*results: Tensor) -> list[int]:
  """Return the number of statements in each kernel with a reduction."""
  kernels = [k.sink.toposort() for k in schedule(canonicalize([t.uop for t in results])).kernels]
  return [sum(u.tag == STATED for u in nodes) for nodes in kernels if any(u.op is Ops.REDUCE for u in nodes)]

def attention(n: int = N, width: int = 64, **how: bool) -> tuple[Tensor, list[Tensor]]:
  inputs = [Tensor.empty(2, n, width) for _ in range(3)]
  return inputs[0].scaled_dot_product_attention(*inputs[1:], **how), inputs

def canonical(x: Tensor) -> UOp: return canonicalize([x.uop]).roots[0]

def test_conditions_of_indices() -> None:
  i, j = positions()
  row = Tensor.arange(N).reshape(N, 1)
  broadcast = (row < Tensor.arange(N)).reshape(1, N, N).expand(2, N, N)
  for condition in (i < j, i + 3 < j, i.cast("int64") < j.cast("int64"), 5 - i < j, i < 7, broadcast):
    assert is_of_indices(canonical(condition))
  x = Tensor.empty(N, N, dtype="int32")
  for condition in (i < x, i * j < j, i.float() < j.float(), Tensor.full((N, N), 1) < 2, i != j, x < 3):
    assert not is_of_indices(canonical(condition))

def test_long_conditions_take_no_time() -> None:
  p = Tensor.arange(N).cast("int64")
  for _ in range(20): p = p + p
  r = UOp.range(N, 0, AxisType.REDUCE)
  assert sides_at(canonical(p < p), GatedIndex((r,))) is not None
  for _ in range(1500): p = p + Tensor.arange(N)
  assert not is_of_indices(canonical(p < 5))

def test_positions_at_an_index() -> None:
  r = UOp.range(N, 0, AxisType.REDUCE)
  _, j = positions()
  def at(x: Tensor) -> UOp | None:
    found = sides_at(canonical(x < 3), GatedIndex((UOp.const(dtypes.weakint, 0), r)))
    return None if found is None else found[0]
  assert at(j) is r
  assert at(j.flip(1)) is not None
  assert at(Tensor.arange(300).cast("int8").shrink(((0, N),)).expand(N, N)) is not None
  assert at((j + 200).cast("int8")) is None, "the type wraps there"

X, INF = Tensor.empty(N, N), math.inf
def weights(x: Tensor) -> Tensor: return (x - x.max(1, keepdim=True)).exp()

VALUES: dict[str, tuple[Callable[[Tensor], Tensor], float | None]] = {
  "masked": (lambda c: c.where(-INF, X), -INF),
  "kept": (lambda c: c.where(X, -INF), -INF),
  "weights": (lambda c: weights(c.where(-INF, X)), 0.0),
  "normalized": (lambda c: weights(c.where(-INF, X)) * X.sum(1, keepdim=True).reciprocal(), 0.0),
  "hidden again": (lambda c: c.where(0.0, weights(c.where(-INF, X)) * X), 0.0),
  "without a maximum": (lambda c: c.where(-INF, X).exp(), 0.0),
  "minus something else": (lambda c: (c.where(-INF, X) - X).exp(), None),
  "minus another maximum": (lambda c: (c.where(-INF, X) - X.max(1, keepdim=True)).exp(), None),
  "plus a bias": (lambda c: (c.where(-INF, X) + X).exp(), None),
  "two masks": (lambda c: c.where(-INF, (Tensor.arange(N) < 3).expand(N, N).where(-INF, X)), None),
  "zeros of no softmax": (lambda c: c.where(0.0, X), None),
  "their logarithm": (lambda c: (c.where(0.0, X) * X).log(), None),
  "a finite mask": (lambda c: c.where(-1e9, X), None),
  "minus what is masked": (lambda c: X - c.where(-INF, X), None),
  "an integer": (lambda c: c.where(0, X.cast("int32")), None),
}

@pytest.mark.parametrize("name", VALUES)
def test_hidden_values(name: str) -> None:
  make, constant = VALUES[name]
  i, j = positions()
  found = hidden(make(i < j))
  assert found is None if constant is None else found is not None and found.constant == constant

def test_each_row_sees_a_score() -> None:
  i, j = positions()
  def sees(condition: Tensor, *axes: int, holds: bool = True) -> bool:
    return each_row_sees(Hidden(canonical(condition), holds, 0), condition.shape, axes)
  assert sees(i < j, 1) and sees(i < j, 0) and sees(i < j + 0, 0, 1)
  assert not sees(i < j + 1, 1), "the first row sees nothing"
  assert not sees(i < j + 1, 0) and not sees(i + 1 < j + 3, 1) and sees(i + 2 < j, 1)
  assert sees(j < i + 1, 1, holds=False) and not sees(j < i, 1, holds=False)
  def of(axis: int) -> Tensor:
    return Tensor.arange(8).reshape(*[8 if k == axis else 1 for k in range(3)]).expand(8, 8, 8)
  assert not sees(of(1) < of(2), 0), "an element is hidden in all or in none"
  assert not sees(of(1) < of(2) + of(0), 2), "row 0 of batch 1 sees nothing"
  assert sees(of(1) + of(0) < of(2), 2)

def test_gradients_of_attention_state_their_masks() -> None:
  y, inputs = attention(is_causal=True)
  assert sum(statements(*y.gradient(*inputs, gradient=Tensor.empty(*y.shape)))) == 6, (
    "the largest score and the sum of each row, the gradient of scores, and three products")
  y, inputs = attention()
  assert not any(statements(*y.gradient(*inputs, gradient=Tensor.empty(*y.shape))))

def test_the_gradient_of_weights_is_hidden_where_weights_are() -> None:
  y, inputs = attention(width=32, is_causal=True)
  kernels = schedule(canonicalize([t.uop for t in y.gradient(*inputs, gradient=Tensor.empty(*y.shape))])).kernels
  products = [k for k in kernels if k.sink.op is Ops.SINK and k.node.size == 2 * N * N
              and any(u.op is Ops.REDUCE for u in k.sink.toposort())]
  assert [k.node.op for k in products] == [Ops.WHERE] * 3, "scores, the gradient of weights, and that of scores"

def test_other_products_with_zeros_stay_as_they_are() -> None:
  """0 * inf is NaN in a product with a triangular matrix."""
  a, b = Tensor.empty(N, N), Tensor.empty(N, N)
  assert statements(a.tril().contiguous() @ b) == [0]
  x = np.ones((N, N), np.float32)
  infinite = x.copy()
  infinite[-1] = np.inf
  assert np.isnan((Tensor(x).tril().contiguous() @ Tensor(infinite)).numpy()[:-1]).all()

@pytest.mark.parametrize("strict", (False, True))
def test_rows_without_elements_are_nan(strict: bool) -> None:
  """The softmax of a row that is hidden throughout is NaN, and so is all that is summed over rows."""
  rng = np.random.default_rng(1)
  q, k, v, g = (Tensor(rng.standard_normal((N, N), np.float32)) for _ in range(4))
  i, j = positions()
  p = ((i < j + 1) if strict else (i < j)).where(-math.inf, q @ k.T).softmax()
  assert np.isnan(np.concatenate([t.numpy() for t in (p @ v).gradient(v, gradient=g)])).all() == strict

def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
  """Return the gradients of attention in float64."""
  q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
  s = np.where(mask, -np.inf, q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1]))
  p = np.exp(s - s.max(-1, keepdims=True))
  p /= p.sum(-1, keepdims=True)
  d = g @ v.swapaxes(1, 2)
  d = p * (d - (d * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
  return [d @ k, d.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ g]

@pytest.mark.parametrize("n,width,offset", ((64, 64, 0), (96, 40, 0), (80, 64, 5), (130, 32, 0)))
def test_gradients(n: int, width: int, offset: int) -> None:
  rng = np.random.default_rng(n)
  data = [rng.standard_normal((2, n, width), np.float32) for _ in range(4)]
  q, k, v, g = map(Tensor, data)
  i, j = positions(n)
  scores = (i + offset < j).where(-math.inf, q @ k.transpose(1, 2) / math.sqrt(width))
  found = (scores.softmax() @ v).gradient(q, k, v, gradient=g)
  Tensor.realize(*found)
  want = reference(*data, np.arange(n)[:, None] + offset < np.arange(n))
  for a, b in zip(found, want): np.testing.assert_allclose(a.numpy(), b, atol=2e-5)

@pytest.mark.skipif(HOME != "CPU", reason="a whole step is slow on virtual cards")
def test_a_training_step_with_its_result() -> None:
  """The forward's kernels want the weights, too."""
  rng = np.random.default_rng(3)
  data = [rng.standard_normal((2, 96, 64), np.float32) for _ in range(4)]
  q, k, v, g = map(Tensor, data)
  y = q.scaled_dot_product_attention(k, v, is_causal=True)
  found = y.gradient(q, k, v, gradient=y * g)
  Tensor.realize(y, *found)
  mask = np.arange(96)[:, None] < np.arange(96)
  for a, b in zip(found, reference(*data[:3], y.numpy() * data[3], mask)):
    np.testing.assert_allclose(a.numpy(), b, atol=5e-5)

def test_a_product_may_come_before_the_mask_that_hides_it() -> None:
  i, j = positions()
  a, b, x = (np.random.default_rng(4).standard_normal((3, N, N)).astype(np.float32))
  p = (i < j).where(-math.inf, Tensor(x)).softmax()
  found = ((Tensor(a) @ Tensor(b)) * p).sum(-1).numpy()
  want = np.where(np.arange(N)[:, None] < np.arange(N), -np.inf, x.astype(np.float64))
  want = np.exp(want - want.max(-1, keepdims=True))
  np.testing.assert_allclose(found, ((a @ b) * want / want.sum(-1, keepdims=True)).sum(-1), rtol=1e-3, atol=1e-4)

def test_a_held_product_keeps_all_its_elements() -> None:
  """What a schedule has computed stays known while its node is alive, but not what it has hidden."""
  i, j = positions()
  a, b = np.random.default_rng(5).standard_normal((2, N, N)).astype(np.float32)
  p = (i < j).where(-math.inf, Tensor(a)).softmax()
  d = Tensor(a) @ Tensor(b)
  e = d * 2
  (p * (e - (p * e).sum(-1, keepdim=True))).realize()
  np.testing.assert_allclose(d.numpy(), a @ b, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(e.numpy(), 2 * (a @ b), rtol=1e-4, atol=1e-4)

def test_loops_of_each_image_are_shorter() -> None:
  """Merged loops keep what is stated."""
  from tinyhw.codegen.optimize import with_few_ranges
  from tinyhw.codegen.transform.shorten import limits_of
  from tinyhw.isa.x86.capabilities import capabilities
  for batch in (1, 2):
    inputs = [Tensor.empty(batch, 4, 96, 64) for _ in range(3)]
    y = inputs[0].scaled_dot_product_attention(*inputs[1:], is_causal=True)
    kernels = schedule(canonicalize([t.uop for t in y.gradient(*inputs, gradient=Tensor.empty(*y.shape))])).kernels
    target = capabilities("x86_64:avx2")
    assert sum(bool(limits_of(with_few_ranges(k.sink, target), ())) for k in kernels if k.sink.op is Ops.SINK) == 6

def test_other_zeros_of_a_kernel_with_weights_are_multiplied() -> None:
  i, j = positions()
  x, y = np.ones((2, N, N), np.float32)
  y[3, 50] = np.inf
  p = (i < j).where(-math.inf, Tensor(x)).softmax()
  t = (p * Tensor(x)).sum(-1) + ((i < j).where(0, Tensor(x)) * Tensor(y)).sum(-1)
  Tensor.realize(p, t)
  assert np.isnan(t.numpy()[3])
