"""Replays compared with plain calls: random numbers, gradients, optimizers, models, several jits, devices, threads."""
from __future__ import annotations
import copy
import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from test.helpers import HOME
from tinyhw.capture import replay
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, GradientError, JitError
from tinyhw.nn import BatchNorm2d, Linear
from tinyhw.nn.optim import SGD, Adam
from tinyhw.nn.state import get_parameters, get_state_dict
from tinyhw.tensor import Tensor

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def both(make: Callable[[Callable[..., Any]], list[Any]]) -> None:
  """make(wrap) returns the results of a program. They are the same with and without TinyJit."""
  plain, jitted = make(lambda f: f), make(TinyJit)
  assert plain == jitted

# ***** random numbers *****

def test_random_numbers_of_all_kinds_are_those_of_plain_calls() -> None:
  def f(x: Tensor) -> list[Tensor]:
    return [x + Tensor.rand(3), Tensor.randn(2), Tensor.randint(4, low=0, high=100), Tensor.randperm(6),
            Tensor([1.0, 2.0, 3.0]).multinomial(5, True),
            (x + 1).dropout(0.5), Tensor.randn(2, dtype=dtypes.float64)]
  def make(wrap: Callable[..., Any]) -> list[Any]:
    Tensor.manual_seed(3)
    function = wrap(f)
    with Tensor.train():
      return [[t.tolist() for t in function(tensor(k, k, k))] + [Tensor.rand(2).tolist()] for k in range(5)]
  both(make)

def test_a_seed_that_is_set_inside() -> None:
  def f(x: Tensor) -> list[Tensor]:
    a = Tensor.rand(2).realize()
    Tensor.manual_seed(5)
    return [a, x + Tensor.rand(2)]
  def make(wrap: Callable[..., Any]) -> list[Any]:
    Tensor.manual_seed(4)
    function = wrap(f)
    return [[t.tolist() for t in function(tensor(0, 0))] + [Tensor.rand(2).tolist()] for _ in range(5)]
  both(make)

# ***** gradients and optimizers *****

def test_gradients_that_are_held_keep_their_values() -> None:
  w = tensor(1, 2)
  w.requires_grad = True
  def f(x: Tensor) -> Tensor:
    w.grad = None
    return (w * x * x).sum().backward()
  jit: Any = TinyJit(f)
  held = []
  for k in range(6):
    assert jit(tensor(k, 1)).item() == k * k + 2
    held.append(w.grad)
  assert [g.tolist() for g in held] == [[k * k, 1] for k in range(6)]  # type: ignore[union-attr]  # they are there

def test_gradients_of_arguments_and_results() -> None:
  def f(x: Tensor) -> Tensor:
    y = (x * 3).realize()
    (y * y).sum().backward()
    return y
  jit: Any = TinyJit(f)
  for k in range(5):
    x = tensor(k)
    y = jit(x)
    assert y.item() == 3 * k and y.grad is not None and y.grad.item() == 6 * k
  def g(x: Tensor) -> None: (x * x).sum().backward()
  jit = TinyJit(g)
  for k in range(5):
    x = tensor(k)
    jit(x)
    assert x.grad is not None and x.grad.item() == 2 * k

def test_a_gradient_that_waits_from_before() -> None:
  w = tensor(1, 2)
  w.requires_grad = True
  jit: Any = TinyJit(lambda x: (w * x).sum().backward())
  for k in range(3):
    w.grad = None
    jit(tensor(k, 1))
    assert w.grad is not None and w.grad.tolist() == [k, 1]
  with pytest.raises(JitError, match="has a gradient now, which it had not when the function was captured"):
    jit(tensor(1, 1))

def test_gradients_through_a_write_that_waits_are_refused() -> None:
  """A plain call differentiates the value that is to be written; a replay finds it written, and so does a capture,
  which backward() refuses."""
  refused = {0: (GradientError, "would not reach all of the gradient"),
             3: (JitError, "takes gradients, .* of shape .1,. .* has a write that waits")}
  for before in refused:     # calls before the write: at the capture, at a replay
    state, w = tensor(1), tensor(2)
    w.requires_grad = True
    def f(x: Tensor, state: Tensor = state, w: Tensor = w) -> Tensor:
      w.grad = None
      return (state * w * x).sum().backward()
    jit: Any = TinyJit(f)
    for _ in range(before or 1): jit(tensor(1))
    state.assign(w * 3)
    with pytest.raises(refused[before][0], match=refused[before][1]): jit(tensor(1))
    jit.reset()
    state.assign((w * 3).detach())
    for _ in range(4): jit(tensor(1))
    assert w.grad is not None and w.grad.item() == 6

