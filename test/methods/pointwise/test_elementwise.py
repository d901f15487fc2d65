"""Operators against NumPy."""
import math
import operator

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw import TinyJit, Variable
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DeviceError, DTypeError, IndexingError, ShapeError, UnknownValueError
from tinyhw.tensor import Tensor

INTS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]

@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                                operator.mod, operator.pow])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((2, 1, 4), (3, 1)), ((), (3,)),
                                    ((0, 3), (1, 3))])
def test_float_arithmetic(op, shapes):
  compare(op, op, *arrays(*shapes, low=0.5, high=3.0), rtol=1e-5, atol=1e-5)

@pytest.mark.slow
@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_with_nan(op):
  x, y = np.array([1, 2, math.nan, math.inf, -0.0], np.float32), np.array([2, 2, math.nan, math.inf, 0.0], np.float32)
  compare(op, op, x, y)
  compare(lambda a: op(a, 2), lambda a: op(a, 2), x)
  compare(lambda a: op(2, a), lambda a: op(2, a), np.array([1, 2, 3], np.int32))

@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
                                operator.and_, operator.or_, operator.xor])
def test_integer_arithmetic(op, dtype):
  a, b = arrays((20,), (20,), dtype=dtype, low=0 if np.issubdtype(dtype, np.unsignedinteger) else -100, high=100)
  compare(op, op, a, np.where(b == 0, 1, b).astype(dtype))

def test_integers_divide_to_floats():
  compare(operator.truediv, lambda a, b: (a / b).astype(np.float32), np.array([1, 2, 3], np.int32),
          np.array([2, 4, 4], np.int32))
  assert (Tensor([1, 2]) // 0).tolist() == [0, 0]

@pytest.mark.parametrize("value, tensor, result", [
  (1, dtypes.uint8, dtypes.uint8), (1.5, dtypes.int16, dtypes.float32), (1.5, dtypes.float16, dtypes.float16),
  (True, dtypes.int8, dtypes.int8),
  (1, dtypes.bool, dtypes.int32), (1, dtypes.bfloat16, dtypes.bfloat16), (True, dtypes.bool, dtypes.bool)])
def test_python_numbers_are_weak(value, tensor, result):
  x = Tensor([1, 0], dtype=tensor)
  assert (x * value).dtype is result and (value * x).dtype is result

@pytest.mark.parametrize("a, b, result", [
  (dtypes.int8, dtypes.uint8, dtypes.int16), (dtypes.int32, dtypes.float16, dtypes.float16),
  (dtypes.float16, dtypes.bfloat16, dtypes.float32),
  (dtypes.bool, dtypes.uint8, dtypes.uint8), (dtypes.int64, dtypes.uint64, dtypes.uint64)])
def test_types_promote(a, b, result): assert (Tensor([1], dtype=a) + Tensor([1], dtype=b)).dtype is result

@pytest.mark.parametrize("dtype", INTS + [np.bool_])
@pytest.mark.parametrize("number", [-2**70, -2**40, -2**31 - 1, -1, 256, 300, 2**32 + 5, 2**63, 2**64, 2**70])
def test_python_ints_compare_by_value(dtype, number):
  values = [0, 1, 5, 100]
  x, exact = Tensor(np.array(values).astype(dtype)), np.array(values).astype(dtype).tolist()
  for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    assert op(x, number).tolist() == [op(v, number) for v in exact] and op(number,
                                                                           x).tolist() == [op(number, v) for v in exact]
  if number < 0 and dtype is not np.bool_:
    assert x.maximum(min(number, x.dtype.min)).tolist() == values == x.clamp(min(number, x.dtype.min),
                                                                             max(-number, x.dtype.max)).tolist()
    assert x.minimum(max(-number, x.dtype.max)).tolist() == values

def test_python_ints_that_the_type_does_not_hold():
  small, x = Tensor([100, 200], dtype=dtypes.uint8), Tensor([1, 2])
  cases = [lambda: small + 300, lambda: small - 300, lambda: 300 - small, lambda: small * -1, lambda: small // 300,
           lambda: 300 % small,
           lambda: small & 300, lambda: x + 2**40, lambda: x ^ 0xffffffff, lambda: small.maximum(300),
           lambda: small.minimum(-1),
           lambda: x.clamp(2**40), lambda: x.masked_fill(x.eq(1), 2**31), lambda: x.full_like(2**40),
           lambda: Tensor.full((2,), 2**40),
           lambda: small.const_like(300), lambda: small.pad((1, 1), value=300),
           lambda: small.scatter(0, Tensor([0]), 300),
           lambda: x.add(1.5) + 2**2000,
           lambda: Tensor([True]) + 2**40]
  for case in cases:
    with pytest.raises(DTypeError, match="holds .* cast the tensor"): case()
  assert ((small / 400).tolist() == [0.25, 0.5] and (400 / small).tolist() == [4.0, 2.0]
          and (x + 2.0**40).dtype is dtypes.float32)
  assert (x + -2**31).tolist() == [1 - 2**31, 2 - 2**31] and (Tensor([1.0]) + 2**40).tolist() == [2.0**40]

@pytest.mark.slow
def test_reflected_operators():
  x = np.array([1.0, 2.0, 4.0], np.float32)
  for f in (lambda t: 3 - t, lambda t: 3 / t, lambda t: 2 ** t, lambda t: 7 // t, lambda t: 7 % t):
    compare(f, f, x, types=False)
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
  with pytest.raises(ShapeError, match=r"cannot add \(2, 3\) and \(4,\): axis -1 is 3 and 4"):
    Tensor.ones(2, 3) + Tensor.ones(4)
  with pytest.raises(DTypeError, match="cannot and bits of dtypes.float32"): Tensor([1.0]) & 1
  with pytest.raises(ArgumentError, match="cannot make a tensor of <class 'str'>"): Tensor([1.0]) + "a"
  x = Tensor([1.0])
  for f in (lambda: x + None, lambda: None - x, lambda: x @ None, lambda: None @ x, lambda: x.matmul(None),
            lambda: x.dot(None), lambda: x.cat(None),
            lambda: x.stack(x, None), lambda: x.copysign(None), lambda: x.masked_fill(None, 1),
            lambda: x.lerp(x, None)):
    with pytest.raises(ArgumentError, match="cannot compute with None"): f()
  with pytest.raises(ArgumentError, match="an axis is a whole number, not 1.0"): Tensor([1.0]).sum(1.0)
  with pytest.raises(DeviceError, match="one on"): Tensor([1.0], device="PYTHON") + Tensor([1.0], device="PYTHON:1")

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a ** b, lambda a,
  b: a.maximum(b),
  lambda a, b: (a > b).where(a * b, a), lambda a, b: a ** 3 - b ** -2, lambda a, b: a.minimum(b)])
