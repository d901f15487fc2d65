"""Values that are not computed before a node uses them."""
import numpy as np
import pytest

from formats.onnx_writer import graph, model, node, value_info
from tinyhw.errors import FileFormatError
from tinyhw.nn.onnx import OnnxRunner

INPUTS = [value_info("x", "float32", [2])]

def loaded(nodes: list[bytes], results: list[str]) -> OnnxRunner:
  return OnnxRunner(model(graph(nodes, INPUTS, results)))

@pytest.mark.parametrize("nodes, results, why", [
  ([node("Relu", ["z"], ["y"])], ["y"], "uses 'z', which nothing before it computes"),
  ([node("Relu", ["x"], ["y"])], ["z"], "the graph 'g' uses 'z', which nothing"),
  ([node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])], ["y"],
   r"'a', which node 'a' \(Relu\) computes later; sort"),
  ([node("Add", ["x", "y"], ["y"])], ["y"], "'y', which is its own result"),
  ([node("Add", ["x", "c"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["c"])], ["c"],
   "'c', which depends on the node itself: c <- b <- a; a graph has no cycles")])
def test_refusals_when_the_model_is_read(nodes: list[bytes], results: list[str], why: str) -> None:
  with pytest.raises(FileFormatError, match=why): loaded(nodes, results)

def test_branches_see_only_what_is_before_them() -> None:
  def branch(name: str) -> bytes: return graph([node("Relu", [name], ["t"])], [], ["t"])
  def chosen(name: str) -> list[bytes]:
    return [node("Constant", [], ["on"], value=np.array(True)), node("Neg", ["x"], ["a"]),
            node("If", ["on"], ["y"], then_branch=branch(name), else_branch=branch("x")), node("Neg", ["a"], ["b"])]
  assert loaded(chosen("a"), ["y"])({"x": [-1.0, 2.0]})["y"].tolist() == [1, 0]
  with pytest.raises(FileFormatError, match="'b', which nothing before it computes"): loaded(chosen("b"), ["y"])
