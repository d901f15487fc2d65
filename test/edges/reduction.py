"""Edge cases of reductions: of nothing, of shape (), several and negative axes, keepdim, NaN, ties, what wraps and what is widened."""
from math import inf, nan

from edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError

EDGES: dict[str, list[Case]] = {
  "sum": [
    ("Tensor([]).sum()", 0.0), ("Tensor(3).sum()", 3), ("Tensor(3).sum(0)", 3), ("Tensor(3).sum(-1, keepdim=True)", 3),
    ("Tensor([[1, 2], [3, 4]]).sum(-1)", [3, 7]), ("Tensor([[1, 2], [3, 4]]).sum((0, -1), keepdim=True)", [[10]]),
    ("Tensor([[1, 2], [3, 4]]).sum(())", [[1, 2], [3, 4]]),
    ("Tensor.zeros(0, 3).sum(0)", [0.0, 0.0, 0.0]), ("Tensor.zeros(0, 3).sum(1)", like([], dtype=dtypes.float32)),
    ("Tensor([True, True, False]).sum()", like(2, dtype=dtypes.int32)),
    ("Tensor([200, 200], dtype=dtypes.uint8).sum()", like(400, dtype=dtypes.uint32)),
    ("Tensor([100, 100], dtype=dtypes.int8).sum(dtype=dtypes.int8)", like(-56, dtype=dtypes.int8)),
    ("Tensor([2147483647, 1]).sum()", -2147483648), ("Tensor([2147483647, 1]).sum(dtype=dtypes.int64)", like(2147483648, dtype=dtypes.int64)),
    ("Tensor([inf, -inf]).sum()", nan), ("Tensor([1.0, nan]).sum()", nan), ("Tensor([-0.0, -0.0]).sum()", like(0.0, tolerance=1e-6)),
    ("Tensor([60000.0, 60000.0, -60000.0]).half().sum()", like(60000.0, dtype=dtypes.float16)),
    ("Tensor([[1, 2], [3, 4]]).T.flip(1).sum(1)", [4, 6]), ("Tensor([[1]]).expand(3, 2).sum(0)", [3, 3]),
    ("Tensor([1, 2]).sum(1)", raises(IndexRangeError, "axis 1")), ("Tensor([[1]]).sum((0, 0))", raises(ArgumentError, "twice")),
    ("x = Tensor([[1.0, 2.0]]); x.sum().gradient(x)", [[[1.0, 1.0]]]),
  ],
  "prod": [
    ("Tensor([]).prod()", 1.0), ("Tensor.zeros(0, 2).prod(0)", [1.0, 1.0]), ("Tensor(5).prod(0)", 5),
    ("Tensor([[1, 2], [3, 4]]).prod(-1, keepdim=True)", [[2], [12]]), ("Tensor([0.0, inf]).prod()", nan), ("Tensor([-0.0, 2.0]).prod()", -0.0),
    ("Tensor([16, 16], dtype=dtypes.uint8).prod()", like(256, dtype=dtypes.uint32)), ("Tensor([65536, 65536]).prod()", 0),
    ("Tensor([True, False]).prod()", like(0, dtype=dtypes.int32)),
    ("Tensor([0.1], dtype=dtypes.float32).prod(dtype=dtypes.int32)", like(0, dtype=dtypes.int32)),
    ("x = Tensor([2.0, 0.0, 3.0]); x.prod().gradient(x)", [[0.0, 6.0, 0.0]]),
    ("x = Tensor([0.0, 0.0, 3.0]); x.prod().gradient(x)", [[0.0, 0.0, 0.0]]),
  ],
  "max": [
    ("Tensor([[1.0, nan], [-inf, -inf]]).max(1)", [nan, -inf]), ("Tensor(3).max()", 3), ("Tensor(3).max(-1)", 3),
    ("Tensor([-128, -127], dtype=dtypes.int8).max()", like(-127, dtype=dtypes.int8)), ("Tensor([2**63, 1], dtype=dtypes.uint64).max()", 2**63),
    ("Tensor([False, True]).max()", True), ("Tensor([[1, 5], [7, 3]]).max((0, 1), keepdim=True)", [[7]]),
    ("Tensor([[1, 5], [7, 3]]).flip(0).T.max(-1)", [7, 5]), ("Tensor.zeros(0, 2).max(1)", like([], dtype=dtypes.float32)),
    ("Tensor([]).max()", raises(ShapeError, "no elements")), ("Tensor.zeros(2, 0).max(1)", raises(ShapeError, "no elements")),
    ("x = Tensor([3.0, 1.0, 3.0]); x.max().gradient(x)", [[0.5, 0.0, 0.5]]), ("Tensor([1]).max(2)", raises(IndexRangeError, "axis 2")),
  ],
  "min": [
    ("Tensor([[1.0, nan], [inf, inf]]).min(1)", [nan, inf]), ("Tensor([0, 255], dtype=dtypes.uint8).min()", like(0, dtype=dtypes.uint8)),
    ("Tensor([-2147483648, 2147483647]).min()", -2147483648), ("Tensor([False, True]).min()", False), ("Tensor(3.0).min(0, keepdim=True)", 3.0),
    ("Tensor([[1, 5], [7, 3]]).min(0, keepdim=True)", [[1, 3]]), ("Tensor([65504.0, inf]).half().min()", like(65504.0, dtype=dtypes.float16)),
    ("Tensor([]).min()", raises(ShapeError, "no elements")),
    ("x = Tensor([1.0, 2.0, 1.0]); x.min().gradient(x)", [like([0.5, 0.0, 0.5], tolerance=1e-6)]),
  ],
  "any": [
    ("Tensor([]).any()", False), ("Tensor([0.0, -0.0]).any()", False), ("Tensor([0.0, nan]).any()", True),
    ("Tensor([[0, 0], [0, 5]]).any(1)", [False, True]),
    ("Tensor([[False], [True]]).any(-1, keepdim=True)", [[False], [True]]), ("Tensor(2).any()", True), ("Tensor.zeros(2, 0).any(1)", [False, False]),
  ],
  "all": [
    ("Tensor([]).all()", True), ("Tensor([nan, -1.0]).all()", True), ("Tensor([1.0, -0.0]).all()", False),
    ("Tensor([[1, 0], [2, 5]]).all(1)", [False, True]),
    ("Tensor([[True, False]]).all(0)", [True, False]), ("Tensor(0).all(-1)", False), ("Tensor.zeros(2, 0).all(1, keepdim=True)", [[True], [True]]),
  ],
  "mean": [
    ("Tensor([]).mean()", nan), ("Tensor(3).mean()", 3.0), ("Tensor([1, 2]).mean()", like(1.5, dtype=dtypes.float32)),
    ("Tensor([True, False, False]).mean()", 1 / 3), ("Tensor([[1.0, 3.0], [5.0, 7.0]]).mean(0, keepdim=True)", [[3.0, 5.0]]),
    ("Tensor([60000.0, 60000.0]).half().mean()", like(60000.0, dtype=dtypes.float16)), ("Tensor([2147483647, 2147483647]).mean()", 2147483648.0),
    ("Tensor([[1.0, 2.0], [3.0, 4.0]]).T.mean(-2)", [1.5, 3.5]), ("Tensor([1.0, inf, -inf]).mean()", nan),
    ("Tensor.zeros(0, 2).mean(0)", [nan, nan]), ("x = Tensor([1.0, 2.0, 6.0]); x.mean().gradient(x)", [[1 / 3, 1 / 3, 1 / 3]]),
  ],
  "var": [
    ("Tensor([1.0, 2.0, 3.0, 4.0]).var()", 5 / 3), ("Tensor([1.0, 2.0, 3.0, 4.0]).var(correction=0)", 1.25), ("Tensor([5.0]).var()", nan),
    ("Tensor([5.0]).var(correction=0)", 0.0), ("Tensor([]).var()", nan), ("Tensor([1.0, 3.0]).var(correction=2)", inf),
    ("Tensor([[1, 3], [2, 2]]).var(1, keepdim=True)", like([[2.0], [0.0]], dtype=dtypes.float32)),
    ("Tensor([10000.0, 10001.0, 10002.0]).var()", 1.0), ("Tensor(5.0).var()", nan),
    ("Tensor([1.0, 3.0]).var(correction=0.5)", raises(ArgumentError, "correction")),
    ("x = Tensor([2.0, 2.0]); x.var().gradient(x)", [like([0.0, 0.0], tolerance=1e-6)]),
  ],
  "var_mean": [
    ("Tensor([1.0, 2.0, 3.0]).var_mean()", (1.0, 2.0)), ("Tensor([[1.0, 3.0], [5.0, 9.0]]).var_mean(-1)", ([2.0, 8.0], [2.0, 7.0])),
    ("Tensor([[1.0, 3.0]]).var_mean(1, keepdim=True, correction=0)", ([[1.0]], [[2.0]])), ("Tensor([7]).var_mean()", (nan, 7.0)),
    ("Tensor([]).var_mean()", (nan, nan)),
    ("Tensor([[1.0, 5.0]]).half().var_mean(0, correction=0)", (like([0.0, 0.0], dtype=dtypes.float16), [1.0, 5.0])),
  ],
  "std": [
    ("Tensor([1.0, 3.0, 5.0]).std()", 2.0), ("Tensor([1.0, 3.0]).std(correction=0)", 1.0), ("Tensor([4.0]).std()", nan),
    ("Tensor([4.0, 4.0]).std()", 0.0),
    ("Tensor([[1, 5], [2, 2]]).std(1)", [2.8284271, 0.0]), ("x = Tensor([2.0, 2.0]); x.std().gradient(x)", [like([0.0, 0.0], tolerance=1e-6)]),
  ],
  "std_mean": [
    ("Tensor([1.0, 3.0, 5.0]).std_mean()", (2.0, 3.0)), ("Tensor([[1.0, 5.0]]).std_mean(0)", ([nan, nan], [1.0, 5.0])),
    ("Tensor([[1.0, 5.0]]).std_mean(1, keepdim=True, correction=0)", ([[2.0]], [[3.0]])), ("Tensor(2.0).std_mean(correction=0)", (0.0, 2.0)),
  ],
  "argmax": [
    ("Tensor([1, 3, 3]).argmax()", 1), ("Tensor([1.0, nan, inf, nan]).argmax()", 1), ("Tensor([-inf, -inf]).argmax()", 0), ("Tensor(4).argmax()", 0),
    ("Tensor([[1, 5], [7, 3]]).argmax()", 2), ("Tensor([[1, 5], [7, 3]]).argmax(keepdim=True)", [[2]]),
    ("Tensor([[1, 5], [7, 3]]).argmax(-2)", [1, 0]),
    ("Tensor([-128, 127, 127], dtype=dtypes.int8).argmax()", like(1, dtype=dtypes.int32)), ("Tensor([False, True, True]).argmax()", 1),
    ("Tensor([0.0, -0.0]).flip(0).argmax()", 0), ("Tensor([]).argmax()", raises(ShapeError, "no element")),
    ("Tensor([1]).argmax(1)", raises(IndexRangeError, "axis 1")),
    ("Tensor.zeros(0, 2).argmax(1)", like([], dtype=dtypes.int32)),
  ],
  "argmin": [
    ("Tensor([3, 1, 1]).argmin()", 1), ("Tensor([1.0, nan, -inf, nan]).argmin()", 1), ("Tensor([inf, inf]).argmin(0, keepdim=True)", [0]),
    ("Tensor([0, -2147483648, 5]).argmin()", 1), ("Tensor([255, 0], dtype=dtypes.uint8).argmin()", 1), ("Tensor([True, False]).argmin()", 1),
    ("Tensor([[3, 1], [1, 3]]).argmin(0)", [1, 0]), ("Tensor([]).argmin()", raises(ShapeError, "no element")),
  ],
  "logsumexp": [
    ("Tensor([]).logsumexp()", -inf), ("Tensor([-inf, -inf]).logsumexp()", -inf), ("Tensor([1000.0, 1000.0]).logsumexp()", 1000.6931),
    ("Tensor([inf, 0.0]).logsumexp()", inf), ("Tensor([nan, 0.0]).logsumexp()", nan), ("Tensor(2.0).logsumexp()", 2.0),
    ("Tensor([0, 0]).logsumexp()", 0.69314718),
    ("Tensor([[0.0, 0.0], [-1000.0, -1000.0]]).logsumexp(1, keepdim=True)", [[0.69314718], [-999.30685]]),
    ("Tensor([[0.0, 0.0], [0.0, 0.0]]).logsumexp((0, 1))", 1.3862944), ("x = Tensor([1000.0, 1000.0]); x.logsumexp().gradient(x)", [[0.5, 0.5]]),
  ],
  "normalize": [
    ("Tensor([[3.0, 4.0], [0.0, 0.0]]).normalize()", [[0.6, 0.8], [0.0, 0.0]]), ("Tensor([[3.0, -1.0]]).normalize(p=1)", [[0.75, -0.25]]),
    ("Tensor([[3.0, -4.0]]).normalize(p=inf)", [[0.75, -1.0]]), ("Tensor([3.0, 4.0]).normalize(dim=0)", [0.6, 0.8]),
    ("Tensor([[3, 4]]).normalize(dim=-1)", like([[0.6, 0.8]], dtype=dtypes.float32)), ("Tensor([[1.0, 0.0]]).normalize(eps=2)", [[0.5, 0.0]]),
    ("Tensor([[300.0, 400.0]]).half().normalize()", like([[0.6, 0.8]], dtype=dtypes.float16)),
    ("Tensor([[1.0]]).normalize(p=0)", raises(ArgumentError, "positive p")),
    ("Tensor([3.0, 4.0]).normalize()", raises(IndexRangeError, "axis 1")),
    ("x = Tensor([[0.0, 0.0]]); x.normalize(eps=0.5).sum().gradient(x)", [[[2.0, 2.0]]]),
  ],
  "softmax": [
    ("Tensor([1000.0, 1000.0]).softmax()", [0.5, 0.5]), ("Tensor([-inf, 0.0]).softmax()", [0.0, 1.0]), ("Tensor([-inf, -inf]).softmax()", [nan, nan]),
    ("Tensor([inf, 0.0]).softmax()", [nan, nan]), ("Tensor(5.0).softmax()", 1.0), ("Tensor([7]).softmax()", [1.0]),
    ("Tensor([]).softmax()", like([], dtype=dtypes.float32)),
    ("Tensor([[0.0, 0.0], [0.0, 0.0]]).softmax(0)", [[0.5, 0.5], [0.5, 0.5]]), ("Tensor([0, 0]).softmax()", like([0.5, 0.5], dtype=dtypes.float32)),
    ("Tensor([0.0, 0.0]).half().softmax(dtype=dtypes.float64)", like([0.5, 0.5], dtype=dtypes.float64)),
    ("Tensor.zeros(2, 0).softmax()", like([[], []])), ("Tensor([0.0]).softmax(1)", raises(IndexRangeError, "axis 1")),
    ("x = Tensor([0.0, 0.0]); x.softmax()[0].gradient(x)", [[0.25, -0.25]]),
  ],
  "softmin": [
    ("Tensor([0.0, inf]).softmin()", [1.0, 0.0]), ("Tensor([-1000.0, -1000.0]).softmin()", [0.5, 0.5]),
    ("Tensor([0, 0, 0, 0]).softmin()", [0.25] * 4),
    ("Tensor([[0.0], [0.0]]).softmin(0)", [[0.5], [0.5]]), ("Tensor([0.0, 0.69314718]).softmin()", [2 / 3, 1 / 3]),
  ],
  "log_softmax": [
    ("Tensor([1000.0, 1000.0]).log_softmax()", [-0.69314718, -0.69314718]), ("Tensor([-inf, 0.0]).log_softmax()", [-inf, 0.0]),
    ("Tensor([0.0, -200.0]).log_softmax()", [0.0, -200.0]), ("Tensor(3.0).log_softmax()", 0.0), ("Tensor([[0.0, 0.0]]).log_softmax(0)", [[0.0, 0.0]]),
    ("Tensor([0, 0]).log_softmax(dtype=dtypes.float64)", like([-0.6931471805599453] * 2, dtype=dtypes.float64)),
    ("x = Tensor([0.0, 0.0]); x.log_softmax()[0].gradient(x)", [[0.5, -0.5]]),
  ],
  "layernorm": [
    ("Tensor([[1.0, 3.0], [5.0, 5.0]]).layernorm(eps=0.0)[0]", [-1.0, 1.0]), ("Tensor([5.0, 5.0]).layernorm()", [0.0, 0.0]),
    ("Tensor([[1.0, 3.0], [1.0, 3.0]]).layernorm((0, 1), eps=0.0)", [[-1.0, 1.0], [-1.0, 1.0]]), ("Tensor([1, 3]).layernorm(eps=0.0)", [-1.0, 1.0]),
    ("Tensor([0.0, 2.0]).layernorm(eps=3.0)", [-0.5, 0.5]), ("Tensor([1.0, 3.0]).half().layernorm(eps=0.0)", like([-1.0, 1.0], dtype=dtypes.float16)),
    ("Tensor([[2.0], [4.0]]).layernorm(0, eps=0.0)", [[-1.0], [1.0]]),
  ],
  "batchnorm": [
    ("Tensor([[1.0, 2.0]]).batchnorm(None, None, Tensor([1.0, 0.0]), Tensor([1.0, 0.5]))", [[0.0, 1.0]]),
    ("Tensor([[1.0, 2.0]]).batchnorm(Tensor([2.0, 3.0]), Tensor([10.0, 20.0]), Tensor([0.0, 0.0]), Tensor([1.0, 1.0]))", [[12.0, 26.0]]),
    ("Tensor([[1.0], [3.0]]).batchnorm(None, None, Tensor([2.0]), Tensor([[1.0], [0.5]]))", [[-1.0], [0.5]]),
    ("Tensor([[1.0], [3.0]]).batchnorm(None, Tensor([1.0, 2.0]), Tensor([1.0, 1.0]), Tensor([1.0, 1.0]), axis=0)", [[1.0], [4.0]]),
    ("Tensor([[1.0]]).batchnorm(None, None, 0.0, Tensor([1.0]))", raises(ArgumentError, "wants a Tensor")),
  ],
}