def test_gradients(f): check_gradient(f, (2, 3), (3,), low=0.5, high=2.0)

def test_equal_operands_of_maximum_share_the_gradient():
  a, b = Tensor([1.0, 2.0]), Tensor([1.0, 1.0])
  ga, gb = a.maximum(b).sum().gradient(a, b)
  assert ga.tolist() == [0.5, 1.0] and gb.tolist() == [0.5, 0.0]

@pytest.mark.parametrize("base", [2, 7, 0.3, 1e20, 1e-20, -2, 0, math.inf])
def test_powers_of_numbers(base):
  """The logarithm of the base depends on no element, so compilers see numbers alone in half of the kernel."""
  x = np.array([-2, -0.7, 0, 0.3, 0.7, 1, 1.5, 3], np.float32)
  with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
    want = np.power(float(base), x.astype(np.float64)).astype(np.float32)
  np.testing.assert_allclose((base ** Tensor(x)).numpy(), want, rtol=1e-6)

# ***** numbers made of Variables *****

OF_VARIABLES = [
  lambda x, n: x * (1 / n), lambda x, n: x * (n / 2), lambda x, n: x * ((n - 1) / n), lambda x,
  n: Tensor.full((2,), 1 / n), lambda x, n: x / n,
  lambda x, n: Tensor.full((2,), n > 2), lambda x, n: x.clamp(0, n / 2), lambda x, n: (-x).leaky_relu(1 / n), lambda x,
  n: x + n / 2.0,
  lambda x, n: x * (n * 0.5), lambda x, n: x.half() * (n / 3), lambda x, n: x.cast("int32") * (n / 2), lambda x,
  n: x.double() / 3 * (1 / n),
  lambda x, n: x ** (1 / n), lambda x, n: (n / 3) ** x, lambda x, n: x * (n ** 2), lambda x, n: x * 2 ** n, lambda x,
  n: x * n ** 0.5,
  lambda x, n: x * n ** -1, lambda x, n: x * n ** 20, lambda x, n: x * n ** n, lambda x, n: x * abs(2 - n), lambda x,
  n: x * abs(0.5 - n / 7),
  lambda x, n: x * divmod(n, 2)[0] + divmod(n, 2)[1] + divmod(17, n)[1], lambda x,
  n: x * round(n) + round(n / 3) + round(n / 7, 1),
  lambda x, n: x * (n // 0.75) + n % 0.75 + 7.5 // n, lambda x, n: x * (n / 3 + n / 7 - 1 / n), lambda x,
  n: x * -(n / 3), lambda x, n: x - +n,
  lambda x, n: (x > 1).where(n / 4, 2), lambda x, n: (x > 1).where(n, 2), lambda x, n: x.masked_fill(x > 1, n / 4),
  lambda x, n: Tensor(n / 3),
  lambda x, n: x + Tensor([n, 1]), lambda x, n: x + Tensor([[1 / n], [2]]), lambda x, n: Tensor.linspace(0, n, 5),
  lambda x, n: Tensor.arange(0, 2, n / 4), lambda x, n: x.lerp(x * 2, 1 / n), lambda x,
  n: x.half().lerp(x.half() * 2, 1 / n),
  lambda x, n: x.elu(n / 2) + (1 if n / 2 > 1.2 else 0), lambda x, n: x + float(n / 7) + int(n / 2) + math.floor(n / 2),
  lambda x, n: x.layernorm(eps=1 / n), lambda x, n: x * (n > n / 2),
  lambda x, n: (x.dropout(1 / n) > 0).cast("int32") * 0,
]

@pytest.mark.slow
@pytest.mark.parametrize("f", OF_VARIABLES)
def test_numbers_made_of_variables_are_weak_as_pythons_own(f):
  """Eager and captured: the values and the types equal those of plain numbers."""
  data = np.array([1.25, 2.5], np.float32)
  jitted = TinyJit(lambda x, n: f(x, n).realize())
  for k in (3, 3, 4, 7, 1, 3):
    want, n = f(Tensor(data), k), Variable("n", 1, 8).bind(k)
    for got in (f(Tensor(data), n), jitted(Tensor(data), n)):
      assert got.dtype is want.dtype and got.shape == want.shape
      np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-7)

