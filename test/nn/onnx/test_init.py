"""The package's names."""
from tinyhw.nn import onnx

def test_names() -> None:
  assert {"OnnxRunner", "OnnxPBParser", "onnx_ops", "Operator", "OnnxValue", "OnnxNode", "OpSetId"} <= set(vars(onnx))
