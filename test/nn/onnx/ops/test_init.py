"""The folder's operators are registered with their domain."""
from tinyhw.nn.onnx import ops
from tinyhw.nn.onnx.operator import onnx_ops

def test_operators_are_registered() -> None:
  assert ops.__doc__
  assert {"Conv", "Add", "Gather", "Loop"} <= set(onnx_ops)
