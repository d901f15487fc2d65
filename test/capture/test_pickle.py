"""A captured TinyJit in a pickle: another process continues the replays, without the function, with its own storage."""
from __future__ import annotations
import copy
import dataclasses
import os
from pathlib import Path
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from test.helpers import on
from tinyhw import Context, Device, Tensor, TinyJit, Variable, nn
from tinyhw.capture.pickle import restored, saved as saved_capture
from tinyhw.device import Buffer
from tinyhw.errors import DeviceError, JitError
from tinyhw.uop.ops import UOp

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).name.removesuffix(".py")
TWO = ("CPU", "CPU:1")

def tensor(*values: float) -> Tensor: return Tensor(list(values), dtype="float32").realize()

def captured(fxn: Callable[..., Any], *args: Any, calls: int = 2) -> TinyJit[Any, Any]:
  """Return a TinyJit after a number of calls."""
  jit = TinyJit(fxn)
  for _ in range(calls): jit(*args)
  return jit

def again(jit: Any, protocol: int = 5) -> Any: return pickle.loads(pickle.dumps(jit, protocol))

def elsewhere(pickled: Any, code: str, **environment: str) -> str:
  """Return the output of another process that has `jit`, but none of this one's functions."""
  head = "import pickle, sys\nfrom tinyhw import *\njit = pickle.load(sys.stdin.buffer)\n"
  found = subprocess.run([sys.executable, "-B", "-c", head + code], input=pickle.dumps(pickled), capture_output=True,
                         timeout=120,
                         env={**os.environ, "PYTHONPATH": str(ROOT), **environment})
  assert not found.returncode, found.stderr.decode()
  return found.stdout.decode().strip()

def forbidden(*_: Any) -> Any: raise AssertionError("the function ran")

# ***** what comes along *****

def test_another_process_replays_without_the_function() -> None:
  w, total = tensor(1, 2), tensor(0)
  def step(x: Tensor) -> tuple[Tensor, Tensor]:
    total.assign(total + x.sum())
    return (x * w + total).realize(), total
  jit = captured(step, tensor(1, 1))
  assert total.tolist() == [4]
  code = ("kernels = GlobalCounters.kernel_count\nfor k in range(2): y, total = jit(Tensor([k, "
          "1.0]))\nprint(y.tolist(), total.tolist())")
  assert elsewhere(jit, code) == "[8.0, 9.0] [7.0]"
  assert total.tolist() == [4], "the loaded one has storage of its own"

def test_what_comes_along_and_what_does_not() -> None:
  """Weights with their contents; arguments, results and temporary memory as sizes."""
  w = Tensor.arange(1000).float().contiguous().realize()
  jit = captured(lambda x: ((x * w).contiguous().sum() * x + w).realize(), Tensor.ones(1000).contiguous().realize())
  saved = saved_capture(jit)
  held = [m.held for m in saved.memory if m.held is not None]
  assert [b.nbytes for b in held if isinstance(b, Buffer)] == [4000]
  assert 4000 < len(pickle.dumps(jit)) < 8000
  outside: list[pickle.PickleBuffer] = []
  small = pickle.dumps(jit, protocol=5, buffer_callback=outside.append)
  assert len(small) < 4000 and [len(b.raw()) for b in outside] == [4000]
  x = Tensor.ones(1000).contiguous().realize()
  assert pickle.loads(small, buffers=outside)(x).tolist() == jit(x).tolist()

@pytest.mark.parametrize("protocol", range(6))
def test_all_protocols(protocol: int) -> None:
  w = tensor(3)
  loaded = again(captured(lambda x: (x * w).realize(), tensor(1)), protocol)
  assert loaded(tensor(5)).tolist() == [15] and loaded(tensor(6)).tolist() == [18]

def test_the_next_call_replays_at_once() -> None:
  loaded = again(captured(lambda x: (x + 1).realize(), tensor(1)))
  loaded.fxn = forbidden
  assert [loaded(tensor(k)).item() for k in range(3)] == [1, 2, 3]

def test_earlier_results_keep_their_values() -> None:
  loaded = again(captured(lambda x: (x + 1).realize(), tensor(1)))
  results = [loaded(tensor(k)) for k in range(4)]
  assert [r.item() for r in results] == [1, 2, 3, 4]

