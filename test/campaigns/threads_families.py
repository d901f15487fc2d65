"""Programs of each public family, small and exact: what threads.py runs in several threads at once. Each gives (result,
expected) for a number k.

Sizes differ with k, so that threads compile different kernels; numbers are small integers, so that Python alone makes
exact expected values.
"""
from __future__ import annotations
import os
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

from tinyhw import Tensor, TinyJit, Variable, dtypes, function, nn
from tinyhw.methods.random.generator import Generator

def elementwise(k: int) -> tuple[Any, Any]:
  values = [float(i) for i in range(20 + k)]
  return (Tensor(values) * 2 + 1).maximum(5).tolist(), [max(v * 2 + 1, 5.0) for v in values]

def exponential(k: int) -> tuple[Any, Any]:
  return (Tensor([0.0] * (20 + k)) * (k + 1)).exp().sum().item(), 20.0 + k

def reduction(k: int) -> tuple[Any, Any]:
  rows = [[(i * 7 + j * k) % 11 for j in range(9 + k)] for i in range(5)]
  x = Tensor(rows)
  return [x.sum(1).tolist(), x.max(0).tolist(), x.argmax(1).tolist()], \
         [[sum(r) for r in rows], [max(c) for c in zip(*rows)], [r.index(max(r)) for r in rows]]

def product(k: int) -> tuple[Any, Any]:
  a = [[float((i + j * k) % 5) for j in range(6 + k)] for i in range(7)]
  b = [[float((i * 3 + j) % 4) for j in range(5)] for i in range(6 + k)]
  return (Tensor(a) @ Tensor(b)).tolist(), [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)]
                                            for row in a]

def convolution(k: int) -> tuple[Any, Any]:
  n = 6 + k
  x = [[float((i * k + j) % 3) for j in range(n)] for i in range(n)]
  found = Tensor(x).reshape(1, 1, n, n).conv2d(Tensor([[1.0, 2.0], [0.0, 1.0]]).reshape(1, 1, 2, 2)).reshape(
    n - 1, n - 1).tolist()
  return found, [[x[i][j] + 2 * x[i][j + 1] + x[i + 1][j + 1] for j in range(n - 1)] for i in range(n - 1)]

def random(k: int) -> tuple[Any, Any]:
  def draw() -> Any:
    with Generator(k + 3): return Tensor.rand(40 + k).tolist()
  first = draw()
  return [first == draw(), len(set(first)) > 30, all(0 <= v < 1 for v in first)], [True] * 3

def indexing(k: int) -> tuple[Any, Any]:
  values = list(range(30 + k))
  x = Tensor(values)
  places = [(i * 5) % (30 + k) for i in range(8)]
  return [x[3:9].tolist(), x[::4].tolist(), x[Tensor(places)].tolist(), x[-1].item()], \
         [values[3:9], values[::4], [values[p] for p in places], values[-1]]

def writes(k: int) -> tuple[Any, Any]:
  values = list(range(12 + k))
  x = Tensor(values).realize()
  before = x * 10
  x += 1
  x[2:4] = 100
  view = x[5:8]
  view *= 2
  expected = [v + 1 for v in values]
  expected[2:4] = [100, 100]
  expected[5:8] = [2 * v for v in expected[5:8]]
  return [x.tolist(), before.tolist()], [expected, [v * 10 for v in values]]

def jit(k: int) -> tuple[Any, Any]:
  total = Tensor([0.0] * (4 + k)).realize()
  @TinyJit
  def step(x: Tensor) -> Tensor:
    total.assign(total + x)
    return (total * 2).realize()
  found = [step(Tensor([float(i)] * (4 + k)).realize()).tolist() for i in range(5)]
  return found, [[2.0 * sum(range(i + 1))] * (4 + k) for i in range(5)]

def training(k: int) -> tuple[Any, Any]:
  w = Tensor([1.0] * (3 + k), requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.25)
  with Tensor.train():
    for _ in range(3):
      optimizer.zero_grad()
      (w * w).sum().backward()
      optimizer.step()
  return w.tolist(), [0.125] * (3 + k)

def jitted_training(k: int) -> tuple[Any, Any]:
  w = Tensor([8.0] * (2 + k), requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.25)
  @TinyJit
  @Tensor.train()
  def step() -> Tensor:
    optimizer.zero_grad()
    loss = (w * w).sum().backward()
    optimizer.step()
    return loss.realize()
  losses = [step().item() for _ in range(4)]
  return [losses, w.tolist()], [[(2 + k) * (8.0 / 2**i)**2 for i in range(4)], [0.5] * (2 + k)]

def files(k: int) -> tuple[Any, Any]:
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    nn.state.safe_save({"a": Tensor(list(range(9 + k))), "b": Tensor([1.5, k])}, path)
    found = {name: t.to(None).tolist() for name, t in nn.state.safe_load(path).items()}
  return found, {"a": list(range(9 + k)), "b": [1.5, float(k)]}

def symbolic(k: int) -> tuple[Any, Any]:
  values = list(range(16))
  return [Tensor(values)[:Variable("n", 1, 16).bind(n)].sum().item()
          for n in (3, 5 + k)], [sum(values[:n]) for n in (3, 5 + k)]

def sorting(k: int) -> tuple[Any, Any]:
  values = [(i * 37 + k) % 101 for i in range(17 + k)]
  return [Tensor(values).sort()[0].tolist(),
          Tensor(values).cumsum(0).tolist()], [sorted(values), [sum(values[:i + 1]) for i in range(len(values))]]

def types(k: int) -> tuple[Any, Any]:
  values = [i % 50 for i in range(16 + k)]
  x = Tensor(values, dtype=dtypes.uint8)
  return [x.cast(dtypes.float16).tolist(), pickle.loads(pickle.dumps(x + 1)).tolist(),
          x.half().add(1).cast(dtypes.int64).sum().item()], \
         [[float(v) for v in values], [v + 1 for v in values], sum(values) + len(values)]

def functions(k: int) -> tuple[Any, Any]:
  @function
  def area(a: Tensor, b: Tensor) -> Tensor: return a * b + k
  return area(Tensor([2, 3]), Tensor([4, 5])).tolist(), [8 + k, 15 + k]

def layers(k: int) -> tuple[Any, Any]:
  layer = nn.Linear(4 + k, 3)
  layer.weight.assign(Tensor.ones(3, 4 + k)).realize()
  assert layer.bias is not None
  layer.bias.assign(Tensor([1.0, 2.0, 3.0])).realize()
  return layer(Tensor.ones(2, 4 + k)).relu().tolist(), [[5.0 + k, 6.0 + k, 7.0 + k]] * 2

FAMILIES: tuple[Callable[[int], tuple[Any, Any]], ...] = (
  elementwise, exponential, reduction, product, convolution, random, indexing, writes, jit, training, jitted_training,
  files, symbolic, sorting,
  types, functions, layers)
