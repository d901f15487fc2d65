"""Convolutions and pooling against plain loops in NumPy."""
import itertools
import math

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, compare, same
from tinyhw import nn
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.gradient import gradients
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import unwindow, windows
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def spread(x, n): return (x,) * n if isinstance(x, int) else tuple(x)

def pairs(padding, n):
  if isinstance(padding, int): return [(padding, padding)] * n
  if len(padding) == 2 * n: return list(zip(padding[::2], padding[1::2]))[::-1]
  return [(p, p) for p in padding]

def windows_of(x, kernel, stride, dilation):
  """Yield (index, elements) for each window of the last axes."""
  n = len(kernel)
  counts = [(d - l * (k - 1) - 1) // s + 1 for d, k, s, l in zip(x.shape[-n:], kernel, stride, dilation)]
  for at in itertools.product(*map(range, counts)):
    yield at, counts, x[(..., *[slice(i * s, i * s + l * (k - 1) + 1, l)
                                for i, s, l, k in zip(at, stride, dilation, kernel)])]

def conv(x, w, b=None, groups=1, stride=1, dilation=1, padding=0):
  n = w.ndim - 2
  x = np.pad(x, [(0, 0), (0, 0), *pairs(padding, n)])
  out = None
  for at, counts, part in windows_of(x, w.shape[2:], spread(stride, n), spread(dilation, n)):
    if out is None: out = np.zeros((x.shape[0], w.shape[0], *counts), np.float64)
    for g in range(groups):
      outs = slice(g * w.shape[0] // groups, (g + 1) * w.shape[0] // groups)
      ins = part[:, g * w.shape[1]:(g + 1) * w.shape[1]]
      out[(slice(None), outs, *at)] = np.tensordot(ins, w[outs], (list(range(1, n + 2)), list(range(1, n + 2))))
  return (out if b is None else out + b.reshape(1, -1, *[1] * n)).astype(np.float32)

CASES = [
  ((2, 3, 5, 6), (4, 3, 3, 3), {}), ((1, 4, 5, 5), (6, 2, 3, 2), {"groups": 2, "padding": 1}),
    ((2, 2, 7, 8), (3, 2, 3, 3), {"stride": 2, "padding": (1, 0)}),
  ((1, 2, 9, 9), (2, 2, 3, 3), {"dilation": 2, "stride": (2, 1)}),
  ((1, 3, 6, 6), (3, 1, 3, 3), {"groups": 3, "padding": (1, 2, 0, 1)}),
  ((2, 3, 9), (4, 3, 4), {"stride": 3}),
  ((1, 2, 4, 4, 4), (2, 2, 2, 2, 2), {"padding": 1, "stride": 2}), ((2, 3, 4, 4), (5, 3, 1, 1), {}),
  ((2, 3, 6, 6), (2, 3, 2, 2), {"stride": 2}),
  ((1, 1, 8, 8), (1, 1, 2, 3), {"stride": 3}),
  ((1, 2, 5, 5), (2, 2, 5, 5), {"padding": 2}), ((1, 2, 3, 3), (2, 2, 1, 1), {"stride": 2, "padding": 1})]

@pytest.mark.slow
@pytest.mark.parametrize("x, w, options", CASES)
def test_conv2d(x, w, options):
  compare(lambda a, b, c: a.conv2d(b, c, **options), lambda a, b, c: conv(a, b, c, **options), x, w, (w[0],), atol=1e-5)

@pytest.mark.slow
@pytest.mark.parametrize("x, w, options", [
  ((1, 2, 4, 3), (2, 2, 3, 2), {}), ((1, 2, 4, 4), (2, 1, 2, 2), {"groups": 2, "padding": 1}),
    ((1, 1, 5, 5), (2, 1, 3, 3), {"stride": 2, "padding": 1}),
  ((1, 1, 6), (1, 1, 2), {"dilation": 3, "stride": 2}), ((2, 2, 3, 3), (2, 2, 1, 1), {}),
  ((1, 1, 4, 4), (1, 1, 2, 2), {"stride": 2}),
  ((1, 1, 5), (1, 1, 2), {"stride": 3}),
  ((1, 1, 3, 3), (1, 1, 3, 3), {"padding": (2, 0, 1, 1)})])
def test_conv2d_gradients(x, w, options): check_gradient(lambda a, b: a.conv2d(b, **options), x, w)

def dilated(y, strides):
  """Insert stride - 1 zeros between the elements of the last axes."""
  out = np.zeros((*y.shape[:2], *[(n - 1) * s + 1 for n, s in zip(y.shape[2:], strides)]), y.dtype)
  out[(..., *[slice(None, None, s) for s in strides])] = y
  return out

@pytest.mark.slow
@pytest.mark.parametrize("size, kernel, stride, dilation, padding", [
  (9, 3, 2, 1, 1), (10, 4, 2, 1, 1), (11, 7, 2, 1, 3), (8, 1, 2, 1, 0), (10, 2, 3, 1, 1), (13, 5, 3, 1, 4),
  (12, 3, 4, 2, 1), (11, 3, 2, 2, 2),
  (13, 3, 2, 4, 3), (15, 4, 2, 3, 2), (16, 3, 6, 4, 0), (9, 5, 4, 2, 3), (7, 2, 5, 1, 0), (9, 3, 2, 1, 4)])
@pytest.mark.parametrize("groups", (1, 2))
def test_the_gradient_of_strided_windows_is_a_convolution_with_zeros_between_them(size, kernel, stride, dilation,
                                                                                  padding, groups):
  """The phases give the same as the definition: the gradient, dilated by the stride, convolved with the reversed
  weight.

  One axis has stride 1.
  """
  x, w = arrays((2, 2 * groups, size, 5), (3 * groups, 2, kernel, 2))
  strides, dilations = (stride, 1), (dilation, 1)
  a = Tensor(x, requires_grad=True)
  y = a.conv2d(Tensor(w), groups=groups, stride=strides, dilation=dilations, padding=(padding, 0))
  (g,) = arrays(y.shape)
  reverse = w.reshape(groups, 3, 2, kernel, 2)[..., ::-1, ::-1].swapaxes(1, 2).reshape(2 * groups, 3, kernel, 2)
  whole = np.zeros((2, 3 * groups, size + 2 * padding + dilation * (kernel - 1), 6), np.float32)
  spread_out = dilated(g, strides)
  whole[:, :, dilation * (kernel - 1):dilation * (kernel - 1) + spread_out.shape[2],
        1:1 + spread_out.shape[3]] = spread_out
  wanted = conv(whole, reverse, groups=groups, dilation=dilations)[:, :, padding:padding + size]
  wanted = np.pad(wanted, [(0, 0), (0, 0), (0, size - wanted.shape[2]), (0, 5 - wanted.shape[3])])
  got = (y * Tensor(g)).sum().gradient(a)[0]
  np.testing.assert_allclose(np.array(got.tolist()), wanted, atol=2e-5)

@pytest.mark.slow
def test_an_infinite_gradient_reaches_its_own_window_only():
  """Phases with fewer elements of the kernel than others multiply nothing in the missing places."""
  a = Tensor.ones(1, 1, 9, requires_grad=True)
  g = Tensor([1.0, math.inf, 1.0, 1.0])
  got = (a.conv2d(Tensor.ones(1, 1, 3), stride=2) * g).sum().gradient(a)[0]
  assert got.tolist() == [[[1.0, 1.0, math.inf, math.inf, math.inf, 1.0, 2.0, 1.0, 1.0]]]
  assert Tensor([[[1.0, math.inf]]]).conv_transpose2d(Tensor.ones(1, 1, 3),
                                                      stride=2).tolist() == [[[1.0, 1.0, math.inf, math.inf, math.inf]]]

@pytest.mark.slow
def test_second_derivative_of_a_convolution():
  x, w = arrays((1, 1, 4, 4), (1, 1, 3, 3), dtype=np.float64)
  check_gradient(lambda a: (a.conv2d(Tensor(w), padding=1) ** 3).sum().gradient(a)[0], x)

@pytest.mark.slow
@pytest.mark.parametrize("n, size, stride, dilation", [(7, 3, 1, 1), (7, 3, 2, 1), (9, 3, 1, 2), (10, 2, 3, 1),
                                                       (8, 3, 2, 3), (5, 5, 1, 1),
  (6, 2, 2, 1), (7, 1, 2, 1), (11, 4, 3, 2)])
def test_windows_and_their_transpose(n, size, stride, dilation):
  """windows reads index window * stride + element * dilation. unwindow sums the values that were read from an index, as
  the gradient does."""
  x = Tensor(np.arange(n, dtype=np.float32)).uop
  view = windows(x, 0, size, stride, dilation)
  count = (n - dilation * (size - 1) - 1) // stride + 1
  places = np.arange(size)[:, None] * dilation + np.arange(count)[None] * stride
  same(Tensor(view), places.astype(np.float32))
  g = np.cos(np.arange(size * count)).reshape(size, count).astype(np.float32)
  want = np.zeros(n, np.float32)
  np.add.at(want, places, g)
  same(Tensor(unwindow(Tensor(g).uop, 0, n, stride, dilation)), want)
  found = gradients(view, Tensor(g).uop, [x])[0]
  assert found is not None
  same(Tensor(graph.contiguous(found)), want)

@pytest.mark.slow
@pytest.mark.parametrize("x, w, options", [
  ((1, 2, 3, 3), (2, 3, 2, 2), {}),
  ((2, 4, 3, 2), (4, 1, 3, 3), {"groups": 2, "stride": 2, "padding": 1, "output_padding": 1}),
    ((1, 2, 4), (2, 2, 3), {"dilation": 2, "padding": 1})])
def test_conv_transpose_is_the_transpose(x, w, options):
  """Check <conv(y), x> == <y, conv_transpose(x)> for all y: the definition of the transpose."""
  a, b = arrays(x, w, dtype=np.float64)
  got = Tensor(a).conv_transpose2d(Tensor(b), **options)
  n = len(x) - 2
  plain = {k: v for k, v in options.items() if k != "output_padding"}
  y = arrays(tuple(got.shape), dtype=np.float64, seed=5)[0]
  forward = Tensor(y).conv2d(Tensor(b), **plain)
  assert forward.shape == x and n
  np.testing.assert_allclose((forward.numpy() * a).sum(), (y * got.numpy()).sum(), rtol=1e-9)

def test_output_padding_is_less_than_stride_or_dilation():
  x, w = Tensor.ones(1, 1, 4), Tensor.ones(1, 1, 3)
  for output_padding, stride, dilation, size in ((1, 2, 1, 10), (2, 1, 3, 12), (2, 2, 3, 15)):
    assert x.conv_transpose2d(w, stride=stride, dilation=dilation, output_padding=output_padding).shape == (1, 1, size)
  for output_padding, stride, dilation in ((1, 1, 1), (2, 2, 1), (3, 2, 2)):
    with pytest.raises(ArgumentError, match=f"output_padding {output_padding} is for a stride or dilation above it, "
                       f"and these are {stride} and"):
      x.conv_transpose2d(w, stride=stride, dilation=dilation, output_padding=output_padding)
  with pytest.raises(ArgumentError, match="output_padding 1 is"): nn.ConvTranspose1d(1, 1, 3, output_padding=1)(x)

def pool(x, fold, kernel, stride=None, dilation=1, padding=0, value=0.0):
  n = len(kernel)
  x = np.pad(x, [(0, 0)] * (x.ndim - n) + pairs(padding, n), constant_values=value)
  out = None
  for at, counts, part in windows_of(x, kernel, stride or kernel, spread(dilation, n)):
    if out is None: out = np.zeros((*x.shape[:-n], *counts), np.float32)
    out[(..., *at)] = fold(part, axis=tuple(range(-n, 0)))
  return out

@pytest.mark.slow
@pytest.mark.parametrize("kernel, stride, dilation, padding",
                         [((2, 2), None, 1, 0), ((3, 3), (2, 2), 1, 1), ((3, 2), (1, 2), 2, (1, 0)),
                          ((2, 2), (3, 3), 1, 0), ((2,), (1,), 1, 0)])
def test_pooling(kernel, stride, dilation, padding):
  compare(lambda t: t.max_pool2d(kernel, stride, dilation, padding),
          lambda a: pool(a, np.max, kernel, stride, dilation, padding, -np.inf),
    (1, 2, 7, 8))
  compare(lambda t: t.avg_pool2d(kernel, stride, dilation, padding),
          lambda a: pool(a, np.mean, kernel, stride, dilation, padding), (1, 2, 7, 8))
  check_gradient(lambda t: t.max_pool2d(kernel, stride, dilation, padding), (1, 1, 5, 6))
  check_gradient(lambda t: t.avg_pool2d(kernel, stride, dilation, padding), (1, 1, 5, 6))

@pytest.mark.slow
def test_pooling_modes():
  x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
  assert Tensor(x).max_pool2d(2, ceil_mode=True).tolist() == [[[[6, 8, 9], [16, 18, 19], [21, 23, 24]]]]
  assert Tensor(x).avg_pool2d(2, ceil_mode=True).tolist() == [[[[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]]]
  ones = Tensor.ones(1, 1, 3, 3)
  assert ones.avg_pool2d(2, 1, padding=1, count_include_pad=False).tolist() == [[[[1.0] * 4] * 4]]
  assert ones.avg_pool2d(2, 1, padding=1)[0, 0, 0].tolist() == [0.25, 0.5, 0.5, 0.25]
  assert ones.avg_pool2d(2, 2, padding=1, ceil_mode=True)[0, 0].tolist() == [[0.25, 0.5], [0.5, 1.0]]
  best, places = Tensor(x).max_pool2d(2, return_indices=True)
  assert places.tolist() == [[[[6, 8], [16, 18]]]] and best.tolist() == [[[[6, 8], [16, 18]]]]
  back = best.max_unpool2d(places, output_size=(5, 5)).numpy()
  assert back[0, 0, 3, 3] == 18 and back.sum() == 48 and best.max_unpool2d(places).shape == (1, 1, 4, 4)
  assert Tensor([[[3, 3], [3, 3]]]).max_pool2d(2, return_indices=True)[1].tolist() == [[[0]]]

@pytest.mark.slow
def test_unpooling_takes_the_options_of_the_pooling():
  x = np.random.default_rng(0).permutation(63).reshape(1, 1, 9, 7).astype(np.float32) + 1
  for options in ({"kernel_size": (3, 2), "stride": 2, "dilation": (1, 2)},
                  {"kernel_size": 2, "dilation": 3, "stride": 1},
                  {"kernel_size": 3, "stride": 1}):
    best, places = Tensor(x).max_pool2d(**options, return_indices=True)
    back = best.max_unpool2d(places, **options).numpy()
    want = np.where(np.isin(x, best.numpy()), x, 0)
    assert back.shape == x.shape and (back == want).all()

@pytest.mark.slow
def test_interpolate():
  x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
  assert Tensor(x).interpolate((8,)).tolist() == [[[0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]]]
  assert Tensor(x).interpolate((7,), align_corners=True).tolist() == [[[0, 0.5, 1, 1.5, 2, 2.5, 3]]]
  assert Tensor(x).interpolate((6,), mode="nearest").tolist() == [[[0, 0, 1, 2, 2, 3]]]
  assert Tensor(x).interpolate((3,), mode="nearest-exact").tolist() == [[[0, 2, 3]]]
  assert Tensor(x.reshape(1, 1, 2, 2)).interpolate((4, 3)).shape == (1, 1, 4, 3)

@pytest.mark.slow
def test_half_precision_accumulates_in_float32():
  x = Tensor(np.full((1, 1, 50, 50), 1.0, np.float16))
  assert x.conv2d(Tensor(np.full((1, 1, 50, 50), 1.0, np.float16))).item() == 2500.0 and math.isfinite(x.sum().item())

@pytest.mark.parametrize("f, error, text", [
  (lambda: Tensor.ones(1, 3, 4, 4).conv2d(Tensor.ones(2, 2, 3, 3)), ShapeError,
   "the input has 3 channels, the weight is for 1 x 2"),
  (lambda: Tensor.ones(3, 4, 4).conv2d(Tensor.ones(2, 3, 3, 3)), ShapeError, "unsqueeze"),
  (lambda: Tensor.ones(1, 1, 2, 2).conv2d(Tensor.ones(1, 1, 3, 3)), ShapeError, "window of 3"),
  (lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 3, 3), stride=(1, 1, 1)), ArgumentError, "stride"),
  (lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 3, 3), padding=(1,)), ArgumentError, "padding"),
  (lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 3, 3), stride=0), ArgumentError, "stride is 0.*at least 1"),
  (lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 3, 3), padding="same"), ArgumentError, "nn.Conv2d knows"),
  (lambda: Tensor.ones(4, 4).conv2d(5), ArgumentError, "conv2d wants a Tensor, not 5"),
  (lambda: Tensor.ones(4, 4).conv2d(Tensor.ones(3)), ShapeError, "cannot conv2d"),
  (lambda: Tensor.ones(2, 2).interpolate(2), ArgumentError, "a tuple of sizes"),
  (lambda: Tensor.ones(4, 4).max_pool2d(0), ArgumentError, "kernel_size is 0.*at least 1"),
  (lambda: Tensor.ones(4, 4).max_pool2d(2, stride=0), ArgumentError, "stride is 0.*at least 1"),
  (lambda: Tensor.ones(2, 2).max_pool2d(3), ShapeError, "cannot pool"),
  (lambda: Tensor.ones(2, 2).interpolate((2,), mode="cubic"), ArgumentError, "mode")])