def test_training_goes_on() -> None:
  """Parameters, moments and powers are state: the losses equal those of the TinyJit that was not pickled."""
  with Tensor.train():
    net = nn.Linear(4, 3)
    opt = nn.optim.AdamW(nn.state.get_parameters(net), lr=0.05)
    def step(x: Tensor, y: Tensor) -> Tensor:
      opt.zero_grad()
      loss: Tensor = net(x).sparse_categorical_crossentropy(y).backward()
      return loss.realize(*opt.schedule_step())
    data = [(Tensor(np.random.default_rng(k).standard_normal((5, 4)).astype(np.float32)).realize(),
             Tensor([0, 1, 2, 1, k % 3]).realize())
            for k in range(8)]
    jit: TinyJit[Any, Any] = TinyJit(step)
    for x, y in data[:3]: jit(x, y)
    loaded = again(jit)
    assert [loaded(x, y).item() for x, y in data[3:]] == [jit(x, y).item() for x, y in data[3:]]
  with pytest.raises(JitError, match="captured with Tensor.training True, called with False"): loaded(*data[0])

@dataclasses.dataclass
class Pair:
  first: Tensor
  rest: dict[str, Any]

class Named(NamedTuple):
  x: Tensor
  n: int

def test_results_of_all_kinds() -> None:
  state = tensor(10, 20)
  def everything(x: Tensor, n: UOp) -> Any:
    y = (x * 2 + n).realize()
    state.assign(state + 1).realize()
    rest = {"view": y[1:].realize(), "same": [y, y], "of argument": x.reshape(2, 1), "state": state, "part": state[:1],
            "n": n + 1}
    return Pair(x, rest), Named(y, 3)
  n = Variable("n", 1, 8)
  jit = TinyJit(everything)
  for k in (1, 2): jit(tensor(k, k), n.bind(k))
  loaded = again(jit)
  x = tensor(5, 6)
  pair, named = loaded(x, n.bind(4))
  want, _ = jit(x, n.bind(4))
  assert pair.first is x and named == Named(pair.rest["same"][0],
                                            3) and pair.rest["same"][0] is pair.rest["same"][1] is named.x
  assert (named.x.tolist() == [14, 16] and pair.rest["view"].tolist() == [16] and pair.rest["of argument"].tolist()
          == [[5], [6]])
  assert pair.rest["state"].tolist() == want.rest["state"].tolist() == [13, 23] and pair.rest["part"].tolist() == [13]
  assert pair.rest["n"].src[0].op is want.rest["n"].src[0].op and int(pair.rest["n"]) == 5
  pair.rest["state"].assign(tensor(0, 0))     # what looks at the state writes it, as there
  assert loaded(x, n.bind(4))[0].rest["state"] is pair.rest["state"] and pair.rest["state"].tolist() == [1, 1]

def test_data_of_the_host_and_writes_to_it() -> None:
  """A constant table, and one that each call fills again before it writes to it."""
  def step(x: Tensor) -> tuple[Tensor, Tensor]:
    table, counter = Tensor([1.0, 2.0, 3.0]), Tensor([0.0, 0.0, 0.0]).contiguous()
    counter[1:2] = x
    return (table * x).realize(), counter.realize()
  loaded = again(captured(step, tensor(1)))
  for k in range(3):
    a, b = loaded(tensor(k))
    assert a.tolist() == [k, 2 * k, 3 * k] and b.tolist() == [0, k, 0]

def test_a_kernel_deeper_than_pickle_goes() -> None:
  def deep(x: Tensor) -> Tensor:
    for k in range(700): x = x * 0.5 + k
    return x.realize()
  jit = captured(deep, tensor(1))
  assert again(jit)(tensor(2)).tolist() == jit(tensor(2)).tolist()

def test_kernels_of_users() -> None:
  def double(out: UOp, x: UOp) -> UOp:
    r = UOp.range(4, 0)
    return out[r].store(x[r] * 2).end(r).sink()
  jit = captured(lambda x: Tensor.empty(4).custom_kernel(x, fxn=double)[0].realize(), tensor(1, 2, 3, 4))
  assert again(jit)(tensor(4, 3, 2, 1)).tolist() == [8, 6, 4, 2]

# ***** Variables, random numbers, gradients *****

