"""Tensors on several devices: the results of one device, whatever the axis; parts that are as large as they should be;
training in parallel."""
from __future__ import annotations
from collections.abc import Callable
import pickle
import random
from typing import Any

import numpy as np
import pytest
from generators import tensor_programs

from test.helpers import HOME, arrays, same
from tinyhw import Context, Device, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from tinyhw.engine.memory.buffers import MultiBuffer, buffer_of
from tinyhw.engine.schedule.multi import axis_of, distribute
from tinyhw.errors import DeviceError, GradientError, ShapeError
from tinyhw.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

TWO, FOUR = (HOME, f"{HOME}:1"), (HOME, f"{HOME}:1", f"{HOME}:3", f"{HOME}:4")
OTHER = "CPU" if HOME == "PYTHON" else "PYTHON"
MIXED = (OTHER, HOME, f"{OTHER}:1")
AXES = (None, 0, 1)

@pytest.fixture(autouse=True)
def verified():
  before, Device.DEFAULT = Device._default, HOME
  Tensor.manual_seed(7)
  with Context(SPEC=2): yield
  Device.DEFAULT = before

def memory(t: Tensor) -> Any:
  """The storage that a Tensor looks at."""
  node = t.uop
  while node.op is not Ops.BUFFER: node = node.src[0]
  return buffer_of(node)

# ***** one result, whatever the axis *****

def index(t: Tensor, numbers: Any) -> Tensor: return Tensor(numbers, device=t.device)

ONE: dict[str, Callable[[Tensor], Tensor]] = {
  "sum": lambda x: x.sum(), "sum(0)": lambda x: x.sum(0), "max(1)": lambda x: x.max(1, keepdim=True),
  "prod": lambda x: x.prod(0),
  "mean": lambda x: x.mean(), "std": lambda x: x.std(1), "softmax": lambda x: x.softmax(0),
  "argmax": lambda x: x.argmax(0),
  "flatten": lambda x: x.reshape(32) + 1, "unflatten": lambda x: x.reshape(2, 4, 1, 4).permute(1, 3, 0, 2),
  "T": lambda x: x.T.contiguous(),
  "expand": lambda x: x.reshape(8, 1, 4).expand(8, 5, 4).sum(2), "pad": lambda x: x.pad(((1, 1), (0, 2))),
  "shrink": lambda x: x[1:5, 2:],
  "steps": lambda x: x[::2, ::-1], "flip": lambda x: x.flip(0), "cumsum": lambda x: x.cumsum(0),
  "sort": lambda x: x.sort(0)[0],
  "rows": lambda x: x[index(x, [1, 3, -1])], "gather": lambda x: x.gather(0, index(x, [[1, 2, 0, 3], [5, 6, 7, 1]])),
  "where": lambda x: (x > 0).where(x, 0), "cast": lambda x: x.half().float(),
  "bitcast": lambda x: x.bitcast(dtypes.int32), "itself": lambda x: x,
  "one_hot": lambda x: x.int().abs().one_hot(5), "triu": lambda x: x.triu(), "unfold": lambda x: x.unfold(0, 3, 2),
  "roll": lambda x: x.roll(3, 0),
  # folded in parts
  "large": lambda x: (x.reshape(8, 4, 1) * Tensor.arange(2048, device=x.device).reshape(1, 1, 2048)).sum(0),
}
TWO_OPERANDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
  "add": lambda x, y: x + y * 2, "matmul": lambda x, y: x @ y.T, "inner": lambda x, y: x.T @ y, "cat": lambda x,
  y: x.cat(y, dim=0),
  "stack": lambda x, y: x.stack(y, dim=1), "einsum": lambda x, y: Tensor.einsum("ij,kj->ik", x, y), "lerp": lambda x,
  y: x.lerp(y, 0.5),
}

@pytest.mark.parametrize("name", ONE)
def test_methods(name):
  x = Tensor(arrays((8, 4))[0])
  want = ONE[name](x).numpy()
  for devices in (TWO, FOUR):
    for axis in AXES:
      got = ONE[name](x.shard(devices, axis))
      assert got.device == devices
      same(got, want, rtol=2e-6, atol=1e-6)

@pytest.mark.parametrize("name", TWO_OPERANDS)
def test_methods_of_two_operands(name):
  x, y = map(Tensor, arrays((8, 4), (8, 4)))
  want = TWO_OPERANDS[name](x, y).numpy()
  for a in AXES:
    for b in AXES: same(TWO_OPERANDS[name](x.shard(FOUR, a), y.shard(FOUR, b)), want, rtol=2e-6, atol=1e-6)

