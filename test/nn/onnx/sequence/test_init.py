"""The folder's operators are registered."""
from tinyhw.nn.onnx import sequence
from tinyhw.nn.onnx.operator import onnx_ops

def test_operators_are_registered() -> None:
  assert sequence.__doc__
  assert {"Attention", "LSTM", "LinearAttention", "SkipLayerNormalization"} <= set(onnx_ops)
