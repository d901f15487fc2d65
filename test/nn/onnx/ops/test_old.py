"""Operators of the first operator sets, against NumPy and their newer forms."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
X = np.arange(24, dtype=F32).reshape(2, 3, 4) + 1

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

@pytest.mark.parametrize("b, axis, expected", [
  (np.arange(4, dtype=F32), None, np.arange(4)), (np.arange(3, dtype=F32), 1, np.arange(3).reshape(3, 1)),
  (np.arange(6, dtype=F32).reshape(2, 3), 0, np.arange(6).reshape(2, 3, 1)), (np.ones((1, 1), F32), 0, 1),
  (np.arange(3, dtype=F32), -2, np.arange(3).reshape(3, 1))])
def test_broadcast_from_an_axis(b: Any, axis: int | None, expected: Any) -> None:
  options = {} if axis is None else {"axis": axis}
  assert run("Add", X, b, opset=6, broadcast=1, **options).tolist() == (X + expected).tolist()
  assert run("Greater", X, b, opset=1, broadcast=1, **options).tolist() == (X > expected).tolist()
  assert run("Pow", X, b, opset=1, broadcast=1, **options) == pytest.approx(X ** expected, rel=1e-5)
  assert run("And", X > 3, b > 1, opset=1, broadcast=1, **options).tolist() == (
    (X > 3) & (np.asarray(expected) > 1)).tolist()

def test_operands_that_do_not_fit() -> None:
  with pytest.raises(TinyError, match="does not fit into"): run("Add", X, X[0], opset=6, broadcast=1, axis=2)

def test_attributes_that_became_inputs() -> None:
  assert run("Reshape", X, opset=1, shape=[0, -1]).tolist() == X.reshape(2, -1).tolist()
  assert run("Pad", X[0], opset=1, paddings=[0, 1, 1, 0], value=9.0).tolist() == np.pad(
    X[0], ((0, 1), (1, 0)), constant_values=9).tolist()
  assert [x.shape for x in run("Split", X, opset=1, axis=2, split=[1, 3], outputs=2)] == [(2, 3, 1), (2, 3, 3)]
  assert [x.shape for x in run("Split", X, np.array([1, 3]), opset=1, axis=2, outputs=2)] == [(2, 3, 1), (2, 3, 3)]
  assert run("Tile", X, np.array(2), np.array(1), opset=1).tolist() == np.tile(X, (1, 2, 1)).tolist()
  assert run("Upsample", X[None], opset=1, height_scale=2.0, width_scale=1.0).tolist() == np.repeat(
    X[None], 2, 2).tolist()

def test_attributes_of_other_types() -> None:
  assert run("Cast", X, opset=1, to="int32").tolist() == X.astype(np.int32).tolist()
  with pytest.raises(TinyError, match="does not define"): run("Cast", X, opset=1, to="NUMBER")
  assert run("LpPool", X[None], opset=1, kernel_shape=[3, 4], p=1.0).tolist() == X[None].sum((2, 3), keepdims=True
                                                                                            ).tolist()
  assert run("GlobalLpPool", X[None], opset=1, p=1.0).shape == (1, 2, 1, 1)
  with pytest.raises(TinyError, match="no whole number"): run("GlobalLpPool", X[None], opset=1, p=1.5)

def test_hints_are_ignored() -> None:
  assert run("Relu", -X, opset=1, consumed_inputs=[0]).max() == 0
  assert run("Clip", X, opset=1, min=2.0, max=3.0, consumed_inputs=[0]).max() == 3
  assert run("Dropout", X, opset=1, is_test=0).tolist() == X.tolist()
  a, b = random(2, 3), random(3, 2)
  assert run("Gemm", a, b, np.ones(2, F32), opset=6, broadcast=1) == pytest.approx(a @ b + 1, rel=1e-5)
  assert run("InstanceNormalization", X, np.ones(3, F32), np.zeros(3, F32), opset=1).shape == X.shape

def test_regions_of_interest() -> None:
  x = random(2, 3, 6, 7)
  regions = np.array([[0, 0, 0, 6, 5], [1, 2, 1, 5, 4], [1, 6, 5, 6, 5]], F32)
  found = run("MaxRoiPool", x, regions, pooled_shape=[2, 2])
  assert found.shape == (3, 3, 2, 2)
  np.testing.assert_array_equal(found[0, :, 0, 0], x[0, :, 0:3, 0:4].max((1, 2)))
  np.testing.assert_array_equal(found[1, :, 1, 1], x[1, :, 3:5, 4:6].max((1, 2)))
  np.testing.assert_array_equal(found[2, :, 0, 1], x[1, :, 5, 6])
  with pytest.raises(TinyError, match="MaxRoiPool of"): run("MaxRoiPool", x, regions[:, 1:], pooled_shape=[2, 2])