def test_refusals(f, error, text):
  with pytest.raises(error, match=text): f()

@pytest.mark.slow
@pytest.mark.parametrize("f", [
  lambda x, w: x.conv2d(w), lambda x, w: x.conv2d(w, padding=1, stride=2), lambda x,
  w: x.conv2d(w, dilation=2, padding=(1, 2)),
  lambda x, w: x.max_pool2d(2), lambda x, w: x.avg_pool2d(2, stride=1, padding=1), lambda x,
  w: x.conv_transpose2d(w, stride=2),
  lambda x, w: x.max_pool2d(2, ceil_mode=True),
  lambda x, w: x.interpolate((3, 4))])
def test_symbolic_sizes_give_what_numbers_give(f):
  a, v, n = Tensor.arange(72).reshape(2, 1, 6, 6).float().realize(), UOp.variable("v", 1,
                                                                                  6).bind(5), UOp.variable(
    "n", 1, 2).bind(2)
  def run(x):
    w = Tensor([[[[1.0, 2.0], [-1.0, 0.5]]]]).requires_grad_()
    y = f(x, w)
    return [y, *y.square().sum().gradient(x, w)] if "conv" in str(f.__code__.co_names) else [y]
  for got, want in zip(run(a[:n, :, :v, 1:v]), run(a[:, :, :5, 1:5])): same(got, want.numpy(), rtol=1e-5)

def test_a_window_has_an_axis():
  x = Tensor.ones(1, 1, 4, 4)
  for pool in (x.avg_pool2d, x.max_pool2d, lambda kernel: x.avg_pool2d(kernel, count_include_pad=False),
               lambda kernel: x.max_unpool2d(x, kernel)):
    with pytest.raises(ArgumentError, match="kernel_size is empty; give the size"): pool(())

def test_a_bias_of_16_bits_is_added_before_rounding():
  """2049 is no float16. With the bias it is 2050, which is one."""
  x, w, b = (Tensor(v, dtype="float16") for v in ([[[2048.0]], [[1.0]]], [[[[1.0]], [[1.0]]]], [1.0]))
  found = x.unsqueeze(0).conv2d(w, b)
  assert found.dtype is x.dtype and found.tolist() == [[[[2050.0]]]]
