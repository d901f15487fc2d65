"""OnnxPBParser and OnnxRunner: checks of a model, values that depend on shapes, functions, TinyJit, and damaged
files."""
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.mutations import fuzz
from formats.onnx_writer import attribute, field, function, graph, model, node, single, tensor, value_info
from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.errors import ArgumentError, DTypeError, FileFormatError, MissingFileError, ShapeError
from tinyhw.helpers import GlobalCounters
from tinyhw.nn.onnx import OnnxPBParser, OnnxRunner, OpSetId

F32 = np.float32

def convnet() -> tuple[bytes, dict[str, Any]]:
  """Return a model of Conv, Relu, MaxPool, a reshape, Gemm and Softmax. Exporters write the reshape as Shape, Gather,
  Unsqueeze, Concat, Reshape."""
  rng = np.random.default_rng(1)
  w = {"w": rng.standard_normal((4, 1, 3, 3)).astype(F32), "b": rng.standard_normal(4).astype(F32), "zero": np.array(0),
       "minus": np.array([-1]),
       "axis": np.array([0]), "fc": rng.standard_normal((5, 36)).astype(F32), "fb": rng.standard_normal(5).astype(F32)}
  nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]), node("Relu", ["c"], ["r"]),
           node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), node("Shape", ["p"], ["s"]),
           node("Gather", ["s", "zero"], ["n"], axis=0), node("Unsqueeze", ["n", "axis"], ["n1"]),
           node("Concat", ["n1", "minus"], ["to"], axis=0),
           node("Reshape", ["p", "to"], ["f"]), node("Gemm", ["f", "fc", "fb"], ["g"], transB=1),
           node("Softmax", ["g"], ["y"], axis=1)]
  return model(graph(nodes, [value_info("x", "float32", ["n", 1, 6, 6])], ["y"], w)), w

def convnet_in_numpy(x: Any, w: dict[str, Any]) -> Any:
  padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
  windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
  c = np.maximum(np.einsum("nihwkl,oikl->nohw", windows, w["w"]) + w["b"].reshape(1, -1, 1, 1), 0)
  p = c.reshape(len(x), 4, 3, 2, 3, 2).max((3, 5)).reshape(len(x), -1)
  g = np.exp(p @ w["fc"].T + w["fb"])
  return g / g.sum(1, keepdims=True)

def test_a_network_computes_what_its_layers_do(engine: str) -> None:
  data, w = convnet()
  x = np.random.default_rng(2).standard_normal((2, 1, 6, 6)).astype(F32)
  found = OnnxRunner(data)({"x": Tensor(x)})
  assert list(found) == ["y"]
  np.testing.assert_allclose(found["y"].numpy(), convnet_in_numpy(x, w), rtol=2e-4, atol=1e-6)

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

def test_what_a_model_says_of_itself() -> None:
  runner = OnnxRunner(convnet()[0])
  assert runner.graph_inputs["x"].shape == ("n", 1, 6, 6) and runner.graph_inputs["x"].dtype is dtypes.float32
  assert runner.graph_outputs == ("y",) and runner.graph_name == "g" and runner.graph_values["b"].shape == (4,)
  assert runner.graph_nodes[0].op == "Conv" and runner.graph_nodes[0].opset_id == OpSetId("", 22)
  assert (runner.get_empty_input_data(sizes={"n": 3})["x"].shape == (3, 1, 6, 6)
          and runner.get_empty_input_data()["x"].shape == (1, 1, 6, 6))
  assert runner.to("PYTHON") is runner and runner.graph_values["b"].device == "PYTHON"
  assert runner(runner.get_empty_input_data())["y"].device == "PYTHON"

def test_the_parser_gives_dicts() -> None:
  found = OnnxPBParser(convnet()[0]).parse()
  assert (found["graph"]["initializer"][1]["parsed_tensor"].shape == (4,)
          and found["graph"]["input"][0]["parsed_type"].shape == ("n", 1, 6, 6))
  assert found["graph"]["node"][0]["parsed_node"].opts == {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}

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

def test_unknown_operators_are_all_named_before_anything_runs() -> None:
  nodes = [node("Nonsense", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Other", ["b"], ["y"], domain="com.acme")]
  with pytest.raises(ArgumentError, match=r"Nonsense \(ai.onnx, opset 22\), Other \(com.acme, opset 1\)"):
    OnnxRunner(model(graph(nodes, [value_info("x", "float32", [2])], ["y"])))

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

def test_a_name_that_nothing_computes_and_results_that_are_not_there() -> None:
  inputs = [value_info("x", "float32", [2])]
  with pytest.raises(FileFormatError,
                     match="'z', which nothing"):
    OnnxRunner(model(graph([node("Relu", ["z"], ["y"])], inputs, ["y"])))({"x": [1.0, 2.0]})
  with pytest.raises(FileFormatError, match="'y', which nothing"):
    OnnxRunner(model(graph([], inputs, ["y"])))({"x": [1.0, 2.0]})
  with pytest.raises(FileFormatError, match="names 2 results"):
    OnnxRunner(single("Relu", {"x": np.ones(2, F32)}, 2))({"x": [1.0, 2.0]})

def test_errors_name_the_node() -> None:
  with pytest.raises(ShapeError, match=r"'y0' \(MatMul\)"):
    OnnxRunner(single("MatMul", {"a": np.ones((2, 3), F32), "b": np.ones((2, 3), F32)}))(
    {"a": np.ones((2, 3), F32), "b": np.ones((2, 3), F32)})

def test_shape_arithmetic_runs_no_kernels() -> None:
  nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["h"]), node("Cast", ["h"], ["hf"], to=1),
           node("Mul", ["hf", "half"], ["hh"]),
           node("Floor", ["hh"], ["hi"]), node("Cast", ["hi"], ["hw"], to=7), node("Unsqueeze", ["hw", "zero"], ["hv"]),
           node("Concat", ["two", "hv"], ["to"], axis=0), node("Reshape", ["x", "to"], ["y"])]
  constants = {"one": np.array(1), "half": np.array(0.5, F32), "zero": np.array([0]), "two": np.array([2, 2])}
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [2, 7])], ["y", "to"], constants)))
  x = Tensor.zeros(2, 6).contiguous().realize()
  runner.graph_inputs["x"] = runner.graph_inputs["x"]._replace(shape=None)
  runner._graph.inputs["x"] = runner.graph_inputs["x"]
  GlobalCounters.reset()
  found = runner({"x": x})
  assert found["y"].shape == (2, 2, 3) and found["to"].tolist() == [2, 2, 3] and GlobalCounters.kernel_count == 0

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

