"""The same numbers on every device: random programs against NumPy, training against the interpreter, TinyJit against
plain calls.

Kernels of the CPU are checked after register allocation (CHECK=1, conftest.py).
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, given, reject, settings
import numpy as np
import pytest
from generators import tensor_programs

from test import suite
from test.helpers import ENGINES, HOME, arrays, on, same
from test.whole.test_models import Convnet, Mlp
from tinyhw import Context, Device, GlobalCounters, Tensor, TinyJit, UOp, dtypes, nn
from tinyhw.config import DEV, EMULATE
from tinyhw.errors import CompileError, JitError

DEVICES = [name for name in ENGINES if name != "interpreter"]
SHARES = {"CPU": 1.5, "CLANG": 0.15}   # of the examples that hypothesis is to try

@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
  with on(request.param): yield str(Device.DEFAULT)

def everywhere(f: Callable[[], Any], *names: str) -> list[Any]:
  """Return f's result on each of these devices."""
  out = []
  for name in names or (HOME, "PYTHON"):
    with on(name): out.append(f())
  return out

# ***** random programs *****

@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
def test_random_programs(name):
  @settings(max_examples=int(SHARES.get(name, 1) * settings().max_examples), suppress_health_check=list(HealthCheck))
  @given(tensor_programs.programs())
  def equal_to_numpy(program: tensor_programs.Program) -> None:
    try: found = tensor_programs.run(program, Device.DEFAULT)
    except CompileError as error:
      if suite.lacks(suite.chip_here(EMULATE.value, DEV.value), error): reject()   # another program, without the type
      raise
    tensor_programs.check(program, found)
  with on(name): equal_to_numpy()

def test_a_kernel_of_many_buffers() -> None:
  """More than Metal has arguments, and than lavapipe binds."""
  with on(HOME):
    terms = [Tensor([k, 2 * k]).realize() for k in range(45)]
    before = GlobalCounters.kernel_count
    total = sum(terms[1:], terms[0]).realize()
    most = Device[HOME].most_buffers
    kernels = -(-(len(terms) - 1) // (most - 2)) if most else 1     # each reads the sum so far, and has a result
    assert GlobalCounters.kernel_count == before + kernels and total.tolist() == [990, 1980]
    scaled = TinyJit(lambda n: sum((t * n for t in terms), Tensor([0, 0])).realize())
    for _ in range(4): assert scaled(UOp.variable("n", 1, 9).bind(3)).tolist() == [2970, 5940]

@pytest.mark.slow
def test_optimised_kernels_are_equal_to_plain_ones():
  """If all arithmetic is exact, the order of additions does not matter."""
  with on(HOME):
    for seed in range(500, 540):
      program = tensor_programs.make(seed, functions=False, inexact=False)
      fast = tensor_programs.run(program, HOME)
      with Context(NOOPT=1): plain = tensor_programs.run(program, HOME)
      for a, b in zip(fast, plain): np.testing.assert_array_equal(a, b, err_msg=str(program))
      tensor_programs.check(program, fast)

@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bfloat16", "fp8e4m3", "fp8e5m2"])
def test_types_that_numpy_does_not_have(kind):
  """Narrow floats are rounded when they are stored, everywhere in the same way."""
  x, y = arrays((37,), (37,), low=-20, high=20)
  def f() -> list[Any]:
    a, b = (Tensor(v).cast(getattr(dtypes, kind)) for v in (x, y))
    results = [a, a + b, (a < b).where(a, b), a.max(), a.cast(dtypes.int32), a.reshape(37, 1).expand(37, 8),
               a.pad((3, 2)), a.flip(0)]
    results.append(a[Tensor([0, 36, 5])])
    return [r.contiguous().float().numpy() for r in results]
  first, second = everywhere(f)
  for a, b in zip(first, second): np.testing.assert_array_equal(a, b)

# ***** products and convolutions of awkward sizes *****

@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (7, 5, 3), (1, 64, 17), (17, 33, 65), (64, 64, 64), (33, 1, 40),
                                     (8, 129, 1), (40, 8, 24)])
def test_matmul(device, m, k, n):
  a, b = (np.round(x * 4) / 4 for x in arrays((m, k), (k, n)))
  same(Tensor(a) @ Tensor(b), a @ b, rtol=0, atol=0)

