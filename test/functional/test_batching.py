"""functional/batching.py: the graph of one item becomes that of many. A loop over the items is the oracle."""
from __future__ import annotations
from collections.abc import Callable

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.errors import FunctionError
from tinyhw.functional.batching import batched, placeholder
from tinyhw.gradient import gradients

N = 3

def _data(*shape: int) -> Tensor:
  return Tensor(np.random.default_rng(5).standard_normal((N, *shape)).astype(np.float32)).realize()

def _many(f: Callable[[Tensor], Tensor], x: Tensor) -> np.ndarray:
  one = placeholder(tuple(int(d) for d in x.shape[1:]), x.uop)
  u, = batched([f(Tensor._new(one)).uop], {one: x.uop}, N)
  return Tensor._new(u).numpy()

INDEX = Tensor([2, 0, 2])
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
  "elementwise": lambda x: (x.exp() + 1).where(x, 2.0), "cast": lambda x: x.int().float().bitcast("int32"),
  "sums": lambda x: x.sum(1), "largest": lambda x: x.max(), "movement": lambda x: x.T.flip(0).pad((1, 2)).reshape(-1),
  "parts": lambda x: x[1:, ::2], "repeated": lambda x: x.unsqueeze(0).expand(2, 3, 4), "gather": lambda x: x[INDEX],
  "scatter": lambda x: x.scatter_reduce(0, INDEX.unsqueeze(1).expand(3, 4), x * 2, "sum"),
  "running": lambda x: x.cumsum(0), "sorted": lambda x: x.sort(1)[0], "products": lambda x: x @ x.T,
  "copied": lambda x: (x.contiguous() * 2).detach(), "other device": lambda x: x.to("PYTHON").to(x.device),
  "no dependence": lambda x: Tensor.arange(4).float(), "diagonal": lambda x: x[:, :3].diagonal()}

@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_a_loop(name: str) -> None:
  x, f = _data(3, 4), FUNCTIONS[name]
  np.testing.assert_allclose(_many(f, x), np.stack([f(x[k]).numpy() for k in range(N)]), rtol=1e-5, atol=1e-6)

GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
  "by rules": lambda x: (x.sin() * x).sum(1), "convolution": lambda x: x.reshape(1, 1, 3, 4).conv2d(
    x[:2, :2].reshape(1, 1, 2, 2)), "pooling": lambda x: x.reshape(1, 1, 3, 4).max_pool2d(2),
  "scattering": lambda x: x.scatter_reduce(0, INDEX.unsqueeze(1).expand(3, 4), x * x, "amax"),
  "embedding": lambda x: x[INDEX].sin(), "running": lambda x: x.cumprod(1)}

@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_many(name: str) -> None:
  """The batched gradient of one item, and the gradient of many: both are those of a loop."""
  x, f = _data(3, 4), GRADIENTS[name]
  def slope(x: Tensor) -> Tensor:
    y = f(x).sin().sum()
    g, = gradients(y.uop, y.const_like(1).uop, [x.uop])
    assert g is not None
    return Tensor._new(g)
  wanted = np.stack([slope(x[k].clone()).numpy() for k in range(N)])
  np.testing.assert_allclose(_many(slope, x), wanted, rtol=1e-4, atol=1e-5)
  one = placeholder((3, 4), x.uop)
  u, = batched([f(Tensor._new(one)).sin().sum().uop], {one: x.uop}, N)
  g, = gradients(Tensor._new(u).sum().uop, Tensor(1.0).uop, [x.uop])
  assert g is not None
  np.testing.assert_allclose(Tensor._new(g).numpy(), wanted, rtol=1e-4, atol=1e-5)

def test_writes_are_refused() -> None:
  memory = Tensor.zeros(4).contiguous().realize()
  def write(x: Tensor) -> Tensor: return memory.assign(x) + 1
  with pytest.raises(FunctionError, match="ASSIGN of .*float32 has no form for many items"): _many(write, _data(4))
