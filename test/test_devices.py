"""The same numbers on every device: random programs against NumPy, training against the interpreter, TinyJit against plain calls.

Kernels of the CPU are checked after register allocation (CHECK=1, conftest.py).
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
import numpy as np
import pytest
import tensor_programs

from test.helpers import ENGINES, arrays, on, same
from tinyhw import Context, Device, GlobalCounters, Tensor, TinyJit, UOp, dtypes, nn
from tinyhw.errors import JitError

DEVICES = [name for name in ENGINES if name != "interpreter"]
SHARES = {"CPU": 1.5, "CLANG": 0.15}   # of the examples that hypothesis is to try

@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
  with on(request.param): yield str(Device.DEFAULT)

def everywhere(f: Callable[[], Any], *names: str) -> list[Any]:
  """What f gives on each of these devices."""
  out = []
  for name in names or ("CPU", "PYTHON"):
    with on(name): out.append(f())
  return out

# ***** random programs *****

@pytest.mark.parametrize("name", DEVICES)
def test_random_programs(name):
  @settings(max_examples=int(SHARES.get(name, 1) * settings().max_examples), suppress_health_check=list(HealthCheck))
  @given(tensor_programs.programs())
  def equal_to_numpy(program: tensor_programs.Program) -> None: tensor_programs.check(program, tensor_programs.run(program, Device.DEFAULT))
  with on(name): equal_to_numpy()

def test_optimised_kernels_are_equal_to_plain_ones():
  """Where all arithmetic is exact the order of additions does not matter."""
  with on("CPU"):
    for seed in range(500, 540):
      program = tensor_programs.make(seed, functions=False, inexact=False)
      fast = tensor_programs.run(program, "CPU")
      with Context(NOOPT=1): plain = tensor_programs.run(program, "CPU")
      for a, b in zip(fast, plain): np.testing.assert_array_equal(a, b, err_msg=str(program))
      tensor_programs.check(program, fast)

@pytest.mark.parametrize("kind", ["bfloat16", "fp8e4m3", "fp8e5m2"])
def test_types_that_numpy_does_not_have(kind):
  """Narrow floats are rounded where they are stored, everywhere in the same way."""
  x, y = arrays((37,), (37,), low=-20, high=20)
  def f() -> list[Any]:
    a, b = (Tensor(v).cast(getattr(dtypes, kind)) for v in (x, y))
    results = [a, a + b, (a < b).where(a, b), a.max(), a.cast(dtypes.int32), a.reshape(37, 1).expand(37, 8), a.pad((3, 2)), a.flip(0)]
    results.append(a[Tensor([0, 36, 5])])
    return [r.contiguous().float().numpy() for r in results]
  first, second = everywhere(f)
  for a, b in zip(first, second): np.testing.assert_array_equal(a, b)

# ***** products and convolutions of awkward sizes *****

@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (7, 5, 3), (1, 64, 17), (17, 33, 65), (64, 64, 64), (33, 1, 40), (8, 129, 1), (40, 8, 24)])
def test_matmul(device, m, k, n):
  a, b = (np.round(x * 4) / 4 for x in arrays((m, k), (k, n)))
  same(Tensor(a) @ Tensor(b), a @ b, rtol=0, atol=0)

@pytest.mark.parametrize("x, w, options", [
  ((2, 3, 9, 7), (4, 3, 3, 3), {"padding": 1}), ((1, 4, 8, 8), (8, 2, 3, 3), {"groups": 2, "stride": 2}),
  ((1, 1, 11, 5), (3, 1, 5, 2), {"dilation": 2, "padding": 4}), ((2, 8, 6, 6), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
  ((3, 5, 1, 1), (2, 5, 1, 1), {})])
def test_conv2d(device, x, w, options):
  """Against the definition: each weight times a shifted, strided view of the input."""
  a, b = (np.round(v * 4) / 4 for v in arrays(x, w))
  stride, dilation, pad, groups = (options.get(k, d) for k, d in (("stride", 1), ("dilation", 1), ("padding", 0), ("groups", 1)))
  padded = np.pad(a, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
  h, v = ((padded.shape[2 + i] - dilation * (w[2 + i] - 1) - 1) // stride + 1 for i in (0, 1))
  want = np.zeros((x[0], w[0], h, v), np.float32)
  for i in range(w[2]):
    for j in range(w[3]):
      view = padded[:, :, i * dilation:i * dilation + stride * h:stride, j * dilation:j * dilation + stride * v:stride][:, :, :h, :v]
      for g in range(groups):
        rows, columns = slice(g * w[0] // groups, (g + 1) * w[0] // groups), slice(g * w[1], (g + 1) * w[1])
        want[:, rows] += np.einsum("bchw,oc->bohw", view[:, columns], b[rows, :, i, j])
  same(Tensor(a).conv2d(Tensor(b), **options), want, rtol=0, atol=0)

# ***** training *****

class Mlp:
  """Two linear layers."""
  def __init__(self) -> None: self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 3)
  def __call__(self, x: Tensor) -> Tensor: return self.second(self.first(x.flatten(1)).relu())

class Convnet:
  """A convolution, batchnorm, pooling, a linear layer."""
  def __init__(self) -> None:
    self.conv, self.norm, self.linear = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), nn.Linear(4 * 1 * 1, 3)
  def __call__(self, x: Tensor) -> Tensor: return self.linear(self.norm(self.conv(x)).relu().max_pool2d((2, 3)).flatten(1))

OPTIMIZERS = {  # with an eps above the roundings of a gradient that should be zero: Adam would make whole steps of them
  "sgd": lambda p, **kwargs: nn.optim.SGD(p, lr=0.1, momentum=0.9, **kwargs),
  "adam": lambda p, **kwargs: nn.optim.Adam(p, lr=0.01, eps=1e-3, **kwargs),
  "adamw": lambda p, **kwargs: nn.optim.AdamW(p, lr=0.01, eps=1e-3, **kwargs),
}

def losses(model: Any, optimizer: Callable[[list[Tensor]], Any], steps: int, jit: bool = False) -> list[float]:
  """The losses of a few steps of training on random data."""
  optim = optimizer(nn.state.get_parameters(model))
  x, y = Tensor(arrays((8, 1, 2, 3))[0]), Tensor([0, 1, 2, 0, 1, 2, 1, 0])
  @Tensor.train()
  def step(x: Tensor, y: Tensor) -> Tensor:
    optim.zero_grad()
    loss = model(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optim.schedule_step())
  run = TinyJit(step) if jit else step
  return [run(x, y).item() for _ in range(steps)]

@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", [Mlp, Convnet])
def test_training_is_the_same_everywhere(model, optimizer):
  def train(jit: bool) -> list[float]: return losses(model(), OPTIMIZERS[optimizer], 4, jit)
  cpu, python, jitted = *everywhere(lambda: train(False)), *everywhere(lambda: train(True), "CPU")
  np.testing.assert_allclose(cpu, python, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(cpu, jitted, rtol=1e-5, atol=1e-5)
  assert cpu[-1] < cpu[0]

def test_fused_optimizers_are_the_same():
  for make in OPTIMIZERS.values():
    with on("CPU"): plain = losses(Mlp(), make, 3)
    with on("CPU"): fused = losses(Mlp(), lambda p, make=make: make(p, fused=True), 3)
    np.testing.assert_allclose(plain, fused, rtol=1e-4)

# ***** TinyJit *****

def test_replay_is_what_the_function_gives(device):
  w = Tensor(arrays((5, 4))[0])
  def f(x: Tensor, n: int) -> tuple[Tensor, Tensor]: return (x @ w).relu().sum(1), (x + n).max(0)
  jitted = TinyJit(f)
  kept = []
  for seed in range(5):
    x = Tensor(arrays((3, 5), seed=seed)[0]).realize()
    got = jitted(x, 2)
    for a, b in zip(got, f(x, 2)): same(a, b.numpy())
    kept.append((got, [t.numpy() for t in got]))
  for got, before in kept:
    for t, b in zip(got, before): same(t, b)        # results of earlier calls stay what they were

def test_replay_changes_state(device):
  total = Tensor.zeros(4).contiguous().realize()
  @TinyJit
  def add(x: Tensor) -> Tensor: return total.assign(total * 0.5 + x).realize()
  want = np.zeros(4, np.float32)
  for seed in range(5):
    x = arrays((4,), seed=seed)[0]
    add(Tensor(x).realize())
    want = want * np.float32(0.5) + x
  same(total, want)

def test_replay_with_a_variable(device):
  table = arrays((9, 4))[0]
  stored = Tensor(table).realize()
  @TinyJit
  def f(n: UOp) -> Tensor: return stored[:n].sum(0).realize()
  for n in (1, 3, 9, 5, 2): same(f(UOp.variable("n", 1, 9).bind(n)), table[:n].sum(0), rtol=1e-5)

def test_replay_refuses_what_was_not_captured(device):
  f = TinyJit(lambda x, k=0: (x + k).realize())
  for _ in range(3): f(Tensor.ones(3).contiguous().realize())
  with pytest.raises(JitError, match="captured as"): f(Tensor.ones(4).contiguous().realize())
  with pytest.raises(JitError, match="captured as"): f(Tensor.ones(3, dtype=dtypes.int32).contiguous().realize())
  with pytest.raises(JitError, match="changed"): f(Tensor.ones(3).contiguous().realize(), k=2)

def test_replay_across_devices():
  with on("CPU"):
    @TinyJit
    def f(x: Tensor) -> Tensor: return ((x + 1).to("PYTHON") * 2).to("CPU").sum().realize()
    for seed in range(4):
      x = arrays((6,), seed=seed)[0]
      same(f(Tensor(x).realize()), ((x + 1) * 2).sum(), rtol=1e-5)

class Attention:
  """A block like GPT-2's, with a cache of keys and values."""
  def __init__(self, dim: int, heads: int, most: int):
    self.heads, self.dim = heads, dim
    self.attn, self.proj, self.fc, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
    self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
    self.cache = Tensor.zeros(2, 1, most, heads, dim // heads, requires_grad=False).contiguous().realize()

  def __call__(self, x: Tensor, start: UOp | int) -> Tensor:
    b, t, _ = x.shape
    q, k, v = (y.reshape(b, t, self.heads, -1) for y in self.attn(self.ln1(x)).chunk(3, -1))
    self.cache.shrink((None, None, (start, start + t), None, None)).assign(k.stack(v)).realize()
    k, v = self.cache[0, :, :start + t], self.cache[1, :, :start + t]
    y = q.transpose(1, 2).scaled_dot_product_attention(k.transpose(1, 2), v.transpose(1, 2))
    x = x + self.proj(y.transpose(1, 2).reshape(b, t, self.dim))
    return x + self.out(self.fc(self.ln2(x)).gelu())

def test_a_block_with_a_cache_one_token_at_a_time():
  """Under TinyJit, with a symbolic position; the interpreter runs it plainly, with positions that are numbers."""
  tokens = arrays((6, 1, 1, 8))[0]
  def run(jit: bool) -> list[Any]:
    block = Attention(8, 2, 6)
    f = TinyJit(lambda x, start: block(x, start).realize()) if jit else block
    starts = [UOp.variable("start", 0, 5).bind(i) if jit else i for i in range(6)]
    return [f(Tensor(x).realize(), start).numpy() for x, start in zip(tokens, starts)]
  cpu, jitted, python = *everywhere(lambda: run(False), "CPU"), *everywhere(lambda: run(True), "CPU"), *everywhere(lambda: run(False), "PYTHON")
  for a, b, c in zip(cpu, jitted, python):
    np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, c, rtol=1e-4, atol=1e-5)