def test_convolution():
  x, w = map(Tensor, arrays((8, 4, 6, 6), (4, 4, 3, 3)))
  want = x.conv2d(w, padding=1).numpy()
  for a, b in ((0, None), (None, 0), (1, None), (1, 1), (0, 0)):
    same(x.shard(FOUR, a).conv2d(w.shard(FOUR, b), padding=1), want, rtol=1e-5, atol=1e-5)

def sharded(program: tensor_programs.Program, devices: tuple[str, ...], choices: random.Random) -> list[Any]:
  """The results of a program whose inputs are on several devices, along any axis that divides."""
  values = []
  for a in program.inputs:
    axes = [k for k, d in enumerate(a.shape) if d % len(devices) == 0]
    values.append(Tensor(a).shard(devices, choices.choice([None, *axes * 3])))
  for step in program.steps: values.append(step.tensor(*[values[k] for k in step.operands]))
  Tensor.realize(*[values[k] for k in program.results])
  return [values[k].numpy() for k in program.results]

@pytest.mark.slow
@pytest.mark.parametrize("devices", [TWO, FOUR, MIXED])
def test_random_programs(devices):
  for seed in range(25):
    program = tensor_programs.make(seed, inexact=seed % 2 == 0)
    tensor_programs.check(program, sharded(program, devices, random.Random(seed)))

def test_the_interpreter_agrees():
  """uop/evaluate/evaluate.py knows what MULTI and COPY mean, and shares nothing with the pass."""
  x, y = (Tensor(a).shard(TWO, axis).realize() for a, axis in zip(arrays((4, 6), (4, 6)), (0, 1)))
  graph = (x * 3 + y).sum(0).to(HOME).uop
  node = next(u for u in graph.toposort() if u.op is Ops.MULTI)
  assert node.arg in (0, 1)
  memories = {u: [b.as_memoryview() for b in buffer_of(u).bufs] for u in graph.toposort() if u.op is Ops.BUFFER}
  same(Tensor((x * 3 + y).sum(0).numpy()), np.array(evaluate(graph, memories).values, np.float32))

# ***** where things are *****

def test_each_device_holds_its_part():
  x = Tensor(arrays((8, 4))[0]).shard(FOUR, 0).realize()
  held = memory(x)
  assert isinstance(held, MultiBuffer) and held.device == FOUR and held.size == 8
  np.testing.assert_array_equal(held.bufs[2].numpy().reshape(2, 4), x.numpy()[4:6])
  y = (x * 2 + 1).realize()
  assert memory(y).size == 8 and axis_of(y.uop) == 0 and axis_of(y.T.uop) == 1
  z = x.sum(0).realize()
  assert memory(z).size == 4 and axis_of(z.uop) is None
  # the same bits everywhere
  for b in memory(z).bufs: np.testing.assert_array_equal(b.numpy(), memory(z).bufs[0].numpy())

def test_work_is_divided():
  """Elementwise work on parts is done once in all; on copies once per device."""
  x = Tensor(arrays((64, 64))[0])
  counts = []
  for axis in (0, None):
    t = x.shard(FOUR, axis).realize()
    GlobalCounters.reset()
    (t + 1).realize()
    counts.append(GlobalCounters.kernel_count)
  assert counts == [4, 4]
  locals_ = distribute([(x.shard(FOUR, 0) + 1).contiguous().uop, (x.shard(FOUR) + 1).contiguous().uop])
  assert [u.node.shape for u in locals_] == [(16, 64), (64, 64)]

def test_devices_of_tensors():
  x = Tensor([1, 2, 3, 4])
  assert x.shard(TWO, 0).device == x.to(TWO).device == x.to([HOME.lower(), f"{HOME.lower()}:1"]).device == TWO
  assert x.shard(TWO, 0).to(OTHER).device == OTHER and x.shard(TWO[1:], 0).device == TWO[1]
  assert x.shard(TWO, 0).shard(FOUR, 0).to(TWO).tolist() == [1, 2, 3, 4]
  assert x.shard_like(x.shard(TWO, -1)).shard_like(x).device == HOME
  assert axis_of(x.shard_like(x.shard(TWO, -1)).uop) == 0
  y = Tensor([1.0, 2.0], requires_grad=True).shard_(TWO, 0)
  assert y.device == TWO and y.requires_grad is True and y.to_(HOME).device == HOME
  assert f"on {TWO}" in repr(y.to(TWO)) and repr(x.shard(TWO, 0).realize()).endswith(f"on {TWO}, realized: [1, 2, 3, "
                                                                                     f"4]>")
  assert x.shard(TWO, 0).to(TWO).uop.op is Ops.COPY and (z := x.shard(TWO, 0).realize()).to(TWO) is z
  assert pickle.loads(pickle.dumps(x.shard(TWO, 0))).tolist() == [1, 2, 3, 4]

