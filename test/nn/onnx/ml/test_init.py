"""The folder's operators are registered with their domain."""
from tinyhw.nn.onnx import ml
from tinyhw.nn.onnx.operator import onnx_ops

def test_operators_are_registered() -> None:
  assert ml.__doc__
  assert ("ai.onnx.ml", 1) in onnx_ops["Binarizer"].versions
