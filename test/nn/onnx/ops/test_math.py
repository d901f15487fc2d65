"""Elementwise operators, reductions and products against NumPy's formulas."""
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
X = np.array([[-2.5, -1.0, -0.25, 0.0], [0.3, 0.75, 1.0, 3.5]], F32)
A, B = X, np.array([0.5, -1.5, 2.0, 4.0], F32)

UNARY: dict[str, tuple[Callable[[Any], Any], Any]] = {
  "Abs": (np.abs, X), "Neg": (np.negative, X), "Sign": (np.sign, X), "Floor": (np.floor, X), "Ceil": (np.ceil, X),
  "Round": (np.rint, X),
  "Sqrt": (np.sqrt, abs(X)), "Exp": (np.exp, X), "Log": (np.log, abs(X) + 1), "Erf": (np.vectorize(math.erf), X),
  "Reciprocal": (lambda x: 1 / x, X + 5),
  "Sin": (np.sin, X), "Cos": (np.cos, X), "Tan": (np.tan, X), "Asin": (np.arcsin, X / 4), "Acos": (np.arccos, X / 4),
  "Atan": (np.arctan, X),
  "Sinh": (np.sinh, X), "Cosh": (np.cosh, X), "Tanh": (np.tanh, X), "Asinh": (np.arcsinh, X),
  "Acosh": (np.arccosh, abs(X) + 1),
  "Atanh": (np.arctanh, X / 4), "Relu": (lambda x: np.maximum(x, 0), X), "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), X),
  "Softplus": (lambda x: np.log1p(np.exp(x)), X), "Softsign": (lambda x: x / (1 + abs(x)), X),
  "Identity": (lambda x: x, X),
  "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), X), "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), X),
  "IsNaN": (np.isnan, X), "IsInf": (np.isinf, np.array([np.inf, -np.inf, np.nan, 1], F32)),
  "Not": (np.logical_not, X > 0),
  "BitwiseNot": (np.bitwise_not, np.array([1, -5], np.int32)), "LeakyRelu": (lambda x: np.where(x < 0, x * 0.01, x), X),
  "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), X), "HardSigmoid": (lambda x: np.clip(x * 0.2 + 0.5, 0, 1), X),
  "Celu": (lambda x: np.maximum(0, x) + np.minimum(0, np.expm1(x)), X),
  "ThresholdedRelu": (lambda x: np.where(x > 1, x, 0), X),
  "Selu": (lambda x: 1.05070098 * np.where(x < 0, 1.67326324 * np.expm1(x), x), X),
  "Shrink": (lambda x: np.where(abs(x) > 0.5, x, 0), X),
  "Gelu": (np.vectorize(lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))), X),
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
  "Add": (np.add, A, B), "Sub": (np.subtract, A, B), "Mul": (np.multiply, A, B), "Div": (np.divide, A, B),
  "Pow": (np.power, abs(A), B),
  "Equal": (np.equal, A, A[:1]), "Less": (np.less, A, B), "Greater": (np.greater, A, B),
  "LessOrEqual": (np.less_equal, A, A[:1]),
  "GreaterOrEqual": (np.greater_equal, A, A[:1]), "And": (np.logical_and, A > 0, B > 0),
  "Or": (np.logical_or, A > 0, B > 0),
  "Xor": (np.logical_xor, A > 0, B > 0), "BitwiseAnd": (np.bitwise_and, np.arange(4), np.arange(4)[::-1].copy()),
  "MatMul": (np.matmul, A, B),
  "BitwiseOr": (np.bitwise_or, np.arange(4), np.arange(4)[::-1].copy()),
  "BitwiseXor": (np.bitwise_xor, np.arange(4), np.arange(4)[::-1].copy()),
  "PRelu": (lambda a, b: np.where(a < 0, a * b, a), A, B), "Max": (np.maximum, A, B), "Min": (np.minimum, A, B),
  "Sum": (np.add, A, B),
  "Mean": (lambda a, b: (a + b) / 2, A, B), "Mod": (np.mod, np.array([-7, 7, 5]), np.array([3, -3, 3])),
}

@pytest.mark.parametrize("op", UNARY)
def test_one_operand(op: str) -> None:
  function, x = UNARY[op]
  np.testing.assert_allclose(run(op, x), function(x), rtol=2e-6, atol=1e-6)

@pytest.mark.parametrize("op", BINARY)
def test_two_operands(op: str) -> None:
  function, a, b = BINARY[op]
  found = run(op, a, b)
  np.testing.assert_allclose(found, function(a, b), rtol=2e-6, atol=1e-6)
  assert found.dtype == (np.bool_ if function(a, b).dtype == np.bool_ else a.dtype)

