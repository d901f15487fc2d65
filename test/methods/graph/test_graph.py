"""Builders store the shapes that would be computed, and omit nodes that do nothing."""
import numpy as np
import pytest

from test.helpers import same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.shape import shape_of

def test_stored_shapes_are_right():
  u = Tensor(np.zeros((2, 3, 4), np.float32)).uop
  built = [graph.reshape(u, (6, 4)), graph.expand(graph.reshape(u, (1, 2, 3, 4)), (5, 2, 3, 4)),
           graph.permute(u, (2, 0, 1)), graph.flip(u, (1,)),
    graph.cast(u, dtypes.int8),
           graph.iota(5, dtypes.int32, None), graph.reduce(u, Ops.ADD, (0, 2)), graph.add(u, u),
           graph.compare(Ops.CMPLT, u, u),
           graph.contiguous(u), graph.detach(u)]
  for node in built: assert node.shape == shape_of(node), node

def test_what_does_nothing_is_left_out():
  u = Tensor(np.zeros((2, 3), np.float32)).uop
  for same_u in (graph.reshape(u, (2, 3)), graph.expand(u, (2, 3)), graph.permute(u, (0, 1)), graph.flip(u, ()),
                 graph.pad(u, [(0, 0), (0, 0)]),
    graph.shrink(u, [(0, 2), (0, 3)]),
                 graph.cast(u, dtypes.float32), graph.reduce(u, Ops.ADD, ()), graph.sum_to(u, (2, 3))):
    assert same_u is u

def test_constants():
  assert graph.full((2, 2), dtypes.float32, 1.0) is graph.full((2, 2), dtypes.float32, 1.0)
  same(Tensor(graph.full((2,), dtypes.uint8, -1)), np.array([255, 255], np.uint8))
  assert str(Tensor(graph.full((1,), dtypes.float32, -0.0)).tolist()) == "[-0.0]"
  assert graph.full((1,), dtypes.int32, 1) is not graph.full((1,), dtypes.bool, 1)

def test_sums_and_positions():
  x = np.arange(6, dtype=np.float32).reshape(2, 3)
  same(Tensor(graph.sum_to(Tensor(x).uop, (1, 3))), x.sum(0, keepdims=True))
  same(Tensor(graph.sum_to(Tensor(x).uop, ())), x.sum())
  same(Tensor(graph.positions(Tensor(x).uop, 1)), np.array([[0, 1, 2]] * 2, np.int32))

@pytest.mark.parametrize("dtype, wide", [("bool", "int32"), ("int8", "int32"), ("uint16", "uint32"),
                                         ("uint64", "uint64"), ("float16", "float32"),
  ("fp8e4m3", "float32"),
                                         ("float64", "float64")])
def test_accumulators(dtype, wide): assert graph.accumulator(getattr(dtypes, dtype)) is getattr(dtypes, wide)

def test_shapes_that_broadcast():
  n = UOp.variable("n", 1, 4)
  assert graph.broadcast_shape("add", (3, 1), (4,), ()) == (3,
                                                            4) and graph.broadcast_shape("add", (0, 1), (3,)) == (0, 3)
  assert graph.broadcast_shape("add", (n, 1), (1, 3)) == (n, 3) and graph.equal(n + 1, 1 + n) and not graph.equal(n, 3)
  with pytest.raises(ShapeError, match=r"axis -1 is n and 3"): graph.broadcast_shape("add", (2, n), (3,))

def test_axes():
  assert graph.axis_of(-1, 3) == 2 and graph.axes_of((2, -3), 3) == (0, 2)
  with pytest.raises(IndexRangeError, match="the tensor has 3 axes; use -3 to 2"): graph.axis_of(3, 3)
  with pytest.raises(ArgumentError, match="an axis is a whole number"): graph.axis_of("a", 3)

# ***** indices *****

