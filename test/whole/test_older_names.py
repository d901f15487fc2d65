"""Programs of users of tinygrad, with older names, as they were written for years: they run, and give the
numbers."""
from __future__ import annotations
import platform
import struct
import sys
from typing import Any

import pytest

from test.helpers import ENGINES
from tinyhw import Context, Device, Tensor, TinyJit, Variable, dtypes, nn
from tinyhw.errors import DeviceError, UnknownValueError

X86 = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux"
if ENGINES == ("CLANG",): pytest.skip("one engine is asked for, and these tests use several", allow_module_level=True)

def opens(name: str) -> bool:
  try: return Device[name] is not None
  except DeviceError: return False

@pytest.fixture(autouse=True)
def one_device():
  before, training = Device._default, Tensor.training
  Device.DEFAULT = "CPU" if opens("CPU") else "PYTHON"
  Tensor.manual_seed(1337)
  yield
  Device.DEFAULT, Tensor.training = before, training

# ***** names *****

def test_requires_grad():
  x = Tensor([1.0, 2.0], requires_grad=True)
  y = Tensor([3.0, 4.0], requires_grad=False)
  (x * y).sum().backward()
  assert x.requires_grad and x.grad.tolist() == [3.0, 4.0] and y.grad is None

def test_training_mode():
  assert not Tensor.training
  with Tensor.train(): assert Tensor.training
  assert not Tensor.training
  @Tensor.train()
  def inside(): return Tensor.training
  @TinyJit
  @Tensor.train()
  def step(x): return (x * int(Tensor.training)).realize()
  assert inside() and not Tensor.training
  assert [step(Tensor([float(i)])).item() for i in range(4)] == [0.0, 1.0, 2.0, 3.0]
  Tensor.training = True
  assert Tensor.training
  Tensor.training = False

def test_no_grad():
  x = Tensor([2.0], requires_grad=True)
  Tensor.no_grad = True
  y = x * 3
  Tensor.no_grad = False
  z = x * 5
  (y + z).sum().backward()
  assert x.grad.tolist() == [5.0]
  with Tensor.no_grad(): assert not Tensor.training

def test_lazydata():
  x = Tensor([1, 2]) + 1
  assert x.lazydata is x.uop
  with pytest.raises(AttributeError): x.lazydata = None

def test_the_default_device_is_assigned():
  if not opens("CLANG"): pytest.skip(Device.refused["CLANG"])
  Device.DEFAULT = "CLANG"
  assert Tensor([1]).device == Device.DEFAULT == "CLANG" and (Tensor([1, 2]) + 1).tolist() == [2, 3]

def test_cuda_is_the_nvidia_device():
  assert Device.canonicalize("CUDA") == "NV" and Device.canonicalize("cuda:1") == "NV:1"
  if opens("NV"): assert Tensor([1, 2]).to("CUDA").tolist() == [1, 2]
  else:
    with pytest.raises(DeviceError, match="device NV does not open: "): Tensor([1, 2]).to("CUDA").tolist()

def test_methods_of_old():
  q = Tensor.rand(1, 2, 3, 4)
  assert Tensor.scaled_dot_product_attention(q, q, q).shape == (1, 2, 3, 4)
  assert Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda x: x + 1]).tolist() == [1.0, 3.0]
  w = Tensor([1.0], requires_grad=True)
  optim = nn.optim.SGD([w], lr=0.5)
  with Tensor.train():
    loss = (w * 3).sum().backward()
    loss.realize(*optim.schedule_step())
  assert w.tolist() == [-0.5] and loss.item() == 3.0

def test_imports():
  from tinyhw.device import Buffer, Device as ByItsOldPlace
  from tinyhw.tensor import Tensor as Same
  from tinyhw.uop.upat import PatternMatcher, UPat, graph_rewrite
  assert Same is Tensor and ByItsOldPlace is Device and all((Buffer, PatternMatcher, UPat, graph_rewrite))

