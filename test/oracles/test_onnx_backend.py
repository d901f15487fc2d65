"""ONNX's backend tests, a sixteenth in each of sixteen cases; the command's own judgement; the recorded counts."""
from __future__ import annotations
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the tests are in the package onnx")
pytest.importorskip("ml_dtypes", reason="the package onnx has results of its types")

sys.path.insert(0, str(Path(__file__).parent))

from onnx_backend import RECORD, Case, Judge, Outcome, counts, judge

RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))
SHARES = 16

@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(SHARES))
def test_a_share_passes(first: int) -> None:
  """Continuous integration runs a quarter of the cases that are marked slow, by rotation."""
  outcomes = judge([], first, SHARES)
  assert [o for o in outcomes if o.kind == "wrong"] == []
  left_out = sum(o.kind != "passed" for o in outcomes)
  assert left_out <= RECORDED["tests"] - RECORDED["passed"], outcomes

def case(op: str, inputs: list[Any], outputs: list[Any], **attributes: Any) -> Case:
  import onnx
  from onnx import helper
  def described(name: str, x: Any) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
  names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))]
  graph = helper.make_graph([helper.make_node(op, names, results, **attributes)], "g",
                            list(map(described, names, inputs)), list(map(described, results, outputs)))
  model = helper.make_model(graph, opset_imports=[onnx.OperatorSetIdProto(version=22)])
  return Case(f"test_{op.lower()}", model, [(inputs, outputs)], 1e-3, 1e-7)

def test_judgement() -> None:
  x = np.array([1.0, 2.0], np.float32)
  assert Judge(case("Add", [x, x], [x * 2])).outcome().kind == "passed"
  assert Judge(case("Add", [x, x], [x])).outcome().kind == "wrong"
  assert Judge(case("Add", [x, x], [np.array([2.0, 4e-7], np.float32)])).outcome().kind == "wrong"
  assert Judge(case("Sub", [x, x - 4e-7], [x * 0])).outcome().kind == "wrong"
  wide, tiny = np.array([1.0, 1e-9], np.float32), np.array([0.0, 2e-7], np.float32)
  assert Judge(case("Add", [wide, tiny], [wide])).outcome().kind == "rounded"
  assert "shape" in Judge(case("Add", [x, x], [x.reshape(1, 2)])).outcome().reason
  assert "type" in Judge(case("Add", [x, x], [(x * 2).astype(np.float64)])).outcome().reason
  assert Judge(case("Add", [x, np.zeros(3, np.float32)], [x])).outcome().kind == "failed"
  assert Judge(case("NoSuchOperator", [x], [x])).outcome().kind == "absent"

def test_judgement_of_random_numbers() -> None:
  p = np.array([0.1, 0.5, 0.9])
  assert Judge(case("Bernoulli", [p], [p])).outcome().kind == "passed"
  judged = Judge(case("Bernoulli", [p], [p]))
  with pytest.raises(AssertionError, match="deviations off"): judged.check_mean(np.array([0.9]), np.array([0.1]), 64)
  x, ratio, training = np.ones((3, 4), np.float32), np.array(0.75, np.float32), np.array(True)
  found = Judge(case("Dropout", [x, ratio, training], [x])._replace(name="test_training_dropout")).outcome()
  assert found.kind == "passed", found.reason

def test_counts() -> None:
  found = counts([Outcome("a", "passed"), Outcome("b", "wrong"), Outcome("c", "absent"), Outcome("d", "passed")])
  assert (found["tests"], found["passed"], found["wrong"], found["failed"], found["absent"]) == (4, 2, 1, 0, 1)

def test_the_record() -> None:
  assert RECORDED["tests"] == sum(RECORDED[kind] for kind in ("passed", "rounded", "wrong", "failed", "absent"))