# ***** a network as it is used *****

class Residual:
  """Two convolutions and a way around them."""
  def __init__(self, inputs: int, outputs: int, stride: int):
    self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(outputs)
    self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm(outputs)
    self.around = [nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm(outputs)] if stride > 1 else []

  def __call__(self, x: Tensor) -> Tensor:
    return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + x.sequential(self.around)).relu()

class ResNet18:
  """With `width` channels in the first group, instead of 64."""
  def __init__(self, width: int, classes: int):
    self.conv1, self.bn1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm(width)
    sizes = [width << k for k in range(4)]
    self.groups = [[Residual(sizes[max(k - 1, 0)], sizes[k], 2 if k else 1), Residual(sizes[k], sizes[k], 1)] for k in range(4)]
    self.fc = nn.Linear(sizes[3], classes)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.bn1(self.conv1(x)).relu().pad((1, 1, 1, 1)).max_pool2d((3, 3), stride=2)
    for group in self.groups: x = x.sequential(group)
    return self.fc(x.mean((2, 3)))

def test_resnet18():
  x = arrays((1, 3, 16, 16))[0]
  def run() -> Any: return ResNet18(2, 5)(Tensor(x)).numpy()
  cpu, python = everywhere(run)
  np.testing.assert_allclose(cpu, python, rtol=1e-3, atol=1e-4)

def test_kernels_are_few(device):
  """A matmul and what follows it, a softmax, a layernorm: as few kernels as the data flow allows."""
  a, b, rows = (Tensor(x).realize() for x in arrays((16, 16), (16, 16), (32, 64)))
  for f in (lambda: (a @ b).relu() + 1, lambda: rows.softmax(), lambda: rows.layernorm(), lambda: (a * 2).permute(1, 0).reshape(-1)[3:]):
    before = GlobalCounters.kernel_count
    f().realize()
    assert GlobalCounters.kernel_count - before == 1
