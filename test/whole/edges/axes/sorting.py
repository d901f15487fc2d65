"""Sorting: ties keep their order, NaN is the largest, no elements give no elements."""
from math import inf, nan

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError

EDGES: dict[str, list[Case]] = {
  "sort": [
    ("Tensor([]).sort()", (like([], dtypes.float32), like([], dtypes.int32))),
    ("Tensor(5).sort()", (5, 0)),
    ("Tensor([7]).sort()", ([7], [0])),
    ("Tensor([2.0, nan, -inf, inf, 1.0]).sort()", ([-inf, 1.0, 2.0, inf, nan], [2, 4, 0, 3, 1])),
    ("Tensor([2.0, nan, -inf, nan]).sort(descending=True)", ([nan, nan, 2.0, -inf], [1, 3, 0, 2])),
    ("Tensor([0.0, -0.0, 0.0, -1.0]).sort()", ([-1.0, 0.0, -0.0, 0.0], [3, 0, 1, 2])),
    ("Tensor([1, 0, 1, 0]).sort(descending=True)", ([1, 1, 0, 0], [0, 2, 1, 3])),
    ("Tensor([True, False, True]).sort()", ([False, True, True], [1, 0, 2])),
    ("Tensor([3, 255, 0], dtype=dtypes.uint8).sort()", (like([0, 3, 255], dtypes.uint8), [2, 0, 1])),
    ("Tensor([1, -128, 127], dtype=dtypes.int8).sort()", (like([-128, 1, 127], dtypes.int8), [1, 0, 2])),
    ("Tensor([2**63 - 1, -2**63, 0], dtype=dtypes.int64).sort()",
     (like([-2**63, 0, 2**63 - 1], dtypes.int64), [1, 2, 0])),
    ("Tensor([2**64 - 1, 1, 2**63], dtype=dtypes.uint64).sort()",
     (like([1, 2**63, 2**64 - 1], dtypes.uint64), [1, 2, 0])),
    ("Tensor([[3, 1], [2, 4]]).sort(0)", ([[2, 1], [3, 4]], [[1, 0], [0, 1]])),
    ("Tensor([[3, 1], [2, 4]]).sort(dim=-2)", ([[2, 1], [3, 4]], [[1, 0], [0, 1]])),
    ("Tensor([[3, 1], [2, 4]]).T.sort()", ([[2, 3], [1, 4]], [[1, 0], [0, 1]])),
    ("Tensor([3, 1, 2]).flip(0).sort()", ([1, 2, 3], [1, 0, 2])),
    ("Tensor([[2]]).expand(1, 3).sort()", ([[2, 2, 2]], [[0, 1, 2]])),
    ("Tensor.empty(2, 0).sort()", (like([[], []]), like([[], []], dtypes.int32))),
    ("Tensor.empty(0, 2).sort(1)", (like([], shape=(0, 2)), like([], dtypes.int32, (0, 2)))),
    ("x = Tensor([3.0, 1.0, 2.0]); (x.sort()[0] * Tensor([1.0, 10.0, 100.0])).sum().gradient(x)", [[100.0, 1.0, 10.0]]),
    ("Tensor([1, 2]).sort(1)", raises(IndexRangeError, "axis 1")),
    ("Tensor([1, 2]).sort(-2)", raises(IndexRangeError, "axis -2")),
  ],
  "argsort": [
    ("Tensor([]).argsort()", like([], dtypes.int32)),
    ("Tensor(5).argsort()", 0),
    ("Tensor([1.0, nan, -1.0, nan]).argsort()", [2, 0, 1, 3]),
    ("Tensor([1.0, nan, -1.0, nan]).argsort(descending=True)", [1, 3, 0, 2]),
    ("Tensor([5, 5, 5]).argsort(descending=True)", [0, 1, 2]),
    ("Tensor([[1], [0]]).argsort(0)", [[1], [0]]),
    ("Tensor([[1], [0]]).argsort(-1)", [[0], [0]]),
    ("Tensor([65504.0, inf, 6e-8, -0.0], dtype=dtypes.float16).argsort()", [3, 2, 0, 1]),
    ("Tensor([2.0, 1.0, nan], dtype=dtypes.bfloat16).argsort()", [1, 0, 2]),
    ("Tensor([[1, 2]]).argsort(2)", raises(IndexRangeError, "axis 2")),
  ],
  "topk": [
    ("Tensor([3, 1, 2]).topk(0)", (like([], dtypes.int32), like([], dtypes.int32))),
    ("Tensor([3, 1, 2]).topk(3, largest=False)", ([1, 2, 3], [1, 2, 0])),
    ("Tensor(4.0).topk(1)", (4.0, 0)),
    ("Tensor([]).topk(0)", ([], like([], dtypes.int32))),
    ("Tensor([2, 9, 9, 2]).topk(3)", ([9, 9, 2], [1, 2, 0])),
    ("Tensor([1.0, nan, inf]).topk(2)", ([nan, inf], [1, 2])),
    ("Tensor([1.0, nan, -inf]).topk(2, largest=False)", ([-inf, 1.0], [2, 0])),
    ("Tensor([[1, 5], [7, 2]]).topk(1, dim=0)", ([[7, 5]], [[1, 0]])),
    ("Tensor([[1, 5], [7, 2]]).topk(1, -2)", ([[7, 5]], [[1, 0]])),
    ("Tensor([False, True]).topk(1)", ([True], [1])),
    ("Tensor([1, 2]).topk(3)", raises(ArgumentError, "cannot take the top 3")),
    ("Tensor([1, 2]).topk(-1)", raises(ArgumentError, "cannot take the top -1")),
    ("Tensor([1, 2]).topk(1.5)", raises(ArgumentError, "k is a whole number, not 1.5")),
    ("Tensor(4.0).topk(2)", raises(ArgumentError, "cannot take the top 2")),
    ("Tensor([1, 2]).topk(1, 1)", raises(IndexRangeError, "axis 1")),
    ("x = Tensor([1.0, 3.0, 3.0]); x.topk(2)[0].sum().gradient(x)", [[0.0, 1.0, 1.0]]),
  ],
}
