"""Shapes and devices of tensor graph nodes, numbers and symbols."""
from __future__ import annotations
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, Variable, to_indices

device = UOp(Ops.DEVICE, arg="CPU")
buffer = UOp(Ops.BUFFER, dtypes.float32, (), (0, "CPU", 24))
x = UOp(Ops.RESHAPE, dtypes.float32, (buffer, *to_indices((4, 6))))
n = Variable("n", 1, 9)

def moved(op: Ops, *numbers: object, arg: object = None) -> UOp:
  return UOp(op, dtypes.float32, (x, *to_indices(numbers)), arg)  # type: ignore[arg-type]

def test_movement() -> None:
  assert buffer.shape == (24,) and x.shape == (4, 6) and x.base is buffer and x.size == 24
  assert moved(Ops.PERMUTE, arg=(1, 0)).shape == (6, 4) and moved(Ops.FLIP, arg=(0,)).shape == (4, 6)
  assert moved(Ops.PAD, 1, 2, 0, 0).shape == (7, 6) and moved(Ops.SHRINK, 1, 3, 2, 6).shape == (2, 4)
  assert moved(Ops.SHRINK, 1, 3, 2, 6).pairs == ((1, 3), (2, 6))
  assert moved(Ops.REDUCE_AXIS, arg=(Ops.ADD, (1,))).shape == (4, 1) and UOp(Ops.EXPAND, x.dtype,
                                                                             (x, *to_indices((4, 6)))).dims == (4, 6)

def test_leaves_and_the_rest() -> None:
  assert UOp.const(dtypes.float32, 1.0, "CPU").shape == () and UOp(Ops.IOTA, dtypes.int32,
                                                                   to_indices((7,))).shape == (7,)
  index = UOp(Ops.IOTA, dtypes.int32, to_indices((5,)))
  assert (UOp(Ops.GATHER, dtypes.float32, (buffer, index), 0).shape == (5,) and (x + x).shape == (4, 6)
          and (x < x).shape == (4, 6))
  for op in (Ops.CONTIGUOUS, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD): assert UOp(op, x.dtype, (x,)).shape == (4, 6)
  assert UOp(Ops.ASSIGN, x.dtype, (x, x + x)).shape == (4, 6) and UOp.sink(x).shape == () and n.bind(3).shape == ()

def test_symbolic_sizes() -> None:
  symbolic = UOp(Ops.SHRINK, dtypes.float32, (x, *to_indices((0, 4, 0, n))))
  assert symbolic.shape == (4, n) and symbolic.size == 36
  assert UOp(Ops.PAD, dtypes.float32, (symbolic, *to_indices((0, 0, 1, 2)))).shape[1] is n + 3
  assert UOp(Ops.SHRINK, dtypes.float32, (x, *to_indices((n, n + 2, 0, 6)))).shape == (2, 6)
  bound = n.bind(3)
  assert UOp(Ops.SHRINK, dtypes.float32, (x, *to_indices((0, 4, 0, bound)))).shape == (4, bound)

def test_device() -> None:
  assert x.device == "CPU" and device.device == "CPU" and UOp.const(dtypes.float32, 1.0).device is None
  assert UOp.const(dtypes.float32, 1.0, "PYTHON").device == "PYTHON"
  two = ("CPU", "CPU:1")
  part = UOp(Ops.BUFFER, dtypes.float32, (), (9, two, 4))
  assert part.device == two and UOp(Ops.MULTI, dtypes.float32, (part,),
                                    0).shape == (8,) and UOp(Ops.MULTI, dtypes.float32, (part,)).shape == (4,)
  stack, swap = (UOp(Ops.COPY, dtypes.float32, (part, UOp(Ops.DEVICE, arg=two)), how) for how in ("stack", "swap"))
  assert stack.shape == (2, 4) and swap.shape == (4,) and UOp(Ops.COPY, dtypes.float32,
                                                              (stack, UOp(Ops.DEVICE, arg=two)), "split").shape == (4,)
  assert (UOp(Ops.COPY, x.dtype, (x, UOp(Ops.DEVICE, arg="PYTHON"))).device == "PYTHON"
          and (UOp.const(dtypes.float32, 1.0) + x).device == "CPU")
