"""What replays give: results of any structure, each with its own storage; gradients; Variables; random numbers; state.

Compared with plain calls.
"""
from __future__ import annotations
import copy
import functools
import itertools
import os
import pickle
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw.capture import replay
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, GradientError, IndexRangeError, JitError
from tinyhw.nn import BatchNorm2d, Linear
from tinyhw.nn.optim import SGD, Adam
from tinyhw.nn.state import get_parameters, get_state_dict
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def both(make: Callable[[Callable[..., Any]], list[Any]]) -> None:
  """make(wrap) gives what a program computes; it is the same with and without TinyJit."""
  plain, jitted = make(lambda f: f), make(TinyJit)
  assert plain == jitted

@dataclass
class Pair:
  first: Any
  second: Any = 0

class Named(NamedTuple):
  x: Any
  n: Any

# ***** arguments and results of any structure *****

def test_results_of_any_structure() -> None:
  state = tensor(0)
  def f(x: Tensor, pair: Pair) -> Any:
    y = (x + pair.first).realize()
    state.assign(state + x).realize()
    return {"a": [y, y], "b": (None, 3, "text"), "c": Named(x, y[:1]), "d": Pair(pair.first, state),
            "e": Tensor([1.0, 2.0])}
  jit: Any = TinyJit(f)
  held = []
  for k in range(5):
    x, pair = tensor(k), Pair(tensor(10 * k), 7)
    found = jit(x, pair)
    assert (found["a"][0] is found["a"][1] and found["c"].x is x and found["d"].first is pair.first
            and found["d"].second is state)
    assert found["b"] == (None, 3, "text") and type(found["c"]) is Named
    held.append((k, found))
  for k, found in held:
    assert found["a"][0].tolist() == found["c"].n.tolist() == [11 * k] and found["e"].tolist() == [1.0, 2.0]
    found["e"].assign(found["e"] * 0)
  assert jit(tensor(1), Pair(tensor(1), 7))["e"].tolist() == [1.0, 2.0]

def test_a_function_that_returns_nothing() -> None:
  total = tensor(0)
  def f(x: Tensor) -> None: total.assign(total + x).realize()
  jit: Any = TinyJit(f)
  for k in range(5): assert jit(tensor(k)) is None
  assert total.item() == 10

def test_the_same_tensor_twice_among_the_arguments() -> None:
  jit: Any = TinyJit(lambda a, b: a + 2 * b)
  for k in range(4):
    x = tensor(k)
    assert jit(x, x).item() == 3 * k
  with pytest.raises(JitError, match="captured with 1 Tensors, called with 2"): jit(tensor(1), tensor(2))

def test_keyword_arguments() -> None:
  jit: Any = TinyJit(lambda x, *, scale, shift=1: x * scale + shift)
  for k in range(4): assert jit(tensor(k), scale=tensor(2)).item() == 2 * k + 1
  with pytest.raises(JitError, match="changed"): jit(tensor(1), scale=tensor(2), shift=3)
  with pytest.raises(JitError, match="captured with 2 Tensors, called with 1"): jit(tensor(1))

def test_an_iterator_is_no_result() -> None:
  jit: Any = TinyJit(lambda x: iter([(x + 1).realize()]))
  jit(tensor(1))
  with pytest.raises(JitError, match="returns .*iterator.*, which can be read once; return a list"): jit(tensor(1))

def test_results_that_are_written_more_than_once() -> None:
  def f(x: Tensor) -> list[Tensor]:
    y, z = (x + 1).realize(), Tensor([1.0, 2.0])
    y.assign(y * 2).realize()
    z.assign(z + x).realize()
    return [y, z]
  jit: Any = TinyJit(f)
  held = [jit(tensor(k)) for k in range(5)]
  assert [[t.tolist() for t in row] for row in held] == [[[2 * (k + 1)], [1 + k, 2 + k]] for k in range(5)]

def test_host_data_that_is_written_starts_anew() -> None:
  def f(x: Tensor) -> Tensor:
    z = Tensor([1.0, 2.0])
    z.assign(z + x).realize()
    return z.sum()
  jit: Any = TinyJit(f)
  for k in range(5): assert jit(tensor(k)).item() == 3 + 2 * k

# ***** what is kept by others *****