def test_integers_divide_towards_zero_and_keep_their_type() -> None:
  a, b = np.array([-7, 7, 8], np.int8), np.array([2, -2, 3], np.int8)
  assert run("Div", a, b).tolist() == [-3, -3, 2] and run("Div", a, b).dtype == np.int8
  assert run("Mod", a, b, fmod=1).tolist() == [-1, 1, 2] and run("Mod", a, b).tolist() == [1, -1, 2]
  assert (run("Pow", a, np.array([2, 2, 2], np.int64)).tolist() == [49, 49, 64]
          and run("Pow", a, np.array([2.0], F32)).dtype == np.int8)

def test_shifts() -> None:
  a, b = np.array([1, 16], np.uint8), np.array([3, 2], np.uint8)
  assert run("BitShift", a, b, direction="LEFT").tolist() == [8, 64] and run("BitShift", a, b,
                                                                             direction="RIGHT").tolist() == [0, 4]
  with pytest.raises(TinyError, match="LEFT or RIGHT"): run("BitShift", a, b, direction="UP")

def test_clip_and_where_and_cast() -> None:
  assert (run("Clip", X, F32(-1), F32(1)).tolist() == X.clip(-1, 1).tolist() and run("Clip", X, None, F32(1)).tolist()
          == X.clip(None, 1).tolist())
  assert run("Clip", X, opset=6, min=-1.0).tolist() == X.clip(-1, None).tolist()
  assert run("Where", X > 0, X, B).tolist() == np.where(X > 0, X, B).tolist()
  assert run("Cast", X, to=6).tolist() == X.astype(np.int32).tolist()
  assert run("CastLike", X, np.array([1], np.float64)).dtype == np.float64
  assert run("Cast", np.array([20.0, -9.0], F32), to=22).tolist() == [4, 7]
  assert run("Cast", np.array([20, 3]), to=21).tolist() == [4, 3]
  assert run("BitCast", np.array([1.0], F32), opset=26, to=6).tolist() == [0x3f800000]
  assert run("BitCast", np.array([True, False]), opset=26, to=2).tolist() == [1, 0]
  assert run("BitCast", np.array([2, 0], np.uint8), opset=26, to=9).tolist() == [True, False]
  assert run("Cast", np.array([1e6, -1e6, 448.0], F32), to=17).tolist() == [448, -448, 448]
  with pytest.raises(TinyError, match="element type"): run("Cast", X, to=14)

REDUCTIONS: dict[str, Callable[[Any, Any, bool], Any]] = {
  "ReduceSum": lambda x, a, k: x.sum(a, keepdims=k), "ReduceMax": lambda x, a, k: x.max(a, keepdims=k),
  "ReduceMin": lambda x, a,
  k: x.min(a, keepdims=k),
  "ReduceMean": lambda x, a, k: x.mean(a, keepdims=k), "ReduceProd": lambda x, a, k: x.prod(a, keepdims=k),
  "ReduceL1": lambda x, a, k: abs(x).sum(a, keepdims=k), "ReduceL2": lambda x, a,
  k: np.sqrt((x * x).sum(a, keepdims=k)),
  "ReduceSumSquare": lambda x, a, k: (x * x).sum(a, keepdims=k), "ReduceLogSum": lambda x, a,
  k: np.log(x.sum(a, keepdims=k)),
  "ReduceLogSumExp": lambda x, a, k: np.log(np.exp(x).sum(a, keepdims=k)),
}

@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str) -> None:
  x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype(F32)
  np.testing.assert_allclose(run(op, x, np.array([0, -1]), keepdims=0), REDUCTIONS[op](x, (0, 2), False), rtol=1e-5)
  np.testing.assert_allclose(run(op, x), REDUCTIONS[op](x, None, True), rtol=1e-5)
  np.testing.assert_allclose(run(op, x, opset=11, axes=[1]), REDUCTIONS[op](x, 1, True), rtol=1e-5)
  if op in ("ReduceSum", "ReduceMax", "ReduceLogSumExp"):
    assert run(op, x, noop_with_empty_axes=1).tolist() == x.tolist()

# inputs, attributes, the value of each element of the result
HALF: dict[str, tuple[tuple[Any, ...], dict[str, Any], float]] = {
  "ReduceL1": (([1.0] * 3000,), {}, 3000), "ReduceL2": (([3e4, 4e4],), {}, 5e4),
                                                                     "ReduceSum": (([1.0] * 3000,), {}, 3000),
  "ReduceSumSquare": (([1.0] * 3000,), {}, 3000), "ReduceLogSum": (([6e4] * 100,), {}, math.log(6e6)),
  "ReduceLogSumExp": (([1.0] * 70000,), {}, 1 + math.log(70000)), "Mean": (([6e4], [6e4], [6e4]), {}, 6e4),
  "Gemm": (([[400.0]], [[400.0]], [[-3e4]]), {"alpha": 0.5}, 5e4), "LRN": (([[[1000.0]]],), {"size": 1, "alpha": 1e-4},
                                                                           1000 / 101 ** 0.75),
  "LpPool": (([[[3e4, 4e4]]],), {"kernel_shape": [2]}, 5e4), "GlobalLpPool": (([[[3e4, 4e4]]],), {}, 5e4),
  "LpNormalization": (([[3e4, 3e4]],), {}, math.sqrt(0.5)),
}

