"""Convolutions and pooling against formulas in NumPy."""
import itertools
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)

def convolved(x: Any, w: Any, pads: Any, strides: Any, dilations: Any, group: int = 1) -> Any:
  """Convolve images by the definition."""
  x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
  sizes = [(x.shape[2 + i] - dilations[i] * (w.shape[2 + i] - 1) - 1) // strides[i] + 1 for i in range(2)]
  y = np.zeros((x.shape[0], w.shape[0], *sizes))
  per = w.shape[0] // group
  for o, i, j in itertools.product(range(w.shape[0]), *map(range, sizes)):
    channels = slice(o // per * w.shape[1], (o // per + 1) * w.shape[1])
    part = x[:, channels, i * strides[0]:, j * strides[1]:][:, :, :dilations[0] * w.shape[2]:dilations[0],
                                                            :dilations[1] * w.shape[3]:dilations[1]]
    y[:, o, i, j] = (part[:, :, :w.shape[2], :w.shape[3]] * w[o]).sum((1, 2, 3))
  return y

@pytest.mark.parametrize("pads, strides, dilations, group",
                         [((0, 0, 0, 0), (1, 1), (1, 1), 1), ((1, 2, 0, 1), (2, 1), (1, 2), 1),
                          ((1, 1, 1, 1), (1, 2), (2, 1), 2)])
def test_convolutions(pads: Any, strides: Any, dilations: Any, group: int) -> None:
  x, w, b = random(2, 4, 6, 7), random(4, 4 // group, 3, 2, seed=1), random(4, seed=2)
  found = run("Conv", x, w, b, pads=list(pads), strides=list(strides), dilations=list(dilations), group=group)
  np.testing.assert_allclose(found, convolved(x, w, pads, strides, dilations, group) + b.reshape(1, -1, 1, 1),
                             rtol=1e-4, atol=1e-5)

@pytest.mark.parametrize("mode, pads", [("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0)),
                                        ("VALID", (0, 0, 0, 0))])
def test_automatic_padding(mode: str, pads: Any) -> None:
  x, w = random(1, 1, 5, 5), random(1, 1, 2, 2, seed=1)
  np.testing.assert_allclose(run("Conv", x, w, auto_pad=mode), convolved(x, w, pads, (1, 1), (1, 1)), rtol=1e-4,
                             atol=1e-5)

def test_transposed_convolution_is_the_transpose() -> None:
  x, w, y = random(1, 2, 5, 6), random(3, 2, 3, 2, seed=1), random(1, 3, 3, 3, seed=2)
  forward = convolved(x, w, (1, 0, 1, 1), (2, 2), (1, 1))
  back = run("ConvTranspose", y, w, pads=[1, 0, 1, 1], strides=[2, 2], output_padding=[0, 1])
  assert forward.shape == y.shape and back.shape == x.shape
  np.testing.assert_allclose((forward * y).sum(), (back * x).sum(), rtol=1e-4)
  assert run("ConvTranspose", y, w, strides=[2, 2], output_shape=[6, 6]).shape == (1, 2, 6, 6)
  wider = run("ConvTranspose", y, w, strides=[2, 2], output_shape=[10, 6])
  np.testing.assert_allclose(wider, np.pad(run("ConvTranspose", y, w, strides=[2, 2]),
                                           [(0, 0), (0, 0), (0, 3), (0, 0)]), rtol=1e-5)
  assert run("ConvTranspose", y, w, strides=[3, 3], auto_pad="SAME_UPPER").shape == (1, 2, 9, 9)

def test_bad_windows() -> None:
  x, w = random(1, 1, 4, 4), random(1, 1, 2, 2)
  for op, inputs, attributes, why in [
      ("Conv", (x, w), {"auto_pad": "ODD"}, "auto_pad is"), ("Conv", (x, w), {"pads": [1]}, "two counts"),
      ("Conv", (x, w), {"strides": [0, 1]}, "too small"),
      ("Conv", (x, w), {"kernel_shape": [3, 3]}, "not that of the weights"), ("Conv", (x, w), {"group": 3}, "groups"),
      ("MaxPool", (x,), {"kernel_shape": [9, 9]}, "larger"),
      ("MaxPool", (x,), {"kernel_shape": [2]}, "spatial axes"),
      ("LpPool", (x,), {"kernel_shape": [2, 2], "p": 0}, "1 or more"),
      ("MaxPool", (x[0, 0],), {"kernel_shape": [2]}, "shape"),
      ("ConvTranspose", (x, w), {"strides": [1 << 40, 1]}, "more than")]:
    with pytest.raises(TinyError, match=why): run(op, *inputs, **attributes)

def test_pooling() -> None:
  x = random(1, 2, 5, 5)
  padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
  windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
  np.testing.assert_array_equal(run("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
                                windows.max((4, 5)))
  zeros, inside = np.where(np.isinf(windows), 0, windows).sum((4, 5)), (~np.isinf(windows)).sum((4, 5))
  np.testing.assert_allclose(run("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
                             zeros / inside, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(run("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
                                 count_include_pad=1), zeros / 9,
                             rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(run("LpPool", x, kernel_shape=[5, 5]), np.sqrt((x * x).sum((2, 3), keepdims=True)),
                             rtol=1e-5)

def test_ceil_mode_counts_only_what_is_there() -> None:
  x = np.arange(1, 6, dtype=F32).reshape(1, 1, 5)
  assert run("MaxPool", x, kernel_shape=[2], strides=[2], ceil_mode=1).reshape(-1).tolist() == [2, 4, 5]
  assert run("AveragePool", x, kernel_shape=[2], strides=[2], ceil_mode=1).reshape(-1).tolist() == [1.5, 3.5, 5]
  assert run("AveragePool", x, kernel_shape=[2], strides=[2], ceil_mode=1, pads=[1, 0],
             count_include_pad=1).reshape(-1).tolist() == [0.5, 2.5, 4.5]

def test_large_windows_with_padding() -> None:
  x = np.ones((1, 1, 5000), F32)
  found = run("AveragePool", x, kernel_shape=[4999], pads=[300, 300], dilations=[1], opset=22)
  np.testing.assert_allclose(found, 1, rtol=1e-5)
  padded = np.pad(x, ((0, 0), (0, 0), (2, 3)))
  expected = [padded[0, 0, w:w + 7:3].sum() / sum(2 <= p < 5002 for p in range(w, w + 7, 3)) for w in range(4999)]
  np.testing.assert_allclose(run("AveragePool", x, kernel_shape=[3], pads=[2, 3], dilations=[3]).reshape(-1), expected,
                             rtol=1e-6)

@pytest.mark.parametrize("order", [0, 1])
def test_places_of_the_largest(order: int) -> None:
  x = random(2, 2, 4, 4)
  values, places = run("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], storage_order=order, outputs=2)
  flat = (x if not order else x.transpose(0, 1, 3, 2)).reshape(-1)
  assert flat[places].tolist() == values.tolist()
  if not order:
    back = run("MaxUnpool", values, places, kernel_shape=[2, 2], strides=[2, 2])
    assert (back.shape == x.shape and back.reshape(-1)[places].tolist() == values.tolist()
            and np.count_nonzero(back) == values.size)

def test_global_pooling() -> None:
  x = random(2, 3, 4, 5)
  np.testing.assert_allclose(run("GlobalAveragePool", x), x.mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-6)
  np.testing.assert_array_equal(run("GlobalMaxPool", x), x.max((2, 3), keepdims=True))
  np.testing.assert_allclose(run("GlobalLpPool", x), np.sqrt((x * x).sum((2, 3), keepdims=True)), rtol=1e-5)

def test_columns_to_image_and_moved_taps() -> None:
  x = random(1, 4, 9)
  y = run("Col2Im", x, np.array([4, 4]), np.array([2, 2]))
  expected = np.zeros((1, 1, 4, 4), F32)
  for k, (i, j) in enumerate(itertools.product(range(3), range(3))):
    expected[0, 0, i:i + 2, j:j + 2] += x[0, :, k].reshape(2, 2)
  np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
  image, w = random(1, 2, 5, 5), random(3, 2, 2, 2, seed=1)
  zero = np.zeros((1, 8, 4, 4), F32)
  np.testing.assert_allclose(run("DeformConv", image, w, zero), convolved(image, w, (0,) * 4, (1, 1), (1, 1)),
                             rtol=1e-4, atol=1e-5)
  right = zero.copy()
  right[:, 1::2] = 1
  moved = np.pad(image, ((0, 0), (0, 0), (0, 0), (0, 1)))[:, :, :, 1:]
  np.testing.assert_allclose(run("DeformConv", image, w, right), convolved(moved, w, (0,) * 4, (1, 1), (1, 1)),
                             rtol=1e-4, atol=1e-5)

def test_on_each_engine(engine: str) -> None:
  x, w = random(1, 2, 4, 4), random(2, 2, 3, 3, seed=1)
  np.testing.assert_allclose(run("Conv", x, w, pads=[1, 1, 1, 1]), convolved(x, w, (1,) * 4, (1, 1), (1, 1)), rtol=1e-4,
                             atol=1e-5)
