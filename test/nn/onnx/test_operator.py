"""Operators as functions. Their signatures say what a node must have."""
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx import onnx_ops
from tinyhw.nn.onnx.operator import Implementation, Ints, Known, as_numbers, as_tensor, known, of_numbers

def test_there_are_at_least_as_many_operators_as_promised() -> None:
  standard = [name for name, op in onnx_ops.items() if any(domain == "" for domain, _ in op.versions)]
  assert len(standard) >= 150, len(standard)

def test_operators_are_called_on_tensors() -> None:
  assert onnx_ops["Add"](Tensor([1, 2]), Tensor([3, 4])).tolist() == [4, 6]
  assert onnx_ops["Shape"](Tensor.zeros(2, 3)).tolist() == [2, 3]
  values, places = onnx_ops["TopK"](Tensor([1.0, 3.0, 2.0]), Tensor([2]), outputs=2)
  assert values.tolist() == [3, 2] and places.tolist() == [1, 2]
  with pytest.raises(ArgumentError, match="attribute 'axes'"): onnx_ops["Relu"](Tensor([1.0]), axes=1)
  with pytest.raises(ArgumentError, match="3 inputs"): onnx_ops["Add"](*[Tensor([1.0])] * 3)

def test_versions_are_selected_by_domain_and_number() -> None:
  softmax = onnx_ops["Softmax"]
  assert softmax.select("", 12) is softmax.versions["", 1] and softmax.select("", 22) is softmax.versions["", 13]
  assert softmax.select("", 0) is None and softmax.select("other", 22) is None
  assert onnx_ops["Attention"].select("com.microsoft", 1) is not onnx_ops["Attention"].select("", 23)

def test_a_signature_is_checked() -> None:
  def function(x: Tensor, axes: "Ints | None" = None, *, alpha: "float", mode: "str" = "a") -> Tensor: return x
  function.__annotations__.update(x="Tensor", axes="Ints | None", alpha="float", mode="str")
  op = Implementation(function, True)
  assert op.check(1, {"alpha": 1.0}) is None and op.check(2, {"alpha": 1, "mode": "b"}) is None
  assert "lacks the attribute 'alpha'" in str(op.check(1, {}))
  assert ("is wanted" in str(op.check(1, {"alpha": 1.0, "mode": 3}))
          and "not supported" in str(op.check(1, {"alpha": 1.0, "beta": 3})))
  assert "0 inputs" in str(op.check(0, {"alpha": 1.0})) and "3 inputs" in str(op.check(3, {"alpha": 1.0}))
  with pytest.raises(ArgumentError, match="whole numbers"): op([Tensor([1]), Tensor([1.5])], {"alpha": 1.0}, 1)
  with pytest.raises(ArgumentError, match="input 0 is missing"): op([None], {"alpha": 1.0}, 1)
  with pytest.raises(ArgumentError, match="sequence"): op([[Tensor([1])]], {"alpha": 1.0}, 1)
  with pytest.raises(ArgumentError, match="sequence"): as_numbers([])

def test_known_values_are_numbers_and_tensors() -> None:
  x = of_numbers([1, 2, 3, 4], shape=(2, 2))
  assert (x.tensor.tolist() == [[1, 2], [3, 4]] and x.tensor.dtype is dtypes.int64 and as_tensor(x) is x.tensor
          and as_numbers(x) == [1, 2, 3, 4])
  assert Known([5.0, 5.0], (2,), dtypes.float32).tensor.tolist() == [5, 5]
  assert of_numbers([1]).key != of_numbers([1], dtypes.int32).key != of_numbers([2], dtypes.int32).key
  assert Known([], (0,), dtypes.int64).tensor.shape == (0,)

def test_known_evaluates_graphs_of_known_tensors() -> None:
  found = known(of_numbers([3, 4]).tensor.cast(dtypes.float32) * 0.5 + 1)
  assert found is not None and list(found.values) == [2.5, 3.0] and found.dtype is dtypes.float32
  assert known(Tensor.zeros(1000)) is None
