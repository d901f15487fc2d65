"""Edge cases of comparisons, extremes of two, limits, truth and closeness: NaN, zeros of both signs, numbers that no element reaches, ties."""
from math import inf, nan

from edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError

EDGES: dict[str, list[Case]] = {
  "eq": [
    ("Tensor([nan, 0.0, inf, -inf]).eq(Tensor([nan, -0.0, inf, inf]))", [False, True, True, False]),
    ("Tensor([255, 0], dtype=dtypes.uint8) == 300", [False, False]),
    ("Tensor([255, 0], dtype=dtypes.uint8) == -1", [False, False]),
    ("Tensor([1, 2]) == 1.5", [False, False]),
    ("Tensor([16777217]) == Tensor([16777216.0])", [True]),
    ("Tensor([[1], [2]]) == Tensor([1, 2])", [[True, False], [False, True]]),
    ("Tensor([True, False]) == 1", [True, False]),
    ("Tensor.zeros(0, 2).eq(1)", like([], dtype=dtypes.bool, shape=(0, 2))),
    ("Tensor(3).eq(3)", True),
    ("1 == Tensor([1, 2])", [True, False]),
    ("Tensor([1, 2]).eq(Tensor([1, 2, 3]))", raises(ShapeError, "cannot compare")),
  ],
  "ne": [
    ("Tensor([nan, 0.0, 1.0]).ne(Tensor([nan, -0.0, 1.0]))", [True, False, False]),
    ("Tensor([127], dtype=dtypes.int8) != 128", [True]),
    ("Tensor([True, False]) != Tensor([True, True])", [False, True]),
    ("Tensor([[1, 2], [2, 1]]).T != Tensor([[1, 2], [2, 1]])", [[False, False], [False, False]]),
    ("nan != Tensor([1.0, nan])", [True, True]),
  ],
  "lt": [
    ("Tensor([nan, 1.0, -0.0, -inf]).lt(Tensor([1.0, nan, 0.0, inf]))", [False, False, False, True]),
    ("Tensor([0, 255], dtype=dtypes.uint8) < 300", [True, True]),
    ("Tensor([0, 255], dtype=dtypes.uint8) < -1", [False, False]),
    ("Tensor([4294967295], dtype=dtypes.uint32) < Tensor([-1])", [False]),
    ("Tensor([False, True]) < True", [True, False]),
    ("1 < Tensor([1, 2])", [False, True]),
    ("Tensor([1, 2, 3]).flip(0).lt(2)", [False, False, True]),
  ],
  "gt": [
    ("Tensor([nan, 1.0, 0.0, inf]).gt(Tensor([1.0, nan, -0.0, -inf]))", [False, False, False, True]),
    ("Tensor([-128, 127], dtype=dtypes.int8) > -129", [True, True]),
    ("Tensor([-128, 127], dtype=dtypes.int8) > 128", [False, False]),
    ("Tensor([[1], [3]]) > Tensor([0, 2])", [[True, False], [True, True]]),
    ("2 > Tensor([1, 2])", [True, False]),
  ],
  "le": [
    ("Tensor([nan, nan, 0.0, inf]).le(Tensor([nan, 1.0, -0.0, inf]))", [False, False, True, True]),
    ("Tensor([0, 255], dtype=dtypes.uint8) <= 255", [True, True]),
    ("Tensor([0, 255], dtype=dtypes.uint8) <= -1", [False, False]),
    ("Tensor([1, 2]) <= 1.5", [True, False]),
    ("nan <= Tensor([1.0])", [False]),
  ],
  "ge": [
    ("Tensor([nan, 1.0, -0.0, -inf]).ge(Tensor([nan, nan, 0.0, -inf]))", [False, False, True, True]),
    ("Tensor([0, 255], dtype=dtypes.uint8) >= 256", [False, False]),
    ("Tensor([0, 255], dtype=dtypes.uint8) >= -1", [True, True]),
    ("Tensor([True, False]) >= Tensor([False, False])", [True, True]),
    ("Tensor([]).ge(0)", like([], dtype=dtypes.bool)),
  ],
  "maximum": [
    ("Tensor([1.0, nan, -inf, inf]).maximum(Tensor([nan, 1.0, -1.0, nan]))", [nan, nan, -1.0, nan]),
    ("Tensor([-0.0, 0.0]).maximum(Tensor([0.0, -0.0]))", [-0.0, 0.0]),
    ("Tensor([1, 5]).maximum(2.5)", like([2.5, 5.0], dtype=dtypes.float32)),
    ("Tensor([0, 200], dtype=dtypes.uint8).maximum(-5)", like([0, 200], dtype=dtypes.uint8)),
    ("Tensor([0, 200], dtype=dtypes.uint8).maximum(300)", raises(DTypeError, "300")),
    ("Tensor([True, False]).maximum(Tensor([False, False]))", [True, False]),
    ("Tensor([[1], [4]]).maximum(Tensor([2, 3]))", [[2, 3], [4, 4]]),
    ("Tensor([-1]).maximum(Tensor([2**32 - 1], dtype=dtypes.uint32))", like([4294967295], dtype=dtypes.int64)),
    ("x = Tensor([1.0, 2.0, 3.0]); x.maximum(2.0).sum().gradient(x)", [[0.0, 0.5, 1.0]]),
  ],
  "minimum": [
    ("Tensor([1.0, nan, -inf, inf]).minimum(Tensor([nan, 1.0, -1.0, 2.0]))", [nan, nan, -inf, 2.0]),
    ("Tensor([-128, 127], dtype=dtypes.int8).minimum(Tensor([127, -128], dtype=dtypes.int8))", like([-128, -128], dtype=dtypes.int8)),
    ("Tensor([0, 255], dtype=dtypes.uint8).minimum(1)", like([0, 1], dtype=dtypes.uint8)),
    ("Tensor([0, 255], dtype=dtypes.uint8).minimum(256)", like([0, 255], dtype=dtypes.uint8)),
    ("Tensor([True, False]).minimum(Tensor([True, True]))", [True, False]),
    ("Tensor(3.0).minimum(Tensor([[2.0], [4.0]]))", [[2.0], [3.0]]),
    ("x = Tensor([1.0, 2.0]); y = Tensor([1.0, 5.0]); x.minimum(y).sum().gradient(x, y)", [[0.5, 1.0], like([0.5, 0.0], tolerance=1e-6)]),
  ],
  "clamp": [
    ("Tensor([-inf, -1.0, 0.5, inf, nan]).clamp(0, 1)", [0.0, 0.0, 0.5, 1.0, nan]),
    ("Tensor([0.0, 5.0]).clamp(3, 2)", [2.0, 2.0]),
    ("Tensor([1, 5]).clamp(max_=3)", [1, 3]),
    ("Tensor([1, 5]).clamp(2.5)", like([2.5, 5.0], dtype=dtypes.float32)),
    ("Tensor([0, 255], dtype=dtypes.uint8).clamp(-5, 300)", like([0, 255], dtype=dtypes.uint8)),
    ("Tensor([[0.0, 9.0]]).clamp(Tensor([[1.0], [2.0]]), Tensor([5.0, 6.0]))", [[1.0, 6.0], [2.0, 6.0]]),
    ("Tensor([0.0, 1.0]).clamp(Tensor([nan, 0.0]), 5)", [nan, 1.0]),
    ("Tensor([]).clamp(0, 1)", like([], shape=(0,))),
    ("Tensor([1]).clamp()", raises(ArgumentError, "min_, max_ or both")),
    ("x = Tensor([-1.0, 0.0, 0.5, 1.0, 2.0]); x.clamp(0, 1).sum().gradient(x)", [[0.0, 1.0, 1.0, 1.0, 0.0]]),
  ],
  "clip": [
    ("Tensor([-5, 0, 5]).clip(-1, 1)", [-1, 0, 1]), ("Tensor(7).clip(max_=5)", 5), ("Tensor([nan]).clip(0)", [nan]),
    ("Tensor([1]).clip()", raises(ArgumentError, "min_, max_ or both")),
  ],
  "logical_not": [
    ("Tensor([0.0, -0.0, nan, 1e-45]).logical_not()", [True, True, False, False]), ("Tensor([0, -3]).logical_not()", [True, False]),
    ("Tensor([True, False]).logical_not()", [False, True]), ("Tensor(0).logical_not()", True),
    ("Tensor.zeros(2, 0).logical_not()", like([[], []], dtype=dtypes.bool)),
  ],
  "isclose": [
    ("Tensor([1.0, 1.0, inf, -inf, nan, inf]).isclose(Tensor([1.000005, 1.0001, inf, inf, nan, 1.0]))", [True, False, True, False, False, False]),
    ("Tensor([nan, nan]).isclose(Tensor([nan, 1.0]), equal_nan=True)", [True, False]),
    ("Tensor([0.0, 0.0]).isclose(Tensor([1e-9, 1e-7]))", [True, False]),
    ("Tensor([100, 100]).isclose(Tensor([100, 101]))", [True, False]),
    ("Tensor([10.0, 8.0]).isclose(Tensor([8.0, 10.0]), rtol=0.22, atol=0.0)", [False, True]),
    ("Tensor([1.0]).isclose(Tensor([1.5]), rtol=0, atol=0.5)", [True]),
    ("Tensor([[1.0], [2.0]]).isclose(Tensor([1.0, 2.0]))", [[True, False], [False, True]]),
  ],
  "allclose": [
    ("Tensor([]).allclose(Tensor([]))", True), ("Tensor([1.0, nan]).allclose(Tensor([1.0, nan]))", False),
    ("Tensor([1.0, nan]).allclose(Tensor([1.0, nan]), equal_nan=True)", True), ("Tensor([inf, 1.0]).allclose(Tensor([inf, 1.0]))", True),
    ("Tensor([[1, 1], [1, 1]]).allclose(Tensor(1))", True), ("Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.1]), atol=0.2)", True),
    ("Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.0, 3.0]))", raises(ShapeError, "(2,)")),
  ],
  "isnan": [
    ("Tensor([nan, inf, -0.0]).isnan()", [True, False, False]), ("Tensor([1, 2]).isnan()", [False, False]), ("Tensor(nan).isnan()", True),
    ("Tensor([nan, 65504.0]).half().isnan()", [True, False]), ("(Tensor([inf]) - inf).isnan()", [True]),
    ("Tensor([448.0, 500.0]).cast(dtypes.fp8e4m3).isnan()", [False, True]),
  ],
  "isinf": [
    ("Tensor([inf, -inf, nan, 3e38]).isinf()", [True, True, False, False]),
    ("Tensor([inf, -inf, nan]).isinf(detect_negative=False)", [True, False, False]),
    ("Tensor([inf, -inf, nan]).isinf(detect_positive=False)", [False, True, False]),
    ("Tensor([inf, -inf]).isinf(False, False)", [False, False]),
    ("Tensor([2147483647]).isinf()", [False]), ("Tensor([65504.0, 65520.0]).half().isinf()", [False, True]),
  ],
  "isfinite": [
    ("Tensor([inf, -inf, nan, 3e38]).isfinite()", [False, False, False, True]), ("Tensor([5]).isfinite()", [True]),
    ("Tensor([1e39], dtype=dtypes.float64).isfinite()", [True]), ("Tensor([1e39]).isfinite()", [False]),
    ("Tensor([True]).isfinite()", [True]),
  ],
}