def test_variables_and_all_captures_for_them() -> None:
  """The captures for other decisions are included, over the same storage."""
  n, seen = Variable("n", 1, 16), tensor(0)
  def step(x: Tensor) -> Tensor:
    seen.assign(seen + x.sum())
    return by_size(x if x.shape[0] <= 8 else x * 3)
  big = Tensor.arange(16).float().contiguous().realize()
  jit = TinyJit(step)
  for k in (3, 3, 6, 3, 6): jit(big[:n.bind(k)])
  loaded = again(jit)
  assert [loaded(big[:n.bind(k)]).item() for k in (3, 6)] == [30, 30]
  with pytest.raises(JitError, match="would have to capture again, and does not know the storage that came with its "
                     "capture"):
    loaded(big[:n.bind(9)])
  assert "30.0 240.0" == elsewhere(captured(lambda x: (x * 2).sum().realize(), big[:n.bind(4)]), """
big = Tensor.arange(16).float().contiguous().realize()
print(*[jit(big[:Variable("n", 1, 16).bind(k)]).item() for k in (6, 16)])""")

def test_random_numbers_are_those_of_the_process() -> None:
  """The draws that the function would make there. A seed that it sets is set."""
  def draw() -> tuple[Tensor, Tensor]: return Tensor.rand(3).realize(), Tensor.randn(2).realize()
  code = "Tensor.manual_seed(7)\nprint([[x.tolist() for x in jit()] for _ in range(2)])\n"
  plain = "Tensor.manual_seed(7)\nprint([[x.tolist() for x in (Tensor.rand(3), Tensor.randn(2))] for _ in range(2)])"
  jitted, want = elsewhere(captured(draw), code + plain).splitlines()
  assert jitted == want
  def seeded() -> Tensor:
    Tensor.manual_seed(5)
    return Tensor.rand(3).realize()
  loaded = again(captured(seeded))
  first = loaded().tolist()
  assert loaded().tolist() == first == seeded().tolist()

def test_gradients_of_arguments_and_results() -> None:
  def step(x: Tensor) -> Tensor:
    loss: Tensor = (x * x).sum().backward()
    return loss.realize()
  jit: TinyJit[Any, Any] = TinyJit(step)
  for _ in range(2): jit(Tensor([1.0, 2.0], requires_grad=True).realize())
  loaded = again(jit)
  x = Tensor([3.0, 4.0], requires_grad=True).realize()
  assert loaded(x).item() == 25 and x.grad is not None and x.grad.tolist() == [6, 8]
  with pytest.raises(JitError, match="has a gradient now"): loaded(x)

def test_gradients_that_arguments_have_are_added_to() -> None:
  def step(x: Tensor) -> Tensor:
    loss: Tensor = (x * x).sum().backward()
    return loss.realize()
  jit: TinyJit[Any, Any] = TinyJit(step)
  x = Tensor([1.0, 2.0], requires_grad=True).realize()
  for _ in range(3): jit(x)
  loaded = again(jit)
  y = Tensor([1.0, 1.0], requires_grad=True).realize()
  y.grad = tensor(10, 10)
  assert loaded(y).item() == 2 and y.grad.tolist() == [12, 12]

# ***** several in one pickle *****

def test_jits_in_one_pickle_share_storage() -> None:
  state = tensor(0)
  add, read = captured(lambda x: state.assign(state + x).realize(),
                       tensor(1)), captured(lambda x: (state * x).realize(), tensor(1))
  add_again, read_again = again((add, read))
  add_again(tensor(5))
  assert read_again(tensor(2)).tolist() == [14] and read(tensor(2)).tolist() == [4]
  apart = again(add), again(read)
  apart[0](tensor(5))
  assert apart[1](tensor(2)).tolist() == [4]

def trainer() -> tuple[nn.Linear, nn.optim.LAMB, Callable[[Tensor], Tensor]]:
  net = nn.Linear(3, 2)
  opt = nn.optim.Adam(nn.state.get_parameters(net), lr=0.1)
  def step(x: Tensor) -> Tensor:
    opt.zero_grad()
    loss: Tensor = net(x).square().mean().backward()
    return loss.realize(*opt.schedule_step())
  return net, opt, step

