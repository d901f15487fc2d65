"""Edge cases of cumulative reductions: no elements, shape (), ties, NaN, long axes, the types of the accumulator."""
from math import inf, nan

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import IndexRangeError

EDGES: dict[str, list[Case]] = {
  "cumsum": [
    ("Tensor([]).cumsum()", like([], dtype=dtypes.float32)), ("Tensor(5).cumsum()", 5),
    ("Tensor([[1, 2], [3, 4]]).cumsum()", [[1, 2], [4, 6]]),
    ("Tensor([[1, 2], [3, 4]]).cumsum(-1)", [[1, 3], [3, 7]]), ("Tensor([1.0, nan, 2.0]).cumsum()", [1.0, nan, nan]),
    ("Tensor([inf, 1.0, -inf]).cumsum()", [inf, inf, nan]),
    ("Tensor([True, True]).cumsum()", like([1, 2], dtype=dtypes.int32)),
    ("Tensor([200, 100], dtype=dtypes.uint8).cumsum()", like([200, 300], dtype=dtypes.uint32)),
    ("Tensor([2147483647, 1]).cumsum()", [2147483647, -2147483648]),
    ("Tensor([65504.0, 65504.0, -65504.0]).half().cumsum()", like([65504.0, inf, 65504.0], dtype=dtypes.float16)),
    ("Tensor([1, 2, 3]).flip(0).cumsum()", [3, 5, 6]), ("Tensor.ones(600, dtype=dtypes.int32).cumsum()[510:515]",
                                                        [511, 512, 513, 514, 515]),
    ("Tensor.ones(600, dtype=dtypes.int32).cumsum()[-1]", 600), ("Tensor.zeros(2, 0).cumsum(0)", like([[], []])),
    ("Tensor([1]).cumsum(1)", raises(IndexRangeError, "axis 1")),
    ("x = Tensor([1.0, 2.0, 3.0]); x.cumsum().sum().gradient(x)", [[3.0, 2.0, 1.0]]),
  ],
  "cumprod": [
    ("Tensor([]).cumprod(0)", like([], dtype=dtypes.float32)), ("Tensor(5).cumprod()", 5),
    ("Tensor([2.0, 0.0, inf]).cumprod()", [2.0, 0.0, nan]),
    ("Tensor([[1, 2], [3, 4]]).cumprod(axis=-1)", [[1, 2], [3, 12]]),
    ("Tensor([16, 16], dtype=dtypes.uint8).cumprod()", like([16, 256], dtype=dtypes.uint32)),
    ("Tensor([65536, 65536]).cumprod()", [65536, 0]), ("Tensor([-1, -1, -1]).cumprod()", [-1, 1, -1]),
    ("x = Tensor([2.0, 0.0, 3.0]); x.cumprod().sum().gradient(x)", [[1.0, 8.0, 0.0]]),
  ],
  "cummax": [
    ("Tensor([1, 3, 3, 2]).cummax()", ([1, 3, 3, 3], [0, 1, 2, 2])),
    ("Tensor([1.0, nan, 5.0, nan]).cummax()", ([1.0, nan, nan, nan], [0, 1, 1, 3])),
    ("Tensor([-inf, -inf]).cummax()", ([-inf, -inf], [0, 1])), ("Tensor(7).cummax()", (7, 0)),
    ("Tensor([]).cummax()", ([], like([], dtype=dtypes.int32))),
    ("Tensor([[1, 4], [3, 2]]).cummax(0)", ([[1, 4], [3, 4]], [[0, 0], [1, 0]])),
    ("Tensor([False, True, False]).cummax()", ([False, True, True], [0, 1, 1])),
    ("Tensor([-128, -127], dtype=dtypes.int8).cummax()", (like([-128, -127], dtype=dtypes.int8), [0, 1])),
  ],
  "cummin": [
    ("Tensor([3, 1, 1, 2]).cummin()", ([3, 1, 1, 1], [0, 1, 2, 2])),
    ("Tensor([1.0, nan, -5.0]).cummin()", ([1.0, nan, nan], [0, 1, 1])),
    ("Tensor([inf, inf]).cummin()", ([inf, inf], [0, 1])),
    ("Tensor([5, 0, 255], dtype=dtypes.uint8).cummin()", (like([5, 0, 0], dtype=dtypes.uint8), [0, 1, 1])),
    ("Tensor([[3, 1], [1, 2]]).cummin(-1)", ([[3, 1], [1, 1]], [[0, 1], [0, 0]])),
    ("Tensor([-2147483648, 0]).cummin()", ([-2147483648, -2147483648], [0, 0])),
    ("Tensor([True, False]).cummin()", ([True, False], [0, 1])),
  ],
  "logcumsumexp": [
    ("Tensor([0.0, 0.0]).logcumsumexp()", [0.0, 0.69314718]),
    ("Tensor([1000.0, 1000.0]).logcumsumexp()", [1000.0, 1000.6931]),
    ("Tensor([-inf, 0.0, -inf]).logcumsumexp()", [-inf, 0.0, 0.0]), ("Tensor(3.0).logcumsumexp()", 3.0),
    ("Tensor([nan, 0.0]).logcumsumexp()", [nan, nan]),
    ("Tensor([[0.0], [0.0]]).logcumsumexp(0)", [[0.0], [0.69314718]]),
    ("Tensor([0, 0]).logcumsumexp()", like([0.0, 0.69314718], dtype=dtypes.float32)),
    ("Tensor([]).logcumsumexp()", like([], dtype=dtypes.float32)), ("Tensor([0.0, inf]).logcumsumexp()", [0.0, inf]),
    ("Tensor(3).logcumsumexp()", 3.0),
  ],
}
