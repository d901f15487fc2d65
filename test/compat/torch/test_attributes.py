"""compat/torch/attributes.py: what tensors say about themselves."""
from __future__ import annotations

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, DTypeError, ShapeError

def test_the_device_has_a_type() -> None:
  x = torch.zeros(2)
  assert (x.device.type, x.device.index, str(x.device), f"{x.device}") == ("cpu", None, "cpu", "cpu")
  assert x.device == torch.device("cpu") and isinstance(x.device, torch.device) and x.is_cpu and x.get_device() == -1
  assert torch.Generator().device.type == "cpu" and (x + torch.ones(2, device=x.device)).device == x.device

def test_sizes() -> None:
  shape = torch.zeros(2, 3).shape
  assert shape.numel() == 6 and isinstance(shape[1:], torch.Size) and repr(shape) == str(shape) == "torch.Size([2, 3])"
  assert shape == (2, 3) and shape + (4,) == torch.Size([2, 3, 4]) and (1,) + shape == (1, 2, 3)
  assert torch.zeros(shape).reshape(shape[::-1]).size() == torch.Size([3, 2]) and (shape * 2).numel() == 36

def test_how_a_tensor_was_made() -> None:
  x = torch.ones(2, requires_grad=True)
  assert x.grad_fn is None and torch.ones(2).grad_fn is None and (x * 2).detach().grad_fn is None
  assert (x * 2).grad_fn.name() == "MulBackward0" and repr((x * 2).grad_fn) == "<MulBackward0>"

def test_types() -> None:
  x = torch.zeros(2)
  assert x.type() == "torch.FloatTensor" and x.long().type() == "torch.LongTensor"
  assert x.type(torch.int8).dtype is x.type("torch.CharTensor").dtype is x.type(torch.CharTensor).dtype is torch.int8
  with pytest.raises(ArgumentError, match="torch.FloatTensor and the like"): x.type("float")
  assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
  assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.LongTensor([1.0]).tolist() == [1]
  assert torch.DoubleTensor(x).dtype is torch.float64 and torch.FloatTensor(x.shape).shape == (2,)
  assert x.new([1, 2]).tolist() == [1.0, 2.0] and x.new(3, 1).shape == (3, 1) and torch.FloatTensor().numel() == 0
  assert x.is_signed() and not x.byte().is_signed() and x.is_same_size(x + 1) and torch.typename(x) == x.type()

def test_the_constructor() -> None:
  assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).dtype is torch.float32
  assert torch.Tensor(torch.Size([4])).shape == (4,) and torch.Tensor(torch.ones(2)).tolist() == [1.0, 1.0]

def test_constants() -> None:
  x = torch.zeros(2, 3)
  assert not (x.is_sparse or x.is_quantized or x.is_meta or x.is_conj() or x.is_pinned())
  assert x.layout == torch.strided and x.storage_offset() == 0 and x.to_dense() is x and x.nbytes == 24

def test_the_place_in_memory() -> None:
  x = torch.arange(6.0)
  assert x.data_ptr() == x.view(2, 3).data_ptr() and x[2:].data_ptr() - x.data_ptr() == 8
  assert x.data_ptr() != torch.arange(6.0).clone().data_ptr()
  y = torch.zeros(2).set_(x)
  y[0] = 5
  assert y.shape == (6,) and x[0] == 5
  with pytest.raises(ArgumentError, match="set_ wants a tensor of"): y.set_(torch.zeros(2, dtype=torch.int8))

@pytest.mark.parametrize(("shape", "wrap"), [((3, 3), False), ((7, 3), False), ((7, 3), True), ((2, 5), True),
                                             ((2, 2, 2), False)])
def test_diagonals(shape: tuple[int, ...], wrap: bool) -> None:
  real = pytest.importorskip("torch")
  assert (torch.zeros(shape).fill_diagonal_(2, wrap).tolist() == real.zeros(shape).fill_diagonal_(2, wrap).tolist())

def test_diagonals_of_other_shapes() -> None:
  with pytest.raises(ShapeError, match="axes of one size"): torch.zeros(2, 3, 2).fill_diagonal_(1)

def test_functions_of_python() -> None:
  x = torch.tensor([1.0, 2.0])
  assert x.apply_(lambda v: v * 3).tolist() == [3.0, 6.0] == x.tolist()
  assert x.map_(torch.tensor(1.0), lambda a, b: a - b).tolist() == [2.0, 5.0]

def test_indices_of_python() -> None:
  assert [10, 20, 30][torch.tensor(1)] == 20 and list(range(torch.tensor(2))) == [0, 1]
  with pytest.raises(DTypeError, match="one whole number"): [1][torch.tensor(0.0)]