@pytest.mark.slow
@pytest.mark.parametrize("x, w, options", [
  ((2, 3, 9, 7), (4, 3, 3, 3), {"padding": 1}), ((1, 4, 8, 8), (8, 2, 3, 3), {"groups": 2, "stride": 2}),
  ((1, 1, 11, 5), (3, 1, 5, 2), {"dilation": 2, "padding": 4}),
  ((2, 8, 6, 6), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
  ((3, 5, 1, 1), (2, 5, 1, 1), {})])
def test_conv2d(device, x, w, options):
  """Against the definition: each weight times a shifted, strided view of the input."""
  a, b = (np.round(v * 4) / 4 for v in arrays(x, w))
  stride, dilation, pad, groups = (options.get(k, d) for k, d in (("stride", 1), ("dilation", 1), ("padding", 0),
                                                                  ("groups", 1)))
  padded = np.pad(a, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
  h, v = ((padded.shape[2 + i] - dilation * (w[2 + i] - 1) - 1) // stride + 1 for i in (0, 1))
  want = np.zeros((x[0], w[0], h, v), np.float32)
  for i in range(w[2]):
    for j in range(w[3]):
      view = padded[:, :, i * dilation:i * dilation + stride * h:stride,
                    j * dilation:j * dilation + stride * v:stride][:, :, :h, :v]
      for g in range(groups):
        rows, columns = slice(g * w[0] // groups, (g + 1) * w[0] // groups), slice(g * w[1], (g + 1) * w[1])
        want[:, rows] += np.einsum("bchw,oc->bohw", view[:, columns], b[rows, :, i, j])
  same(Tensor(a).conv2d(Tensor(b), **options), want, rtol=0, atol=0)

# ***** training *****

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

@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", [Mlp, Convnet])
def test_training_is_the_same_everywhere(model, optimizer):
  def train(jit: bool) -> list[float]: return losses(model(), OPTIMIZERS[optimizer], 4, jit)
  cpu, python, jitted = *everywhere(lambda: train(False)), *everywhere(lambda: train(True), HOME)
  np.testing.assert_allclose(cpu, python, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(cpu, jitted, rtol=1e-5, atol=1e-5)
  assert cpu[-1] < cpu[0]

@pytest.mark.slow
def test_fused_optimizers_are_the_same():
  for make in OPTIMIZERS.values():
    with on(HOME): plain = losses(Mlp(), make, 3)
    with on(HOME): fused = losses(Mlp(), lambda p, make=make: make(p, fused=True), 3)
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
  with on(HOME):
    @TinyJit
    def f(x: Tensor) -> Tensor: return ((x + 1).to("PYTHON") * 2).to(HOME).sum().realize()
    for seed in range(4):
      x = arrays((6,), seed=seed)[0]
      same(f(Tensor(x).realize()), ((x + 1) * 2).sum(), rtol=1e-5)

@pytest.mark.slow
def test_kernels_are_few(device):
  """A matmul and its epilogue, a softmax, a layernorm: as few kernels as the data flow allows."""
  a, b, rows = (Tensor(x).realize() for x in arrays((16, 16), (16, 16), (32, 64)))
  for f in (lambda: (a @ b).relu() + 1, lambda: rows.softmax(), lambda: rows.layernorm(),
            lambda: (a * 2).permute(1, 0).reshape(-1)[3:]):
    before = GlobalCounters.kernel_count
    f().realize()
    assert GlobalCounters.kernel_count - before == 1

# ***** looking at values while TinyJit captures *****

@pytest.mark.host_memory("a GPU's own memory is none that NumPy or PyTorch could look at")
def test_reading_memory_while_capturing_is_refused(device):
  @TinyJit
  def f(x: Tensor) -> Any:
    y = x + 1
    np.from_dlpack(y)
    return y
  f(Tensor([1.0]))
  with pytest.raises(JitError): f(Tensor([1.0]))

def test_printing_while_capturing_reads_nothing(device):
  shown = []
  @TinyJit
  def f(x: Tensor) -> Tensor:
    shown.append(repr(x))
    return (x + 1).realize()
  for i in range(3): assert f(Tensor([float(i)])).tolist() == [i + 1.0]
  assert shown[0].endswith("realized: [0.0]>") and "not realized" in shown[1] and "1.0" not in shown[1]
