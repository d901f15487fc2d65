"""TinyJit: replays compute the same, results keep their values while in use, and unfaithful captures are refused."""
from __future__ import annotations
import copy
import inspect
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.engine.run import realize as realizing
from tinyhw.errors import JitError
from tinyhw.helpers import GlobalCounters
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp, Variable

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def captured(function: Any, *args: Any) -> TinyJit[Any, Any]:
  """A TinyJit that has captured a call with these arguments."""
  jit: TinyJit[Any, Any] = TinyJit(function)
  for _ in range(2): jit(*args)
  assert jit.captured is not None
  return jit

def test_the_function_runs_twice() -> None:
  calls = []
  @TinyJit
  def f(x: Tensor) -> Tensor:
    calls.append(1)
    return x * 2 + 1
  for k in range(5): assert f(tensor(k, k + 1)).tolist() == [2 * k + 1, 2 * k + 3]
  assert len(calls) == 2

def test_jit_0_never_captures() -> None:
  calls = []
  def f(x: Tensor) -> Tensor:
    calls.append(1)
    return x + 1
  jit: Any = TinyJit(f)
  with Context(JIT=0):
    for k in range(4): assert jit(tensor(k)).tolist() == [k + 1]
  assert len(calls) == 4

# ***** refusals *****

def test_other_shapes_dtypes_devices_and_views_are_refused() -> None:
  jit = captured(lambda x: x + 1, tensor(1, 2, 3, 4))
  wrong = [tensor(1, 2), tensor(1, 2, 3, 4, dtype="float64"), tensor(1, 2, 3, 4, device="PYTHON:1"),
           Tensor([[1.0, 2], [3, 4]]).realize(),
           tensor(1, 2, 3, 4, 5, 6)[:4]]
  for x in wrong:
    with pytest.raises(JitError, match="argument 0 was captured as"): jit(x)
  assert jit(tensor(1, 2, 3, 4)).tolist() == [2, 3, 4, 5]

def test_changed_constants_are_refused() -> None:
  jit = captured(lambda x, n: x + n, tensor(1), 2)
  with pytest.raises(JitError, match="must be what they were"): jit(tensor(1), 3)
  assert jit(tensor(5), 2).tolist() == [7]

def test_another_number_of_tensors_is_refused() -> None:
  jit = captured(lambda *xs: sum(xs[1:], xs[0]) + 0.5, tensor(1), tensor(2))
  with pytest.raises(JitError, match="captured with 2 Tensors, called with 3"): jit(tensor(1), tensor(2), tensor(3))

def test_nested_containers() -> None:
  jit = captured(lambda d: d["a"][0] + d["b"]["c"] * d["n"], {"a": [tensor(1)], "b": {"c": tensor(2)}, "n": 3})
  assert jit({"a": [tensor(10)], "b": {"c": tensor(20)}, "n": 3}).tolist() == [70]
  with pytest.raises(JitError): jit({"a": (tensor(10),), "b": {"c": tensor(20)}, "n": 3})
  with pytest.raises(JitError): jit({"a": [tensor(10)], "b": {"c": tensor(20)}, "n": 4})

def test_inputs_that_share_a_buffer_are_refused() -> None:
  x = tensor(1, 2)
  jit: Any = TinyJit(lambda a, b: a + b)
  jit(x, x.reshape(2, 1))
  with pytest.raises(JitError, match="share a buffer"): jit(x, x.reshape(2, 1))
  assert realizing.this_thread.capture is None

def test_a_function_without_kernels_is_refused() -> None:
  jit: Any = TinyJit(lambda x: x)
  jit(tensor(1))
  with pytest.raises(JitError, match="ran no kernel"): jit(tensor(1))

def test_values_are_not_read_while_captured() -> None:
  """All later calls would have the number of the captured call, and take its branches."""
  one = Tensor([1.0, 2.0], device="PYTHON").realize()
  for read in (lambda x: (x * 2).sum().item(), lambda x: x * 2 if x.sum().item() > 5 else x * 3,
               lambda x: x[x > 1.5].realize(),
               lambda x: x.tolist()):
    jitted = TinyJit(read)
    jitted(one)
    with pytest.raises(JitError, match="is read while TinyJit captures.*read it outside"): jitted(one)
    assert (one + 1).tolist() == [2.0, 3.0]

