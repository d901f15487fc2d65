"""compat/torch/tensors.py: the class with PyTorch's methods."""
from __future__ import annotations

import copy
import pickle

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw import Tensor
from tinyhw.errors import ArgumentError, DTypeError, UnknownValueError

CASES = """
x + ints
3 - x
x / 2 + 1 / p
ints // 3
x % p
2 ** x
x @ m
x.T @ y
x > y
ints & 3
~mask
x.max(1)
x.std(True)
x.sort(descending=True)
x.where(mask, y)
x.to(torch.float64)
x.double().int()
x.new_zeros(2, 3)
x.sum_to_size(1, 4)
x.unfold(1, 2, 2)
x.svd()[1]
x[:, None, 1:].squeeze(1)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_methods_follow_pytorch_where_the_two_contradict() -> None:
  x = [[1.0, 5.0], [7.0, 3.0]]
  assert torch.tensor(x).max(1).indices.tolist() == [1, 0]
  assert Tensor(x).max(1).tolist() == [5.0, 7.0]
  assert str(torch.tensor([1, 2]).dtype) == "dtypes.int64"
  assert str(torch.tensor([1, 2]).sum().dtype) == "dtypes.int64"

def test_results_are_of_the_class() -> None:
  x = torch.tensor([1.0, 2.0])
  for y in (x + 1, 1 + x, -x, x[0], x.sum(), x.detach(), x.clone(), x.reshape(2, 1), x.T, torch.exp(x)):
    assert type(y) is torch.Tensor

def test_writes_in_place() -> None:
  x = torch.zeros(4)
  view = x[1:3]
  view += 2
  x[0] = 7
  view.mul_(3)
  assert x.tolist() == [7.0, 6.0, 6.0, 0.0]
  assert x.zero_() is x
  assert x.tolist() == [0.0] * 4
  with pytest.raises(ArgumentError, match="cannot be written into"): x.sum_()
  with pytest.raises(AttributeError, match="frob_"): x.frob_()
  with pytest.raises(DTypeError, match="cannot be written"): torch.tensor([1]).add_(1.5)

def test_what_is_no_number_is_not_equal() -> None:
  x = torch.tensor([1, 2])
  assert (x == None) is False and (x != "1") is True   # noqa: E711
  assert (x == 2).tolist() == [False, True]

def test_gradients() -> None:
  x = torch.tensor([1.0, 2.0], requires_grad=True)
  (x * x).sum().backward(retain_graph=True)
  assert x.grad.tolist() == [2.0, 4.0]
  assert type(x.grad) is torch.Tensor

def test_copies_into_memory() -> None:
  x = torch.zeros(2, 2)
  x.copy_(torch.tensor([1, 2]))
  assert x.tolist() == [[1.0, 2.0], [1.0, 2.0]] and x.dtype is torch.float32
  w = torch.ones(2, requires_grad=True)
  w.data.mul_(3)
  assert w.tolist() == [3.0, 3.0] and w.requires_grad and not w.data.requires_grad
  w.data = torch.tensor([5.0, 6.0])
  assert w.tolist() == [5.0, 6.0]
  with pytest.raises(ArgumentError, match="copies a tensor"): x.copy_(3)

def test_copies_keep_their_class() -> None:
  x = torch.tensor([1.0, 2.0], requires_grad=True)
  x.sum().backward()
  for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
    assert type(y) is torch.Tensor and y.tolist() == [1.0, 2.0] and y.requires_grad
  assert type(copy.deepcopy(x).grad) is torch.Tensor

def test_facts() -> None:
  x = torch.zeros(2, 3)
  assert x.stride() == (3, 1) and x.stride(0) == 3 and x.is_contiguous() and x.ndimension() == 2 and x.itemsize == 4
  assert x.is_leaf and not x.is_cuda and x.pin_memory() is x and x.nelement() == 6
  w = torch.ones(2, requires_grad=True)
  assert w.is_leaf
  assert set(x.random_(2, 4).flatten().tolist()) <= {2.0, 3.0} and torch.arange(4).random_(3).max().item() < 3

def test_resizing_in_place() -> None:
  x = torch.arange(6.0).contiguous()
  assert x.resize_(2, 2) is x and x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
  assert x.resize_((2, 3)).shape == (2, 3) and x.flatten()[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
  assert x.resize_as_(torch.zeros(1, 4)).tolist() == [[0.0, 1.0, 2.0, 3.0]]

def test_truth() -> None:
  assert torch.tensor([2.0]) and not torch.tensor(0) and (torch.tensor(3.0) > 2) and max(torch.tensor([1, 5, 3])) == 5
  assert 2.0 in torch.tensor([1.0, 2.0]) and 3 not in torch.tensor([1, 2])
  with pytest.raises(UnknownValueError, match="of 2 elements is ambiguous"): bool(torch.zeros(2))

def test_a_whole_buffer_pickles() -> None:
  x = torch.zeros(3).realize()
  assert pickle.loads(pickle.dumps(x)).nbytes == 12

def test_a_marked_constant_is_no_other() -> None:
  for mark in (lambda: torch.ones(2, requires_grad=True), lambda: torch.ones(2).requires_grad_(),
               lambda: torch.tensor([1.0, 1.0], requires_grad=True)):
    x, y = mark(), torch.ones(2)
    (x * y).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0] and not y.requires_grad

def test_a_marked_copy_leaves_its_source() -> None:
  x = torch.tensor([2.0, 3.0])
  y = x.detach().requires_grad_()
  (x * y).sum().backward()
  assert y.grad.tolist() == [2.0, 3.0] and y.requires_grad and not x.requires_grad
  y = x.detach().requires_grad_()
  (x.detach() * y).sum().backward()
  y.data[0] = 7
  assert y.grad.tolist() == [2.0, 3.0] and x.tolist() == [7.0, 3.0] and not x.detach().requires_grad
