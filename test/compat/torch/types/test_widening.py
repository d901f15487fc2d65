"""compat/torch/types/widening.py: functions of several operations in narrow types are rounded once."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.table import TABLE
from tinyhw.compat.torch.types.widening import ROUNDED, WIDE, widened

@pytest.mark.parametrize("kind", (torch.float16, torch.bfloat16))
def test_results_are_those_of_float32_rounded(kind: torch.dtype) -> None:
  x = (torch.arange(12.0) / 7).reshape(3, 4).to(kind)
  for call in (lambda x: torch.cov(x), lambda x: torch.nn.functional.softsign(x),
               lambda x: torch.addr(x, x[:, 0], x[0]), lambda x: torch.div(x, 0.3, rounding_mode="trunc")):
    assert call(x).dtype is kind and call(x).tolist() == call(x.float()).to(kind).tolist()

def test_gradients_pass_and_other_types_stay() -> None:
  x = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
  torch.nn.functional.mse_loss(x, torch.zeros(2, dtype=torch.float16)).backward()
  assert x.grad.dtype is torch.float16 and x.grad.tolist() == [1.0, 2.0]
  assert torch.nn.functional.mse_loss(x.detach(), torch.zeros(2)).dtype is torch.float32
  assert torch.div(x.detach(), 2).dtype is torch.float16

def test_each_name_is_in_the_table() -> None:
  for name in WIDE | ROUNDED:
    namespace, _, last = name.rpartition(".")
    assert any(last in TABLE[place] for place in ([namespace] if namespace else ["", "nn.functional", "methods"])), name
  assert widened(abs, "", "abs") is abs