def test_tensors_that_the_function_uses_are_followed() -> None:
  """A pending ASSIGN is done first. Another buffer was not captured."""
  w, one = Tensor([1.0, 2.0], device="PYTHON").realize(), Tensor([1.0, 1.0], device="PYTHON").realize()
  jitted = TinyJit(lambda x: (x + w[:1]).realize())
  for _ in range(3): assert jitted(one).tolist() == [2.0, 2.0]
  w.assign(w + 10)
  assert jitted(one).tolist() == [12.0, 12.0] and w.tolist() == [11.0, 12.0]
  w += 1
  w[1:] = 7
  assert jitted(one).tolist() == [13.0, 13.0] and jitted(one).tolist() == [13.0, 13.0]
  w.replace(Tensor([5.0, 5.0], device="PYTHON").realize())
  with pytest.raises(JitError, match="has another buffer now; change it with assign"): jitted(one)
  jitted.reset()
  assert [jitted(one).tolist() for _ in range(3)] == [[6.0, 6.0]] * 3

def test_arrays_of_other_libraries_are_refused() -> None:
  class Array:
    def __array__(self) -> None: pass
  jitted = TinyJit(lambda x, y: (x + 1).realize())
  with pytest.raises(JitError, match="cannot tell whether its contents change; pass a Tensor"):
    jitted(Tensor([1.0], device="PYTHON"), Array())

def test_reset_captures_again() -> None:
  jit = captured(lambda x: x + 1, tensor(1, 2))
  jit.reset()
  for k in range(4): assert jit(tensor(k)).tolist() == [k + 1]

# ***** variables and random numbers *****

def test_variables() -> None:
  n = UOp.variable("n", 1, 8)
  x = tensor(*range(8))
  jit: Any = TinyJit(lambda t, k: t[:k].sum())
  for k in (3, 4, 7, 1, 8): assert jit(x, n.bind(k)).item() == sum(range(k))
  with pytest.raises(JitError): jit(x, UOp.variable("m", 1, 8).bind(2))

def test_random_numbers_differ_in_each_call() -> None:
  jit: Any = TinyJit(lambda x: x + Tensor.rand(16))
  seen = [tuple(jit(tensor(*[0.0] * 16)).tolist()) for _ in range(6)]
  assert len(set(seen)) == 6 and all(0 <= v < 1 for row in seen for v in row)

def test_random_numbers_are_those_without_a_jit() -> None:
  def f(x: Tensor) -> Tensor: return x + Tensor.rand(4)
  rows = []
  for function in (f, TinyJit(f)):
    Tensor.manual_seed(7)
    rows.append([function(tensor(0, 0, 0, 0)).tolist() for _ in range(5)])
  assert rows[0] == rows[1]

# ***** storage of results *****

def address(t: Tensor) -> int: return id(t._buffer().get_buf())

def test_results_that_are_held_keep_their_values() -> None:
  jit = captured(lambda x: (x + 1, x * 2), tensor(1, 2))
  held = [jit(tensor(k, k)) for k in range(6)]
  for k, (a, b) in enumerate(held): assert a.tolist() == [k + 1] * 2 and b.tolist() == [2 * k] * 2

def test_results_that_were_dropped_are_used_again() -> None:
  jit = captured(lambda x: x + 1, tensor(1, 2))
  seen = {address(jit(tensor(k, k))) for k in range(8)}
  assert len(seen) <= 2

@pytest.mark.parametrize("device", [HOME, "PYTHON"])
def test_memory_that_is_looked_at_in_place_is_not_overwritten(device: str) -> None:
  """A zero-copy memoryview, and everything made of it, holds the storage even without a Tensor."""
  jit = captured(lambda x: x + 1, tensor(1, 2, 3, 4, device=device))
  views = [jit(tensor(*[float(k)] * 4, device=device))._buffer().as_memoryview(allow_zero_copy=True)[4:].cast("f")
           for k in range(6)]
  for k, view in enumerate(views): assert list(view) == [k + 1.0] * 3
  arrays = [np.frombuffer(view, np.float32) for view in views]
  del views, view
  for k in range(6): jit(tensor(*[90.0] * 4, device=device))
  for k, array in enumerate(arrays): np.testing.assert_array_equal(array, k + 1.0)

