"""Layers against PyTorch's with the same parameters, and the distributions of initial values.

This runs on one device. test_init.py runs on all engines.
"""
from __future__ import annotations
from collections.abc import Iterator

import numpy as np
import pytest

from test.helpers import arrays, on, same
from tinyhw import nn
from tinyhw.config import DEV
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor

@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
  with on(DEV.value or "PYTHON"): yield

LAYERS = {   # name: ours, PyTorch's, the input's shape
  "Linear": (lambda: nn.Linear(5, 3), lambda t: t.Linear(5, 3), (4, 5)),
  "Linear bias": (lambda: nn.Linear(5, 3, bias=False), lambda t: t.Linear(5, 3, bias=False), (4, 5)),
  "Conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2),
             lambda t: t.Conv1d(4, 6, 3, 2, 1, 2, 2), (2, 4, 12)),
  "Conv1d bias": (lambda: nn.Conv1d(2, 2, 2, bias=False), lambda t: t.Conv1d(2, 2, 2, bias=False), (1, 2, 4)),
  "Conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2),
    lambda t: t.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), groups=2), (2, 4, 7, 6)),
  "Conv2d same": (lambda: nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(2, 1)),
    lambda t: t.Conv2d(2, 3, (4, 3), padding="same", dilation=(2, 1)), (1, 2, 9, 6)),
  "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
    lambda t: t.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), (2, 4, 5)),
  "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
                      lambda t: t.ConvTranspose2d(4, 6, 3, 2, 1, 1), (2, 4, 5, 4)),
  "BatchNorm": (lambda: nn.BatchNorm(3), lambda t: t.BatchNorm1d(3), (4, 3)),
  "BatchNorm2d": (lambda: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3),
                  lambda t: t.BatchNorm2d(3, 1e-3, 0.3), (4, 3, 2, 2)),
  "BatchNorm3d": (lambda: nn.BatchNorm3d(3), lambda t: t.BatchNorm3d(3), (2, 3, 2, 2, 2)),
  "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda t: t.GroupNorm(2, 4), (3, 4, 5)),
  "InstanceNorm": (lambda: nn.InstanceNorm(4), lambda t: t.InstanceNorm2d(4, affine=True), (3, 4, 5, 2)),
  "LayerNorm": (lambda: nn.LayerNorm((4, 5), eps=1e-3), lambda t: t.LayerNorm((4, 5), 1e-3), (3, 4, 5)),
  "LayerNorm plain": (lambda: nn.LayerNorm(5, elementwise_affine=False),
                      lambda t: t.LayerNorm(5, elementwise_affine=False), (3, 4, 5)),
  "RMSNorm": (lambda: nn.RMSNorm(5), lambda t: t.RMSNorm(5, eps=1e-6), (3, 4, 5)),
  "LSTMCell": (lambda: nn.LSTMCell(5, 3), lambda t: t.LSTMCell(5, 3), (4, 5)),
  "LSTMCell bias": (lambda: nn.LSTMCell(5, 3, bias=False), lambda t: t.LSTMCell(5, 3, bias=False), (4, 5)),
}

@pytest.mark.parametrize("name, training", [(name, training) for name in LAYERS for training in (False, True)
                                            if not training or "Batch" in name])