@pytest.mark.parametrize("make", [
  lambda d: Tensor([1, 2], device=d), lambda d: Tensor(3.0, device=d), lambda d: Tensor.zeros(4, device=d),
  lambda d: Tensor.full((2, 2), 7).to(d),
  lambda d: Tensor.arange(5, device=d), lambda d: Tensor.eye(3, device=d), lambda d: Tensor.rand(5, device=d),
  lambda d: Tensor.randn(5, device=d),
  lambda d: Tensor.randint(5, low=3, high=9, device=d), lambda d: Tensor.randperm(6, device=d),
  lambda d: Tensor.uniform(5, device=d),
  lambda d: Tensor.linspace(0, 1, 5, device=d)])
def test_creation(make):
  """On several devices as on the first of them, random numbers included."""
  Tensor.manual_seed(3)
  want = make(HOME).numpy()
  Tensor.manual_seed(3)
  got = make(FOUR)
  assert got.device == FOUR
  np.testing.assert_array_equal(got.numpy(), want)
  assert make(TWO).realize().device == TWO

def test_creation_like():
  x = Tensor(arrays((4, 4))[0]).shard(FOUR, 1)
  for name in ("zeros_like", "ones_like", "rand_like", "randn_like", "empty_like"):
    assert getattr(x, name)().realize().device == FOUR
  assert x.full_like(3).tolist() == [[3.0] * 4] * 4 and Tensor.empty(3, device=TWO).realize().device == TWO
  with Context(TRAINING=1): dropped = x.abs().add(1).dropout(0.5)
  values = dropped.numpy()
  np.testing.assert_array_equal(values, dropped.numpy())
  assert (values == 0).any() and (values != 0).any()

def test_draws_go_on_with_those_of_the_first_device():
  Tensor.manual_seed(5)
  want = [Tensor.rand(4).tolist() for _ in range(3)]
  Tensor.manual_seed(5)
  assert [Tensor.rand(4, device=d).tolist() for d in (HOME, FOUR, HOME)] == want

def test_refusals():
  x = Tensor(arrays((6, 4))[0])
  with pytest.raises(ShapeError, match="cannot divide axis 0, of size 6, among 4 devices.*pad it"): x.shard(FOUR, 0)
  with pytest.raises(ShapeError, match="no axes"): Tensor(1.0).shard(TWO, 0)
  with pytest.raises(DeviceError, match="name each once"): x.shard((HOME, f"{HOME.lower()}:0"), 0)
  with pytest.raises(DeviceError, match="wants a tuple"): x.shard(HOME, 0)
  with pytest.raises(DeviceError, match="is empty"): x.to(())
  with pytest.raises(DeviceError, match="no device 'TUBES'"): x.to((HOME, "TUBES"))
  with pytest.raises(DeviceError, match=f"cannot add a tensor on .* and one on {HOME}"): x.shard(TWO, 0) + x
  with pytest.raises(DeviceError, match="a file is no device"): x.shard((HOME, "DISK:/tmp/x"), 0)
  with pytest.raises(DeviceError, match="custom_kernel runs on one device"):
    x.shard(TWO, 0).custom_kernel(fxn=lambda u: u)
  with pytest.raises(DeviceError, match="of one device"): Tensor.from_blob(0, (1,), device=TWO)
  v = Variable("rows", 1, 6).bind(4)
  with pytest.raises(ShapeError, match="cannot divide axis 0, of size"): x[:v].shard(TWO, 0)

def test_symbolic_sizes():
  x = Tensor(arrays((6, 4))[0])
  v = Variable("rows", 1, 6).bind(3)
  for axis in (None, 1): same(x.shard(TWO, axis)[:v].sum(0), x.numpy()[:3].sum(0))

def test_empty_tensors():
  for axis in (None, 0, 1):
    assert ((Tensor.zeros(0, 4).shard(TWO, axis) + 1).tolist() == []
            and Tensor.zeros(0, 4).shard(TWO, axis).sum(0).tolist() == [0.0] * 4)

# ***** writes *****