def test_copies_to_the_host_are_copies() -> None:
  jit = captured(lambda x: x + 1, tensor(1, 2))
  rows = [(jit(tensor(k, k)).data(), jit(tensor(k, k)).numpy()) for k in range(5)]
  for k, (a, b) in enumerate(rows): assert list(a) == list(b) == [k + 1] * 2

def test_state_is_updated_in_place() -> None:
  total = Tensor.zeros(2).contiguous().realize()
  @TinyJit
  def f(x: Tensor) -> Tensor: return total.assign(total + x).realize()
  for k in range(5): f(tensor(1, 2))
  assert total.tolist() == [5, 10]

# ***** capture inside of capture, and exceptions *****

def test_a_jit_inside_of_a_jit() -> None:
  inner: Any = TinyJit(lambda x: x * 2)
  outer: Any = TinyJit(lambda x: inner(x + 1) + 1)
  for k in range(6): assert outer(tensor(k)).tolist() == [2 * (k + 1) + 1]

@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_while_capturing_leaves_things_usable(error: type[BaseException]) -> None:
  fail = [False]
  @TinyJit
  def f(x: Tensor) -> Tensor:
    y = (x + 1).realize()
    if fail[0]: raise error("stop")
    return y * 2
  f(tensor(1))
  fail[0] = True
  with pytest.raises(error): f(tensor(1))
  assert realizing.this_thread.capture is None
  fail[0] = False
  for k in range(4): assert f(tensor(k)).tolist() == [2 * (k + 1)]

def test_replays_are_counted_as_kernels() -> None:
  jit = captured(lambda x: (x + 1).realize().sum(), tensor(*range(8)))
  before = GlobalCounters.kernel_count
  jit(tensor(*range(8)))
  assert GlobalCounters.kernel_count - before >= 1

def test_methods_have_a_capture_for_each_object() -> None:
  class Scale:
    def __init__(self, by: float): self.by = by
    @TinyJit
    def __call__(self, x: Tensor) -> Tensor: return x * self.by
  two, three = Scale(2), Scale(3)
  for k in range(4): assert two(tensor(k)).tolist() == [2 * k] and three(tensor(k)).tolist() == [3 * k]

# ***** what the function reads besides its arguments *****

LEVEL = 1
TABLE = Tensor([1.0, 2.0], device="PYTHON").realize()

def test_globals_and_closures_are_compared() -> None:
  global LEVEL, TABLE
  one, k, weights = tensor(1, 1), 2, [tensor(5, 5)]
  jits = [captured(f, one) for f in (lambda x: x * LEVEL, lambda x: x * k, lambda x: x + weights[0],
                                     lambda x: [y * k for y in (x,)][0])]
  for jit in jits: jit(one)
  LEVEL, k, weights[0] = 3, 3, tensor(6, 6)
  for jit, name in zip(jits, ("LEVEL was 1", "k was 2", "weights.0. is another Tensor", "k was 2")):
    with pytest.raises(JitError, match=name): jit(one)
  LEVEL, k = 1, 2
  assert jits[0](one).tolist() == [1, 1] and jits[1](one).tolist() == [2, 2]
  weights.append(one)
  jits[2].reset()
  for _ in range(3): assert jits[2](one).tolist() == [7, 7]
  weights.append(one)
  with pytest.raises(JitError, match="weights was 2 items"): jits[2](one)

def test_attributes_that_the_code_names_are_compared() -> None:
  class Model:
    def __init__(self) -> None: self.w, self.scale, self.calls = tensor(1, 2), 2, 0
    @TinyJit
    def __call__(self, x: Tensor) -> Tensor: return x * self.w * self.scale
  model = Model()
  for _ in range(4):
    assert model(tensor(1, 1)).tolist() == [2, 4]
    model.calls += 1      # the code does not read it
  model.scale = 3
  with pytest.raises(JitError, match="self.scale was 2 .* and is 3 now"): model(tensor(1, 1))
  model.scale, kept, model.w = 2, model.w, tensor(3, 4)
  with pytest.raises(JitError, match="self.w is another Tensor"): model(tensor(1, 1))
  model.w = kept
  assert model(tensor(1, 1)).tolist() == [2, 4]
  class Setting:
    def __init__(self) -> None: self.level = 1
  jit = captured(lambda x, setting: x * setting.level, tensor(1), setting := Setting())
  setting.level = 5
  with pytest.raises(JitError, match="setting.level was 1"): jit(tensor(1), setting)

