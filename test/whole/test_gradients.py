"""Gradients of every differentiable method: against finite differences, to the second derivative, and against PyTorch
where it is installed.

In float64, along random directions: (f(x + hv) - f(x - hv)) / 2h is the gradient times v. One device is enough, as a
gradient is a graph like any other: PYTHON, which compiles fastest, or the one that DEV names.
"""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

import differentiable
from differentiable import CASES, KINKS, SAME, Case, Kink
import numpy as np
import pytest

from test.helpers import on
from tinyhw import Tensor
from tinyhw.config import DEV
from tinyhw.methods.base import Handle

@pytest.fixture(autouse=True)
def device() -> Iterator[str]:
  with on(DEV.value or "PYTHON") as name: yield name

def weights(shape: tuple[Any, ...]) -> Any: return np.cos(np.arange(int(np.prod(shape)))).reshape(shape) + 1.5

class Slopes:
  """A case as a number, and its derivatives along one direction. at(n, step) is the n-th derivative at distance step
  from the inputs."""
  def __init__(self, case: Case):
    self.f, self.inputs = case.f, differentiable.arrays(case)
    rng = np.random.default_rng(1)
    self.direction = [rng.uniform(-1, 1, x.shape) for x in self.inputs]

  def at(self, order: int, step: float = 0.0) -> float:
    tensors = [Tensor(x + step * d) for x, d in zip(self.inputs, self.direction)]
    y = self.f(*tensors)
    nothing = Tensor.usum(*[(t * 0).sum() for t in tensors])   # else a derivative that is constant would not be
                                                               # computed from them
    y = (y * Tensor(weights(y.shape))).sum() + nothing
    for _ in range(order):
      y = Tensor.usum(*[(g * Tensor(d)).sum() for g, d in zip(y.gradient(*tensors), self.direction)], nothing)
    return float(y.item())

  def check(self, order: int, step: float = 1e-5, tolerance: float = 1e-6) -> None:
    got, want = self.at(order), (self.at(order - 1, step) - self.at(order - 1, -step)) / (2 * step)
    assert abs(got - want) <= tolerance * (1 + abs(want)), f"derivative {order} is {got}, and by differences {want}"

@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.slow
def test_derivatives_are_those_by_finite_differences(case: Case) -> None:
  slopes = Slopes(case)
  for order in range(1, case.order + 1): slopes.check(order)

@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "sigmoid", "pow", "softmax", "matmul", "logsumexp 1 False",
                                  "silu", "erf", "conv2d",
                                  "layernorm"])
def test_third_derivatives(name: str) -> None:
  Slopes(next(case for case in CASES if case.name == name)).check(3, tolerance=1e-5)

@pytest.mark.parametrize("case", [case for case in CASES if case.torch is not None], ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_are_those_of_pytorch(case: Case) -> None:
  torch = pytest.importorskip("torch")
  inputs = differentiable.arrays(case)
  theirs = [torch.tensor(x, requires_grad=True) for x in inputs]
  y = (case.f if case.torch is SAME else case.torch)(*theirs)
  try: (y * torch.tensor(weights(tuple(y.shape)))).sum().backward()
  except RuntimeError as error: pytest.skip(f"PyTorch: {error}")
  tensors = [Tensor(x) for x in inputs]
  z = case.f(*tensors)
  np.testing.assert_allclose(z.numpy(), y.detach().numpy(), rtol=1e-6, atol=1e-9)
  for x, g, t in zip(inputs, (z * Tensor(weights(z.shape))).sum().gradient(*tensors), theirs):
    np.testing.assert_allclose(g.numpy(), np.zeros_like(x) if t.grad is None else t.grad.numpy(), rtol=1e-6, atol=1e-9)

@pytest.mark.parametrize("kink", KINKS, ids=lambda kink: kink.name)
def test_gradients_where_mathematics_has_none(kink: Kink) -> None:
  x = Tensor(np.array(kink.at, np.float64))
  np.testing.assert_allclose(kink.f(x).sum().gradient(x)[0].numpy(), np.array(kink.gradient, np.float64), rtol=1e-9,
                             atol=1e-300)

@pytest.mark.parametrize("kink", [kink for kink in KINKS if kink.torch is not None], ids=lambda kink: kink.name)
def test_what_is_chosen_there_is_what_pytorch_has(kink: Kink) -> None:
  torch = pytest.importorskip("torch")
  t = torch.tensor(np.array(kink.at, np.float64), requires_grad=True)
  if kink.name in ("sort ties", "sort ties down"): pytest.skip("PyTorch sorts equal elements in any order")
  (kink.f if kink.torch is SAME else kink.torch)(t).sum().backward()
  np.testing.assert_allclose(t.grad.numpy(), np.array(kink.gradient, np.float64), rtol=1e-9, atol=1e-300)

# Methods that no case needs: results without gradients (integers, bools, new tensors, Python values), what acts on
# handles, and other names of those that have a case.
OTHERS = set("""
all allclose alu any arange argmax argmin argsort as_param assign backward bfloat16 bitcast bitwise_and bitwise_not
bitwise_or bitwise_xor bool call callify ceildiv checkpoint const const_like copied custom_kernel data device div double
dropout dtype element_size empty empty_like eq eye float floordiv from_blob from_dlpack from_url full full_like ge
glorot_uniform grad gradient gt half hash hold idiv int invalids is_floating_point is_param is_param_ isclose isfinite
isinf isnan item kaiming_normal kaiming_uniform keccak lazydata le linear_with_vars linspace logical_and logical_not
logical_or long lshift lt manual_seed max_numel max_shape multinomial nbytes ndim ne no_grad nonzero normal numel numpy
one_hot ones ones_like qr rand rand_like randint randn randn_like random_bits randperm realize replace requires_grad
requires_grad_ rshift scaled_dot_product_attention scaled_uniform schedule_linear shape shard shard_ shard_like short
size svd invalidate retain_grad retains_grad threefry to_ tolist train training ufix uniform uop xor zeros zeros_like
""".split())

def test_every_method_has_a_case_or_a_reason() -> None:
  """A new method of Tensor needs a case in support/differentiable.py, or an entry in OTHERS."""
  public = {name for name in dir(Tensor) if not name.startswith("_") and name not in dir(Handle)}
  covered = {case.name.split()[0] for case in CASES}
  missing = public - covered - OTHERS
  assert not missing, f"neither a case nor in OTHERS: {sorted(missing)}"