@pytest.mark.parametrize("devices", [TWO, FOUR])
@pytest.mark.parametrize("axis", AXES)
def test_assignment(devices, axis):
  n = np.arange(32).reshape(8, 4).copy()
  x = Tensor(n).shard(devices, axis).realize()
  twice = x * 2
  def check() -> None: np.testing.assert_array_equal(x.numpy(), n)
  for where, value in ((slice(1, 3), 5), ((slice(None), 1), 7), ((slice(None, None, 2), slice(2, 4)), 9), ((0, 0), -1)):
    x[where], n[where] = value, value
    check()
  np.testing.assert_array_equal(twice.numpy(), np.arange(32).reshape(8, 4) * 2)   # as it was when it was expressed
  x[Tensor([2, 5], device=devices)], n[[2, 5]] = 0, 0
  check()
  x.assign(x + 1)
  n += 1
  check()
  part = x[2:4]
  part.assign(Tensor.full((2, 4), 3, dtype=x.dtype, device=devices))
  n[2:4] = 3
  check()
  x += Tensor(np.ones((8, 4), int)).shard(devices, 0)
  n += 1
  check()
  assert axis_of(x.uop) == axis and x.device == devices

# ***** gradients, training *****

@pytest.mark.parametrize("axis", AXES)
def test_gradients_are_on_the_devices_of_the_parameters(axis):
  a, b = arrays((8, 4), (4, 3))
  def run(shard: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
    x, w = shard(Tensor(a, requires_grad=True)).realize(), Tensor(b, requires_grad=True)
    w = w.to(x.device).realize()
    (x @ w).square().sum().backward()
    assert x.grad is not None and w.grad is not None and x.grad.device == x.device
    return x.grad, w.grad
  first, second = run(lambda x: x)
  got, other = run(lambda x: x.shard_(FOUR, axis))
  assert axis_of(got.uop) == axis and axis_of(other.uop) is None
  same((got, other), (first.numpy(), second.numpy()))

def test_gradients_through_copies():
  x = Tensor(arrays((8, 4))[0], requires_grad=True)
  (x.shard(TWO, 0).square().to(OTHER) * 3).sum().backward()
  assert x.grad is not None and x.grad.device == HOME
  same(x.grad, x.numpy() * 6)
  with pytest.raises(GradientError): Tensor([1, 2]).shard(TWO, 0).sum().backward()

class Net:
  """A small model with statistics."""
  def __init__(self) -> None:
    self.conv, self.norm, self.linear = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4), nn.Linear(4 * 16, 10)
  def __call__(self, x: Tensor) -> Tensor: return self.linear(self.norm(self.conv(x)).relu().flatten(1).dropout(0.2))

def trained(optimizer: Callable[..., Any], devices: tuple[str, ...] = (), jit: bool = False,
            steps: int = 5) -> tuple[list[float], dict[str, Any]]:
  """Losses of data-parallel training, and the parameters after it."""
  Tensor.manual_seed(1)
  net = Net()
  if devices:
    for p in get_parameters(net): p.shard_(devices)
  inputs, labels = arrays((steps, 16, 1, 6, 6))[0], arrays((steps, 16), dtype=np.int32, low=0, high=9)[0]
  opt = optimizer(get_parameters(net))
  @Tensor.train()
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  losses = []
  for a, b in zip(inputs, labels):
    x, y = Tensor(a), Tensor(b)
    losses.append(run(x.shard(devices, 0).realize(), y.shard(devices, 0).realize()).item() if devices
                  else run(x, y).item())
  return losses, {name: t.numpy() for name, t in get_state_dict(net).items()}

@pytest.mark.slow
@pytest.mark.parametrize("optimizer",
                         [lambda p: nn.optim.SGD(p, 0.1, momentum=0.9), lambda p: nn.optim.AdamW(p, 0.01, eps=1e-3)])