def test_a_tensor_that_is_gone_is_noticed() -> None:
  def model(x: Tensor) -> Tensor: return x + find("".join(["hid", "den"]))
  def find(name: str) -> Tensor: return getattr(box, name)     # the code does not say which attribute
  class Box: hidden = tensor(1)
  box = Box()
  jit = captured(model, tensor(1))
  Box.hidden = tensor(2)
  with pytest.raises(JitError, match="is gone: its name or attribute"): jit(tensor(1))

def test_modes_and_types_of_arguments_are_compared() -> None:
  jit = captured(lambda x: x.dropout(0.5) * 2, tensor(1, 1))
  with Tensor.train(), pytest.raises(JitError, match="captured with Tensor.training False, called with True"):
    jit(tensor(1, 1))
  jit = captured(lambda x, n: x * n, tensor(1), 1)
  for wrong in (1.0, True):
    with pytest.raises(JitError, match="1 was 1 and is"): jit(tensor(1), wrong)

# ***** writes and feedback *****

def test_writes_that_wait_are_done_in_order() -> None:
  state, other = tensor(0), tensor(5)
  jit: Any = TinyJit(lambda x: (x + state).realize())
  for k in range(5):
    state.assign(other * k)
    assert jit(tensor(10)).tolist() == [10 + 5 * k]
  def count(x: Tensor) -> Tensor:
    state.assign(state + 1)     # nothing that is returned needs it
    return x * 2
  state.assign(tensor(0))
  jit = TinyJit(count)
  for _ in range(5): assert jit(tensor(1)).tolist() == [2]
  assert state.tolist() == [5]

def test_values_that_a_replay_would_spoil_are_computed_before() -> None:
  state = tensor(1)
  jit = captured(lambda x: state.assign(state + x).realize(), tensor(1))
  seen = []
  for _ in range(4):
    seen.append(state * 10)
    jit(tensor(1))
  assert [t.item() for t in seen] == [30, 40, 50, 60] and state.item() == 7
  before = state * 2      # waits while another function is captured, whose replays must leave it alone
  jit = captured(lambda x: state.assign(state * x).realize(), tensor(2))
  for _ in range(2): jit(tensor(2))
  assert before.item() == 14 and state.item() == 7 * 2 ** 4

def test_state_that_nobody_looks_at_keeps_its_nodes() -> None:
  state = tensor(0)
  jit = captured(lambda x: state.assign(state + x).realize(), tensor(1))
  for _ in range(2): jit(tensor(1))
  number = state.uop.arg[0]     # the node itself would be looked at
  for _ in range(3): jit(tensor(1))
  assert state.uop.arg[0] == number and state.item() == 7
  view = state.reshape(1, 1)
  waiting = view * 10
  del view
  jit(tensor(1))
  assert state.uop.arg[0] != number and waiting.item() == 70 and state.item() == 8 and (state * 10).item() == 80

def test_an_input_may_be_written() -> None:
  jit = captured(lambda x: x.assign(x + 1).realize(), tensor(0))
  for k in range(3):
    x = tensor(k)
    waiting = x * 10
    jit(x)
    jit(x)
    assert x.item() == k + 2 and waiting.item() == 10 * k

def test_results_may_be_fed_back() -> None:
  jit: Any = TinyJit(lambda x: x + 1)
  x = tensor(0)
  for k in range(6):
    x = jit(x)
    assert x.tolist() == [k + 1]

def test_results_may_be_written() -> None:
  jit: Any = TinyJit(lambda x: x + 1)
  kept = []
  for k in range(6):
    y = jit(tensor(k))
    y.assign(y * 10).realize()
    kept.append(y)
  assert [y.item() for y in kept] == [10 * (k + 1) for k in range(6)]

