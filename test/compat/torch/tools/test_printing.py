"""compat/torch/tools/printing.py: the text of tensors, against PyTorch's."""
from __future__ import annotations
from collections.abc import Iterator

import numpy as np
import pytest

import tinyhw.compat.torch as ours
from tinyhw import TinyJit
from tinyhw.errors import ArgumentError

DRAWN = np.random.default_rng(0).standard_normal((3, 30)).astype(np.float32)
CASES = """
t.tensor([1.0, 2.0])
t.tensor(3)
t.tensor(2.5)
t.tensor(-0.0)
t.tensor([True, False])
t.tensor([[True], [False]])
t.tensor([1.5], requires_grad=True)
t.zeros(0)
t.zeros(0, 3)
t.tensor([], dtype=t.int64)
t.zeros(2, 3)
t.arange(30)
t.arange(24.0).reshape(2, 3, 4)
t.arange(2000)
t.arange(2000.0).reshape(40, 50)
t.arange(1100.0).reshape(11, 2, 50)
t.tensor([1e-5, 1.0])
t.tensor([1e10, 1.0])
t.tensor([0.1, 0.22, 100000.0])
t.tensor([nan, 1.0, inf, -inf])
t.tensor([0.0, -1.5, nan])
t.tensor([1 + 2j, 0.5 - 1j])
t.tensor([1.0, 2.0]).double()
t.tensor([1.5, 2.0]).half()
t.tensor([-1, 100, 20]).int()
t.tensor(7, dtype=t.uint8)
t.tensor(DRAWN)
t.tensor(DRAWN) * 1000
t.nn.Parameter(t.tensor([1.0, 2.0]))
""".strip().splitlines()

@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
  yield
  ours.set_printoptions(profile="default")

def _texts(expression: str) -> list[str]:
  real = pytest.importorskip("torch")
  names = {"DRAWN": DRAWN, "nan": float("nan"), "inf": float("inf")}
  return [repr(eval(expression, {"t": t, **names})) for t in (ours, real)]

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None:
  mine, wanted = _texts(expression)
  assert mine == wanted

@pytest.mark.parametrize("options", [{"precision": 2}, {"sci_mode": True}, {"linewidth": 40}, {"profile": "short"},
                                     {"threshold": 10, "edgeitems": 2}, {"profile": "full"}], ids=str)
def test_options(options: dict[str, object]) -> None:
  real = pytest.importorskip("torch")
  for t in (ours, real): t.set_printoptions(**options)
  try:
    for expression in ("t.tensor(DRAWN)", "t.arange(40.0)"):
      mine, wanted = _texts(expression)
      assert mine == wanted
  finally: real.set_printoptions(profile="default")

def test_where_nothing_is_computed() -> None:
  seen = []
  @TinyJit
  def step(x: ours.Tensor) -> ours.Tensor:
    y = x + 1
    seen.append(repr(y))
    return y.realize()
  for _ in range(3): step(ours.ones(2).contiguous().realize())
  assert any("not realized" in text for text in seen)
  assert ours.vmap(lambda x: (seen.append(repr(x)), x * 2)[1])(ours.ones(2)).tolist() == [2.0, 2.0]

def test_how_a_tensor_was_made() -> None:
  x = ours.tensor([1.5], requires_grad=True)
  assert str(x * 2) == "tensor([3.], grad_fn=<MulBackward0>)" and f"{(x * 2).sum():.2f}" == "3.00"

def test_refuses() -> None:
  with pytest.raises(ArgumentError, match="profile is 'default', 'short' or 'full'"): ours.set_printoptions(profile="x")
