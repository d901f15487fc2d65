"""OnnxRunner: its inputs and outputs, and TinyJit."""
import numpy as np
import pytest

from formats.onnx_models import convnet, convnet_in_numpy
from formats.onnx_writer import graph, model, node, value_info
from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.nn.onnx import OnnxRunner, OpSetId

F32 = np.float32

def test_a_network_computes_what_its_layers_do(engine: str) -> None:
  data, w = convnet()
  x = np.random.default_rng(2).standard_normal((2, 1, 6, 6)).astype(F32)
  found = OnnxRunner(data)({"x": Tensor(x)})
  assert list(found) == ["y"]
  np.testing.assert_allclose(found["y"].numpy(), convnet_in_numpy(x, w), rtol=2e-4, atol=1e-6)

def test_what_a_model_says_of_itself() -> None:
  runner = OnnxRunner(convnet()[0])
  assert runner.graph_inputs["x"].shape == ("n", 1, 6, 6) and runner.graph_inputs["x"].dtype is dtypes.float32
  assert runner.graph_outputs == ("y",) and runner.graph_name == "g" and runner.graph_values["b"].shape == (4,)
  assert runner.graph_nodes[0].op == "Conv" and runner.graph_nodes[0].opset_id == OpSetId("", 22)
  assert (runner.get_empty_input_data(sizes={"n": 3})["x"].shape == (3, 1, 6, 6)
          and runner.get_empty_input_data()["x"].shape == (1, 1, 6, 6))
  assert runner.to("PYTHON") is runner and runner.graph_values["b"].device == "PYTHON"
  assert runner(runner.get_empty_input_data())["y"].device == "PYTHON"

def test_inputs_are_checked() -> None:
  runner = OnnxRunner(model(graph([node("Add", ["a", "b"], ["y"])],
                                  [value_info("a", "float32", ["n", 2]), value_info("b", "float32", ["n", 2])],
                                  ["y"])))
  ok = Tensor.zeros(3, 2)
  assert runner({"a": ok, "b": [[1.0, 2.0]] * 3})["y"].shape == (3, 2)
  with pytest.raises(ArgumentError, match="'b' is missing"): runner({"a": ok})
  with pytest.raises(ArgumentError, match="no input 'c'"): runner({"a": ok, "b": ok, "c": ok})
  with pytest.raises(DTypeError, match="wants dtypes.float32"): runner({"a": ok, "b": ok.int()})
  with pytest.raises(ShapeError, match="3, 2, 1"): runner({"a": ok, "b": ok.reshape(3, 2, 1)})
  with pytest.raises(ShapeError, match="4 is not 3"): runner({"a": ok, "b": Tensor.zeros(4, 2)})
  with pytest.raises(ShapeError, match="3 is not 2"): runner({"a": Tensor.zeros(3, 3), "b": Tensor.zeros(3, 3)})

def test_a_second_call_with_other_shapes() -> None:
  data, w = convnet()
  runner = OnnxRunner(data)
  for n in (1, 3, 1):
    x = np.random.default_rng(n).standard_normal((n, 1, 6, 6)).astype(F32)
    np.testing.assert_allclose(runner({"x": Tensor(x)})["y"].numpy(), convnet_in_numpy(x, w), rtol=2e-4, atol=1e-6)

def test_under_tinyjit() -> None:
  data, w = convnet()
  runner = OnnxRunner(data)
  step = TinyJit(lambda x: runner({"x": x})["y"].realize())
  for seed in range(4):
    x = np.random.default_rng(seed).standard_normal((2, 1, 6, 6)).astype(F32)
    np.testing.assert_allclose(step(Tensor(x).realize()).numpy(), convnet_in_numpy(x, w), rtol=2e-4, atol=1e-6)