def test_threads_take_turns_replaying() -> None:
  jit = captured(lambda x: (x + 1).realize() * 2, tensor(1))
  wrong: list[Any] = []
  def work(n: int) -> None:
    for k in range(100):
      if jit(tensor(1000 * n + k)).item() != 2 * (1000 * n + k + 1): wrong.append((n, k))
  threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert not wrong

def test_a_capture_takes_the_kernels_of_its_own_thread() -> None:
  def other() -> None: assert (Tensor([1.0, 2.0]) * 3).tolist() == [3, 6]
  def f(x: Tensor) -> Tensor:
    y = (x + 1).realize()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return y * 2
  jit = captured(f, tensor(1))
  assert jit.captured is not None and jit.captured.kernels == 2

# ***** arguments that come back, and state that is one *****

def test_an_argument_that_is_returned_is_the_one_of_this_call() -> None:
  both = TinyJit(lambda x: (x, (x + 1).realize(), x[1:]))
  for k in range(5): assert [t.tolist() for t in both(tensor(k, 9.0))] == [[k, 9.0], [k + 1, 10.0], [9.0]]
  def add(x: Tensor) -> Tensor:
    x += 1
    return x
  jitted = TinyJit(add)
  for k in range(5):
    given = tensor(k)
    assert jitted(given).tolist() == given.tolist() == [k + 1]

def test_state_that_was_an_argument_when_captured() -> None:
  state = tensor(1.0, 2.0)
  jitted = TinyJit(lambda x: state.assign(state + x).realize())
  for _ in range(3): jitted(state)
  assert state.tolist() == [8.0, 16.0]
  other = tensor(100.0, 100.0)
  with pytest.raises(JitError, match="argument 0 was, when captured, a Tensor that the function also uses by itself"):
    jitted(other)
  assert other.tolist() == [100.0, 100.0] and state.tolist() == [8.0, 16.0]

class Holder:
  def __init__(self) -> None: self.h = tensor(0.0)

def test_a_function_that_rebinds_a_tensor_is_not_captured() -> None:
  holder, items = Holder(), [tensor(0.0)]
  def attribute(x: Tensor) -> Tensor:
    holder.h = (holder.h * 0.5 + x).realize()
    return holder.h
  def item(x: Tensor) -> Tensor:
    items[0] = (items[0] + x).realize()
    return items[0]
  for function, name in ((attribute, r"holder\.h"), (item, r"items\[0\]")):
    jitted = TinyJit(function)
    jitted(tensor(1.0))
    with pytest.raises(JitError, match=f"the function puts another Tensor into {name}"): jitted(tensor(1.0))

def test_a_name_that_was_deleted() -> None:
  w = tensor(2.0)
  def function(x: Tensor) -> Tensor: return (x * w).realize()
  jitted = TinyJit(function)
  for _ in range(3): assert jitted(tensor(3.0)).tolist() == [6.0]
  assert function.__closure__ is not None
  del function.__closure__[0].cell_contents
  with pytest.raises(JitError, match="w was a Tensor when the function was captured, and is nothing now"):
    jitted(tensor(3.0))

def test_functions_inside_of_the_function_may_use_its_tensors() -> None:
  """Their free variables belong to this call, and are gone with it."""
  @TinyJit
  def f(x: Tensor) -> Tensor:
    y = (x + 1).realize()
    def part(i: int) -> Tensor: return y[i:i + 1] * 2
    return part(1).cat(*[y[i:i + 1] for i in range(2)]).realize()
  for k in range(4): assert f(tensor(k, 10.0)).tolist() == [22.0, k + 1.0, 11.0]

def test_as_python_sees_it() -> None:
  def f(x: Tensor) -> Tensor: return x
  assert list(inspect.signature(TinyJit).parameters) == ["fxn", "kwargs"]
  assert (TinyJit(f).__wrapped__ is f and TinyJit(f).__name__ == "f" and list(inspect.signature(TinyJit(f)).parameters)
          == ["x"])
  with pytest.raises(AttributeError, match="no attribute 'g'"): _ = TinyJit(f).g

