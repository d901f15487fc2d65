"""complex/tensor.py: making, reading, operators, gradients, refusals."""
from __future__ import annotations
import cmath
import copy
import pickle

import pytest

from tinyhw import Tensor, dtypes
from tinyhw.complex.tensor import joined, polar, view_as_complex, view_as_real
from tinyhw.errors import DTypeError, GradientError, ShapeError

Z = [[1 + 2j, 3 - 1j], [-2j, 0.5 + 0j]]

def test_making_and_reading() -> None:
  x = Tensor(Z)
  assert (x.dtype, x.shape, x.ndim, x.numel(), x.nbytes(), x.element_size()) == (dtypes.complex64, (2, 2), 2, 4, 32, 8)
  assert x.tolist() == Z
  assert x.real.tolist() == [[1.0, 3.0], [0.0, 0.5]]
  assert Tensor(2 - 1j).item() == complex(Tensor(2 - 1j)) == 2 - 1j
  assert Tensor([1, 2], dtype="complex128").tolist() == [1 + 0j, 2 + 0j]
  assert Tensor([1.5]).cast(complex).dtype is dtypes.complex64
  assert Tensor.full((2,), 1j).tolist() == [1j, 1j]
  assert Tensor.zeros(2, dtype="complex128").dtype is dtypes.complex128
  assert Tensor.empty(2, 3, dtype="complex64").shape == (2, 3)
  assert Tensor(x, dtype="complex128").dtype is dtypes.complex128
  assert x.zeros_like().tolist() == [[0j, 0j], [0j, 0j]]
  assert repr(x).startswith("<Tensor (2, 2) complex64 on ")
  for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)): assert y.tolist() == Z

def test_numpy() -> None:
  numpy = pytest.importorskip("numpy")
  for kind in ("complex64", "complex128"):
    array = numpy.array(Z, kind)
    x = Tensor(array)
    assert x.dtype is getattr(dtypes, kind)
    assert (x.numpy() == array).all() and x.numpy().dtype == kind
    assert (Tensor(array.T).numpy() == array.T).all()
    assert (numpy.asarray(x) == array).all()

def test_operands_promote() -> None:
  x, r = Tensor([1 + 2j, 3j]), Tensor([2.0, -1.0])
  assert (r * x).tolist() == (x * r).tolist() == r.mul(x).tolist() == [2 + 4j, -3j]
  assert (r + 1j).tolist() == (1j + r).tolist() == [2 + 1j, -1 + 1j]
  assert (1 - x).tolist() == [-2j, 1 - 3j]
  assert (r / (1j + r.mul(0))).tolist() == [-2j, 1j]
  assert (x / 2).tolist() == [0.5 + 1j, 1.5j]
  assert (r.cast("float64") * x).dtype is dtypes.complex128
  assert (Tensor([1, 2]) * x).dtype is dtypes.complex64
  assert (x == Tensor([1 + 2j, 0])).tolist() == [True, False]
  assert (x != 3j).tolist() == [True, False]
  assert Tensor([True, False]).where(x, 0).tolist() == [1 + 2j, 0j]
  assert Tensor([True, False]).where(1, x).tolist() == [1 + 0j, 3j]
  assert r.cat(x).tolist() == [2 + 0j, -1 + 0j, 1 + 2j, 3j]
  assert (x ** 2).tolist() == [(1 + 2j) ** 2, -9 + 0j]
  assert abs(Tensor([3 + 4j])).tolist() == [5.0]
  assert x.conj().tolist() == [1 - 2j, -3j]
  assert (Tensor([[1.0, 2.0]]) @ x.reshape(2, 1)).tolist() == [[1 + 8j]]
  assert (-x).tolist() == [-1 - 2j, -3j]

def test_writes_go_to_both_planes() -> None:
  x = Tensor(Z).realize()
  row = x[0]
  x[0] = 5j
  assert row.tolist() == [5j, 5j]
  row += 1
  assert x.tolist() == [[1 + 5j, 1 + 5j], Z[1]]
  x.assign(Tensor(Z))
  x.imag.assign(Tensor([[1.0, 1.0], [1.0, 1.0]]))
  assert x.tolist() == [[1 + 1j, 3 + 1j], [1j, 0.5 + 1j]]
  assert x.replace(x * 2).tolist()[0] == [2 + 2j, 6 + 2j]

