"""Realistic networks, against NumPy on every engine: values, gradients, training, a jitted block with a cache, random
numbers."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from test.helpers import ENGINES, arrays, on, same
from tinyhw import Tensor, TinyJit, UOp, nn

# ***** NumPy's side *****

def conv(x: Any, w: Any, stride: int = 1, pad: int = 0) -> Any:
  padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
  windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
  return np.einsum("bchwij,ocij->bohw", windows, w)

def pool(x: Any, kernel: tuple[int, int], stride: tuple[int, int]) -> Any:
  return np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))[:, :, ::stride[0], ::stride[1]].max((-1, -2))

def batchnorm(x: Any, s: dict[str, Any], name: str, train: bool) -> Any:
  shape = (1, -1, 1, 1)
  mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if train else (s[f"{name}.running_mean"], s[f"{name}.running_var"])
  scaled = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5)
  return scaled * s[f"{name}.weight"].reshape(shape) + s[f"{name}.bias"].reshape(shape)

def layernorm(x: Any, s: dict[str, Any], name: str) -> Any:
  return ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * s[f"{name}.weight"]
          + s[f"{name}.bias"])

def linear(x: Any, s: dict[str, Any], name: str) -> Any: return x @ s[f"{name}.weight"].T + s[f"{name}.bias"]

def relu(x: Any) -> Any: return np.maximum(x, 0)

def gelu(x: Any) -> Any: return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))

def softmax(x: Any) -> Any:
  e = np.exp(x - x.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)

def cross_entropy(scores: Any, y: Any) -> float: return float(-np.log(softmax(scores)[np.arange(len(y)), y]).mean())

State = dict[str, Any]

def state_of(model: Any) -> State:
  return {k: t.numpy().astype(np.float64) for k, t in nn.state.get_state_dict(model).items()}

def randomized(model: Any) -> Any:
  """Return the model with float64 parameters, none of which is 0 or 1."""
  for k, (name, t) in enumerate(nn.state.get_state_dict(model).items()):
    if name.endswith("num_batches_tracked"): continue
    value = (arrays(t.shape, low=0.5, high=1.5, dtype=np.float64, seed=k)[0] if "running" in name or t.ndim == 1
             else None)
    if value is None: value = arrays(t.shape, low=-0.5, high=0.5, dtype=np.float64, seed=k)[0]
    t.replace(Tensor(value))
  return model

# ***** models *****

class Mlp:
  """Two linear layers."""
  def __init__(self) -> None: self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 3)
  def __call__(self, x: Tensor) -> Tensor: return self.second(self.first(x.flatten(1)).relu())
  @staticmethod
  def numpy(x: Any, s: State, train: bool) -> Any:
    return linear(relu(linear(x.reshape(len(x), -1), s, "first")), s, "second")

class Convnet:
  """A convolution, batchnorm, pooling, a linear layer."""
  def __init__(self) -> None:
    self.conv, self.norm, self.linear = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), nn.Linear(4 * 1 * 1, 3)
  def __call__(self, x: Tensor) -> Tensor:
    return self.linear(self.norm(self.conv(x)).relu().max_pool2d((2, 3)).flatten(1))
  @staticmethod
  def numpy(x: Any, s: State, train: bool) -> Any:
    y = conv(x, s["conv.weight"], pad=1) + s["conv.bias"].reshape(1, -1, 1, 1)
    return linear(pool(relu(batchnorm(y, s, "norm", train)), (2, 3), (2, 3)).reshape(len(x), -1), s, "linear")

class Residual:
  """Two convolutions and a way around them."""
  def __init__(self, inputs: int, outputs: int, stride: int):
    self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(outputs)
    self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm(outputs)
    self.around = ([nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm(outputs)] if stride > 1
                   else [])

  def __call__(self, x: Tensor) -> Tensor:
    return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + x.sequential(self.around)).relu()

class ResNet18:
  """With `width` channels in the first group, instead of 64."""
  def __init__(self, width: int = 2, classes: int = 3):
    self.conv1, self.bn1 = nn.Conv2d(1, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm(width)
    sizes = [width << k for k in range(4)]
    self.groups = [[Residual(sizes[max(k - 1, 0)], sizes[k], 2 if k else 1), Residual(sizes[k], sizes[k], 1)]
                   for k in range(4)]
    self.fc = nn.Linear(sizes[3], classes)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.bn1(self.conv1(x)).relu().pad((1, 1, 1, 1)).max_pool2d((3, 3), stride=2)
    for group in self.groups: x = x.sequential(group)
    return self.fc(x.mean((2, 3)))

  @staticmethod
  def numpy(x: Any, s: State, train: bool) -> Any:
    x = relu(batchnorm(conv(x, s["conv1.weight"], 2, 3), s, "bn1", train))
    x = pool(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 2))
    for group in range(4):
      for block in range(2):
        p, stride = f"groups.{group}.{block}", 2 if group and not block else 1
        y = relu(batchnorm(conv(x, s[f"{p}.conv1.weight"], stride, 1), s, f"{p}.bn1", train))
        y = batchnorm(conv(y, s[f"{p}.conv2.weight"], 1, 1), s, f"{p}.bn2", train)
        around = x if stride == 1 else batchnorm(conv(x, s[f"{p}.around.0.weight"], 2), s, f"{p}.around.1", train)
        x = relu(y + around)
    return linear(x.mean((2, 3)), s, "fc")

@pytest.mark.slow
@pytest.mark.parametrize("kind", [Mlp, Convnet])
def test_values_and_gradients(engine, kind):
  """The gradient's product with a direction is the slope of NumPy's loss in that direction."""
  x, y = arrays((8, 1, 2, 3), dtype=np.float64)[0], np.arange(8) % 3
  with Tensor.train():
    model = randomized(kind())
    state, parameters = state_of(model), {k: t for k, t in nn.state.get_state_dict(model).items() if "running" not in k
                                          and "num_" not in k}
    scores = model(Tensor(x))
    same(scores, kind.numpy(x, state, True), rtol=1e-10, atol=1e-10)
    found = scores.sparse_categorical_crossentropy(Tensor(y)).gradient(*parameters.values())
    gradients = {k: g.numpy() for k, g in zip(parameters, found)}
  for seed in range(3):
    direction = {k: arrays(state[k].shape, dtype=np.float64, seed=seed + 10 * i)[0] for i, k in enumerate(parameters)}
    def loss(step: float, direction: State = direction) -> float:
      return cross_entropy(kind.numpy(x, {**state, **{k: state[k] + step * d for k, d in direction.items()}}, True), y)
    slope = (loss(1e-6) - loss(-1e-6)) / 2e-6
    assert sum((gradients[k] * d).sum() for k, d in direction.items()) == pytest.approx(slope, rel=1e-4, abs=1e-6)

@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "interpreter"])   # which would take a minute
def test_resnet18(name):
  x = arrays((1, 1, 16, 16), dtype=np.float64)[0]
  with on(name):
    model = randomized(ResNet18())
    same(model(Tensor(x)), ResNet18.numpy(x, state_of(model), False), rtol=1e-8)

# ***** training *****

OPTIMIZERS: dict[str, tuple[Callable[[list[Tensor]], Any], dict[str, float]]] = {
  "sgd": (lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9), {}),
  "adam": (lambda p: nn.optim.Adam(p, lr=0.01, eps=1e-3), {"decay": 0.0}),
  "adamw": (lambda p: nn.optim.AdamW(p, lr=0.01, eps=1e-3), {"decay": 0.01}),
}

def gradients_of(x: Any, y: Any, s: State) -> State:
  """Backpropagation through Mlp by hand."""
  flat = x.reshape(len(x), -1)
  hidden = relu(linear(flat, s, "first"))
  d = (softmax(linear(hidden, s, "second")) - np.eye(3)[y]) / len(x)
  inner = (d @ s["second.weight"]) * (hidden > 0)
  return {"first.weight": inner.T @ flat, "first.bias": inner.sum(0), "second.weight": d.T @ hidden,
          "second.bias": d.sum(0)}

def train_numpy(x: Any, y: Any, s: State, name: str, steps: int) -> list[float]:
  losses, m, v = [], {k: 0.0 for k in s}, {k: 0.0 for k in s}
  for t in range(1, steps + 1):
    losses.append(cross_entropy(Mlp.numpy(x, s, True), y))
    for k, g in gradients_of(x, y, s).items():
      if name == "sgd":
        m[k] = 0.9 * m[k] + g
        s[k] = s[k] - 0.1 * m[k]
        continue
      m[k], v[k] = 0.9 * m[k] + 0.1 * g, 0.999 * v[k] + 0.001 * g * g
      step = m[k] / (1 - 0.9 ** t) / (np.sqrt(v[k] / (1 - 0.999 ** t)) + 1e-3)
      s[k] = s[k] - 0.01 * (step + OPTIMIZERS[name][1]["decay"] * s[k])
  return losses

@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(engine, name, jit):
  if engine == "interpreter" and jit: pytest.skip("the interpreter stands in for what TinyJit captures")
  x, y = arrays((8, 1, 2, 3))[0], np.arange(8) % 3
  model = Mlp()
  want = train_numpy(x.astype(np.float64), y, state_of(model), name, 6)
  optimizer = OPTIMIZERS[name][0](nn.state.get_parameters(model))
  @Tensor.train()
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())
  run = TinyJit(step) if jit else step
  inputs = Tensor(x).realize(), Tensor(y.astype(np.int32)).realize()
  np.testing.assert_allclose([run(*inputs).item() for _ in range(6)], want, rtol=2e-5)

# ***** a block with a cache *****

class Block:
  """Like GPT-2's, with a cache of keys and values."""
  def __init__(self, dim: int, heads: int, most: int):
    self.heads, self.dim = heads, dim
    self.attn, self.proj, self.fc, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim,
                                                                                 dim), nn.Linear(
      dim, 4 * dim), nn.Linear(4 * dim, dim)
    self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
    self.cache = Tensor.zeros(2, 1, most, heads, dim // heads, requires_grad=False).contiguous().realize()

  def __call__(self, x: Tensor, start: UOp | int | None = None) -> Tensor:
    """start: the position of the first token, where a cache has those before it; None: all tokens are here, and
    nothing is kept."""
    b, t, _ = x.shape
    q, k, v = (y.reshape(b, t, self.heads, -1) for y in self.attn(self.ln1(x)).chunk(3, -1))
    if start is not None:
      self.cache.shrink((None, None, (start, start + t), None, None)).assign(k.stack(v)).realize()
      k, v = self.cache[0, :, :start + t], self.cache[1, :, :start + t]
    y = q.transpose(1, 2).scaled_dot_product_attention(k.transpose(1, 2), v.transpose(1, 2),
                                                       is_causal=not isinstance(start, UOp) and t > 1)
    x = x + self.proj(y.transpose(1, 2).reshape(b, t, self.dim))
    return x + self.out(self.fc(self.ln2(x)).gelu())

  @staticmethod
  def numpy(x: Any, s: State, heads: int) -> Any:
    """All tokens at once: each sees those before it."""
    t, dim = x.shape
    q, k, v = (y.reshape(t, heads, -1).swapaxes(0, 1) for y in np.split(linear(layernorm(x, s, "ln1"), s, "attn"), 3,
                                                                        -1))
    scores = q @ k.swapaxes(1, 2) / np.sqrt(dim // heads) + np.where(np.tri(t), 0, -np.inf)
    x = x + linear((softmax(scores) @ v).swapaxes(0, 1).reshape(t, dim), s, "proj")
    return x + linear(gelu(linear(layernorm(x, s, "ln2"), s, "fc")), s, "out")

@pytest.mark.slow
def test_a_block_with_a_cache(engine):
  """Two tokens at once, then one at a time: with positions that are numbers, and under TinyJit with a Variable."""
  x, block = arrays((7, 8))[0], Block(8, 2, 7)
  want = Block.numpy(x.astype(np.float64), state_of(block), 2)
  same(block(Tensor(x[None, :2]), 0)[0], want[:2], rtol=1e-4, atol=1e-5, types=False)
  jitted = TinyJit(lambda x, start: block(x, start).realize())
  for i in range(2, 7):
    token = Tensor(x[None, i:i + 1]).realize()
    got = block(token, i) if i == 2 or engine == "interpreter" else jitted(token, UOp.variable("start", 0, 6).bind(i))
    same(got[0, 0], want[i], rtol=1e-4, atol=1e-5, types=False)

# ***** random numbers *****

@pytest.mark.slow
def test_random_numbers_are_the_same_on_every_engine():
  """Uniform numbers and integers to the bit; normal ones as far as the functions in them are."""
  found = {}
  for name in ENGINES:
    try:
      with on(name):
        Tensor.manual_seed(11)
        draws = [Tensor.rand(7, 5), Tensor.randint(9, low=-3, high=50), Tensor.rand(4, dtype="float64"),
                 Tensor.randn(33)]
        found[name] = [t.numpy() for t in (draws if len(found) % 2 else draws[::-1])][::1 if len(found) % 2 else -1]
    except pytest.skip.Exception: continue   # the engine is not here
  assert len(found) >= 2 or len(ENGINES) == 1
  first = next(iter(found.values()))
  for draws in found.values():
    for a, b in zip(draws[:3], first): np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(draws[3], first[3], rtol=2e-6, atol=1e-6)
