"""Graphs of a model: checks, values that depend on shapes, functions, branches."""
import numpy as np
import pytest

from formats.onnx_models import branching
from formats.onnx_writer import field, function, graph, model, node, single, value_info
from tinyhw import Tensor
from tinyhw.errors import ArgumentError, FileFormatError, ShapeError
from tinyhw.helpers import GlobalCounters
from tinyhw.nn.onnx import OnnxRunner

F32 = np.float32

def test_unknown_operators_are_all_named_before_anything_runs() -> None:
  nodes = [node("Nonsense", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Other", ["b"], ["y"], domain="com.acme")]
  with pytest.raises(ArgumentError, match=r"Nonsense \(ai.onnx, opset 22\), Other \(com.acme, opset 1\)"):
    OnnxRunner(model(graph(nodes, [value_info("x", "float32", [2])], ["y"])))

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

def test_branches_and_loops_see_outer_names() -> None:
  assert OnnxRunner(branching())({"x": [1.0, 2.0]})["y"].tolist() == [5, 10]