@pytest.mark.parametrize("op", HALF)
def test_half_precision_overflows_only_where_the_result_does(op: str) -> None:
  inputs, attributes, want = HALF[op]
  got = run(op, *(np.array(x, np.float16) for x in inputs), **attributes)
  assert got.dtype == np.float16
  np.testing.assert_allclose(got.astype(F32).ravel(), want, rtol=1e-3)

def test_losses_of_many_in_half_precision() -> None:
  scores, target = np.tile(np.array([[0, 9]], np.float16), (8000, 1)), np.zeros(8000, np.int64)
  for weight in ((), (np.array([1, 1], np.float16),)):
    assert run("SoftmaxCrossEntropyLoss", scores, target, *weight).tolist() == 9.0

def test_reductions_of_nothing() -> None:
  empty = np.zeros((2, 0), F32)
  assert run("ReduceSum", empty, np.array([1]), keepdims=0).tolist() == [0, 0]
  assert run("ReduceProd", empty, np.array([1]), keepdims=0).tolist() == [1, 1]
  assert run("ReduceMax", empty, np.array([1]), keepdims=0).tolist() == [-math.inf] * 2
  assert run("ReduceMin", empty.astype(np.int32), np.array([1]), keepdims=0).tolist() == [2 ** 31 - 1] * 2

def test_places_of_extremes() -> None:
  x = np.array([[2, 1, 2], [3, 3, 10]], F32)
  assert run("ArgMax", x, axis=1, keepdims=0).tolist() == [0, 2] and run("ArgMax", x, axis=1, keepdims=0,
                                                                         select_last_index=1).tolist() == [2, 2]
  assert run("ArgMin", x, axis=1).tolist() == [[1], [0]] and run("ArgMin", x, axis=-1, select_last_index=1,
                                                                 keepdims=0).tolist() == [1, 1]

@pytest.mark.parametrize("exclusive, reverse, expected", [(0, 0, [1, 3, 6]), (1, 0, [0, 1, 3]), (0, 1, [6, 5, 3]),
                                                          (1, 1, [5, 3, 0])])
def test_sums_so_far(exclusive: int, reverse: int, expected: list[int]) -> None:
  assert run("CumSum", np.array([1, 2, 3], F32), np.array(0), exclusive=exclusive, reverse=reverse).tolist() == expected

def softmax(x: Any, axis: int) -> Any:
  return np.exp(x - x.max(axis, keepdims=True)) / np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)

def test_softmax_before_and_after_version_13() -> None:
  x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(F32)
  np.testing.assert_allclose(run("Softmax", x, axis=1), softmax(x, 1), rtol=1e-5)
  np.testing.assert_allclose(run("Softmax", x, opset=11, axis=1), softmax(x.reshape(2, 12), 1).reshape(x.shape),
                             rtol=1e-5)
  np.testing.assert_allclose(run("LogSoftmax", x), np.log(softmax(x, -1)), rtol=1e-4, atol=1e-6)
  assert run("Hardmax", np.array([[1, 3, 3]], F32)).tolist() == [[0, 1, 0]]

def test_gated_activation() -> None:
  assert run("SwiGLU", X, X + 1, opset=28, alpha=2.0) == pytest.approx(X / (1 + np.exp(-2 * X)) * (X + 1), rel=1e-5,
                                                                       abs=1e-6)
  with pytest.raises(TinyError, match="two equal shapes"): run("SwiGLU", X, X[:1], opset=28)

def test_gemm_einsum_and_det() -> None:
  a, b, c = (np.random.default_rng(i).standard_normal(s).astype(F32) for i, s in enumerate([(3, 2), (4, 3), (4,)]))
  np.testing.assert_allclose(run("Gemm", a, b, c, transA=1, transB=1, alpha=0.5, beta=2.0), 0.5 * a.T @ b.T + 2 * c,
                             rtol=1e-5)
  np.testing.assert_allclose(run("Einsum", a, b, equation="ij, ki -> jk"), a.T @ b.T, rtol=1e-5)
  m = np.random.default_rng(5).standard_normal((2, 3, 3)).astype(F32)
  m[1, 0, 0] = 0
  np.testing.assert_allclose(run("Det", m), np.linalg.det(m), rtol=1e-4)
  assert run("Det", np.zeros((2, 2), F32)).tolist() == 0

def test_values_on_each_engine(engine: str) -> None:
  np.testing.assert_allclose(run("Gelu", X, approximate="tanh"),
                             0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X ** 3))), atol=2e-6)
  np.testing.assert_allclose(run("ReduceL2", X, np.array([1])), np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-5)