PLACES = {   # of a vector with 2 * k elements: functions that return indices, or compute with them
  "argmax": lambda x: x.argmax(), "argmin": lambda x: x.argmin(0), "sort": lambda x: x.sort()[1],
  "argsort": lambda x: x.argsort(descending=True),
  "topk": lambda x: x.topk(3)[1], "cummax": lambda x: x.cummax()[1], "cummin": lambda x: x.cummin()[1],
  "nonzero": lambda x: x.nonzero(size=2),
  "max_pool2d": lambda x: x.reshape(1, 1, -1).max_pool2d((2,), return_indices=True)[1],
  "argmax of rows": lambda x: x.reshape(-1, 2).argmax(),
}
USES = {
  "scatter": lambda x: x.scatter(0, Tensor([1, 0], dtype="uint8"), Tensor([5.0, 6.0])),
  "tril": lambda x: x.reshape(2, -1).tril(),
  "scatter_reduce": lambda x: x.scatter_reduce(0, Tensor([1, 1]), Tensor([5.0, 6.0]), "mean"),
  "diag": lambda x: x.diag(),
  "cross_entropy": lambda x: x.reshape(2, -1).cross_entropy(Tensor([0, 1])),
  "one_hot": lambda x: x.cast("int8").one_hot(4),
  "masked_select": lambda x: x.masked_select(x > 0, size=3), "take": lambda x: x[Tensor([0, -1], dtype="int8")],
  "take two": lambda x: x.reshape(2, -1)[Tensor([0, 1]), Tensor([0, -1])],
  "gather": lambda x: x.gather(0, Tensor([1, 1])).sum().gradient(x)[0],
  "interpolate": lambda x: x.reshape(1, -1).interpolate((5,), "nearest"), "cumsum": lambda x: x.cumsum(),
  "arange": lambda x: x.arange(5, dtype="float64"),
}

@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_places_beyond_32_bits_are_of_64(name):
  """The tensors are never computed. With fewer elements, indices have the default integer type."""
  def places(n): return PLACES[name](Tensor([1.0]).expand(n)).dtype
  assert places(100) is dtypes.int32 and places(2 ** 31) is dtypes.int64
  assert name in ("argsort", "sort", "topk") or places(2 ** 31 - 2) is dtypes.int32    # a sort pads to a power of two

@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLACES, *USES])
def test_places_of_64_bits_are_the_same(name, monkeypatch):
  """Indices of 64 bits give the same results: few elements are treated as too many for 32 bits."""
  f, x = {**PLACES, **USES}[name], Tensor([0.0, 3.0, -1.0, 2.0, 3.0, 1.0])
  want = f(x).tolist()
  monkeypatch.setattr(graph, "place_type", lambda *counts, least=None: dtypes.int64)
  assert f(x).tolist() == want

@pytest.mark.slow
def test_places_that_the_default_integer_does_not_hold():
  before = dtypes.default_int
  try:
    dtypes.default_int = dtypes.int8
    x = Tensor.arange(200, dtype="int32")
    assert x[:100].argmax().dtype is dtypes.int8 and (x.argmax().dtype, x.argmax().item()) == (dtypes.int32, 199)
  finally: dtypes.default_int = before

@pytest.mark.slow
@pytest.mark.parametrize("kind", ("int8", "uint8"))
def test_narrow_indices_of_long_axes(kind):
  """Index 256 is not index 0."""
  x = Tensor.rand(2, 300).realize()
  index, wide = Tensor([[0, 44], [3, 100]], dtype=kind), Tensor([[0, 44], [3, 100]])
  narrow_grad, wide_grad = (x.gather(1, i).sum().gradient(x)[0].tolist() for i in (index, wide))
  assert narrow_grad == wide_grad
  for loss in (Tensor.cross_entropy, Tensor.sparse_categorical_crossentropy, Tensor.nll_loss):
    assert loss(x, index[:, 0]).item() == loss(x, wide[:, 0]).item()
