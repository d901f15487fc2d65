"""Layers against plain formulas, and their state-dict keys."""

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, same
from test.whole.test_models import Block
from tinyhw import nn
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

pytestmark = pytest.mark.usefixtures("engine")

@pytest.mark.parametrize("layer, keys", [
  (lambda: nn.BatchNorm(2), "bias num_batches_tracked running_mean running_var weight"),
    (lambda: nn.BatchNorm2d(2), "bias num_batches_tracked running_mean running_var weight"),
  (lambda: nn.Conv1d(2, 2, 3), "bias weight"), (lambda: nn.Conv2d(2, 2, 3), "bias weight"),
  (lambda: nn.ConvTranspose1d(2, 2, 3), "bias weight"),
  (lambda: nn.ConvTranspose2d(2, 2, 3), "bias weight"), (lambda: nn.Linear(2, 3), "bias weight"),
  (lambda: nn.GroupNorm(1, 2), "bias weight"),
  (lambda: nn.InstanceNorm(2), "bias weight"), (lambda: nn.LayerNorm(2), "bias weight"),
  (lambda: nn.LayerNorm2d(2), "bias weight"),
  (lambda: nn.RMSNorm(2), "weight"),
  (lambda: nn.Embedding(3, 2), "weight"), (lambda: nn.LSTMCell(2, 3), "bias_hh bias_ih weight_hh weight_ih"),
  (lambda: nn.Linear(2, 3, bias=False), "weight")])
def test_state_dict_keys(layer, keys): assert sorted(nn.state.get_state_dict(layer())) == keys.split()

def test_linear():
  layer, x = nn.Linear(3, 4), arrays((2, 3))[0]
  w, b = layer.weight.numpy(), layer.bias.numpy()
  assert w.shape == (4, 3) and abs(w).max() <= 3 ** -0.5
  same(layer(Tensor(x)), x @ w.T + b)

def test_convolutions():
  x = Tensor(arrays((1, 4, 5, 6))[0])
  layer = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
  assert layer.weight.shape == (6, 2, 3, 3) and layer(x).shape == (1, 6, 3, 3)
  assert (nn.Conv2d(4, 2, (3, 2), padding="same")(x).shape == (1, 2, 5, 6)
          and nn.Conv2d(4, 2, 3, padding="valid")(x).shape == (1, 2, 3, 4))
  assert (nn.Conv1d(4, 2, 3)(x[:, :, 0]).shape == (1, 2, 4) and nn.ConvTranspose1d(4, 2, 3, stride=2)(x[:, :, 0]).shape
          == (1, 2, 13))
  up = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
  assert up.weight.shape == (4, 3, 3, 3) and up(x).shape == (1, 6, 10, 12)
  with pytest.raises(ArgumentError, match="groups=2"): nn.Conv2d(3, 2, 3, groups=2)
  with pytest.raises(ArgumentError, match="stride 1"): nn.Conv2d(2, 2, 3, stride=2, padding="same")

def test_batchnorm_computes_with_narrow_statistics_in_float32():
  """eps was once added to a variance, and its root taken, in float16."""
  layer, x = nn.BatchNorm(4, affine=False), arrays((6, 4))[0]
  layer.running_mean, layer.running_var = Tensor([0.5, -1.0, 0.0, 2.0]).half(), Tensor([1e-6, 2e-5, 1e-4, 3.3]).half()
  mean, var = layer.running_mean.numpy().astype(np.float64), layer.running_var.numpy().astype(np.float64)
  np.testing.assert_allclose(layer(Tensor(x)).numpy(), (x - mean) / np.sqrt(var + 1e-5), rtol=1e-6)

def test_batchnorm_learns_statistics():
  layer, x = nn.BatchNorm(3, momentum=0.5), arrays((4, 3, 2, 2))[0]
  mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
  same(layer(Tensor(x)), x / np.float32(np.sqrt(1 + 1e-5)))
  with Tensor.train():
    same(layer(Tensor(x)), (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5))
    layer(Tensor(x))
  same(layer.running_mean, mean * 0.75)
  same(layer.running_var, 0.25 + 0.75 * var * 16 / 15)
  assert (layer.num_batches_tracked.item() == 2 and layer.num_batches_tracked.dtype is dtypes.int64
          and layer.running_mean.requires_grad is False)
  plain = nn.BatchNorm(3, affine=False, track_running_stats=False)
  same(plain(Tensor(x)), (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5))

@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}])
def test_batchnorm_has_the_type_of_its_input_and_weights(training, options):
  layer, x = nn.BatchNorm(3, **options), Tensor(arrays((4, 3, 2, 2))[0])
  with Tensor.train(training):
    expected = layer(x)
    assert layer(x.half()).dtype is (dtypes.float16 if layer.weight is None else dtypes.float32)
    for t in (layer.weight, layer.bias):
      if t is not None: t.replace(t.half())
    got = layer(x.half())
    assert (got.dtype is dtypes.float16 and layer(x).dtype is dtypes.float32
            and layer(x.double()).dtype is dtypes.float64)
    same(got.float(), expected.numpy(), atol=4e-3)

def test_norms():
  x = arrays((2, 4, 3))[0]
  def standard(a, axes): return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
  same(nn.LayerNorm(3)(Tensor(x)), standard(x, -1))
  same(nn.LayerNorm((4, 3))(Tensor(x)), standard(x, (1, 2)))
  same(nn.GroupNorm(2, 4)(Tensor(x)), standard(x.reshape(2, 2, 6), -1).reshape(x.shape))
  same(nn.InstanceNorm(4)(Tensor(x)), standard(x, -1))
  same(nn.RMSNorm(3)(Tensor(x)), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))
  same(nn.LayerNorm2d(4)(Tensor(x[..., None])), standard(x, 1)[..., None])
  with pytest.raises(ArgumentError, match="does not fit"): nn.LayerNorm(5)(Tensor(x))
  with pytest.raises(ArgumentError, match="groups"): nn.GroupNorm(3, 4)

def test_embedding():
  layer = nn.Embedding(5, 3)
  same(layer(Tensor([[0, 4], [2, 2]])), layer.weight.numpy()[[[0, 4], [2, 2]]])
  with pytest.raises(ArgumentError, match="integers"): layer(Tensor([1.0]))

def test_lstm_cell():
  cell, x = nn.LSTMCell(2, 3), arrays((4, 2))[0]
  w, u, b = cell.weight_ih.numpy(), cell.weight_hh.numpy(), cell.bias_ih.numpy() + cell.bias_hh.numpy()
  h = c = np.zeros((4, 3), np.float32)
  got = None
  for _ in range(2):
    got = cell(Tensor(x), got)
    i, f, g, o = np.split(x @ w.T + h @ u.T + b, 4, 1)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
  same(got, (h, c))

def test_parameters_that_begin_equal_stay_apart():
  a, b = nn.Linear(2, 2, bias=False), nn.LayerNorm(2)
  assert len({t.uop for t in nn.state.get_parameters([a, b])}) == 3
  x = Tensor([[1.0, 2.0]])
  b(a(x)).square().sum().backward()
  assert b.bias.grad.tolist() != b.weight.grad.tolist()

def test_a_block_learns():
  block = Block(4, 2, 3)
  for t in nn.state.get_parameters(block): t.replace(t.double()) if t.requires_grad is not False else None
  check_gradient(lambda x: block(x), (1, 2, 4), tolerance=1e-5)
