"""OnnxPBParser: its dicts, what it refuses, and damaged files."""
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.mutations import fuzz
from formats.onnx_models import branching, convnet, convnet_in_numpy, shapes
from formats.onnx_writer import attribute, field, graph, model, node, single, tensor, value_info
from tinyhw import Tensor
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.nn.onnx import OnnxPBParser, OnnxRunner

F32 = np.float32

def test_a_model_is_a_path_bytes_or_a_tensor(tmp_path: Path) -> None:
  data, w = convnet()
  path = tmp_path / "model.onnx"
  path.write_bytes(data)
  x = np.ones((1, 1, 6, 6), dtype=F32)
  for source in (path, str(path), data, bytearray(data), Tensor(data)):
    np.testing.assert_allclose(OnnxRunner(source)({"x": x})["y"].numpy(), convnet_in_numpy(x, w), rtol=2e-4)
  with pytest.raises(MissingFileError): OnnxRunner(tmp_path / "none.onnx")
  for wrong in (tmp_path, 5, Tensor([1.0])):
    with pytest.raises(ArgumentError): OnnxRunner(wrong)  # type: ignore[arg-type]

def test_the_parser_gives_dicts() -> None:
  found = OnnxPBParser(convnet()[0]).parse()
  assert (found["graph"]["initializer"][1]["parsed_tensor"].shape == (4,)
          and found["graph"]["input"][0]["parsed_type"].shape == ("n", 1, 6, 6))
  assert found["graph"]["node"][0]["parsed_node"].opts == {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}

@pytest.mark.parametrize("data, why", [
  (b"", "no graph"), (single("Relu", {"x": np.ones(2, F32)}, axis=1), "'axis' is not supported"),
  (single("Add", {"x": np.ones(2, F32)}), "1 inputs"),
  (single("Cast", {"x": np.ones(2, F32)}), "lacks the attribute 'to'"),
  (single("Cast", {"x": np.ones(2, F32)}, to=1.5), "int is wanted"),
  (model(graph([node("Relu", ["x"], ["y"]) + field(5, field(1, "a") + field(20, 77))], [value_info("x")], ["y"])),
   "type 77"),
  (model(graph([node("Relu", ["x"], ["y"]) + field(5, field(1, "a") + field(20, 4))], [value_info("x")], ["y"])),
   "has no t"),
])
def test_models_that_are_none_are_refused(data: bytes, why: str) -> None:
  with pytest.raises(FileFormatError, match=why): OnnxRunner(data)

def test_damaged_models_raise_errors_of_ours() -> None:
  def read(data: bytes) -> Any:
    runner = OnnxRunner(data)
    inputs = runner.get_empty_input_data()
    if all(x.numel() < 10_000 for x in inputs.values()): runner(inputs)
  fuzz(read, {"convnet": convnet()[0], "branching": branching(), "shapes": shapes()})

def test_the_writer_of_this_test_agrees_with_the_onnx_package() -> None:
  onnx = pytest.importorskip("onnx")
  def with_types(graph: Any) -> None:
    """The checker wants types of outputs, and the writer leaves them out."""
    for info in graph.output:
      info.type.tensor_type.elem_type = 1
      info.type.tensor_type.shape.SetInParent()
    for inner in graph.node:
      for a in inner.attribute:
        if a.HasField("g"): with_types(a.g)
  for data in (convnet()[0], branching(), shapes()):
    model = onnx.load_model_from_string(data)
    with_types(model.graph)
    onnx.checker.check_model(model)
  assert onnx.numpy_helper.to_array(onnx.TensorProto.FromString(tensor(np.arange(3)))).tolist() == [0, 1, 2]
  assert onnx.AttributeProto.FromString(attribute("a", [1.5])).floats[0] == 1.5
