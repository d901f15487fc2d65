"""Builders: the shapes that they store are the ones that would be computed, and what does nothing is left out."""
import numpy as np
import pytest

from test.helpers import same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, IndexRangeError, ShapeError
from tinyhw.methods import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.shape import shape_of

def test_stored_shapes_are_right():
  u = Tensor(np.zeros((2, 3, 4), np.float32)).uop
  built = [graph.reshape(u, (6, 4)), graph.expand(graph.reshape(u, (1, 2, 3, 4)), (5, 2, 3, 4)), graph.permute(u, (2, 0, 1)), graph.flip(u, (1,)),
    graph.cast(u, dtypes.int8),
           graph.iota(5, dtypes.int32, None), graph.reduce(u, Ops.ADD, (0, 2)), graph.add(u, u), graph.compare(Ops.CMPLT, u, u),
           graph.contiguous(u), graph.detach(u)]
  for node in built: assert node.shape == shape_of(node), node

def test_what_does_nothing_is_left_out():
  u = Tensor(np.zeros((2, 3), np.float32)).uop
  for same_u in (graph.reshape(u, (2, 3)), graph.expand(u, (2, 3)), graph.permute(u, (0, 1)), graph.flip(u, ()), graph.pad(u, [(0, 0), (0, 0)]),
    graph.shrink(u, [(0, 2), (0, 3)]),
                 graph.cast(u, dtypes.float32), graph.reduce(u, Ops.ADD, ()), graph.sum_to(u, (2, 3))): assert same_u is u

def test_constants():
  assert graph.full((2, 2), dtypes.float32, 1.0) is graph.full((2, 2), dtypes.float32, 1.0)
  same(Tensor(graph.full((2,), dtypes.uint8, -1)), np.array([255, 255], np.uint8))
  assert str(Tensor(graph.full((1,), dtypes.float32, -0.0)).tolist()) == "[-0.0]" and graph.full((1,), dtypes.int32, 1) is not graph.full((1,),
    dtypes.bool, 1)

def test_sums_and_positions():
  x = np.arange(6, dtype=np.float32).reshape(2, 3)
  same(Tensor(graph.sum_to(Tensor(x).uop, (1, 3))), x.sum(0, keepdims=True))
  same(Tensor(graph.sum_to(Tensor(x).uop, ())), x.sum())
  same(Tensor(graph.positions(Tensor(x).uop, 1)), np.array([[0, 1, 2]] * 2, np.int32))

@pytest.mark.parametrize("dtype, wide", [("bool", "int32"), ("int8", "int32"), ("uint16", "uint32"), ("uint64", "uint64"), ("float16", "float32"),
  ("fp8e4m3", "float32"),
                                         ("float64", "float64")])
def test_accumulators(dtype, wide): assert graph.accumulator(getattr(dtypes, dtype)) is getattr(dtypes, wide)

def test_shapes_that_broadcast():
  n = UOp.variable("n", 1, 4)
  assert graph.broadcast_shape("add", (3, 1), (4,), ()) == (3, 4) and graph.broadcast_shape("add", (0, 1), (3,)) == (0, 3)
  assert graph.broadcast_shape("add", (n, 1), (1, 3)) == (n, 3) and graph.equal(n + 1, 1 + n) and not graph.equal(n, 3)
  with pytest.raises(ShapeError, match=r"axis -1 is n and 3"): graph.broadcast_shape("add", (2, n), (3,))

def test_axes():
  assert graph.axis_of(-1, 3) == 2 and graph.axes_of((2, -3), 3) == (0, 2)
  with pytest.raises(IndexRangeError, match="the tensor has 3 axes; use -3 to 2"): graph.axis_of(3, 3)
  with pytest.raises(ArgumentError, match="an axis is a whole number"): graph.axis_of("a", 3)