@pytest.mark.parametrize("optimizer", [lambda p: SGD(p, lr=0.1, momentum=0.9), lambda p: Adam(p, lr=0.01)])
def test_training_is_that_without_a_jit(optimizer: Any) -> None:
  def make(wrap: Callable[..., Any]) -> list[Any]:
    Tensor.manual_seed(2)
    layers = [Linear(4, 8), Tensor.relu, lambda x: x.dropout(0.3), Linear(8, 1)]
    opt = optimizer(get_parameters(layers))
    def step(x: Tensor, y: Tensor) -> Tensor:
      opt.zero_grad()
      loss = (x.sequential(layers) - y).square().mean().backward()
      return loss.realize(*opt.schedule_step())
    function = wrap(step)
    with Tensor.train():
      return [round(function(Tensor.randn(5, 4).realize(), Tensor.randn(5, 1).realize()).item(), 5)
              for _ in range(6)] + [
        [round(v, 5) for v in p.flatten().tolist()] for p in get_parameters(layers)]
  both(make)

def test_a_learning_rate_that_is_a_number_is_seen() -> None:
  class Descent:
    def __init__(self, w: Tensor): self.w, self.lr = w, 0.5
    def step(self) -> Tensor: return self.w.assign(self.w - self.lr).realize()
  opt = Descent(tensor(1))
  jit: Any = TinyJit(lambda x: (opt.step() + x).realize())
  for _ in range(3): jit(tensor(1))
  opt.lr = 0.25
  with pytest.raises(JitError, match="lr was 0.5 when the function was captured, and is 0.25 now"): jit(tensor(1))

def test_settings_of_layers_are_seen() -> None:
  norm = BatchNorm2d(2)
  jit: Any = TinyJit(lambda x: norm(x).realize())
  x = Tensor.ones(1, 2, 2, 2).contiguous().realize()
  for _ in range(3): jit(x)
  norm.eps = 0.5
  with pytest.raises(JitError, match="eps was 1e-05 when the function was captured, and is 0.5 now"): jit(x)

# ***** kinds of functions, several jits, devices *****

class Model:
  base = 10
  def __init__(self, n: float): self.w = tensor(n)
  @TinyJit
  def method(self, x: Tensor) -> Tensor: return x * self.w
  @classmethod
  @TinyJit
  def of_class(cls, x: Tensor) -> Tensor: return x + cls.base
  @TinyJit
  @classmethod
  def class_of(cls, x: Tensor) -> Tensor: return x + cls.base
  @staticmethod
  @TinyJit
  def static(x: Tensor) -> Tensor: return x + 1
  @TinyJit
  @staticmethod
  def statically(x: Tensor) -> Tensor: return x + 2

class Slotted:
  __slots__ = ("w",)
  def __init__(self, n: float): self.w = tensor(n)
  @TinyJit
  def method(self, x: Tensor) -> Tensor: return x * self.w

def test_kinds_of_functions() -> None:
  models, slotted = [Model(2), Model(3)], [Slotted(4), Slotted(5)]
  def add(w: Tensor, x: Tensor) -> Tensor: return x + w
  partly, anonymous = TinyJit(functools.partial(add, tensor(1))), TinyJit(lambda x: x * 7)
  for k in range(5):
    x = tensor(k)
    for m, n in zip(models, (2, 3)):
      assert (m.method(x).item() == n * k and m.of_class(x).item() == 10 + k and m.static(x).item() == k + 1
              and m.statically(x).item() == k + 2)
      assert (m.class_of(x).item() == 10 + k and Model.of_class(x).item() == 10 + k and Model.statically(x).item() == k
              + 2)
    for s, n in zip(slotted, (4, 5)): assert s.method(x).item() == n * k
    assert partly(x).item() == k + 1 and anonymous(x).item() == 7 * k
  assert Model.method.__name__ == "method" and Model.method.__wrapped__(models[0], tensor(2)).item() == 4

def test_what_cannot_be_called_is_refused() -> None:
  with pytest.raises(ArgumentError, match="TinyJit wants a function, or something else that can be called, not 3"):
    TinyJit(3)  # type: ignore[arg-type]  # that is the test

def test_attributes_that_code_of_the_user_finds() -> None:
  """__getattr__ is the user's code, and may raise anything for a missing attribute."""
  class Table:
    def __init__(self) -> None: self.rows = {"a": 2.0}
    def __getattr__(self, name: str) -> Any: return self.__dict__["rows"][name]
  table = Table()
  jit: Any = TinyJit(lambda x: x * table.a)
  for k in range(4): assert jit(tensor(k)).item() == 2 * k
  table.rows["a"] = 3.0
  with pytest.raises(JitError, match=r"'rows'\]\['a'\] was 2.0"): jit(tensor(1))

