"""Optimizers against their formulas in NumPy."""
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from test.helpers import arrays, same
from tinyhw import dtypes, nn
from tinyhw.errors import ArgumentError, GradientError
from tinyhw.nn import optim
from tinyhw.tensor import Tensor

pytestmark = pytest.mark.usefixtures("engine")

@pytest.fixture(autouse=True)
def training() -> Iterator[None]:
  with Tensor.train(): yield

def run(make: Callable[[list[Tensor]], Any], steps: int = 4) -> tuple[list[Any], list[Any]]:
  """Return two parameters after some steps on a quadratic loss, and their starting points."""
  start = arrays((3, 2), (4,))
  params = [Tensor(x) for x in start]
  opt = make(params)
  for _ in range(steps):
    opt.zero_grad()
    sum(((p * p * 0.5).sum() for p in params), start=Tensor(0.0)).backward()
    opt.step()
  return [p.numpy() for p in params], start

def sgd(x, lr, momentum=0.0, decay=0.0, nesterov=False, classic=False, steps=4):
  b = 0
  for _ in range(steps):
    g = x + decay * x
    if classic: g = g * lr
    if momentum:
      b = momentum * b + g
      g = g + momentum * b if nesterov else b
    x = x - (g if classic else lr * g)
  return x

@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
                                     {"momentum": 0.9, "weight_decay": 0.1},
  {"momentum": 0.9, "classic": True}])
@pytest.mark.parametrize("fused", [False, True])
def test_sgd(options, fused):
  got, start = run(lambda p: optim.SGD(p, lr=0.1, fused=fused, **options))
  plain = {("decay" if k == "weight_decay" else k): v for k, v in options.items()}
  same([Tensor(x) for x in got], [sgd(x, np.float32(0.1), **plain) for x in start], rtol=1e-4)

def adam(x, lr, decay=0.0, lamb=False, eps=1e-8, steps=4):
  m = v = np.zeros_like(x)
  for t in range(1, steps + 1):
    m, v = 0.9 * m + 0.1 * x, 0.999 * v + 0.001 * x * x
    up = m / (1 - 0.9 ** t) / (np.sqrt(v / (1 - 0.999 ** t)) + eps) + decay * x
    x = x - lr * up * (np.linalg.norm(x) / np.linalg.norm(up) if lamb else 1)
  return x.astype(np.float32)

@pytest.mark.parametrize("fused", [False, True])
def test_adam(fused):
  for make, want in ((lambda p: optim.Adam(p, lr=0.1, fused=fused), lambda x: adam(x, 0.1)),
    (lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.2, fused=fused), lambda x: adam(x, 0.1, 0.2))):
    got, start = run(make)
    same([Tensor(x) for x in got], [want(x) for x in start], rtol=1e-4, atol=1e-5)

def test_optimizers_with_layers():
  got, start = run(lambda p: optim.LAMB(p, lr=0.1, weight_decay=0.1))
  same([Tensor(x) for x in got], [adam(x, 0.1, 0.1, lamb=True, eps=1e-6) for x in start], rtol=1e-4, atol=1e-5)
  got, start = run(lambda p: optim.LARS(p, lr=0.1, momentum=0.0, weight_decay=0.01, tcoef=0.5), steps=1)
  same([Tensor(x) for x in got], [x - np.float32(0.1 * 0.5 / 1.01 * 1.01) * x for x in start], rtol=1e-4)
  got, start = run(lambda p: optim.Muon(p, lr=0.1), steps=1)
  assert np.isfinite(got[0]).all() and abs(got[0] - start[0]).max() > 0.01
  for make in (optim.LAMB, optim.LARS, optim.Muon):
    with pytest.raises(ArgumentError, match="fused"): make([Tensor.ones(2)], fused=True)

@pytest.mark.parametrize("make, keys", [
  (lambda p: optim.SGD(p, momentum=0.9), "b.0 lr params.0"), (optim.Adam, "b1_t b2_t lr m.0 params.0 v.0"),
    (optim.AdamW, "b1_t b2_t lr m.0 params.0 v.0"),
  (optim.LAMB, "b1_t b2_t lr m.0 params.0 v.0"), (optim.LARS, "b.0 lr params.0"), (optim.Muon, "b.0 lr params.0")])
def test_state_dict_keys(make, keys): assert sorted(nn.state.get_state_dict(make([Tensor.ones(2, 2)]))) == keys.split()

def test_learning_rate_and_groups():
  a, b = Tensor([1.0]), Tensor([1.0])
  group = optim.OptimizerGroup(optim.SGD([a], lr=0.5), optim.SGD([b], lr=0.25))
  (a * 2 + b * 2).sum().backward()
  group[0].lr.assign(Tensor([0.125]))
  loss = (a + b).sum().realize(*group.schedule_step())
  assert loss.shape == () and a.tolist() == [0.75] and b.tolist() == [0.5]
  assert all(one is other for one, other in zip(group.params, (a, b), strict=True))
  group.zero_grad()
  assert a.grad is None

def test_buffers_are_realized_and_kept():
  layer, x = nn.BatchNorm(2), Tensor(arrays((4, 2))[0])
  opt = optim.SGD(nn.state.get_parameters(layer), lr=0.1)
  assert len(opt.params) == 2 and len(opt.buffers) == 3
  layer(x).square().sum().backward()
  opt.step()
  assert layer.num_batches_tracked.item() == 1

def test_refusals():
  with pytest.raises(GradientError, match="parameter 0"): optim.SGD([Tensor.ones(2)]).step()
  with pytest.raises(ArgumentError, match="at least one"): optim.SGD([Tensor([1])])
  with pytest.raises(ArgumentError, match="list of Tensors"): optim.Adam([1.0])

def test_a_device_without_float64_keeps_the_bias_correction_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
  start = arrays((3, 2))[0]
  def moved() -> Any:
    p = Tensor(start)
    opt = optim.Adam([p], lr=0.01)
    for _ in range(3):
      opt.zero_grad()
      (p * p).sum().backward()
      opt.step()
    return opt, p.numpy()
  (opt, exact), known = moved(), optim.capabilities_of
  monkeypatch.setattr(optim, "capabilities_of", lambda *names: replace(known(*names), operations=frozenset()))
  other, found = moved()
  assert other.b2_t.dtype is dtypes.float32 and opt.b2_t.dtype in (dtypes.float32, dtypes.float64)
  np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