@pytest.mark.slow
def test_gradients_by_numbers_made_of_variables():
  for f in (lambda x, n: x * (n / 3), lambda x, n: (x ** (1 / n)).clamp(0, n / 2), lambda x, n: n / x, lambda x,
            n: (n / 2) ** x):
    grads = [f(x := Tensor([1.25, 2.5]), n).sum().gradient(x)[0].tolist() for n in (3, Variable("n", 1, 8).bind(3))]
    assert grads[0] == pytest.approx(grads[1], rel=1e-6)

@pytest.mark.parametrize("make", [lambda n: Tensor(1 / n), lambda n: Tensor(n), lambda n: Tensor.full((), n / 2)])
def test_a_value_of_variables_alone_is_computed_on_each_device(make):
  """Its node names no device, and may live on. So a value computed on one device must not serve another."""
  n = Variable("n", 1, 8).bind(3)
  value = make(n)
  node = value.uop
  found = value.realize().item()
  other = make(n)
  assert other.uop is node and (Tensor([1.0, 2.0], device="PYTHON:1") * other).tolist() == [found, 2 * found]

def test_floats_made_of_variables_are_one_capture():
  calls = []
  @TinyJit
  def f(x, n):
    calls.append(int(n.src[1].arg))
    return (x * (1 / n) + n ** 2 + abs(n - 3) + (n / 2) ** 0.5).realize()
  for k in (3, 4, 5, 8, 1):
    assert f(Tensor([1.0]), Variable("n", 1, 8).bind(k)).item() == pytest.approx(1 / k + k ** 2 + abs(k - 3)
                                                                                 + (k / 2) ** 0.5)
  assert calls == [3, 4]

def test_floats_made_of_variables_are_no_places_and_no_sizes():
  x, n = Tensor([1.0, 2.0]), Variable("n", 1, 8).bind(3)
  for f in (lambda: x[:n / 2], lambda: x[n / 2], lambda: x[::n / 2]):
    with pytest.raises(IndexingError): f()
  for f in (lambda: x.reshape(n / 3, 2), lambda: Tensor.zeros(n / 2), lambda: x.topk(n / 3),
            lambda: x.std(correction=n / 3)):
    with pytest.raises(ArgumentError, match=r"whole number.* not \(n\[=3\]"): f()
  with pytest.raises(TypeError, match="is a float, not a whole number; use //"): range(n / 2)

def test_numbers_made_of_variables_without_a_value():
  x, n = Tensor([1.0, 2.0]), Variable("n", 1, 8)
  for f in (lambda: 2 ** n, lambda: n ** n, lambda: x.dropout(1 / n), lambda: Tensor.linspace(0, n, 5),
            lambda: Tensor([n, 1]), lambda: float(1 / n),
            lambda: n // 0.5, lambda: round(n / 2)):
    with pytest.raises(UnknownValueError, match="n.* has no value yet.*; bind its variables"): f()
