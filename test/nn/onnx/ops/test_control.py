"""If, Loop, Scan, sequences and optional values."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import graph, model, node, value_info
from tinyhw import Tensor
from tinyhw.errors import TinyError
from tinyhw.nn.onnx import OnnxRunner

F32 = np.float32

def compute(nodes: list[bytes], outputs: list[str], constants: dict[str, Any], **inputs: Any) -> Any:
  given = [value_info(k, np.asarray(v).dtype.name, np.asarray(v).shape) for k, v in inputs.items()]
  found = OnnxRunner(model(graph(nodes, given, outputs, constants)))({k: Tensor(np.asarray(v))
                                                                      for k, v in inputs.items()})
  return [x.tolist() for x in found.values()]

@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool) -> None:
  then, other = graph([node("Neg", ["x"], ["t"])], [], ["t"]), graph([node("Add", ["x", "x"], ["e"])], [], ["e"])
  nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
  for known in (True, False):
    constants, inputs = ({"c": np.array(condition)}, {}) if known else ({}, {"c": np.array(condition)})
    assert compute(nodes, ["y"], constants, x=np.array([1.0], F32), **inputs) == [[-1.0 if condition else 2.0]]

def loop_body() -> bytes:
  """Return s + i, until it is 6 or more, and s too."""
  nodes = [node("Cast", ["i"], ["f"], to=1), node("Add", ["s", "f"], ["s2"]), node("Less", ["s2", "six"], ["go2"]),
           node("Identity", ["s2"], ["out"])]
  return graph(nodes, [value_info("i"), value_info("go"), value_info("s")], ["go2", "s2", "out"],
               {"six": np.array(6, F32)})

def test_loops_end_by_count_or_condition() -> None:
  nodes = [node("Loop", ["n", "", "x"], ["y", "all"], body=loop_body())]
  assert compute(nodes, ["y", "all"], {"n": np.array(3)}, x=np.array(0, F32)) == [3.0, [0, 1, 3]]
  assert compute(nodes, ["y", "all"], {"n": np.array(100)}, x=np.array(0, F32)) == [6.0, [0, 1, 3, 6]]
  nodes = [node("Loop", ["", "c", "x"], ["y", "all"], body=loop_body())]
  assert compute(nodes, ["y", "all"], {"c": np.array(True)}, x=np.array(1, F32)) == [7.0, [1, 2, 4, 7]]

def test_loops_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.nn.onnx.ops.control.MOST_TURNS", 50)
  body = graph([node("Identity", ["go"], ["go2"])], [value_info("i"), value_info("go")], ["go2"])
  with pytest.raises(TinyError, match="more than 50 turns"): compute([node("Loop", ["n", "c"], [], body=body)], [],
      {"n": np.array(1 << 40), "c": np.array(True)})
  with pytest.raises(TinyError, match="no end"): compute([node("Loop", ["", ""], [], body=body)], [], {})

def test_scan_sums_along_an_axis() -> None:
  body = graph([node("Add", ["s", "v"], ["s2"]), node("Identity", ["s2"], ["o"])], [value_info("s"), value_info("v")],
               ["s2", "o"])
  x = np.arange(6, dtype=F32).reshape(2, 3)
  zero = {"z": np.zeros(2, F32)}
  found = compute([node("Scan", ["z", "x"], ["e", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1],
                        scan_output_axes=[1])], ["e", "y"],
                  zero, x=x)
  assert found == [x.sum(1).tolist(), x.cumsum(1).tolist()]
  back = compute([node("Scan", ["z", "x"], ["e", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1],
                       scan_output_axes=[-1],
                       scan_input_directions=[1], scan_output_directions=[1])], ["y"], zero, x=x)
  assert back == [x[:, ::-1].cumsum(1)[:, ::-1].tolist()]

def test_sequences() -> None:
  nodes = [node("SplitToSequence", ["x"], ["s"], axis=0), node("SequenceInsert", ["s", "w", "one"], ["t"]),
           node("SequenceErase", ["t", "zero"], ["u"]),
           node("SequenceAt", ["u", "minus"], ["last"]), node("SequenceLength", ["u"], ["n"]),
           node("ConcatFromSequence", ["u"], ["all"], axis=0),
           node("SequenceConstruct", ["w", "w"], ["v"]),
           node("ConcatFromSequence", ["v"], ["stacked"], axis=0, new_axis=1),
           node("SequenceEmpty", [], ["none"]), node("SequenceLength", ["none"], ["zero_length"])]
  constants = {"w": np.array([[9.0]], F32), "one": np.array(1), "zero": np.array(0), "minus": np.array(-1)}
  found = compute(nodes, ["last", "n", "all", "stacked", "zero_length"], constants, x=np.array([[1], [2], [3]], F32))
  assert found == [[[3]], 3, [[9], [2], [3]], [[[9]], [[9]]], 0]

def test_sequences_are_results_too_and_map() -> None:
  body = graph([node("Neg", ["v"], ["o"])], [value_info("v")], ["o"])
  nodes = [node("SplitToSequence", ["x", "parts"], ["s"]), node("SequenceMap", ["s"], ["m"], body=body)]
  runner = OnnxRunner(model(graph(nodes, [value_info("x", "float32", [3])], ["m"], {"parts": np.array([1, 2])})))
  assert [t.tolist() for t in runner({"x": [1.0, 2.0, 3.0]})["m"]] == [[-1], [-2, -3]]

def test_bad_sequences() -> None:
  at = [node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])]
  with pytest.raises(TinyError, match="outside of a sequence of 1"):
    compute(at, ["y"], {"i": np.array(1)}, x=np.zeros(2, F32))
  for nodes, why in [([node("SequenceLength", ["x"], ["y"])], "a sequence is wanted"),
                     ([node("SplitToSequence", ["x", "i"], ["y"])], "parts of 0"),
                     ([node("SequenceConstruct", ["x"], ["s"]), node("Relu", ["s"], ["y"])], "a tensor is wanted"),
                     ([node("SequenceEmpty", [], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
                      "empty sequence")]:
    with pytest.raises(TinyError, match=why): compute(nodes, ["y"], {"i": np.array(0)}, x=np.zeros(2, F32))

def test_optional_values() -> None:
  nodes = [node("Optional", ["x"], ["o"]), node("OptionalHasElement", ["o"], ["h"]),
           node("OptionalGetElement", ["o"], ["y"]),
           node("Optional", [], ["none"]), node("OptionalHasElement", ["none"], ["h2"])]
  assert compute(nodes, ["h", "y", "h2"], {}, x=np.array([1.0], F32)) == [True, [1.0], False]
  with pytest.raises(TinyError, match="missing"):
    compute([node("Optional", [], ["o"]), node("OptionalGetElement", ["o"], ["y"])], ["y"], {})