@pytest.mark.parametrize("first", ["tensors", "jit"])
def test_tensors_in_one_pickle_with_a_jit_are_its_state(first: str) -> None:
  """A model, its optimizer and the captured step: the loaded step trains the loaded model, and sees writes to it."""
  with Tensor.train():
    net, opt, step = trainer()
    x = Tensor([[1.0, 2.0, 3.0]]).realize()
    jit = captured(step, x, calls=3)
    if first == "jit": step_again, net_again, opt_again = again((jit, net, opt))
    else: net_again, opt_again, step_again = again((net, opt, jit))
    assert opt_again.params[0] is net_again.weight
    for n, s in ((net, jit), (net_again, step_again)):
      s(x)
      n.weight.assign(n.weight.detach() * 0.5)    # it waits
      s(x)
      n.bias[0:1].assign(Tensor([0.25]))
      s(x)
    assert net_again.weight.tolist() == net.weight.tolist() and net_again.bias.tolist() == net.bias.tolist()
    assert opt_again.b1_t.tolist() == opt.b1_t.tolist() and opt.b1_t.item() == pytest.approx(0.9 ** 6)
    before = net_again(x)     # expressed with what it is before the next step
    want = before.clone().tolist()
    step_again(x)
    assert before.tolist() == want != net_again(x).tolist()
    kept = net_again.weight.detach()
    del net_again, opt_again
    kept.assign(kept * 2)     # it waits, and nobody else knows of it
    jit(x)
    net.weight.assign(net.weight.detach() * 2)
    for s in (jit, step_again): s(x)
    assert kept.tolist() == net.weight.tolist()

def test_a_tensor_that_is_replaced_is_not_the_state_any_more() -> None:
  w = tensor(2)
  loaded, w_again = again((captured(lambda x: (x * w).realize(), tensor(1)), w))
  assert loaded(tensor(3)).item() == 6
  w_again.replace(tensor(5))
  with pytest.raises(JitError, match="has another buffer now"): loaded(tensor(3))

def test_another_process_trains_the_model_that_came_along() -> None:
  with Tensor.train():
    net, opt, step = trainer()
    x = Tensor([[1.0, 2.0, 3.0]]).realize()
    jit = captured(step, x, calls=3)
    code = """
net, step = jit
before = net.weight.tolist()
with Tensor.train(): losses = [step(Tensor([[1.0, 2.0, 3.0]]).realize()).item() for _ in range(3)]
print(losses, before != net.weight.tolist(), net.weight.tolist())"""
    found = elsewhere((net, jit), code)
    assert found == f"{[jit(x).item() for _ in range(3)]} True {net.weight.tolist()}"

def test_copies_of_one_from_a_pickle_have_storage_of_their_own() -> None:
  state = tensor(0)
  loaded = again(captured(lambda x: state.assign(state + x).realize(), tensor(1)))
  for make in (copy.copy, copy.deepcopy, again):
    before = loaded(tensor(0)).item()
    made = make(loaded)
    assert made(tensor(5)).item() == before + 5 and loaded(tensor(1)).item() == before + 1

# ***** the function *****

factor = tensor(2)

@TinyJit
def decorated(x: Tensor) -> Tensor: return (x * factor).realize()

def plain(x: Tensor) -> Tensor: return (x + 3).realize()

def test_the_name_of_a_function_comes_along() -> None:
  for jit, value in ((decorated, 10), (captured(plain, tensor(1)), 8)):
    for _ in range(3): jit(tensor(1))
    loaded = again(jit)
    assert loaded is not jit and loaded(tensor(5)).item() == value
    loaded.reset()
    assert (loaded.captured is None and [loaded(tensor(5)).item() for _ in range(3)] == [value] * 3
            and loaded.captured is not None)
  decorated.reset()
  assert again(decorated) is decorated, "what has no capture is found by its name"

def test_a_function_without_state_captures_again_for_other_variables() -> None:
  n = Variable("n", 1, 16)
  big = Tensor.arange(16).float().contiguous().realize()
  loaded = again(captured(by_size, big[:n.bind(3)]))
  assert [loaded(big[:n.bind(k)]).item() for k in (3, 6, 6, 7, 3)] == [30, 30, 30, 42, 30]

def by_size(x: Tensor) -> Tensor: return ((x * 2).sum() if x.shape[0] > 4 else (x * 10).sum()).realize()

def test_a_function_without_a_name_is_missed_only_when_it_is_needed() -> None:
  loaded = again(captured(lambda x: (x + 1).realize(), tensor(1)))
  with pytest.raises(JitError, match=r"captured as \(1,\) .* and is \(2,\)"): loaded(tensor(1, 2))
  assert loaded(tensor(1)).item() == 2
  loaded.reset()
  for _ in range(2):
    with pytest.raises(JitError, match="has no name by which it could be found, as a lambda has none; load the pickle "
                       "again"):
      loaded(tensor(1))
  assert repr(loaded.fxn) and loaded.__name__ == "<lambda>"