def test_a_tensor_that_is_kept_inside_is_refused() -> None:
  class Model:
    def __init__(self) -> None: self.kept: list[Any] = []
    def __call__(self, x: Tensor) -> Tensor:
      y = (x + 1).realize()
      self.keep(y)
      return y * 2
    def keep(self, y: Tensor) -> None: self.kept.append(y)
  class Holder:
    def __init__(self, y: Tensor): self.y = y
  model = Model()
  jit: Any = TinyJit(model)
  jit(tensor(1))
  with pytest.raises(JitError, match="the function puts another Tensor into .*kept"): jit(tensor(1))
  assert [t.tolist() for t in model.kept] == [[2.0], [2.0]]
  jit = TinyJit(lambda x: Holder((x + 1).realize()))
  jit(tensor(1))
  with pytest.raises(JitError, match="is kept by something else than its result.*return it, and keep it outside"):
    jit(tensor(1))
  hidden: Any = type("hidden", (), {})()
  for keep in (lambda x: (x + 1).realize(), lambda x: x + 1):
    def f(x: Tensor, keep: Any = keep) -> Tensor:
      setattr(hidden, "".join(["la", "ter"]), keep(x))
      return x * 2
    jit = TinyJit(f)
    jit(tensor(1))
    with pytest.raises(JitError, match="is kept by something else than its result"): jit(tensor(1))

def test_what_the_function_does_to_numbers_is_refused() -> None:
  class Model:
    def __init__(self) -> None: self.step = 0
    def __call__(self, x: Tensor) -> Tensor:
      self.step += 1
      return x * self.step
  jit: Any = TinyJit(Model())
  jit(tensor(1))
  with pytest.raises(JitError, match="the function changes self.step, which replays would not do; do that outside"):
    jit(tensor(1))

# ***** Tensors of the surroundings that have no storage *****

def test_lazy_tensors_of_the_surroundings() -> None:
  w = tensor(1)
  lazy, constant = w * 2, Tensor(3.0)
  jit: Any = TinyJit(lambda x: x + lazy + constant)
  for k in range(4): assert jit(tensor(k)).item() == k + 5
  constant.assign(Tensor(4.0))
  with pytest.raises(JitError, match="constant, a Tensor of shape .*, had no storage when the function was captured"):
    jit(tensor(1))
  jit.reset()
  for k in range(4): assert jit(tensor(k)).item() == k + 6
  w.assign(Tensor([50.0])).realize()      # lazy keeps its value
  with pytest.raises(JitError, match="lazy, a Tensor .*; realize"): jit(tensor(1))
  jit.reset()
  for k in range(4): assert jit(tensor(k)).item() == k + 6

def test_lazy_tensors_are_computed_once() -> None:
  weight = Tensor.rand(4, 4)      # drawn when it is first computed, and the same in each call
  jit: Any = TinyJit(lambda x: x @ weight)
  x = Tensor.ones(4, 4).contiguous().realize()
  first = jit(x).tolist()
  for _ in range(3): assert jit(x).tolist() == first
  assert jit.captured.kernels == 1

def test_lazy_tensors_that_no_name_leads_to() -> None:
  w = tensor(1)
  hidden: Any = type("hidden", (), {})()
  hidden.lazy = w * 2
  jit: Any = TinyJit(lambda x: x + getattr(hidden, "".join(["la", "zy"])))
  for k in range(4): assert jit(tensor(k)).item() == k + 2
  w.assign(w + 5).realize()
  with pytest.raises(JitError, match="without storage that the function used when it was captured has been realized "
                     "or written"):
    jit(tensor(1))

def test_a_lazy_tensor_of_an_argument() -> None:
  x = tensor(1)
  lazy = x * 2
  jit: Any = TinyJit(lambda t: t + lazy)
  jit(x)
  with pytest.raises(JitError, match="lazy is computed from an argument of this call, and has no storage; realize"):
    jit(x)

# ***** modes and data of the host *****