def test_layers_are_those_of_pytorch(name, training):
  """With PyTorch's parameters, by the same keys, results, learnt statistics and all gradients are equal."""
  torch = pytest.importorskip("torch")
  make, theirs, shape = LAYERS[name]
  layer, other = make(), theirs(torch.nn).train(training)
  with torch.no_grad():
    for p in other.parameters(): p.add_(torch.linspace(-0.2, 0.2, p.numel()).reshape(p.shape))
  nn.state.load_state_dict(layer, {k: Tensor(v.numpy()) for k, v in other.state_dict().items()}, verbose=False)
  x = arrays(shape)[0]
  t, tensor = torch.tensor(x, requires_grad=True), Tensor(x)
  with Tensor.train(training):
    for _ in range(2): y, want = layer(tensor), other(t)
    if isinstance(y, tuple): y, want = y[0] + 2 * y[1], want[0] + 2 * want[1]
    same(y, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    weights = np.cos(np.arange(y.numel(), dtype=np.float32)).reshape(y.shape)
    named = {k: v for k, v in nn.state.get_state_dict(layer).items() if v.requires_grad is not False}
    found = (y * Tensor(weights)).sum().gradient(tensor, *named.values())
  (want * torch.tensor(weights)).sum().backward()
  parameters = dict(other.named_parameters())
  assert set(named) == set(parameters)
  for key, g, w in zip(["the input", *named], found, [t, *[parameters[k] for k in named]]):
    np.testing.assert_allclose(g.numpy(), w.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=key)
  for key, value in other.named_buffers():
    np.testing.assert_allclose(nn.state.get_state_dict(layer)[key].numpy(), value.numpy(), rtol=1e-5, err_msg=key)

@pytest.mark.parametrize("make, bounds", [
  (lambda: nn.Linear(100, 40), {"weight": 0.1, "bias": 0.1}),
  (lambda: nn.Conv2d(8, 16, 3), {"weight": 72 ** -0.5, "bias": 72 ** -0.5}),
  (lambda: nn.Conv1d(8, 16, 3, groups=2), {"weight": 12 ** -0.5}),
  (lambda: nn.ConvTranspose2d(8, 16, 3, groups=2), {"weight": 72 ** -0.5}),
  (lambda: nn.LSTMCell(10, 16), {"weight_ih": 0.25, "weight_hh": 0.25}),
  (lambda: nn.Embedding(50, 10), {"weight": 0.1 ** 0.5})])
def test_initial_values_are_uniform_within_their_bounds(make, bounds):
  parameters = nn.state.get_state_dict(make())
  for key, bound in bounds.items():
    x = parameters[key].numpy()
    assert (abs(x).max() <= bound and (abs(x).max() > 0.98 * bound or x.size < 100)
            and abs(x.mean()) < 4 * bound / np.sqrt(3 * x.size))
    if x.size > 100: assert abs(x.std() - bound / np.sqrt(3)) < 0.1 * bound

@pytest.mark.parametrize("make, names", [
  (lambda: nn.Linear(2, 3), {"weight": "uniform", "bias": "uniform"}),
  (lambda: nn.BatchNorm(2), {"weight": 1, "bias": 0, "running_mean": 0, "running_var": 1}),
  (lambda: nn.LayerNorm(2), {"weight": 1, "bias": 0}), (lambda: nn.GroupNorm(1, 2), {"weight": 1, "bias": 0}),
  (lambda: nn.RMSNorm(2), {"weight": 1})])
def test_initial_constants(make, names):
  for key, value in names.items():
    x = nn.state.get_state_dict(make())[key]
    if value != "uniform": assert x.tolist() == [value] * 2
    assert x.requires_grad is (False if "running" in key else None)

@pytest.mark.parametrize("call, message", [
  (lambda: nn.Linear(-1, 2), "in_features is -1"), (lambda: nn.Linear(2, "a"), "out_features is a whole number"),
  (lambda: nn.Linear(2, 2)([1.0, 2.0]), "Linear is called with a Tensor"),
  (lambda: nn.Conv2d(1, 1, 0), "kernel_size is 0"),
  (lambda: nn.Conv2d(2, 2, 1, groups=0), "groups is 0"), (lambda: nn.Conv2d(2, 2, (1, 2, 3)), "one for each of 2 axes"),
  (lambda: nn.Conv2d(1, 1, 1)(3), "Conv2d is called with a Tensor"),
  (lambda: nn.BatchNorm(3)(Tensor.ones(2, 4)), "must have 3 channels"),
  (lambda: nn.BatchNorm(3)(Tensor.ones(3)), "must have 3 channels"),
  (lambda: nn.LayerNorm("a"), "normalized_shape is a whole number"),
  (lambda: nn.LayerNorm2d(3)(Tensor.ones(2, 3, 4)), "wants images"),
  (lambda: nn.GroupNorm(2, 4)(Tensor.ones(2, 6, 3)), "4 channels does not fit"),
  (lambda: nn.GroupNorm(2, 4)(Tensor.ones(4)), "4 channels does not fit"),
  (lambda: nn.RMSNorm(3)([1.0]), "RMSNorm is called with a Tensor"),
  (lambda: nn.Embedding(3, 2)(1), "Embedding is called with a Tensor"), (lambda: nn.LSTMCell(3, 0), "hidden_size is 0"),
  (lambda: nn.LSTMCell(3, 2)(Tensor.ones(3)), "wants .batch, inputs."),
  (lambda: nn.LSTMCell(3, 2)(Tensor.ones(1, 3), 3), "wants .hidden, cell.")])
def test_refusals(call, message):
  with pytest.raises(ArgumentError, match=message): call()

def test_nothing():
  assert (nn.Linear(0, 2, bias=False)(Tensor.ones(3, 0)).tolist() == [[0.0, 0.0]] * 3
          and nn.Linear(3, 2)(Tensor.ones(0, 3)).shape == (0, 2))
  assert nn.GroupNorm(2, 4)(Tensor.ones(0, 4, 3)).shape == (0, 4,
                                                            3) and nn.BatchNorm(0)(Tensor.ones(2, 0)).shape == (2, 0)
  assert nn.Embedding(3, 2)(Tensor([], dtype="int32")).shape == (0, 2)
