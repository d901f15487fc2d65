"""compat/torch/types/kinds.py: types that PyTorch's functions refuse are refused, and those that they take are not."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.compat.torch.types.kinds import KINDS, of_kinds
from tinyhw.compat.torch.table import TABLE
from tinyhw.errors import DTypeError

F = torch.nn.functional
WHOLE = torch.ones(2, 4, dtype=torch.int64)

@pytest.mark.parametrize("function", (
  lambda: F.gelu(WHOLE), lambda: F.mse_loss(WHOLE, WHOLE), lambda: torch.nn.BatchNorm1d(4)(WHOLE),
  lambda: F.dropout(WHOLE), lambda: F.layer_norm(input=WHOLE, normalized_shape=(4,)),
  lambda: torch.lerp(WHOLE, WHOLE, 1), lambda: F.interpolate(WHOLE[None], 3), lambda: WHOLE.bool().fmod(WHOLE.bool()),
  lambda: WHOLE.bool().matmul(WHOLE.bool().T), lambda: torch.median(WHOLE.bool()), lambda: torch.sign(WHOLE.cfloat()),
  lambda: F.l1_loss(WHOLE, WHOLE), lambda: torch.masked.mean(WHOLE)))
def test_refused(function: object) -> None:
  with pytest.raises(DTypeError, match="takes|wants"): function()  # type: ignore[operator]

def test_taken() -> None:
  assert F.relu(WHOLE).tolist() == WHOLE.tolist()
  assert F.l1_loss(WHOLE, WHOLE, reduction="sum").item() == 0
  assert torch.matmul(WHOLE, WHOLE.T).dtype is torch.int64
  assert F.gelu(WHOLE.half()).dtype is torch.float16

def test_each_name_is_in_the_table() -> None:
  for name in KINDS:
    namespace, _, last = name.rpartition(".")
    places = [namespace] if namespace else ["", "nn.functional", "methods"]
    assert any(last in TABLE[place] for place in places), name
  assert of_kinds(abs, "", "relu") is abs