def test_a_function_may_set_the_training_mode_before_it_asks_for_it():
  """Loops that evaluate in between do so. A mode that it reads first must be unchanged."""
  def sets(x):
    Tensor.training = True
    return (x * (2 if Tensor.training else 3)).realize()
  def asks(x):
    y = (x * (2 if Tensor.training else 3)).realize()
    Tensor.training = True
    return y
  try:
    step = TinyJit(sets)
    for i in range(5):
      Tensor.training = False
      assert step(Tensor([float(i)])).item() == 2 * i and Tensor.training
    Tensor.training = False
    step = TinyJit(asks)
    assert step(Tensor([1.0])).item() == 3
    Tensor.training = False
    with pytest.raises(JitError, match="the function changes Tensor.training from False to True"): step(Tensor([1.0]))
  finally: Tensor.training = False

def test_a_step_of_a_loop_that_is_built_once_is_captured() -> None:
  def looped(x: Tensor) -> Tensor:
    beside, factors = Tensor([1, 2, 3]).realize(), [Tensor([k]).realize() for k in (2, 5)]
    step = x._again(lambda x, factor: x * factor + beside, factors[0])
    for factor in factors: x = step(x, factor)
    return x
  jitted = TinyJit(looped)
  for values in ([1, 1, 1], [4, 5, 6], [7, 8, 9], [0, 0, 1]):
    assert jitted(Tensor(values).realize()).tolist() == [(v * 2 + b) * 5 + b for v, b in zip(values, (1, 2, 3))]

class Sources:
  """Hidden sources of numbers: each call gives the next one."""
  def __init__(self, folder: Path):
    self.file, self.count = folder / "rate", 0

  def clock(self) -> float: return time.perf_counter()

  def content(self) -> float:
    self.file.write_text(str(float(self.file.read_text() if self.file.exists() else 0) + 0.7))
    return float(self.file.read_text())

  def environment(self) -> float:
    os.environ["TINYHW_TEST_RATE"] = str(float(os.environ.get("TINYHW_TEST_RATE", "0")) + 1)
    return float(os.environ["TINYHW_TEST_RATE"])

