"""Operators that create and move elements, against NumPy."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32
X = np.arange(24, dtype=F32).reshape(2, 3, 4)

def i64(*values: int) -> Any: return np.array(values, np.int64)

def test_constants() -> None:
  assert run("Constant", value=X).tolist() == X.tolist() and run("Constant", value_ints=[1, 2]).tolist() == [1, 2]
  assert (run("Constant", value_float=1.5).shape == () and run("Constant", value_floats=[1.5]).dtype == F32
          and run("Constant", value_int=3) == 3)
  assert (run("ConstantOfShape", i64(2, 3), value=np.array([7])).tolist() == [[7] * 3] * 2
          and run("ConstantOfShape", i64()).shape == ())
  assert run("Range", i64(5)[0], i64(-1)[0], i64(-2)[0]).tolist() == [5, 3, 1]
  assert run("Range", F32(0), F32(1), F32(0.25)).tolist() == [0, 0.25, 0.5, 0.75]
  assert run("EyeLike", X[0], k=1, dtype=7).tolist() == np.eye(3, 4, 1).tolist()
  for op, inputs, why in [("Constant", (), "has one of"), ("ConstantOfShape", (i64(1 << 40),), "more than"),
                          ("ConstantOfShape", (i64(-1),), "negative"),
                          ("Range", (i64(1)[0], i64(2)[0], i64(0)[0]), "no end"),
                          ("Range", (i64(0)[0], i64(1 << 40)[0], i64(1)[0]), "more than")]:
    with pytest.raises(TinyError, match=why): run(op, *inputs)

def test_shapes() -> None:
  assert run("Shape", X).tolist() == [2, 3, 4] and run("Shape", X, start=-2,
                                                       end=-1).tolist() == [3] and run("Size", X) == 24
  assert run("Reshape", X, i64(0, -1)).shape == (2, 12) and run("Reshape", np.zeros((0, 3), F32), i64(3, 0),
                                                                allowzero=1).shape == (3, 0)
  assert (run("Flatten", X, axis=2).shape == (6, 4) and run("Flatten", X, axis=0).shape == (1, 24)
          and run("Flatten", X, axis=-1).shape == (6, 4))
  assert run("Squeeze", X[:1]).shape == (3, 4) and run("Squeeze", X[:1, :1], i64(1)).shape == (1, 4)
  assert run("Squeeze", X[:1], opset=11, axes=[0]).shape == (3, 4)
  assert run("Unsqueeze", X, i64(0, -1)).shape == (1, 2, 3, 4, 1) and run("Unsqueeze", X, opset=11,
                                                                          axes=[1]).shape == (2, 1, 3, 4)
  assert run("Expand", X[:, :1], i64(3, 1)).shape == (2, 3, 4) and run("Tile", X, i64(1, 2, 0)).shape == (2, 6, 0)
  assert run("Transpose", X).tolist() == X.T.tolist() and run("Transpose", X, perm=[1, 0, 2]).shape == (3, 2, 4)
  for op, inputs, why in [("Squeeze", (X, i64(0)), "size 1"), ("Reshape", (X[0, 0], i64(1, 0)), "keeps an axis"),
                          ("Tile", (X, i64(1)), "each axis"),
                          ("Tile", (X, i64(1, 1 << 20, 1 << 20)), "more than"),
                          ("Unsqueeze", (X, i64(0, 0)), "twice"), ("Flatten", (X,), "")]:
    if why:
      with pytest.raises(TinyError, match=why): run(op, *inputs)

def test_concat_and_split() -> None:
  assert run("Concat", X, X, axis=-1).tolist() == np.concatenate([X, X], -1).tolist()
  assert [y.shape for y in run("Split", X, i64(1, 3), axis=2, outputs=2)] == [(2, 3, 1), (2, 3, 3)]
  assert [y.shape for y in run("Split", X, axis=1, num_outputs=2, outputs=2)] == [(2, 2, 4), (2, 1, 4)]
  assert [y.shape for y in run("Split", X, opset=11, axis=1, split=[1, 2], outputs=2)] == [(2, 1, 4), (2, 2, 4)]
  with pytest.raises(TinyError, match="do not make"): run("Split", X, i64(1, 1), axis=2, outputs=2)

@pytest.mark.parametrize("starts, ends, axes, steps, index", [
  ((1,), (3,), (1,), (1,), np.s_[:, 1:3]), ((-1,), (-100,), (2,), (-2,), np.s_[:, :, ::-2]),
  ((0, 5), (1000, 9), (1, 2), (2, 1), np.s_[:, ::2, 5:9]),
  ((2,), (1,), (1,), (1,), np.s_[:, 2:1]), ((1,), (1 << 62,), (0,), (1 << 62,), np.s_[1::5]),
])
def test_slices(starts: Any, ends: Any, axes: Any, steps: Any, index: Any) -> None:
  assert run("Slice", X, i64(*starts), i64(*ends), i64(*axes), i64(*steps)).tolist() == X[index].tolist()

def test_slices_by_attributes_and_bad_ones() -> None:
  assert run("Slice", X, opset=9, starts=[1], ends=[2]).tolist() == X[1:2].tolist()
  with pytest.raises(TinyError, match="step of 0"): run("Slice", X, i64(0), i64(1), i64(0), i64(0))
  with pytest.raises(TinyError, match="different lengths"): run("Slice", X, i64(0), i64(1, 2))

@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(mode: str) -> None:
  assert run("Pad", X, i64(1, 0, 0, 2), None, i64(0, 2), mode=mode).tolist() == np.pad(X, ((1, 0), (0, 0), (0, 2)),
                                                                                       mode).tolist() \
    if mode != "reflect" else run("Pad", X, i64(2, 1), None, i64(2),
                                  mode=mode).tolist() == np.pad(X, ((0, 0), (0, 0), (2, 1)), mode).tolist()

def test_padding_with_a_value_and_without_room() -> None:
  assert run("Pad", X[0, 0], i64(1, -2), F32(9)).tolist() == [9, 0, 1]
  assert run("Pad", X[0, 0], opset=9, pads=[0, 1], value=2.0).tolist() == [0, 1, 2, 3, 2]
  assert run("Pad", X[0, 0], i64(0, 9), mode="wrap").tolist() == np.pad(X[0, 0], (0, 9), "wrap").tolist()
  for pads, mode, why in [(i64(1), "constant", "two counts"), (i64(1, 1), "odd", "mode of Pad"),
                          (i64(1 << 40, 0), "constant", "more than")]:
    with pytest.raises(TinyError, match=why): run("Pad", X[0, 0], pads, mode=mode)

def test_centres_blocks_and_triangles() -> None:
  assert run("CenterCropPad", X[0], i64(5, 2)).tolist() == np.pad(X[0][:, 1:3], ((1, 1), (0, 0))).tolist()
  x = np.arange(16, dtype=F32).reshape(1, 4, 2, 2)
  y = run("DepthToSpace", x, blocksize=2)
  assert y.shape == (1, 1, 4, 4) and y[0, 0, 0].tolist() == [0, 4, 1, 5] and run("SpaceToDepth", y,
                                                                                 blocksize=2).tolist() == x.tolist()
  assert run("DepthToSpace", x, blocksize=2, mode="CRD")[0, 0, 0].tolist() == [0, 4, 1, 5]
  assert (run("Trilu", X[0], i64(1)[0]).tolist() == np.triu(X[0], 1).tolist() and run("Trilu", X[0], upper=0).tolist()
          == np.tril(X[0]).tolist())
  assert run("ReverseSequence", X[:, :, 0], i64(2, 1, 2), time_axis=0,
             batch_axis=1).tolist() == [[12, 4, 20], [0, 16, 8]]

def test_on_each_engine(engine: str) -> None:
  assert run("Slice", X, i64(-1), i64(-9), i64(2), i64(-1)).tolist() == X[:, :, ::-1].tolist()