def test_other_modes_are_refused() -> None:
  jit: Any = TinyJit(lambda x: x + Tensor.ones(1))
  for _ in range(3): jit(tensor(1))
  x = tensor(1)
  with Context(TRAINING=1), pytest.raises(JitError, match="captured with Tensor.training False, called with True"):
    jit(x)
  with Tensor.no_grad(), pytest.raises(JitError, match="captured with Tensor.no_grad False"): jit(x)
  for name, mode, value in ((dtypes, "default_float", dtypes.float64), (dtypes, "default_int", dtypes.int64),
                            (Device, "DEFAULT", "PYTHON:1")):
    before = getattr(name, mode)
    setattr(name, mode, value)
    try:
      with pytest.raises(JitError, match="captured with the default"): jit(x)
    finally: setattr(name, mode, before)
  assert jit(x).tolist() == [2.0]
  def sets(x: Tensor) -> Tensor:
    Tensor.training = not Tensor.training
    return x + 1
  jit = TinyJit(sets)
  try:
    jit(x)
    with pytest.raises(JitError, match="the function changes Tensor.training from True to False"): jit(x)
  finally: Tensor.training = False

@pytest.mark.parametrize("draw", [random.random, np.random.rand, np.random.randn, lambda: np.random.randint(9)])
def test_numbers_that_the_host_draws_are_refused(draw: Any) -> None:
  """As plain numbers, of which the graph tells nothing. randn keeps the second of two in the generator's state."""
  for before in range(2):
    for _ in range(before): draw()
    jit: Any = TinyJit(lambda x: x + float(draw()))
    jit(tensor(1))
    with pytest.raises(JitError, match="draws from the random module of Python or NumPy"): jit(tensor(1))
  jit = TinyJit(lambda x: x + 1)
  for k in range(3):
    draw()
    assert jit(tensor(k)).item() == k + 1

def halves(x: Tensor) -> Any:
  for row in x: yield row * 0.5

@pytest.mark.parametrize("function", [
  lambda x: sum(r for r in x), lambda x: Tensor.stack(*[r * 2 for r in x]), lambda x: sum(r for r in halves(x)),
  lambda x: sum(halves(x))])
def test_comprehensions_over_tensors_and_generators(function: Any) -> None:
  jit: Any = TinyJit(lambda x: function(x).realize())
  for k in range(4):
    x = Tensor([[float(k), 2.0], [3.0, 4.0]]).realize()
    assert jit(x).tolist() == function(x).tolist()

@pytest.mark.parametrize("numbers", [itertools.count(), (k for k in range(9)), iter([1, 2, 3]), zip([1, 2, 3])],
                         ids=lambda it: type(it).__name__)
def test_iterators_are_refused(numbers: Any) -> None:
  def count(x: Tensor) -> Tensor:
    item = next(numbers)
    return x + (item[0] if isinstance(item, tuple) else item)
  jit: Any = TinyJit(count)
  jit(tensor(1))
  with pytest.raises(JitError, match="numbers is an iterator .*take it outside"): jit(tensor(1))

def test_data_that_changes_is_refused() -> None:
  state = {"n": 0.0}
  for f in (lambda x: x + Tensor(list(os.urandom(8))).sum(), lambda x: x + Tensor([random.random(), 1.0])):
    jit: Any = TinyJit(f)
    jit(tensor(1))
    with pytest.raises(JitError, match="from data that were others in the call before|draws from the random module"):
      jit(tensor(1))
  jit = TinyJit(lambda x: x + Tensor([state["n"]]))
  for k in range(4): assert jit(tensor(k)).item() == k
  state["n"] = 2.0
  with pytest.raises(JitError, match=r"state\['n'\] was 0.0"): jit(tensor(1))

# ***** Variables *****

def test_variables_in_the_shapes_of_arguments() -> None:
  v, x = UOp.variable("v", 1, 8), tensor(*range(8))
  for view in (lambda t, b: t[:b], lambda t, b: t.shrink(((0, b),)), lambda t, b: (t[:b] * 1.0)):
    jit: Any = TinyJit(lambda t: ((t + 1).realize(), t.sum()))
    held = []
    for i in (3, 4, 5, 1, 8, 4):
      y, total = jit(view(x, v.bind(i)))
      held.append((i, y))
      assert total.item() == sum(range(i))
    for i, y in held: assert y.tolist() == [k + 1.0 for k in range(i)] and y.shape[0] is v.bind(i)

def test_variables_as_arguments_and_in_results() -> None:
  v, x = UOp.variable("v", 1, 7), tensor(*range(8))
  jit: Any = TinyJit(lambda t, n: ((t[:n] + 1).realize(), t[n:n + 1].contiguous(), n, n + 1))
  held = [(i, jit(x, v.bind(i))) for i in (3, 4, 5, 1, 7)]
  for i, (y, one, n, more) in held:
    assert y.tolist() == [k + 1.0 for k in range(i)] and one.tolist() == [i] and n is v.bind(i)
    assert int(more.substitute({n: n.src[1]}).simplify()) == i + 1