def test_functions_of_a_model_with_attributes_of_the_call() -> None:
  scaled = node("LeakyRelu", ["a"], ["b"]) + field(5, field(1, "alpha") + field(21, "slope") + field(20, 1))
  body = [scaled, node("Add", ["b", "c"], ["d"])]
  functions = [function("own", "Leaky", ["a", "c"], ["d"], body)]
  nodes = [node("Leaky", ["x", "x"], ["y"], domain="own", slope=0.5), node("Leaky", ["x", "x"], ["z"], domain="own")]
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [2])], ["y", "z"]), functions=functions,
                            domains={"own": 1}))
  found = runner({"x": [-2.0, 4.0]})
  assert found["y"].tolist() == [-3, 8] and found["z"].numpy() == pytest.approx([-2.02, 8])

def test_functions_that_call_themselves_are_refused() -> None:
  functions = [function("own", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="own")])]
  with pytest.raises(FileFormatError, match="call each other"):
    OnnxRunner(model(graph([node("F", ["x"], ["y"], domain="own")], [value_info("x")], ["y"]), functions=functions))

@pytest.mark.slow
def test_functions_that_double_are_refused() -> None:
  functions = [function("own", f"F{i}", ["a"], ["b"], [node(f"F{i + 1}", ["a"], ["b"], domain="own")] * 8)
               for i in range(12)]
  with pytest.raises(FileFormatError, match="would make more than"):
    OnnxRunner(model(graph([node("F0", ["x"], ["y"], domain="own")], [value_info("x")], ["y"]), functions=functions))

def test_debug_prints_nodes(capsys: pytest.CaptureFixture[str]) -> None:
  OnnxRunner(single("Relu", {"x": np.ones(2, F32)}))({"x": [1.0, 2.0]}, debug=2)
  assert "(Relu): x=dtypes.float32(2,)" in capsys.readouterr().out

def test_four_bit_types_follow_inputs() -> None:
  nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"]), node("CastLike", ["x", "z"], ["c"])]
  zero = field(2, 22) + field(8, "z") + field(9, b"\x01")
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [4])], ["y", "c"],
                                  {"s": np.array(1.0, F32), "z": zero})))
  found = runner({"x": [-100.0, 2.0, 6.0, 100.0]})
  assert found["y"].tolist() == [-8, 3, 7, 7] and found["c"].tolist()[1:3] == [2, 6]

# ***** damaged files *****

def branching() -> bytes:
  then, other = graph([node("Add", ["x", "w"], ["t"])], [], ["t"]), graph([node("Mul", ["x", "w"], ["e"])], [], ["e"])
  body = graph([node("Add", ["v", "w"], ["v2"]), node("Identity", ["go"], ["go2"])],
               [value_info("i"), value_info("go"), value_info("v")],
               ["go2", "v2"])
  nodes = [node("If", ["c"], ["a"], then_branch=then, else_branch=other),
           node("Loop", ["n", "", "a"], ["y"], body=body)]
  return model(graph(nodes, [value_info("x", "float32", [2])], ["y"],
                     {"w": np.array([1.0, 2.0], F32), "c": np.array(True), "n": np.array(3)}))

def shapes() -> bytes:
  nodes = [node("Pad", ["x", "pads"], ["p"], mode="constant"), node("Slice", ["p", "starts", "ends"], ["s"]),
           node("Tile", ["s", "reps"], ["t"]),
           node("Resize", ["t", "", "scales"], ["r"], mode="linear"),
           node("ReduceSum", ["r", "axes"], ["y"], keepdims=0)]
  constants = {"pads": np.array([1, 0, 0, 1]), "starts": np.array([0, 1]), "ends": np.array([3, 4]),
               "reps": np.array([2, 1]),
               "scales": np.array([1.0, 2.0], F32), "axes": np.array([-1])}
  return model(graph(nodes, [value_info("x", "float32", [2, 3])], ["y"], constants))

def test_branches_and_loops_see_outer_names() -> None:
  assert OnnxRunner(branching())({"x": [1.0, 2.0]})["y"].tolist() == [5, 10]

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
