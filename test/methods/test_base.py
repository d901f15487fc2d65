"""Handles: which tensors are leaves, operands of an operation, and the graph that assign makes."""
from __future__ import annotations
import gc
from collections.abc import Callable

import numpy as np
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError, DTypeError, ShapeError
from tinyhw.methods import base
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

pytestmark = pytest.mark.usefixtures("engine")

def data(*shape: int) -> Tensor:
  return Tensor(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)).realize()

@pytest.mark.slow
def test_leaves_are_what_somebody_made_and_are_forgotten() -> None:
  before = len(base.leaves())
  x = data(3)
  y = x * 2
  marked = (x + 1).requires_grad_()
  found = base.leaves()
  assert any(t is x for t in found) and any(t is marked for t in found) and not any(t is y for t in found)
  del x, y, marked, found
  gc.collect()
  assert len(base.leaves()) <= before

def test_numbers_take_the_tensors_type_if_its_kind_holds_them() -> None:
  integers, halves, flags = Tensor([1, 2], dtype="int8"), Tensor([1.0], dtype="float16"), Tensor([True])
  assert ((integers + 100).dtype is dtypes.int8 and (integers * 1.5).dtype is dtypes.default_float
          and (halves * 3).dtype is dtypes.float16)
  assert ((flags + 1).dtype is dtypes.default_int and (flags | True).dtype is dtypes.bool
          and (halves + True).dtype is dtypes.float16)
  assert (integers + halves).dtype is dtypes.float16 and (integers + Tensor([1], dtype="uint8")).dtype is dtypes.int16
  n = UOp.variable("n", 1, 9)
  assert (halves + n.bind(4)).dtype is dtypes.float16 and (halves + n.bind(4)).tolist() == [5.0]

FAR: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
       "add": lambda x, y, i: x + y, "where": lambda x, y, i: (y > 0).where(x, 0), "where, values": lambda x, y,
       i: (x > 0).where(x, y),
       "matmul": lambda x, y, i: x @ y, "linear": lambda x, y, i: x.linear(y), "cat": lambda x, y, i: x.cat(y),
       "stack": lambda x, y, i: x.stack(y),
       "gather": lambda x, y, i: x.gather(0, i), "scatter": lambda x, y, i: x.scatter(0, i, 1.0),
       "scatter, source": lambda x, y, i: x.scatter(0, i.to("CPU"), y), "scatter_reduce": lambda x, y,
       i: x.scatter_reduce(0, i.to("CPU"), y, "sum"),
       "index": lambda x, y, i: x[i[0]], "mask": lambda x, y, i: x[y > 0], "write": lambda x, y,
       i: x.__setitem__(i[0], 1.0),
       "write, value": lambda x, y, i: x.__setitem__(0, y[0]), "conv2d": lambda x, y,
       i: x.reshape(1, 1, 2, 2).conv2d(y.reshape(1, 1, 2, 2)),
       "bias": lambda x, y, i: x.reshape(1, 1, 2, 2).conv2d(x.reshape(1, 1, 2, 2), y.reshape(4)[:1]),
       "max_unpool2d": lambda x, y, i: x.reshape(1, 1, 2, 2).max_unpool2d(i.reshape(1, 1, 2, 2)),
       "cross_entropy": lambda x, y, i: x.cross_entropy(i[0]),
       "attention": lambda x, y, i: x.scaled_dot_product_attention(y, y), "einsum": lambda x, y,
       i: Tensor.einsum("ij,jk->ik", x, y),
       "lerp": lambda x, y, i: x.lerp(x, y)}

@pytest.mark.parametrize("name", FAR)
def test_operands_on_another_device_are_refused_where_they_are_given(name: str) -> None:
  """Kernels with memory of another device once failed when they ran, some of them by an InternalError."""
  x, y, i = Tensor([[1.0, 2.0], [3.0, 4.0]],
                   device="CPU"), Tensor.ones(2, 2, device="PYTHON"), Tensor([[0, 1], [1, 0]], device="PYTHON")
  y.realize()
  with pytest.raises(DeviceError, match="cannot .* a tensor on (CPU|PYTHON) and one on (CPU|PYTHON); move one of them"):
    FAR[name](x, y, i)

def test_operands_meet_in_one_shape_on_one_device() -> None:
  assert (data(3, 1) + data(1, 4)).shape == (3, 4) and (data(3) + Tensor(1.0)).shape == (3,)
  with pytest.raises(ShapeError, match=r"\(3,\) and \(4,\)"): data(3) + data(4)
  with pytest.raises(DeviceError, match=r"cannot add a tensor on .* and one on .*; move one of them: \.to\("):
    Tensor([1.0], device="PYTHON") + Tensor([1.0], device="NULL")

def test_assign_refuses_what_does_not_fit() -> None:
  x = data(2, 3)
  with pytest.raises(DTypeError, match=r"cannot assign dtypes.int32 to a tensor of dtypes.float32; cast it first"):
    x.assign(Tensor([1, 2, 3]))
  with pytest.raises(ShapeError, match=r"\(2, 3\) and \(4, 2, 3\)"): x.assign(data(4, 2, 3))
  with pytest.raises(ShapeError): x.replace(data(3))
  assert x.assign(5).tolist() == [[5.0] * 3] * 2 and x.assign(data(3)).tolist() == [[0.0, 1.0, 2.0]] * 2

def test_a_value_without_storage_is_replaced() -> None:
  x = data(3) + 1
  x.assign(data(3) * 2)
  assert x.uop.op is not Ops.ASSIGN and x.tolist() == [0.0, 2.0, 4.0]

@pytest.mark.parametrize("value", (lambda x: x, lambda x: x.flip(0), lambda x: x.reshape(1, 3)[0]))
def test_a_value_without_storage_takes_anothers_value_and_not_its_storage(value: Callable[[Tensor], Tensor]) -> None:
  x = data(3)
  expected = value(x).tolist()
  y = Tensor.zeros(3).assign(value(x))
  y[0] = 10.0
  assert x.tolist() == [0.0, 1.0, 2.0] and y.tolist() == [10.0, *expected[1:]]
  z = (x * 3).assign(value(x))
  x[0] = 7.0
  assert z.tolist() == expected

def test_equal_values_get_storage_of_their_own() -> None:
  source = data(3)
  a, b = source * 2, source * 2
  assert a.uop is b.uop
  Tensor.realize(a, b)
  a.assign(a + 1).realize()
  assert a.tolist() == [1.0, 3.0, 5.0] and b.tolist() == [0.0, 2.0, 4.0]

def test_a_step_of_a_loop_that_is_built_once_runs_on_other_storage() -> None:
  start, beside, factors = Tensor([1, 1, 1]).realize(), Tensor([1, 2, 3]).realize(), [Tensor([k]).realize()
                                                                                      for k in (2, 5, 10)]
  step = start._again(lambda x, factor: x * factor + beside, factors[0])
  x = start
  for factor in factors: x = step(x, factor)
  assert x.tolist() == [((1 * 2 + b) * 5 + b) * 10 + b for b in (1, 2, 3)]
  assert start.tolist() == [1, 1, 1] and [f.tolist() for f in factors] == [[2], [5], [10]]