def test_a_module_that_is_not_there_is_missed_only_when_it_is_needed() -> None:
  code = """
print(jit(Tensor([5.0])).item())
jit.reset()
try: jit(Tensor([5.0]))
except JitError as error: print(error.message)"""
  first, second = elsewhere(captured(plain, tensor(1)), "from tinyhw.errors import JitError" + code).splitlines()
  assert first == "8.0" and f"module {plain.__module__} has none of that name here" in second

def test_a_function_that_does_not_know_the_storage_does_not_run() -> None:
  for _ in range(3): decorated(tensor(1))
  loaded = again(decorated)
  with Context(JIT=0), pytest.raises(JitError, match="would have to run, and does not know the storage"):
    loaded(tensor(1))
  outer = TinyJit(lambda x: loaded(x) + 1)
  outer(tensor(1))
  with pytest.raises(JitError, match="would have to run, and does not know the storage"): outer(tensor(1))
  decorated.reset()

class Model:
  """As people write models."""
  def __init__(self) -> None:
    self.w = tensor(2)
    self.forward = TinyJit(self.run)
  def run(self, x: Tensor) -> Tensor: return (x * self.w).realize()
  def __call__(self, x: Tensor) -> Tensor: return self.run(x)
  @TinyJit
  def method(self, x: Tensor) -> Tensor: return (x + self.w).realize()

def test_methods_capture_again_with_the_tensors_of_their_object() -> None:
  model = Model()
  called = TinyJit(model)
  for k in range(3):
    assert (model.forward(tensor(k)).item() == 2 * k and model.method(tensor(k)).item() == 2 + k
            and called(tensor(k)).item() == 2 * k)
  loaded, called_again = again((model, called))
  loaded.w.assign(tensor(7))
  assert loaded.forward.captured is called_again.captured is None
  for k in range(3):
    assert (loaded.forward(tensor(k)).item(), loaded.method(tensor(k)).item(),
            called_again(tensor(k)).item()) == (7 * k, 7 + k, 7 * k)
  assert model.forward(tensor(1)).item() == 2

def test_the_method_of_an_object_pickles_and_copies_with_it() -> None:
  """It was None."""
  model = Model()
  for k in range(3): model.method(tensor(k))
  for loaded in (again(model.method), copy.deepcopy(model.method)):
    assert isinstance(loaded, TinyJit) and loaded.fxn.__self__ is not model and loaded.fxn.__self__.method is loaded
    assert [loaded(tensor(k)).item() for k in range(3)] == [2, 3, 4]
  both = again((model, model.method))
  assert both[1] is both[0].method and copy.copy(model.method) is model.method

def test_a_shallow_copy_of_an_object_has_methods_of_its_own() -> None:
  """They once computed with the tensors of the original object."""
  model = Model()
  for k in range(3): model.method(tensor(k))
  other = copy.copy(model)
  other.w = tensor(10)
  for k in range(4): assert other.method(tensor(k)).item() == k + 10 and model.method(tensor(k)).item() == k + 2

# ***** what is refused *****

def test_what_a_capture_needs_is_checked_before_it_is_pickled() -> None:
  state = {"w": tensor(2), "n": 3}
  jit = captured(lambda x: (x * state["w"] * state["n"]).realize(), tensor(1))
  state["n"] = 4
  with pytest.raises(JitError, match="was 3"): pickle.dumps(jit)
  state["n"] = 3
  waiting = state["w"]
  waiting.assign(tensor(5))
  assert again(jit)(tensor(1)).item() == 15, "writes that wait are done"
  state["w"] = tensor(6)
  with pytest.raises(JitError): pickle.dumps(jit)

def test_an_argument_that_is_state_too_is_refused() -> None:
  w = tensor(2)
  jit = captured(lambda x: (x * w).realize(), w)
  with pytest.raises(JitError, match="and a pickle would make two of it"): pickle.dumps(jit)

def test_gradients_of_others_from_before_are_refused() -> None:
  w = Tensor([1.0, 2.0], requires_grad=True).realize()
  def step(x: Tensor) -> Tensor:
    loss: Tensor = (x * w).sum().backward()
    return loss.realize()
  jit = captured(step, tensor(1, 1), calls=3)
  with pytest.raises(JitError, match="adds to gradients from before its call"): pickle.dumps(jit)

def test_another_format_is_refused() -> None:
  saved = saved_capture(captured(lambda x: (x + 1).realize(), tensor(1)))
  with pytest.raises(JitError, match="has format 0, and this version of tinyhw reads 1; pickle it again"):
    restored(saved._replace(format=0))

