"""Replays compared with plain calls: results of any structure, refusals, modes, Variables."""
from __future__ import annotations
import itertools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.errors import IndexRangeError, JitError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def both(make: Callable[[Callable[..., Any]], list[Any]]) -> None:
  """make(wrap) returns the results of a program. They are the same with and without TinyJit."""
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

# ***** live-in Tensors without storage *****

def test_lazy_tensors_that_are_live_in() -> None:
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
  """As plain numbers, which the graph does not show. randn keeps the second of two in the generator's state."""
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
  # its reads are decisions
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
  """One capture for all positions gives the results of plain calls."""
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