def test_models_with_a_jit_can_be_copied_and_have_only_their_own_tensors() -> None:
  model = Model(2)
  for k in range(4): model.method(tensor(k))
  assert list(get_state_dict(model)) == ["w"]
  for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
    copied.w.assign(Tensor([5.0])).realize()
    for k in range(4): assert copied.method(tensor(k)).item() == 5 * k
  assert model.method(tensor(3)).item() == 6
  class Holder:
    def __init__(self) -> None:
      self.w = tensor(2)
      self.forward = TinyJit(self.run)
    def run(self, x: Tensor) -> Tensor: return x * self.w
  holder = Holder()
  for k in range(4): holder.forward(tensor(k))
  other = copy.deepcopy(holder)
  other.w.assign(Tensor([7.0])).realize()
  for k in range(4): assert other.forward(tensor(k)).item() == 7 * k and holder.forward(tensor(k)).item() == 2 * k

def test_several_jits_share_parameters() -> None:
  def make(wrap: Callable[..., Any]) -> list[Any]:
    w = tensor(1, 2)
    train, infer = wrap(lambda x: w.assign(w + x).realize()), wrap(lambda x: (w * x).realize())
    rows = []
    for k in range(6):
      rows.append(infer(tensor(k, 1)).tolist())
      train(tensor(1, k))
      if k == 3: w.assign(w * 2)
      rows.append(infer(tensor(k, 1)).tolist())
    return rows
  both(make)

def test_a_jit_in_a_jit_that_updates_state() -> None:
  def make(wrap: Callable[..., Any]) -> list[Any]:
    w = tensor(1)
    inner = wrap(lambda x: w.assign(w + x).realize())
    outer = wrap(lambda x: (inner(x * 2) + 1).realize())
    return [(inner(tensor(k)) if k % 3 == 2 else outer(tensor(k))).tolist() for k in range(8)]
  both(make)

@pytest.mark.parametrize("device", [HOME, "PYTHON"])
def test_copies_between_devices(device: str) -> None:
  other = "PYTHON" if device == HOME else HOME
  w = tensor(5, device=other)
  jit: Any = TinyJit(lambda x: [(x.to(other) + w).realize(), x.to(other).contiguous(),
                                ((x.to(other) * 2).to(device) + x).realize()])
  held = [(k, jit(tensor(k, device=device))) for k in range(5)]
  for k, (a, b, c) in held:
    assert a.tolist() == [k + 5] and b.tolist() == [k] and c.tolist() == [3 * k] and a.device == b.device == other

def test_jit_2_replays_kernel_by_kernel() -> None:
  with Context(JIT=2):
    jit: Any = TinyJit(lambda x: ((x + 1).realize() * 2).realize())
    for k in range(4): assert jit(tensor(k)).item() == 2 * (k + 1)
  assert len(jit.captured.parts) == 2

# ***** interruptions and threads *****

def test_an_interrupted_replay_leaves_things_right() -> None:
  """Ctrl-C at any of its calls: later calls give correct results."""
  for stop in range(8):
    state = tensor(0)
    jit: Any = TinyJit(lambda x: (state.assign(state + 1).realize() + x).realize())
    for k in range(3): jit(tensor(k))
    calls, kept = [0], []
    real = replay.Slot.put
    def put(slot: Any, storage: Any) -> None:
      calls[0] += 1
      if calls[0] == stop + 1: raise KeyboardInterrupt
      real(slot, storage)
      if calls[0] == stop + 2: raise KeyboardInterrupt
    replay.Slot.put = put  # type: ignore[method-assign,assignment]  # interrupts it
    try: kept.append(jit(tensor(100)))
    except KeyboardInterrupt: pass
    finally: replay.Slot.put = real  # type: ignore[method-assign]  # as it was
    for k in range(3):
      before = state.item()
      kept.append(jit(tensor(k)))
      assert kept[-1].item() == before + 1 + k and state.item() == before + 1

def test_captures_in_several_threads() -> None:
  wrong: list[Any] = []
  def work(n: int) -> None:
    try:
      jit: Any = TinyJit(lambda x: (x + n).realize() * 2)
      for k in range(20):
        if jit(tensor(k)).item() != 2 * (k + n): wrong.append((n, k))
    except JitError as error: wrong.append(error)
  threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert not wrong