def test_pattern_matcher():
  from tinyhw.uop.ops import Ops, UOp
  from tinyhw.uop.upat import PatternMatcher, UPat, graph_rewrite
  simple_pm = PatternMatcher([(UPat(Ops.ADD, src=(UPat.cvar("x"), UPat.cvar("x"))), lambda x: x * 2)])
  three = UOp.const(dtypes.int, 3)
  result = graph_rewrite(UOp(Ops.ADD, dtypes.int, (three, three)), simple_pm)
  assert result is three * 2 and result.simplify().arg == 6

# ***** 2 + 3, through all layers *****

def test_two_plus_three_as_a_tensor():
  a, b = Tensor([2]), Tensor([3])
  assert (a + b).numpy().tolist() == [5] and (a + b).item() == 5

def test_two_plus_three_as_a_graph():
  from tinyhw.device import Buffer
  from tinyhw.uop.ops import Ops
  device = Device.DEFAULT
  a, b = ((Tensor([n], dtype=dtypes.int32, device="PYTHON").to(device) for n in (2, 3)) if device != "PYTHON"
          else (Tensor([2]), Tensor([3])))
  result = a + b
  add = result.lazydata
  assert add.op is Ops.ADD and add.dtype is dtypes.int32 and add.device == device and not add.is_realized
  if device != "PYTHON":
    assert [s.op for s in add.src] == [Ops.COPY] * 2     # the data comes to the device first
    assert [s.src[0].device for s in add.src] == ["PYTHON"] * 2 and [Tensor(s.src[0]).item() for s in add.src] == [2, 3]
  with pytest.raises(UnknownValueError, match="ADD of shape .1,. is in no memory; realize"): assert add.buffer
  result.realize()
  assert result.lazydata.is_realized
  buffer = result.lazydata.base.buffer
  assert isinstance(buffer, Buffer) and buffer.device == device and add.buffer is buffer
  assert struct.unpack("i", buffer.as_memoryview())[0] == 5

def test_two_plus_three_as_a_kernel(capsys):
  from tinyhw.codegen.passes import lower
  from tinyhw.engine.run.compile import capabilities_of, kernel_name
  from tinyhw.uop.text import show
  kernel, = (Tensor([2]) + Tensor([3])).schedule_linear()
  print(show(kernel.sink))
  arch = Device.default.arch
  program = lower(kernel.sink, capabilities_of(arch, Device.DEFAULT), kernel_name(kernel.sink))
  print(show(program))
  printed = capsys.readouterr().out
  assert "ADD(int32" in printed and "STORE" in printed and program.uops[0].op.name == "PARAM"

def buffers(device: str) -> tuple[Any, Any, Any]:
  """Room for an int, and 2 and 3."""
  from tinyhw.device import Buffer
  out = Buffer(device, 1, dtypes.int32).allocate()
  a = Buffer(device, 1, dtypes.int32).allocate().copyin(memoryview(bytearray(struct.pack("i", 2))))
  b = Buffer(device, 1, dtypes.int32).allocate().copyin(memoryview(bytearray(struct.pack("i", 3))))
  return out, a, b

def check(out: Any) -> None:
  result = memoryview(bytearray(4))
  out.copyout(result)
  assert struct.unpack("i", result)[0] == 5 and out.as_memoryview().cast("i")[0] == 5

def test_two_plus_three_as_c():
  from tinyhw.machine.ir.code import Code
  if not opens("CLANG"): pytest.skip(Device.refused["CLANG"])
  source = b"""void add(const unsigned long long *arguments, long long first, long long last, unsigned char *scratch) {
    int *out = (int *)arguments[0], *a = (int *)arguments[1], *b = (int *)arguments[2];
    out[0] = a[0] + b[0];
  }"""
  add = Device["CLANG"].program(Code("add", "c", source, ("buffer",) * 3))
  out, a, b = buffers("CLANG")
  add(out, a, b)
  check(out)

