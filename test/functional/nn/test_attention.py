"""functional/nn/attention.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

from tinyhw import TinyJit
import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.scaled_dot_product_attention(z, z, z)
F.scaled_dot_product_attention(z, z, z, is_causal=True, scale=0.3)
F.scaled_dot_product_attention(z, z, z, attn_mask=torch.eye(3) > 0)
F.embedding(i, torch.ones(3, 2) * v[:2])
F.embedding_bag(i, torch.ones(3, 2) * v[:2], mode="sum")
F.embedding_bag(nat, torch.ones(6, 2) * v[:2], torch.tensor([0, 2, 2]), mode="mean")
F.multi_head_attention_forward(z, z, z, 4, 2, torch.cat([m, m, m]), None, None, None, False, 0.0, m, w)[0]
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  q, k, v = torch.ones(1, 2, 4), torch.ones(1, 3, 4), torch.arange(3.0).reshape(1, 3, 1)
  assert F.scaled_dot_product_attention(q, k, v).tolist() == [[[1.0], [1.0]]]

@pytest.mark.parametrize("call", [
  lambda: F.embedding(torch.tensor([5]), torch.ones(3, 2)), lambda: F.embedding(torch.tensor([0.5]), torch.ones(3, 2)),
  lambda: F.embedding_bag(torch.tensor([0]), torch.ones(3, 2)),
  lambda: F.scaled_dot_product_attention(*[torch.ones(2, 2)] * 3, attn_mask=torch.ones(2, 2), is_causal=True)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]

@pytest.mark.parametrize("offsets, says", [
  ([1, 2], "the first of the offsets is 1"), ([0, 9], "one of the offsets is 9; it must be from 0 to 3"),
  ([0, 2, 1], "ascending order")])
def test_offsets_of_bags_are_checked(offsets: list[int], says: str) -> None:
  with pytest.raises(TinyError, match=says):
    F.embedding_bag(torch.tensor([0, 1, 2]), torch.ones(3, 2), torch.tensor(offsets))

def test_rows_are_read_in_a_captured_step() -> None:
  table = torch.arange(6.0).reshape(3, 2).contiguous().realize()
  @TinyJit
  def row(i: torch.Tensor) -> torch.Tensor: return F.embedding(i, table).realize()
  for k in (0, 2, 1): assert row(torch.tensor([k]).realize()).tolist() == [[2.0 * k, 2.0 * k + 1]]
