"""Random tensors: reproducible, independent of the order of evaluation, and distributed as they should be."""
import math

import numpy as np
import pytest

from test.helpers import same
from tinyhw.arithmetic import threefry
from tinyhw.dtype import dtypes
from tinyhw.engine import realize as realizing
from tinyhw.engine.jit import TinyJit
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods import base
from tinyhw.tensor import Tensor

def test_a_seed_repeats_in_any_order_of_evaluation():
  Tensor.manual_seed(3)
  a, b = Tensor.rand(5), Tensor.rand(5)
  first = a.tolist(), b.tolist()
  Tensor.manual_seed(3)
  a, b = Tensor.rand(5), Tensor.rand(5)
  second = b.tolist(), a.tolist()
  assert first == second[::-1] and first[0] != first[1]
  Tensor.manual_seed(4)
  assert Tensor.rand(5).tolist() != first[0]

def test_numbers_are_those_of_threefry():
  Tensor.manual_seed(3)
  Tensor.rand(1)
  got = Tensor.rand(3).tolist()
  assert got == [(threefry((1 << 36) + i, 3) >> 41) / 2 ** 23 for i in range(3)]

def test_devices_agree():
  Tensor.manual_seed(5)
  assert Tensor.rand(4, device="PYTHON").tolist() == Tensor.rand(4, device="PYTHON:1").to("PYTHON").tolist()

def test_more_draws_than_one_buffer_holds():
  seen = {Tensor.rand(1, contiguous=False).item() for _ in range(300)}
  assert len(seen) > 295

@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers(dtype):
  x = np.array(Tensor.rand(1000, dtype=dtype).tolist())
  assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.04 and abs(x.std() - 12 ** -0.5) < 0.02
  y = np.array(Tensor.uniform(500, low=-3, high=5).tolist())
  assert -3 <= y.min() < -2.8 and 4.8 < y.max() < 5

@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal_numbers(dtype):
  x = np.array(Tensor.randn(1000, dtype=dtype).tolist())
  assert abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.08 and 2.3 < abs(x).max() < 5
  assert abs(np.mean(Tensor.normal(400, mean=5, std=0.5).tolist()) - 5) < 0.1

def test_integers():
  x = Tensor.randint(500, low=-3, high=4).tolist()
  assert set(x) == set(range(-3, 4))
  assert Tensor.randint(3, low=0, high=2 ** 63, dtype=dtypes.uint64).dtype is dtypes.uint64
  assert min(Tensor.randint(50, low=2 ** 40, high=2 ** 41, dtype=dtypes.int64).tolist()) >= 2 ** 40
  with pytest.raises(ArgumentError, match="a seed is an int"): Tensor.manual_seed("1")
  with pytest.raises(ArgumentError, match="low < high"): Tensor.randint(3, low=4, high=4)
  with pytest.raises(ArgumentError, match="does not fit"): Tensor.randint(3, high=300, dtype=dtypes.uint8)
  with pytest.raises(DTypeError): Tensor.randint(3, dtype=dtypes.float32)
  with pytest.raises(DTypeError): Tensor.rand(3, dtype=dtypes.int32)

def test_initialisers():
  for name, bound in (("kaiming_uniform", math.sqrt(6 / (1 + 1e-4) / 50)), ("glorot_uniform", math.sqrt(6 / 60)), ("scaled_uniform", 500 ** -0.5)):
    x = abs(getattr(Tensor, name)(10, 50).numpy())
    assert x.shape == (10, 50) and 0.95 * bound < x.max() <= bound
  assert abs(Tensor.kaiming_normal(10, 50).numpy().std() - math.sqrt(2 / 50)) < 0.02
  assert Tensor.ones(2, 3).rand_like().shape == (2, 3) and Tensor.ones(2, dtype="float64").randn_like().dtype is dtypes.float64

def test_permutations_and_choices():
  assert sorted(Tensor.randperm(20).tolist()) == list(range(20)) and Tensor.randperm(20).tolist() != list(range(20))
  weights = Tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
  picked = weights.multinomial(200, replacement=True).numpy()
  assert picked.shape == (2, 200) and set(picked[0]) == {1, 2} and 130 < (picked[0] == 2).sum() < 170 and set(picked[1]) == {0}
  assert sorted(Tensor([1.0, 2.0, 3.0]).multinomial(3).tolist()) == [0, 1, 2]

def test_dropout():
  x = Tensor.ones(1000)
  assert x.dropout(0.3) is x
  with Tensor.train():
    y = x.dropout(0.3).numpy()
    assert abs((y == 0).mean() - 0.3) < 0.05 and np.allclose(y[y != 0], 1 / 0.7) and x.dropout(1.0).sum().item() == 0
    z = Tensor.ones(50, requires_grad=True)
    d = z.dropout(0.5)
    d.sum().backward()
    same(z.grad, d.numpy())
  with pytest.raises(ArgumentError, match="probability"): x.dropout(1.5)

def test_threefry():
  x, key = Tensor([0, 1, 2 ** 63], dtype=dtypes.uint64), Tensor([7], dtype=dtypes.uint64)
  assert x.threefry(key).tolist() == [threefry(i, 7) for i in (0, 1, 2 ** 63)]

def test_a_jitted_function_draws_what_it_would_draw_without(monkeypatch):
  """Each replay gets the next draw of the same sequence; draws outside go on after it."""
  monkeypatch.setattr(base, "realize_nodes", realizing.realize)
  def step(x: Tensor) -> Tensor: return (x + Tensor.rand(4, contiguous=False) * Tensor.rand(4)).realize()
  results = []
  for function in (step, TinyJit(step)):
    Tensor.manual_seed(11)
    results.append([function(Tensor([float(i)] * 4)).tolist() for i in range(5)] + [Tensor.rand(2).tolist()])
  assert results[0] == results[1] and len({tuple(r) for r in results[0]}) == 6