def test_reductions_and_movement() -> None:
  x, flat = Tensor(Z), [z for row in Z for z in row]
  assert x.sum().item() == sum(flat)
  assert x.mean(0).tolist() == [0.5 + 0j, 1.75 - 0.5j]
  assert x.T.tolist() == [list(row) for row in zip(*Z)]
  assert [part.tolist() for part in x.split(1)] == [[Z[0]], [Z[1]]]
  assert x.var(correction=0).item() == pytest.approx(sum(abs(z - sum(flat) / 4) ** 2 for z in flat) / 4)
  assert x.pad(((0, 0), (1, 0)), value=1j).tolist() == [[1j, *Z[0]], [1j, *Z[1]]]
  assert x.any().item() and x.bool().tolist() == [[True, True], [True, True]]
  assert x.isclose(x + 1e-7).all().item() and not x.allclose(x + 1)
  assert [g.tolist() for g in Tensor([1j, 2]).meshgrid(Tensor([3.0]))] == [[[1j], [2 + 0j]], [[3 + 0j], [3 + 0j]]]
  assert Tensor([1j]).isnan().bitwise_or(Tensor([1j]).isinf()).logical_not().bitwise_and(
    Tensor([1j]).isfinite()).tolist() == [True]

def test_convolution() -> None:
  x, w = Tensor([1j, 2, 3 - 1j]).reshape(1, 1, 3), Tensor([1, 1j]).reshape(1, 1, 2)
  assert x.conv2d(w).tolist() == [[[3j, 2 + 3j + 1]]]
  assert x.conv_transpose2d(w).shape == (1, 1, 4)

def test_gradients_are_pytorch_s() -> None:
  x = Tensor([3 + 4j], requires_grad=True)
  (x * x.conj()).real.sum().backward()
  assert x.grad is not None and x.grad.tolist() == [6 + 8j]        # of |z|**2: 2 z
  slope, = x.abs().sum().gradient(x)
  assert [round(z.real, 6) + 1j * round(z.imag, 6) for z in slope.tolist()] == [0.6 + 0.8j]
  slopes = (x.real * 2).sum().gradient(x)
  assert slopes[0].tolist() == [2 + 0j]
  y = Tensor([1 + 1j], requires_grad=True)
  (y * 1j).backward(gradient=Tensor([1 + 0j]))
  assert y.grad is not None and y.grad.tolist() == [-1j]
  with pytest.raises(GradientError, match="gradient="): (y * 2).backward()
  assert x.requires_grad and not x.retains_grad

def test_polar_and_views() -> None:
  z = polar(Tensor([2.0]), Tensor([0.5])).item()
  assert abs(z - cmath.rect(2.0, 0.5)) < 1e-6
  assert joined(Tensor([1.0, 2.0]), Tensor([3.0])).tolist() == [1 + 3j, 2 + 3j]
  pairs = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  x = view_as_complex(pairs)
  assert x.tolist() == [1 + 2j, 3 + 4j]
  assert view_as_real(x).tolist() == pairs.tolist()
  x[0] = 7j
  assert pairs.tolist() == [[0.0, 7.0], [3.0, 4.0]]     # a view of the pairs
  with pytest.raises(ShapeError, match="last axis of 2"): view_as_complex(Tensor([1.0, 2.0, 3.0]))
  with pytest.raises(DTypeError, match="complex tensor"): view_as_real(pairs)
  with pytest.raises(DTypeError, match="twice"): polar(Tensor([1.0]), Tensor([1]))

@pytest.mark.parametrize("refused", [
  lambda x: x.max(), lambda x: x < x, lambda x: x.sort(), lambda x: x.relu(), lambda x: Tensor([1.0]).maximum(x),
  lambda x: x.float(), lambda x: x.cast("int32"), lambda x: x.bitcast("float32"), lambda x: x.softmax(),
  lambda x: Tensor([1j], dtype="float32"), lambda x: Tensor.arange(3, dtype="complex64"), lambda x: x.data(),
  lambda x: x.div(2, rounding_mode="floor"), lambda x: x.assign(Tensor([1.0])), lambda x: x.isinf(True, False)])
def test_never_a_silent_result(refused: object) -> None:
  with pytest.raises(DTypeError): refused(Tensor([1 + 1j]))   # type: ignore[operator]