@pytest.mark.parametrize("source", ("clock", "content", "environment"))
def test_a_number_that_is_another_one_in_the_second_call_is_refused(source: str, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TINYHW_TEST_RATE", "1")
  number = getattr(Sources(tmp_path), source)
  step = TinyJit(lambda x: (x * number() + 1).realize())
  step(Tensor([1.0, 2.0]).realize())
  with pytest.raises(JitError, match="computes with .* where it computed with .* in the call before, .*pass the "
                     "number as an argument"):
    step(Tensor([1.0, 2.0]).realize())

def test_so_it_is_where_the_same_expression_had_many_numbers_before(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
  """Outside of a TinyJit they are arguments of one kernel by then, and the kernel of the first call had none."""
  for k in range(4): (Tensor([1.0, 2.0]).realize() * (k + 0.3) + 1.9).realize()
  monkeypatch.setenv("TINYHW_TEST_RATE", "0.7")
  source = Sources(tmp_path)
  step = TinyJit(lambda x: (x * source.environment() + 1.9).realize())
  step(Tensor([1.0, 2.0]).realize())
  with pytest.raises(JitError, match="computes with 2.7 where it computed with 1.7"): step(Tensor([1.0, 2.0]).realize())

def test_arguments_that_are_numbers_may_differ_before_the_capture() -> None:
  scaled = TinyJit(lambda x, a: (x * a).realize())
  for factor in (2.0, 3.0, 3.0): assert scaled(Tensor([1.0]).realize(), factor).tolist() == [factor]

def test_a_capture_for_each_value_may_begin_with_two_values() -> None:
  """Its numbers are compared with those of a call that decided the same."""
  n, x, square = Variable("n", 1, 8), tensor(*range(1, 9)), tensor(*range(64)).reshape(8, 8)
  functions: dict[str, Any] = {
    "roll": lambda x, n: x.roll(n, 0), "int": lambda x, n: x * int(n), "eye": lambda x, n: Tensor.eye(n) + 1,
    "tril": lambda x, n: square.tril(1 - n),
    "data": lambda x, n: x + Tensor([int(n)]), "qr": lambda x, n: (square[:n, :n] % 7).qr()[1], "unbind": lambda x,
    n: x + n.unbind()[1],
    "branch": lambda x, n: x * 3.5 if n > 2 else x * 2.5, "size": lambda x, n: (x[:n] > 2).nonzero(size=3)}
  for name, function in functions.items():
    jit: Any = TinyJit(function)
    for k in (3, 2, 3, 2, 4, 3, 2, 4): assert jit(x, n.bind(k)).tolist() == function(x, n.bind(k)).tolist(), (name, k)
    assert jit.captured is not None

def test_a_new_value_in_each_call_is_captured_in_the_second() -> None:
  n, runs = Variable("n", 0, 7), []
  cache = tensor(*[0] * 8)
  @TinyJit
  def step(x: Tensor, n: Any) -> Tensor:
    runs.append(1)
    cache[n:n + 1] = x
    return cache[:n + 1].sum() * 0.5
  assert [step(tensor(k), n.bind(k)).item() for k in range(6)] == [0, 0.5, 1.5, 3, 5, 7.5] and len(runs) == 2

def test_a_number_that_no_value_decides_is_refused(tmp_path: Path) -> None:
  """Also with another value in the second call, and in the capture for another value."""
  n, x, source = Variable("n", 1, 8), tensor(*range(8)), Sources(tmp_path)
  step: Any = TinyJit(lambda x, n: (x[:n] * source.content()).sum())
  step(x, n.bind(3))
  with pytest.raises(JitError, match="computes with .* where it computed with"): step(x, n.bind(2))
  step = TinyJit(lambda x, n: x * int(n) * source.content())
  for k in (3, 2): step(x, n.bind(k))
  for k in (2, 3):
    with pytest.raises(JitError, match="computes with .* where it computed with"): step(x, n.bind(k))
  step = TinyJit(lambda x, n: x * source.content() if n > 4 else x[:n] + 3)
  for k in (5, 3, 3): step(x, n.bind(k))
  with pytest.raises(JitError, match="computes with .* where it computed with"): step(x, n.bind(6))

def test_another_view_in_the_second_call_is_no_number_that_changes() -> None:
  step: Any = TinyJit(lambda x: (x * 2).realize())
  x = tensor(*range(8))
  assert [step(x[s:s + 2]).tolist() for s in (1, 2, 2)] == [[2, 4], [4, 6], [4, 6]]

def test_decisions_of_a_first_call_inside_are_those_of_the_first_call_around_it() -> None:
  n, x = Variable("n", 1, 8), tensor(1, 2)
  inner: Any = TinyJit(lambda x, n: x * int(n))
  outer: Any = TinyJit(lambda x, n: inner(x, n) + 1)
  assert [outer(x, n.bind(k)).tolist() for k in (3, 2, 3, 2)] == [[k + 1, 2 * k + 1] for k in (3, 2, 3, 2)]

def test_what_the_first_call_alone_does_is_no_reason_to_refuse() -> None:
  """State that is made at the first call has kernels of its own."""
  state: dict[str, Tensor] = {}
  @TinyJit
  def step(x: Tensor) -> Tensor:
    if "sum" not in state: state["sum"] = Tensor.full((2,), 0.25).contiguous().realize()
    state["sum"].assign(state["sum"] + x * 0.5)
    return state["sum"].clone().realize()
  assert [step(Tensor([1.0, 2.0]).realize()).tolist() for _ in range(4)][-1] == [2.25, 4.25]

# ***** pickles and copies *****

@TinyJit
def decorated(x: Tensor) -> Tensor: return (x + 1).realize()

def written(x: Tensor) -> Tensor: return (x + 2).realize()

def test_a_decorated_function_pickles_by_its_name() -> None:
  assert pickle.loads(pickle.dumps(decorated)) is decorated
  for jitted, value in ((copy.copy(decorated), 1), (copy.deepcopy(decorated), 1),
                        (pickle.loads(pickle.dumps(TinyJit(written))), 2)):
    assert jitted is not decorated and [jitted(Tensor([k])).tolist()
                                        for k in range(4)] == [[k + value] for k in range(4)]

def test_a_name_that_is_gone_is_refused() -> None:
  data = pickle.dumps(decorated).replace(b"decorated", b"undecored")
  with pytest.raises(AttributeError, match="undecored"): pickle.loads(data)