def test_cut_pickles_are_errors() -> None:
  w = tensor(*range(100))
  data = pickle.dumps(captured(lambda x: (x * w).realize(), tensor(1)))
  for length in range(0, len(data), 97):
    with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, IndexError, AttributeError, TypeError)):
      pickle.loads(data[:length])

# ***** devices *****

@pytest.mark.parametrize("device", ["PYTHON", "CLANG"])
def test_other_devices_of_the_host(device: str) -> None:
  try: Device[device]
  except DeviceError as error: pytest.skip(error.message)
  with on(device):
    w = tensor(1, 2, 3)
    jit = captured(lambda x: (x * w).sum().realize(), tensor(1, 1, 1))
    assert again(jit)(tensor(1, 2, 3)).item() == 14

def test_another_architecture_compiles_the_same_kernels() -> None:
  """Kernels for any size have another grid there."""
  jit = captured(lambda x: (x + Tensor.rand(1000)).sum().realize(), tensor(1))
  code = """
Tensor.manual_seed(3)
a = jit(Tensor([2.0]))
Tensor.manual_seed(3)
print(Device["CPU"].arch, abs((a - (Tensor([2.0]) + Tensor.rand(1000)).sum()).item()) < 1e-2)"""
  for arch in ("x86_64:avx2", "x86_64:avx512"):
    if arch in (Device["CPU"].arch, "x86_64:avx2") and Device["CPU"].arch.startswith("x86_64"):
      assert elsewhere(jit, code, ARCH=arch) == f"{arch} True"

def test_several_devices() -> None:
  w, state = Tensor.arange(8).float().shard(TWO, 0).realize(), Tensor.zeros(8).contiguous().shard(TWO, 0).realize()
  def step(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    state.assign(state + x)
    return (x * w).realize(), (x.sum() + state.sum()).realize(), state
  x = Tensor.ones(8).contiguous().shard(TWO, 0).realize()
  jit = captured(step, x)
  loaded = again(jit)
  for _ in range(2):
    for got, want in zip(loaded(x), jit(x)): assert got.device == want.device and got.tolist() == want.tolist()
  copied = captured(lambda x: (x.to("CPU:1") * 2).to("CPU").realize(), tensor(1, 2))
  assert again(copied)(tensor(3, 4)).tolist() == [6, 8]
  assert (elsewhere(jit, "x = Tensor.ones(8).contiguous().shard(('CPU', 'CPU:1'), "
                    "0).realize()\nprint(jit(x)[1].item())") == str(jit(x)[1].item()))

@pytest.mark.parametrize(("emulated", "device"), [("gfx1100", "AMD"), ("sm_90", "NV")])
def test_virtual_gpus(emulated: str, device: str, tmp_path: Path) -> None:
  """From one process to another. If the card is missing, the error says so."""
  make = f"""
import pickle, sys
from tinyhw import Tensor, TinyJit
w, host = Tensor([1.0, 2.0]).realize(), Tensor([1.0, 1.0], device="CPU").realize()
jit = TinyJit(lambda x: ((x * w + Tensor.rand(2)).floor().realize(), (x.to("CPU") + host).realize()))
for _ in range(2): jit(Tensor([1.0, 2.0]).realize())
open({str(tmp_path / "jit")!r}, "wb").write(pickle.dumps(jit))"""
  use = f"""
import pickle, sys
from tinyhw import Tensor
from tinyhw.errors import TinyError
try:
  jit = pickle.load(open({str(tmp_path / "jit")!r}, "rb"))
  print(*[y.tolist() for y in jit(Tensor([3.0, 4.0]).realize())])
except TinyError as error: print(type(error).__name__, error.message)"""
  environment = {**os.environ, "PYTHONPATH": str(ROOT)}
  there = {**environment, "EMULATE": emulated, "DEV": device}
  subprocess.run([sys.executable, "-B", "-c", make], env=there, timeout=300, check=True)
  found = [subprocess.run([sys.executable, "-B", "-c", use], env=e, timeout=300, capture_output=True, text=True)
           for e in (there, {**environment, "EMULATE": "", "DEV": "CPU"})]
  assert found[0].stdout.strip() == "[3.0, 8.0] [4.0, 5.0]", found[0].stderr
  if not any(os.path.exists(path) for path in ("/dev/kfd", "/dev/nvidiactl")):
    assert found[1].stdout.startswith("DeviceError"), found[1].stderr
