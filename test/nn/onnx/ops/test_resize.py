"""Resize, GridSample, AffineGrid and RoiAlign against formulas, and against torch where it is installed."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw import Tensor
from tinyhw.errors import TinyError
from tinyhw.nn.onnx.operator import onnx_ops

F32 = np.float32
X = np.arange(16, dtype=F32).reshape(1, 1, 4, 4) ** 1.5

def linear(x: Any, n: int, place: Any) -> Any:
  """Interpolate the last axis at positions, clamped."""
  at = np.clip([place(i) for i in range(n)], 0, x.shape[-1] - 1)
  low = np.floor(at).astype(int)
  high = np.minimum(low + 1, x.shape[-1] - 1)
  return x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)

PLACES = {"half_pixel": lambda i, n: (i + 0.5) * 4 / n - 0.5, "asymmetric": lambda i, n: i * 4 / n,
          "align_corners": lambda i, n: i * 3 / (n - 1),
          "pytorch_half_pixel": lambda i, n: (i + 0.5) * 4 / n - 0.5 if n > 1 else 0.0,
          "half_pixel_symmetric": lambda i, n: (i + 0.5) * 4 / n - 0.5}

@pytest.mark.parametrize("mode", PLACES)
@pytest.mark.parametrize("n", [2, 3, 7, 8])
def test_linear(mode: str, n: int) -> None:
  found = run("Resize", X, None, None, np.array([1, 1, 4, n]), known=[3], mode="linear",
              coordinate_transformation_mode=mode)
  np.testing.assert_allclose(found, linear(X, n, lambda i: PLACES[mode](i, n)), rtol=1e-5)

@pytest.mark.parametrize("rounding, index",
                         [("round_prefer_floor", [0, 0, 1, 1, 2, 2, 3, 3]), ("floor", [0, 0, 0, 1, 1, 2, 2, 3]),
                          ("ceil", [0, 1, 1, 2, 2, 3, 3, 3]),
                          ("round_prefer_ceil", [0, 0, 1, 1, 2, 2, 3, 3])])
def test_nearest(rounding: str, index: list[int]) -> None:
  assert run("Resize", X, None, np.array([1, 1, 1, 2], F32), mode="nearest",
             nearest_mode=rounding).tolist() == X[..., index].tolist()

def test_older_versions() -> None:
  scales = np.array([1, 1, 2, 1], F32)
  for found in (run("Upsample", X, scales, opset=9), run("Upsample", X, opset=7, scales=[1.0, 1.0, 2.0, 1.0]),
                run("Resize", X, scales, opset=10)):
    assert found.tolist() == np.repeat(X, 2, 2).tolist()

def test_cubic_reproduces_lines_and_weights_sum_to_one() -> None:
  line = np.arange(12, dtype=F32).reshape(1, 1, 1, 12)
  found = run("Resize", line, None, np.array([1, 1, 1, 2], F32), mode="cubic", cubic_coeff_a=-0.5)
  np.testing.assert_allclose(found[0, 0, 0, 5:-5], (np.arange(24)[5:-5] + 0.5) / 2 - 0.5, rtol=1e-5)
  np.testing.assert_allclose(run("Resize", X * 0 + 3, None, np.array([1, 1, 0.6, 0.6], F32), mode="cubic", antialias=1,
                                 exclude_outside=1), 3,
                             rtol=1e-5)

def test_regions_axes_and_aspects() -> None:
  roi = np.array([0, 0, 0, 0, 1, 1, 1, 2], F32)
  found = run("Resize", X, roi, None, np.array([1, 1, 4, 4]), mode="linear",
              coordinate_transformation_mode="tf_crop_and_resize",
              extrapolation_value=-1.0)
  np.testing.assert_allclose(found, np.stack([X[..., 0], X[..., 2], X[..., 0] * 0 - 1, X[..., 0] * 0 - 1], -1),
                             rtol=1e-5)
  assert run("Resize", X, None, np.array([2], F32), axes=[3]).shape == (1, 1, 4, 8)
  assert run("Resize", X, None, None, np.array([8, 6]), axes=[2, 3],
             keep_aspect_ratio_policy="not_larger").shape == (1, 1, 6, 6)
  assert run("Resize", X, None, None, np.array([8, 6]), axes=[2, 3],
             keep_aspect_ratio_policy="not_smaller").shape == (1, 1, 8, 8)

@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_element_made_of_a_million(mode: str) -> None:
  """A smaller result has a wider kernel. A kernel computes the table of its weights, of any length."""
  n = 1 << 20
  line = (np.arange(n, dtype=F32) % 8).reshape(1, n)
  found = run("Resize", line, None, None, np.array([1, 1]), known=[3], mode=mode, antialias=1, exclude_outside=1)
  np.testing.assert_allclose(found, [[3.5]], rtol=1e-3)

@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_long_axis(mode: str) -> None:
  n = 1_000_000
  found = run("Resize", X[0, 0, :1], None, None, np.array([1, n]), known=[3], mode=mode, nearest_mode="floor",
              coordinate_transformation_mode="align_corners")
  at = np.arange(n) * 3 / (n - 1)
  expected = X[0, 0, 0][np.floor(at).astype(int)] if mode == "nearest" else np.interp(at, np.arange(4), X[0, 0, 0])
  np.testing.assert_allclose(found, [expected], rtol=1e-5, atol=1e-5)

def test_a_damaged_size_costs_python_nothing() -> None:
  """Positions are expressions. The graph of a result with 2**26 positions is as small as that of one with eight."""
  resize = onnx_ops["Resize"].versions["", 11].function
  def nodes(n: int) -> int:
    return len(resize(Tensor(X[:, 0]), None, None, [1, 1, n], mode="cubic", antialias=1).uop.toposort())
  assert nodes(1 << 26) < nodes(8) + 10   # a few constants may be equal by chance

def test_places_beyond_all_numbers_are_refused() -> None:
  roi = np.array([0, 0, 0, 0, 1, 1, 1, np.inf], F32)
  with pytest.raises(TinyError, match="infinite places"):
    run("Resize", X, roi, None, np.array([1, 1, 4, 4]), mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize")

def test_bad_sizes() -> None:
  for inputs, attributes, why in [((None, np.array([1, 1, -1, 1], F32)), {}, "cannot resize"),
                                  ((None, np.array([1, 1], F32)), {}, "4 axes|2 sizes"), ((), {}, "scales or sizes"),
                                  ((None, np.ones(4, F32) * 2), {"mode": "odd"}, "mode is"),
                                  ((None, np.ones(4, F32) * 2), {"nearest_mode": "odd"}, "nearest_mode"),
                                  ((None, np.ones(4, F32) * 2), {"coordinate_transformation_mode": "odd"}, "not known"),
                                  ((None, np.ones(4, F32) * 1e9), {}, "more than")]:
    with pytest.raises(TinyError, match=why): run("Resize", X, *inputs, **attributes)

@pytest.mark.parametrize("size", [(3, 5), (8, 8), (2, 9)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_against_torch(mode: str, size: tuple[int, int]) -> None:
  torch = pytest.importorskip("torch")
  name, coordinates = {"bilinear": ("linear", "half_pixel"), "bicubic": ("cubic", "half_pixel"),
                       "nearest": ("nearest", "asymmetric")}[mode]
  expected = torch.nn.functional.interpolate(torch.tensor(X), size, mode=mode)
  found = run("Resize", X, None, None, np.array([1, 1, *size]), mode=name, coordinate_transformation_mode=coordinates,
              nearest_mode="floor")
  np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-4)

@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample_against_torch(mode: str, padding: str, corners: int) -> None:
  torch = pytest.importorskip("torch")
  grid = np.random.default_rng(0).uniform(-1.6, 1.6, (1, 3, 5, 2)).astype(F32)
  expected = torch.nn.functional.grid_sample(torch.tensor(X), torch.tensor(grid), mode, padding,
                                             align_corners=bool(corners))
  found = run("GridSample", X, grid, mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
              padding_mode=padding, align_corners=corners)
  np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-3)

def test_the_identity_grid_gives_the_image() -> None:
  for corners in (0, 1):
    grid = run("AffineGrid", np.array([[[1, 0, 0], [0, 1, 0]]], F32), np.array([1, 1, 4, 4]), align_corners=corners)
    assert grid.shape == (1, 4, 4, 2)
    np.testing.assert_allclose(run("GridSample", X, grid, align_corners=corners), X, atol=1e-4)
  assert run("AffineGrid", np.eye(3, 4, dtype=F32)[None], np.array([1, 1, 2, 3, 4])).shape == (1, 2, 3, 4, 3)
  with pytest.raises(TinyError, match="a grid of"): run("GridSample", X, np.zeros((2, 1, 1, 2), F32))

def test_regions_of_interest() -> None:
  flat, boxes, batch = np.ones((1, 2, 8, 8), F32) * 3, np.array([[0, 0, 4, 4], [2, 2, 7, 5]], F32), np.array([0, 0])
  np.testing.assert_allclose(run("RoiAlign", flat, boxes, batch, output_height=2, output_width=3, sampling_ratio=2),
                             np.full((2, 2, 2, 3), 3),
                             rtol=1e-6)
  slope = np.broadcast_to(np.arange(8, dtype=F32), (1, 1, 8, 8)).copy()
  found = run("RoiAlign", slope, np.array([[1, 1, 5, 5]], F32), np.array([0]), output_height=1, output_width=2,
              sampling_ratio=2)
  # the mean positions of the halves, half a pixel to the left
  np.testing.assert_allclose(found.reshape(-1), [1.5, 3.5], rtol=1e-6)
  # In ONNX, "max" is that of the weighted corners. Samples are half a pixel off in both axes, so each corner has a
  # quarter
  assert run("RoiAlign", slope, np.array([[1, 1, 5, 5]], F32), np.array([0]), mode="max", opset=10).item() == 0.25 * 5
