"""Kernels of users in the form of lowered ones."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.engine.run.custom import finished, placeholder, written_slots
from tinyhw.errors import ArgumentError, IndexingError
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

def arguments() -> tuple[UOp, UOp]:
  return placeholder(0, graph.full((2, 3), dtypes.float32, 0)), placeholder(1, graph.full((2, 3, 4), dtypes.float32, 0))

def test_placeholder_has_shape_and_places():
  _, x = arguments()
  assert x.shape == (2, 3, 4) and x.size == 24 and x.dtype is dtypes.float32 and x.flatten().shape == (24,)
  assert x[1, 2, 3] is UOp.param(1, dtypes.float32, 24).index(23)

def test_finished():
  out, x = arguments()
  i, j, k = UOp.range(2, 7), UOp.range(3, 5), UOp.range(4, 1)
  made = finished(out[i, j].store((x[i, j, k] * 2).reduce(Ops.ADD, k)).end(i, j).sink(arg=KernelInfo(name="mine")))
  ranges = {r.arg for r in made.toposort() if r.op is Ops.RANGE}
  assert ranges == {(0, AxisType.LOOP), (1, AxisType.LOOP), (2, AxisType.REDUCE)}
  assert all(u.op is not Ops.RESHAPE for u in made.toposort()) and sum(u.op is Ops.LOAD for u in made.toposort()) == 1
  assert made.arg.name == "mine" and written_slots(made) == [0]

def test_groups_are_opened():
  out, _ = arguments()
  i, j = UOp.range(2, 0), UOp.range(3, 1)
  value = UOp.const(dtypes.float32, 1.0)
  assert len(finished(UOp.group(out[i, j].store(value), out[i, j].store(value + 1)).end(i, j).sink()).src) == 2

def test_refused():
  out, x = arguments()
  with pytest.raises(IndexingError, match="each axis"): out[0]
  with pytest.raises(IndexingError, match="argument of a kernel"): UOp.const(dtypes.int32, 1)[0]
  with pytest.raises(TypeError, match="iterable"): iter(out)
  with pytest.raises(ArgumentError, match="SINK"): finished(out)
  with pytest.raises(ArgumentError, match="not ended"): finished(out[0, UOp.range(3, 0)].store(x[0, 0, 0]).sink())
  with pytest.raises(ArgumentError, match="breaks a rule"): finished(out[1, 3].store(x[0, 0, 0]).sink())