@pytest.mark.skipif(not X86, reason="the listing is x86-64 with the System V convention")
def test_two_plus_three_as_a_listing():
  from tinyhw.isa.x86.asm.syntax import assemble_function
  from tinyhw.machine.ir.code import Code
  listing = """
    mov rax, qword ptr [rdi]        ; out, a and b: the arguments are addresses, side by side
    mov rcx, qword ptr [rdi + 8]
    mov rdx, qword ptr [rdi + 16]
    mov ecx, dword ptr [rcx]
    add ecx, dword ptr [rdx]
    mov dword ptr [rax], ecx
    ret"""
  add = Device["CPU"].program(Code("add", Device["CPU"].arch, assemble_function(listing), ("buffer",) * 3))
  out, a, b = buffers("CPU")
  add(out, a, b)
  check(out)

def test_two_plus_three_as_python():
  from tinyhw.machine.ir.code import Code
  source = b"""
def kernel(buffers, variables, first, last):
  out, a, b = (x.cast("i") for x in buffers)
  out[0] = a[0] + b[0]
"""
  add = Device["PYTHON"].program(Code("add", "python", source, ("buffer",) * 3))
  out, a, b = buffers("PYTHON")
  add(out, a, b)
  check(out)

# ***** ShapeTracker, Variable *****

def test_shapetracker():
  from tinyhw.uop.symbolic.shapetracker import ShapeTracker, View
  a = ShapeTracker.from_shape((10, 10))
  assert a.views[0].strides == (10, 1) and a.contiguous
  a = a.permute((1, 0))
  assert a.views[0].strides == (1, 10) and not a.contiguous
  a = a.reshape((5, 2, 5, 2))
  assert a.views[0].strides == (2, 1, 20, 10) and len(a.views) == 1
  a = a.reshape((100,))
  assert len(a.views) == 2
  assert a.expr_idxs()[0].render() == "(((idx0%10)*10)+(idx0//10))"
  assert ShapeTracker.from_shape((10, 10)).permute((1, 0)).permute((1, 0)).simplify().contiguous
  assert (View.create((10, 10)).shape == (10, 10) and View.create((10, 10)).offset == 0
          and View.create((10, 10)).mask is None)

