"""compat/torch/conversion.py: types, copies, and functions without a room."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, DTypeError, ShapeError

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

def test_lists_of_tensors() -> None:
  real = pytest.importorskip("torch")
  for call in ("_foreach_add(xs, 1.0)", "_foreach_mul(xs, [2.0, 3.0])", "_foreach_add(xs, xs, alpha=2)",
               "_foreach_addcmul(xs, xs, xs, 0.5)", "_foreach_norm(xs)", "_foreach_sqrt(xs)"):
    found = [[x.tolist() for x in eval(f"torch.{call}", {"torch": t, "xs": [t.ones(2), t.full((3,), 4.0)]})]
             for t in (torch, real)]
    assert found[0] == found[1], call
  xs = [torch.ones(2), torch.ones(1)]
  torch._foreach_addcdiv_(xs, xs, xs, value=2.0)
  torch._foreach_mul_(xs, 2.0)
  assert [x.tolist() for x in xs] == [[6.0, 6.0], [6.0]]

def test_bytes_of_a_buffer() -> None:
  data = bytearray(b"\1\0\0\0\2\0\0\0")
  assert torch.frombuffer(data, dtype=torch.int32).tolist() == [1, 2]
  assert torch.frombuffer(data, dtype=torch.int16, count=1, offset=4).tolist() == [2]
  assert torch.frombuffer(data, dtype=torch.float32, requires_grad=True).requires_grad
  with pytest.raises(ArgumentError, match="are not whole elements"): torch.frombuffer(data[:3], dtype=torch.int32)
  with pytest.raises(ArgumentError, match="are not 3 elements"): torch.frombuffer(data, dtype=torch.int32, count=3)
