"""nn/optim/ruled.py: optimizers by a rule, against PyTorch's; learning rates that change; Lion by its formula."""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from test.helpers import arrays, same
from tinyhw import TinyJit, nn
from tinyhw.errors import ArgumentError
from tinyhw.nn import optim
from tinyhw.tensor import Tensor

@pytest.fixture(autouse=True)
def training() -> Iterator[None]:
  with Tensor.train(): yield

@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", ["RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Adafactor"])
def test_against_pytorch(name: str, fused: bool) -> None:
  torch = pytest.importorskip("torch")
  if fused and name == "Adafactor": pytest.skip("it needs layers")
  start = arrays((3, 2), (4,))
  ours, theirs = [Tensor(x) for x in start], [torch.nn.Parameter(torch.tensor(x)) for x in start]
  options: dict[str, Any] = {"fused": True} if fused else {}
  a = getattr(optim, name)(ours, lr=0.1, weight_decay=0.1, **options)
  b = getattr(torch.optim, name)(theirs, lr=0.1, weight_decay=0.1)
  for i in range(6):
    if i == 3: a.lr = b.param_groups[0]["lr"] = 0.03
    for o in (a, b): o.zero_grad()
    sum(((p * p * 0.5).sum() for p in ours), start=Tensor(0.0)).backward()
    sum((p * p * 0.5).sum() for p in theirs).backward()
    for o in (a, b): o.step()
  same(ours[0], theirs[0].detach().numpy(), rtol=1e-5)
  same(ours[1], theirs[1].detach().numpy(), rtol=1e-5)

def test_lion() -> None:
  p, x, m = Tensor([1.0, -2.0]), np.array([1.0, -2.0]), np.zeros(2)
  opt = optim.Lion([p], lr=0.1, weight_decay=0.1)
  for _ in range(3):
    opt.zero_grad()
    (p * p).sum().backward()
    opt.step()
    g = 2 * x
    x, m = x * (1 - 0.01) - 0.1 * np.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g
  assert p.tolist() == pytest.approx(list(x), rel=1e-5)
  assert sorted(nn.state.get_state_dict(opt)) == ["lr", "params.0", "state.0.exp_avg"]

def test_a_captured_step_sees_the_learning_rate() -> None:
  p = Tensor([8.0]).realize()
  opt = optim.Adagrad([p], lr=1.0)
  @TinyJit
  def step() -> Tensor:
    opt.zero_grad()
    loss = (p * 2).sum()
    loss.backward()
    opt.step()
    return loss.realize()
  for _ in range(3): step()
  before = p.item()
  opt.lr = 0.0
  step()
  assert p.item() == before
  opt.param_groups[0]["lr"] = 2.0
  step()
  assert p.item() < before - 0.5 and opt.lr.item() == 2.0

def test_refusals() -> None:
  with pytest.raises(ArgumentError, match="fused"): optim.ruled.RuledOptimizer(
    optim.rules.ADAFACTOR, [Tensor([1.0])], 0.1, {}, fused=True)
  with pytest.raises(ArgumentError, match="must not be negative"):
    optim.Adagrad([Tensor([1.0])], initial_accumulator_value=-1)
  with pytest.raises(AttributeError, match="no attribute 'Adom'"): _ = optim.Adom
  assert "Lion" in dir(optim)