def test_variables():
  a, b = Variable("a", 0, 10), Variable("b", 0, 10)
  assert ((a * 10).vmin, (a * 10).vmax) == (0, 100)
  assert ((a + b * 10) % 10).render() == "(a%10)"
  b = Variable("b", 0, 19)
  assert ((a * 40 + b) // 20).render() == "(a*2)"

# ***** tutorials *****

def test_gradients_beside_pytorch():
  x = Tensor.eye(3, requires_grad=True)
  y = Tensor([[2.0, 0, -2.0]], requires_grad=True)
  z = y.matmul(x).sum()
  z.backward()
  got = x.grad.tolist(), y.grad.tolist()
  assert got == ([[2.0] * 3, [0.0] * 3, [-2.0] * 3], [[1.0, 1.0, 1.0]])

  torch = pytest.importorskip("torch")
  x = torch.eye(3, requires_grad=True)
  y = torch.tensor([[2.0, 0, -2.0]], requires_grad=True)
  z = y.matmul(x).sum()
  z.backward()
  assert got == (x.grad.tolist(), y.grad.tolist())

@pytest.mark.slow
def test_a_network_of_parameters():
  class LinearNet:
    def __init__(self):
      self.l1 = Tensor.kaiming_uniform(784, 128)
      self.l2 = Tensor.kaiming_uniform(128, 10)
    def __call__(self, x: Tensor) -> Tensor:
      return x.flatten(1).dot(self.l1).relu().dot(self.l2)

  model = LinearNet()
  optim = nn.optim.Adam([model.l1, model.l2], lr=0.001)

  x, y = Tensor.rand(4, 1, 28, 28), Tensor([2, 4, 3, 7])  # replace with real mnist dataloader

  losses = []
  with Tensor.train():
    for _ in range(10):
      optim.zero_grad()
      loss = model(x).sparse_categorical_crossentropy(y).backward()
      optim.step()
      losses.append(loss.item())
  assert losses[-1] < losses[0]

def digits() -> tuple[Tensor, Tensor]:
  """Images of bars: the class is the row."""
  images = [[[[1.0 if (r // 2) == k else 0.1 * ((r + c + n) % 3) for c in range(10)] for r in range(10)]]
            for n in range(8) for k in range(5)]
  return Tensor(images), Tensor([k for _ in range(8) for k in range(5)])

@pytest.mark.slow
def test_the_training_loop_of_the_mnist_tutorial():
  class Model:
    def __init__(self):
      self.l1 = nn.Conv2d(1, 4, kernel_size=(3, 3))
      self.l2 = nn.Conv2d(4, 8, kernel_size=(3, 3))
      self.l3 = nn.Linear(8, 5)

    def __call__(self, x: Tensor) -> Tensor:
      x = self.l1(x).relu().max_pool2d((2, 2))
      x = self.l2(x).relu().max_pool2d((2, 2))
      return self.l3(x.flatten(1).dropout(0.1))

  X_train, Y_train = digits()
  model = Model()
  acc = (model(X_train).argmax(axis=1) == Y_train).mean()
  assert 0 <= acc.item() <= 1

  optim = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)
  batch_size = 16
  def step():
    Tensor.training = True  # makes dropout work
    samples = Tensor.randint(batch_size, high=X_train.shape[0])
    X, Y = X_train[samples], Y_train[samples]
    optim.zero_grad()
    loss = model(X).sparse_categorical_crossentropy(Y).backward()
    optim.step()
    return loss

  jit_step = TinyJit(step)
  losses = []
  for i in range(40):
    loss = jit_step()
    losses.append(loss.item())
    if i % 10 == 0:
      Tensor.training = False
      acc = (model(X_train).argmax(axis=1) == Y_train).mean().item()
  assert sum(losses[-5:]) < 0.7 * sum(losses[:5]) and len(set(losses)) > 30

@pytest.mark.slow
def test_the_training_loop_of_the_quick_start():
  import numpy as np
  class TinyNet:
    def __init__(self):
      self.l1 = nn.Linear(100, 32, bias=False)
      self.l2 = nn.Linear(32, 5, bias=False)
    def __call__(self, x):
      x = self.l1(x)
      x = x.leaky_relu()
      x = self.l2(x)
      return x

  net = TinyNet()
  opt = nn.optim.SGD([net.l1.weight, net.l2.weight], lr=3e-2)
  X, Y = (t.numpy() for t in digits())
  rng = np.random.default_rng(0)
  with Tensor.train():
    for _ in range(60):
      # random sample a batch
      samp = rng.integers(0, X.shape[0], size=(16))
      batch = Tensor(X[samp].reshape(16, 100), requires_grad=False)
      # get the corresponding labels
      labels = Tensor(Y[samp])
      # forward pass
      out = net(batch)
      # compute loss
      loss = Tensor.sparse_categorical_crossentropy(out, labels)
      # zero gradients
      opt.zero_grad()
      # backward pass
      loss.backward()
      # update parameters
      opt.step()
      # calculate accuracy
      pred = out.argmax(axis=-1)
      acc = (pred == labels).mean()
  assert acc.numpy() > 0.7

  @TinyJit
  def jit(x): return net(x).realize()
  for _ in range(3):
    samp = rng.integers(0, X.shape[0], size=(16))
    batch = Tensor(X[samp].reshape(16, 100), requires_grad=False)
    np.testing.assert_allclose(jit(batch).numpy(), net(batch).numpy(), rtol=1e-5)

def test_settings():
  with Context(DEBUG=0, BEAM=0): assert (Tensor([1]) + 1).item() == 2
