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
from tinyhw.engine.schedule.masks import Hidden, hidden_values, is_left_out, is_of_indices, position_at
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

def test_conditions_of_indices() -> None:
  i, j = positions()
  for condition in (i < j, i + 3 < j, i.cast("int64") < j.cast("int64"), 5 - i < j, i < 7):
    assert is_of_indices(canonicalize([condition.uop]).roots[0])
  x = Tensor.empty(N, N, dtype="int32")
  for condition in (i < x, i * j < j, i.float() < j.float(), Tensor.full((N, N), 1) < 2, i != j):
    assert not is_of_indices(canonicalize([condition.uop]).roots[0])

def test_positions_at_an_index() -> None:
  r = UOp.range(N, 0, AxisType.REDUCE)
  _, j = positions()
  def at(x: Tensor) -> UOp | None:
    return position_at(canonicalize([x.uop]).roots[0], GatedIndex((UOp.const(dtypes.weakint, 0), r)))
  assert at(j) is r
  assert at(j.flip(1)) is not None
  assert at(Tensor.arange(300).cast("int8").shrink(((0, N),)).expand(N, N)) is not None
  assert at((j + 200).cast("int8")) is None, "the type wraps there"

X, INF = Tensor.empty(N, N), math.inf
VALUES: dict[str, tuple[Callable[[Tensor], Tensor], float | None, bool]] = {
  "masked": (lambda c: c.where(-INF, X), -INF, True),
  "kept": (lambda c: c.where(X, -INF), -INF, True),
  "its exponential": (lambda c: (c.where(-INF, X) - X).exp(), 0.0, True),
  "divided": (lambda c: c.where(-INF, X).exp() * X, 0.0, True),
  "masked twice": (lambda c: c.where(0.0, c.where(-INF, X).exp() * X), 0.0, True),
  "zeros of no softmax": (lambda c: c.where(0.0, X), 0.0, False),
  "a finite mask": (lambda c: c.where(-1e9, X), -1e9, False),
  "minus what is masked": (lambda c: X - c.where(-INF, X), None, False),
  "with another": (lambda c: c.where(-INF, X).maximum(X), None, False),
  "an integer": (lambda c: c.where(0, X.cast("int32")), None, False),
}

@pytest.mark.parametrize("name", VALUES)
def test_hidden_values(name: str) -> None:
  make, constant, left_out = VALUES[name]
  i, j = positions()
  found = hidden(make(i < j))
  if constant is None: assert found is None
  else: assert found is not None and found.constant == constant and is_left_out(found) is left_out

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