def test_data_parallel_training_is_that_of_one_device(optimizer):
  losses, state = trained(optimizer)
  for devices, jit in ((TWO, False), (FOUR, False), (FOUR, True)):
    found, parameters = trained(optimizer, devices, jit)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    for name, value in state.items():
      np.testing.assert_allclose(parameters[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
  assert len(set(losses)) == len(losses)   # it learns something

def test_parameters_in_parts():
  """Tensor parallel: the weight's rows on several devices; the optimizer's state is divided as they are."""
  def run(axis: int | None, devices: tuple[str, ...] = ()) -> Any:
    Tensor.manual_seed(2)
    layer = nn.Linear(8, 4)
    if devices:
      layer.weight.shard_(devices, axis)
      assert layer.bias is not None
      layer.bias.shard_(devices)
    opt = nn.optim.Adam(get_parameters(layer), lr=0.1)
    x = Tensor(arrays((6, 8))[0])
    with Tensor.train():
      for _ in range(3):
        opt.zero_grad()
        layer(x.shard(devices) if devices else x).square().mean().backward()
        opt.step()
    if devices:
      assert (axis_of(layer.weight.uop) == axis_of(opt.m[0].uop) == axis
              and memory(opt.m[0]).size == 32 // (4 if axis is not None else 1))
    return layer.weight.numpy()
  want = run(None)
  for axis in AXES: np.testing.assert_allclose(run(axis, FOUR), want, rtol=1e-4, atol=1e-5)

def test_files(tmp_path):
  raw = tmp_path / "raw"
  raw.write_bytes(bytes(range(8)))
  assert (Tensor(raw).shard(TWO, 0) + 1).tolist() == list(range(1, 9))
  model, other = nn.Linear(4, 8), nn.Linear(4, 8)
  for p in get_parameters(model) + get_parameters(other): p.shard_(TWO, 0)
  safe_save(get_state_dict(model), tmp_path / "model.safetensors")
  load_state_dict(other, safe_load(tmp_path / "model.safetensors"), verbose=False)
  same(other.weight, model.weight.numpy())
  assert other.weight.device == TWO and axis_of(other.weight.uop) == 0

# ***** TinyJit *****

def test_replays_take_this_calls_inputs_on_all_devices():
  @TinyJit
  def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return (x * 2 + y.sum(0)).realize(), (x.sum(0).to(HOME) + 1).realize()
  kept = []
  for i in range(5):
    x, y = Tensor(np.full((4, 4), i, np.float32)).shard(FOUR,
                                                        0).realize(), Tensor(np.full((4, 4), 2.0, np.float32)).shard(
      FOUR, 1).realize()
    kept.append((i, *f(x, y)))
    assert kept[-1][1].device == FOUR
  for i, a, b in kept:   # results keep their values
    assert a.tolist() == [[i * 2 + 8.0] * 4] * 4 and b.tolist() == [i * 4 + 1.0] * 4

def test_replays_copy_this_calls_inputs():
  """Inputs that go to another device without a kernel in between, there and back."""
  @TinyJit
  def f(x: Tensor) -> tuple[Tensor, Tensor]: return x.to(OTHER).realize(), (x.shard(TWO, 0) + 1).to(HOME).realize()
  results = [f(Tensor([i, i + 1.0])) for i in range(5)]
  for i, (a, b) in enumerate(results): assert a.tolist() == [i, i + 1.0] and b.tolist() == [i + 1.0, i + 2.0]

def test_state_on_several_devices_under_tinyjit():
  state = Tensor(np.zeros((4, 2), np.float32)).shard(FOUR, 0).realize()
  view = state[:, 1]
  @TinyJit
  def f(x: Tensor) -> Tensor:
    state.assign(state + x)
    return (state * 2).realize()
  for i in range(1, 6):
    before = state * 10
    out = f(Tensor(np.ones((4, 2), np.float32)).shard(FOUR, 0).realize())
    assert (out.tolist() == [[2.0 * i] * 2] * 4 and state.tolist() == [[float(i)] * 2] * 4
            and view.tolist() == [float(i)] * 4)
    assert before.tolist() == [[10.0 * (i - 1)] * 2] * 4

def test_random_numbers_under_tinyjit():
  def draws(run: Callable[[Tensor], Tensor]) -> list[Any]:
    Tensor.manual_seed(11)
    x = Tensor.zeros(8, device=FOUR).contiguous().realize()
    return [run(x).tolist() for _ in range(4)]
  def f(x: Tensor) -> Tensor: return (x + x.rand_like()).realize()
  plain, jitted = draws(f), draws(TinyJit(f))
  assert plain == jitted and len({tuple(p) for p in plain}) == 4

def test_one_graph_has_nothing_to_distribute():
  u = (Tensor([1, 2]) + 1).uop
  assert distribute([u])[0].node is u
  assert isinstance(u, UOp)

def test_a_step_of_a_loop_that_is_built_once() -> None:
  """Flipping exchanges the parts: the next step does not find them as the first one did."""
  x = Tensor([1, 2, 3, 4]).shard(("PYTHON:1", "PYTHON:2"), 0).realize()
  step = x._again(lambda x: (x.flip(0) * 2).reshape(2, 2).permute(1, 0).reshape(4))
  plain = x
  for _ in range(3): x, plain = step(x), (plain.flip(0) * 2).reshape(2, 2).permute(1, 0).reshape(4)
  assert x.tolist() == plain.tolist()