def test_a_variable_with_two_values_is_refused() -> None:
  v, x = UOp.variable("v", 1, 8), tensor(*range(8))
  jit: Any = TinyJit(lambda t, n: t.sum() + n)
  jit(x[:v.bind(3)], v.bind(3))
  with pytest.raises(JitError, match="v bound to 4, another one to 3"): jit(x[:v.bind(4)], v.bind(3))

def test_variables_that_the_function_binds() -> None:
  v, w, x = UOp.variable("v", 1, 8), UOp.variable("w", 1, 8), tensor(*range(8))
  jit: Any = TinyJit(lambda t, n: (t[:n].sum() + t[:w.bind(n.unbind()[1] - 1)].sum()))
  jit(x, v.bind(3))
  assert jit(x, v.bind(3)).item() == jit(x, v.bind(3)).item() == 4
  # the value that it reads is one that it decides by
  assert jit(x, v.bind(4)).item() == 9 and jit(x, v.bind(3)).item() == 4
  state = {"k": 2}
  unseen: Any = TinyJit(lambda t, n: (t[:n].sum() + t[:w.bind(state["k"])].sum()))
  unseen(x, v.bind(3))
  unseen(x, v.bind(3))
  with pytest.raises(JitError, match="the function binds w to 2 itself"): unseen(x, v.bind(4))

def test_what_the_function_decides_by_its_variables() -> None:
  """A slice outside of its axis is refused at a replay, too; a number of parts, or one that Python reads, has a
  capture of its own."""
  v, x = UOp.variable("v", 0, 8), tensor(*range(8))
  runs: list[int] = []
  def place(t: Tensor, n: UOp) -> Tensor:
    runs.append(n.src[1].arg)
    return t[n:n + 2] + n
  jit: Any = TinyJit(place)
  for i in (0, 1, 2, 6, 3): assert jit(x, v.bind(i)).tolist() == [2 * i, 2 * i + 1]
  for _ in range(2):
    with pytest.raises(IndexRangeError, match=r"which has size 8: .* is 9"): jit(x, v.bind(7))
  assert jit(x, v.bind(5)).tolist() == [10, 11] and runs == [0, 1, 7, 7]
  parts: Any = TinyJit(lambda t, n: [p.sum() for p in t[:n].split(2)])
  for i in (5, 6, 3, 4, 5, 6, 3):
    assert [p.item() for p in parts(x, v.bind(i))] == [sum(range(k, min(k + 2, i))) for k in range(0, i, 2)]
  number: Any = TinyJit(lambda t, n: t.sum() * int(n))
  for i in (3, 3, 4, 5, 4, 3): assert number(x, v.bind(i)).item() == 28 * i

def test_a_variable_with_two_values_in_one_graph() -> None:
  v, x = UOp.variable("v", 1, 8), tensor(*range(8))
  assert (x[:v.bind(3)].sum() + x[:v.bind(5)].sum() * v.bind(2)).item() == 23

@pytest.mark.parametrize("device", [HOME, "PYTHON"])
def test_attention_with_a_cache(device: str) -> None:
  """One capture for all positions, as plain calls."""
  start = UOp.variable("start", 0, 7)
  def make(wrap: Callable[..., Any]) -> list[Any]:
    Tensor.manual_seed(1)
    cache = Tensor.zeros(2, 1, 2, 8, 4, device=device).contiguous().realize()
    def attend(x: Tensor, begin: UOp) -> Tensor:
      q, k, v = x, x * 0.5, x + 1
      cache[:, :, :, begin:begin + 1, :].assign(Tensor.stack(k, v)).realize()
      keys, values = cache[0, :, :, 0:begin + 1, :], cache[1, :, :, 0:begin + 1, :]
      return q.scaled_dot_product_attention(keys, values).realize()
    step = wrap(attend)
    rows = []
    for k in range(7):
      x = Tensor.randn(1, 2, 1, 4, device=device).realize()
      rows.append(step(x, start.bind(k)).tolist())
    return [[round(v, 5) for head in row[0] for one in head for v in one]
            for row in rows] + [round(cache.sum().item(), 4)]
  both(make)

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
  """__getattr__ is the user's code, and may raise anything for what is not there."""
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
  """Ctrl-C at any of its calls: the next ones give what they should."""
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
