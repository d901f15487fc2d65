"""Narrow types follow the names of values."""
import numpy as np
import pytest

from formats.onnx_writer import field, function, graph, model, node, value_info
from tinyhw.errors import FileFormatError
from tinyhw.nn.onnx import OnnxRunner

F32 = np.float32
INT4 = 22

def zero(name: str = "z", number: int = INT4) -> bytes: return field(2, number) + field(8, name) + field(9, b"\x01")

def test_types_follow_constants() -> None:
  nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"]), node("CastLike", ["x", "z"], ["c"])]
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [4])], ["y", "c"],
                                  {"s": np.array(1.0, F32), "z": zero()})))
  found = runner({"x": [-100.0, 2.0, 6.0, 100.0]})
  assert found["y"].tolist() == [-8, 3, 7, 7] and found["c"].tolist()[1:3] == [2, 6]

def test_types_follow_moved_and_cast_values() -> None:
  nodes = [node("Unsqueeze", ["z", "axis"], ["z1"]), node("Squeeze", ["z1"], ["z2"]),
           node("QuantizeLinear", ["x", "s", "z2"], ["y"]),
           node("Cast", ["x"], ["k"], to=25), node("CastLike", ["x", "k"], ["c"])]
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [2])], ["y", "c"],
                                  {"s": np.array(1.0, F32), "z": zero(), "axis": np.array([0])})))
  found = runner({"x": [100.0, 5.0]})
  assert found["y"].tolist() == [7, 6] and found["c"].tolist() == [0, 1]

def test_types_of_a_wrong_kind_are_refused() -> None:
  with pytest.raises(FileFormatError, match="int is wanted"):
    OnnxRunner(model(graph([node("Cast", ["x"], ["y"], to=[22])], [value_info("x", "float32", [1])], ["y"])))

def test_types_enter_functions_and_branches() -> None:
  functions = [function("own", "Q", ["a", "b", "c"], ["d"], [node("QuantizeLinear", ["a", "b", "c"], ["d"])])]
  branch = graph([node("QuantizeLinear", ["x", "s", "z"], ["t"])], [], ["t"])
  nodes = [node("Q", ["x", "s", "z"], ["y"], domain="own"), node("If", ["on"], ["w"], then_branch=branch,
                                                                 else_branch=branch)]
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [1])], ["y", "w"],
                                  {"s": np.array(1.0, F32), "z": zero(), "on": np.array(True)}), functions=functions,
                            domains={"own": 1}))
  found = runner({"x": [100.0]})
  assert found["y"].tolist() == [7] and found["w"].tolist() == [7]
