"""Operators against NumPy."""
import math
import operator

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from tinyhw.tensor import Tensor

INTS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]

@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((2, 1, 4), (3, 1)), ((), (3,)), ((0, 3), (1, 3))])
def test_float_arithmetic(op, shapes):
  compare(op, op, *arrays(*shapes, low=0.5, high=3.0), rtol=1e-5, atol=1e-5)

@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_with_nan(op):
  x, y = np.array([1, 2, math.nan, math.inf, -0.0], np.float32), np.array([2, 2, math.nan, math.inf, 0.0], np.float32)
  compare(op, op, x, y)
  compare(lambda a: op(a, 2), lambda a: op(a, 2), x)
  compare(lambda a: op(2, a), lambda a: op(2, a), np.array([1, 2, 3], np.int32))

@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor])
def test_integer_arithmetic(op, dtype):
  a, b = arrays((20,), (20,), dtype=dtype, low=0 if np.issubdtype(dtype, np.unsignedinteger) else -100, high=100)
  compare(op, op, a, np.where(b == 0, 1, b).astype(dtype))

def test_integers_divide_to_floats():
  compare(operator.truediv, lambda a, b: (a / b).astype(np.float32), np.array([1, 2, 3], np.int32), np.array([2, 4, 4], np.int32))
  assert (Tensor([1, 2]) // 0).tolist() == [0, 0]

@pytest.mark.parametrize("value, tensor, result", [
  (1, dtypes.uint8, dtypes.uint8), (1.5, dtypes.int16, dtypes.float32), (1.5, dtypes.float16, dtypes.float16), (True, dtypes.int8, dtypes.int8),
  (1, dtypes.bool, dtypes.int32), (1, dtypes.bfloat16, dtypes.bfloat16), (True, dtypes.bool, dtypes.bool)])
def test_python_numbers_are_weak(value, tensor, result):
  x = Tensor([1, 0], dtype=tensor)
  assert (x * value).dtype is result and (value * x).dtype is result

@pytest.mark.parametrize("a, b, result", [
  (dtypes.int8, dtypes.uint8, dtypes.int16), (dtypes.int32, dtypes.float16, dtypes.float16), (dtypes.float16, dtypes.bfloat16, dtypes.float32),
  (dtypes.bool, dtypes.uint8, dtypes.uint8), (dtypes.int64, dtypes.uint64, dtypes.uint64)])
def test_types_promote(a, b, result): assert (Tensor([1], dtype=a) + Tensor([1], dtype=b)).dtype is result

@pytest.mark.parametrize("dtype", INTS + [np.bool_])
@pytest.mark.parametrize("number", [-2**70, -2**40, -2**31 - 1, -1, 256, 300, 2**32 + 5, 2**63, 2**64, 2**70])
def test_python_ints_compare_by_value(dtype, number):
  values = [0, 1, 5, 100]
  x, exact = Tensor(np.array(values).astype(dtype)), np.array(values).astype(dtype).tolist()
  for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    assert op(x, number).tolist() == [op(v, number) for v in exact] and op(number, x).tolist() == [op(number, v) for v in exact]
  if number < 0 and dtype is not np.bool_:
    assert x.maximum(min(number, x.dtype.min)).tolist() == values == x.clamp(min(number, x.dtype.min), max(-number, x.dtype.max)).tolist()
    assert x.minimum(max(-number, x.dtype.max)).tolist() == values

def test_python_ints_that_the_type_does_not_hold():
  small, x = Tensor([100, 200], dtype=dtypes.uint8), Tensor([1, 2])
  cases = [lambda: small + 300, lambda: small - 300, lambda: 300 - small, lambda: small * -1, lambda: small // 300, lambda: 300 % small,
           lambda: small & 300, lambda: x + 2**40, lambda: x ^ 0xffffffff, lambda: small.maximum(300), lambda: small.minimum(-1),
           lambda: x.clamp(2**40), lambda: x.masked_fill(x.eq(1), 2**31), lambda: x.full_like(2**40), lambda: Tensor.full((2,), 2**40),
           lambda: small.const_like(300), lambda: small.pad((1, 1), value=300), lambda: small.scatter(0, Tensor([0]), 300),
           lambda: x.add(1.5) + 2**2000,
           lambda: Tensor([True]) + 2**40]
  for case in cases:
    with pytest.raises(DTypeError, match="holds .* cast the tensor"): case()
  assert (small / 400).tolist() == [0.25, 0.5] and (400 / small).tolist() == [4.0, 2.0] and (x + 2.0**40).dtype is dtypes.float32
  assert (x + -2**31).tolist() == [1 - 2**31, 2 - 2**31] and (Tensor([1.0]) + 2**40).tolist() == [2.0**40]

def test_reflected_operators():
  x = np.array([1.0, 2.0, 4.0], np.float32)
  for f in (lambda t: 3 - t, lambda t: 3 / t, lambda t: 2 ** t, lambda t: 7 // t, lambda t: 7 % t): compare(f, f, x, types=False)
  i = np.array([1, 2, 3], np.int32)
  for f in (lambda t: 1 << t, lambda t: 255 >> t, lambda t: 6 & t, lambda t: 6 | t, lambda t: 6 ^ t, lambda t: ~t,
            lambda t: -t, abs): compare(f, f, i)

def test_bool_arithmetic():
  a, b = np.array([True, True, False]), np.array([True, False, False])
  for op in (operator.add, operator.mul, operator.and_, operator.or_, operator.xor): compare(op, op, a, b)
  assert (~Tensor(a)).tolist() == (-Tensor(a)).tolist() == [False, False, True]
  with pytest.raises(DTypeError, match="cannot subtract"): Tensor(a) - Tensor(b)

def test_where():
  c, x, y = np.array([[True], [False]]), np.array([1.0, 2.0], np.float32), np.array([5.0], np.float32)
  compare(lambda c, x, y: c.where(x, y), np.where, c, x, y)
  assert Tensor(c).where(1, 2).dtype is dtypes.int32 and Tensor(c).where(1, 2.0).dtype is dtypes.float32
  assert Tensor([1, 0]).where(Tensor([1, 1], dtype=dtypes.int8), 0.5).tolist() == [1.0, 0.5]
  same(Tensor(x).masked_fill(Tensor([True, False]), 9), np.array([9, 2], np.float32))

def test_maximum_and_minimum():
  compare(lambda a, b: a.maximum(b), np.maximum, (5,), (5,))
  compare(lambda a, b: a.minimum(b), np.minimum, (5,), (5,))
  same(Tensor([1, 5]).maximum(3), np.array([3, 5], np.int32))

def test_in_place_operators_assign():
  x = Tensor([1.0, 2.0])
  y = x
  x += 1
  x *= 2
  assert y is x and x.tolist() == [4.0, 6.0]
  with pytest.raises(DTypeError, match="cannot assign"):
    i = Tensor([1])
    i /= 2

def test_errors_name_both_operands():
  with pytest.raises(ShapeError, match=r"cannot add \(2, 3\) and \(4,\): axis -1 is 3 and 4"): Tensor.ones(2, 3) + Tensor.ones(4)
  with pytest.raises(DTypeError, match="cannot and bits of dtypes.float32"): Tensor([1.0]) & 1
  with pytest.raises(ArgumentError, match="cannot make a tensor of <class 'str'>"): Tensor([1.0]) + "a"
  x = Tensor([1.0])
  for f in (lambda: x + None, lambda: None - x, lambda: x @ None, lambda: None @ x, lambda: x.matmul(None), lambda: x.dot(None), lambda: x.cat(None),
            lambda: x.stack(x, None), lambda: x.copysign(None), lambda: x.masked_fill(None, 1), lambda: x.lerp(x, None)):
    with pytest.raises(ArgumentError, match="cannot compute with None"): f()
  with pytest.raises(ArgumentError, match="an axis is a whole number, not 1.0"): Tensor([1.0]).sum(1.0)
  with pytest.raises(DeviceError, match="one on"): Tensor([1.0], device="PYTHON") + Tensor([1.0], device="PYTHON:1")

@pytest.mark.parametrize("f", [
  lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a ** b, lambda a, b: a.maximum(b),
  lambda a, b: (a > b).where(a * b, a), lambda a, b: a ** 3 - b ** -2, lambda a, b: a.minimum(b)])
def test_gradients(f): check_gradient(f, (2, 3), (3,), low=0.5, high=2.0)

def test_equal_operands_of_maximum_share_the_gradient():
  a, b = Tensor([1.0, 2.0]), Tensor([1.0, 1.0])
  ga, gb = a.maximum(b).sum().gradient(a, b)
  assert ga.tolist() == [0.5, 1.0] and gb.tolist() == [0.5, 0.0]
