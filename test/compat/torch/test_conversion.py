"""compat/torch/conversion.py: types, copies, and functions without a room."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import DTypeError, ShapeError

CASES = """
x.half()
ints.short()
x.long()
torch.clone(x)
torch.conj(x)
torch.abs(ints)
torch.sin(ints)
torch.square(ints)
torch.logical_not(ints)
torch.floor(x)
x.type_as(ints)
mask.sum_to_size(())
mask.sum_to_size((1, 4))
x.sum_to_size((3, 1))
torch._chunk_cat([x.detach(), y.detach()], 1, 3)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_questions() -> None:
  x = torch.ones(2, 3)
  assert (x.dim(), x.size(1), x.numel(), x.size()) == (2, 3, 6, (2, 3))
  assert torch.is_tensor(x)
  assert torch.is_floating_point(x)
  assert not torch.is_complex(x)
  assert torch.can_cast(torch.int32, torch.float32)
  assert not torch.can_cast(torch.float32, torch.int32)
  assert torch.promote_types(torch.int32, torch.float16) is torch.float16
  assert torch.result_type(x, 3) is torch.float32

def test_refuses() -> None:
  with pytest.raises(DTypeError, match="bools"): torch.neg(torch.tensor([True]))
  with pytest.raises(ShapeError, match="sum_to_size"): torch.ones(2, 3).sum_to_size(4)
