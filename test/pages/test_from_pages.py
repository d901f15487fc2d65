"""docs/guide/from-pytorch.md and docs/guide/from-tinygrad.md, line by line: rows of code run on both sides, and each
statement has a test here with its name."""
from __future__ import annotations
import ast
import importlib
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Context, Device, GlobalCounters, Tensor, TinyJit, dtypes, nn
from tinyhw.errors import ArgumentError, DTypeError, GradientError, IndexRangeError, JitError, ShapeError
from tinyhw.uop.upat import PatternMatcher, UPat, graph_rewrite

torch = pytest.importorskip("torch", reason="the left column is PyTorch's")
ROOT = Path(__file__).resolve().parents[2]
PYTORCH, TINYGRAD = ((ROOT / "docs/guide" / name).read_text(encoding="utf-8")
                     for name in ("from-pytorch.md", "from-tinygrad.md"))
pytestmark = pytest.mark.host("the pages speak of a computer without a GPU, and of its memory")

def rows(page: str) -> list[list[str]]:
  """Return the cells of a table's rows."""
  return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines()
          if line.startswith("| ")][1:]

def snippets(cell: str) -> list[str]:
  """Return the code of a cell, without single names or texts."""
  return [code for code in re.findall(r"`([^`]*)`", cell) if re.search(r"[(]", code) and not code.startswith("class ")]

# ***** PyTorch *****

A, B = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], [[0.5, 1.5, 2.5], [-1.0, 0.0, 1.0]]
WEIGHT, BIAS = [[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]], [0.25, -0.75]

class Net:
  """A layer as people write it here."""
  def __init__(self) -> None:
    self.head = nn.Linear(3, 2)
    nn.state.load_state_dict(self, {"head.weight": Tensor(WEIGHT), "head.bias": Tensor(BIAS)}, verbose=False)
  def __call__(self, x: Tensor) -> Tensor: return self.head(x).relu()

class TorchNet(torch.nn.Module):
  """The same as people write it there."""
  def __init__(self) -> None:
    super().__init__()
    self.head = torch.nn.Linear(3, 2)
    self.load_state_dict({"head.weight": torch.tensor(WEIGHT), "head.bias": torch.tensor(BIAS)})
  def forward(self, x: Any) -> Any: return torch.relu(self.head(x))

def names(own: bool, folder: Path) -> dict[str, Any]:
  """Return the values of the snippets' names, equal on both sides."""
  make = Tensor if own else torch.tensor
  saved = folder / "saved.pth"
  if not saved.exists(): torch.save({"x": torch.tensor(A)}, saved)
  common = {"np": np, "array": np.array(A, dtype=np.float32), "saved": saved, "path": str(folder / f"x{own}"),
            "f": lambda x: x * 2 + 1,
            "a": make(A), "b": make(B), "x": make(A), "c": make([[True, False, True], [False, True, False]]),
            "y": make([2, 0])}
  if own: return {**common, "Tensor": Tensor, "TinyJit": TinyJit, "nn": nn, "net": Net()}
  importlib.import_module("torch.utils.checkpoint")
  return {**common, "torch": torch, "F": torch.nn.functional, "net": TorchNet()}

def run(code: str, scope: dict[str, Any]) -> Any:
  """Return the value of an expression; None for a statement."""
  if not isinstance(ast.parse(code).body[0], ast.Expr): return exec(code, scope)
  return eval(code, scope)

def plain(value: Any) -> Any:
  if isinstance(value, dict): return {key: plain(x) for key, x in value.items()}
  if hasattr(value, "tolist"): return value.tolist()
  return tuple(value) if isinstance(value, tuple) else value

@pytest.mark.parametrize(("left", "right"), rows(PYTORCH))
@pytest.mark.filterwarnings("ignore")
def test_both_columns_say_the_same(left: str, right: str, tmp_path: Path) -> None:
  theirs, ours = names(False, tmp_path), names(True, tmp_path)
  pairs = list(zip(snippets(left), snippets(right)))
  assert pairs, f"no code in {left} and {right}"
  for there, here in pairs:
    a, b = plain(run(there, theirs)), plain(run(here, ours))
    if a is None or b is None or callable(a): continue    # statements, and functions: to run is all that they are asked
    if isinstance(a, (list, float)) and not isinstance(np.ravel(a)[0], str):
      assert np.allclose(a, b, rtol=1e-6), f"{there}: {a}; {here}: {b}"
    else: assert a == b, f"{there}: {a}; {here}: {b}"

def test_more_of_the_table() -> None:
  x = Tensor(A)
  assert Device.canonicalize("CUDA") == "NV"
  assert TinyJit(lambda x: x * 2 + 1)(x).tolist() == (x * 2 + 1).tolist()
  array = np.zeros(3, dtype=np.float32)
  shared = Tensor.from_dlpack(array)
  array[0] = 5
  assert shared.tolist() == [5, 0, 0] and not np.asarray(x).flags.writeable

def lazy() -> None:
  x = Tensor(A)
  loss = (x * 2).sum()
  assert not loss.uop.is_realized and loss.item() == 10
  with pytest.raises(ShapeError): x.reshape(4)
  with pytest.raises(DTypeError): Tensor([1], dtype="uint8") + 300

def gradients_add_up() -> None:
  x = Tensor([1.0, 2.0])
  for _ in range(2): (x * 3).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [6, 6]
  optimizer = nn.optim.SGD([x], lr=0.1)
  optimizer.zero_grad()
  assert x.grad is None
  marked, other = Tensor([1.0], requires_grad=True), Tensor([2.0])
  (marked * other).sum().backward()
  assert marked.grad is not None and other.grad is None
  for make in (torch.tensor, Tensor):
    w, unused = make([1.0, 2.0], requires_grad=True), make([1.0], requires_grad=True)
    y = w * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert w.grad.tolist() == [8, 16] and y.grad.tolist() == [4, 8] and unused.grad is None and y.retains_grad
  marked += 1
  assert marked.requires_grad and marked.tolist() == [2]
  plain = Tensor([1.0, 2.0])
  before = (plain * 10).sum()
  plain += 1
  (before + (plain * 3).sum()).backward()
  assert plain.grad is not None and plain.grad.tolist() == [3, 3]
  old = kept = Tensor([1.0], requires_grad=True)
  handle = Tensor([0.0]).replace(old)
  before = (handle * 10).sum()
  handle.replace(Tensor([5.0], requires_grad=True))
  (before + handle.sum()).backward()
  assert kept.grad is not None and kept.grad.tolist() == [10] and handle.tolist() == [5]
  (w * 2).backward(gradient=Tensor(3.0))
  assert w.grad.tolist() == [14, 22]
  (w * 2).backward(gradient=3.0)
  assert w.grad.tolist() == [20, 28]
  made = [Tensor.ones(2), Tensor.rand(2), Tensor.full((2,), 3.0), Tensor.arange(2.0)]
  (sum(made) * 2).sum().backward()
  assert all(t.grad is not None and t.grad.tolist() == [2, 2] for t in made)
  steps = []
  for own, make, sgd in ((False, torch.tensor, torch.optim.SGD), (True, Tensor, nn.optim.SGD)):
    used, unused = make([1.0], requires_grad=True), make([2.0], requires_grad=True)
    steps.append(sgd([used, unused], lr=0.5))
    (used * 2).sum().backward()
    if not own: steps[-1].step()
    else:
      with Tensor.train(), pytest.raises(GradientError, match="parameter 1 .* has no gradient.*leave it out"):
        steps[-1].step()
    assert used.tolist() == [1.0 if own else 0.0] and unused.tolist() == [2.0]

def places_in_a_tensor() -> None:
  x, there, outside = Tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0]), [1, 5]
  assert x[Tensor(outside)].tolist() == [2, 0]
  x[Tensor(outside)] = 9
  assert x.tolist() == [1, 9, 3]
  assert Tensor(A).cross_entropy(Tensor([5, 0]), reduction="none").tolist()[0] == 0
  with pytest.raises(IndexError): there[torch.tensor(outside)]
  with pytest.raises(IndexError): torch.nn.functional.cross_entropy(torch.tensor(A), torch.tensor([5, 0]))
  for place in (5, outside):
    with pytest.raises(IndexRangeError): x[place]

def shared_memory() -> None:
  there = torch.tensor([1.0, 2.0])
  x = Tensor.from_dlpack(there)
  doubled = x * 2
  assert doubled.tolist() == [2, 4]
  there[0] = 20
  assert (x * 2).tolist() == [2, 4]
  x.invalidate()
  assert (x * 2).tolist() == [40, 4]

def parameters() -> None:
  assert len(nn.state.get_parameters(nn.BatchNorm(3))) == 5 and len(list(torch.nn.BatchNorm1d(3).parameters())) == 2

def in_place_writes() -> None:
  x = Tensor([1.0, 2.0]).contiguous().realize()
  view, before = x[:1], x * 10
  x[0] = 5
  assert view.tolist() == [5] and before.tolist() == [10, 20]
  x += 1
  x.assign(x * 2)
  assert x.tolist() == [12, 6] and before.tolist() == [10, 20]
  there = torch.tensor([12.0, 6.0])
  for bits in (x.bitcast("int32"), there.view(torch.int32)): bits[0] = 0
  assert x.tolist() == there.tolist() == [0, 6]
  y = Tensor([1.0, 2.0, 3.0]) * 2
  y[1:] *= 2
  part = y[1:]
  part *= 5
  assert y.tolist() == [2, 40, 60] and part.tolist() == [40, 60]
  y += 1
  assert part.tolist() == [41, 61]
  zeros = Tensor.zeros(3)
  zeros.flip(0).reshape(3, 1)[0] = 7
  assert zeros.tolist() == [0, 0, 7]
  y.realize()
  part -= 1
  assert y.tolist() == [3, 40, 60]
  for make in (torch.tensor, Tensor):
    w = make([1.0, 2.0], requires_grad=True)
    product = w * 3
    product[:1].mul_(w[1]) if make is torch.tensor else product[:1].assign(product[:1] * w[1])
    product.detach()[1] = 5
    product.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [6, 6] and product.tolist() == [6, 5]
  value = x + 1
  for write in (lambda: there.expand(3, 2).add_(1), lambda: x.expand(3, 2).assign(1),
                lambda: value.expand(3, 2).assign(1)):
    with pytest.raises((RuntimeError, ArgumentError), match="clone"): write()
  for make in (torch.tensor, Tensor):
    w, data = make([1.0, 2.0], requires_grad=True), make([3.0, 4.0])
    product = data * w
    data[0] = 0.0
    with pytest.raises((RuntimeError, GradientError), match="modified by an inplace|overwritten in place"):
      (product + w).sum().backward()

def training_mode() -> None:
  assert not Tensor.training
  with Tensor.train(): assert Tensor.training and (Tensor.ones(1000).dropout(0.5) == 0).any().item()
  assert not Tensor.training and Tensor.ones(10).dropout(0.5).tolist() == [1] * 10

def training() -> None:
  for name in ("RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Lion", "Adafactor"):
    weight = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = getattr(nn.optim, name)([weight])
    with Tensor.train():
      (weight * weight).sum().backward()
      optimizer.step()
    assert all(0 < new < old for new, old in zip(weight.tolist(), (1, 2))), name

def types() -> None:
  assert (Tensor([1.0]).dtype is dtypes.float32 and Tensor([1]).dtype is dtypes.int32
          and torch.tensor([1]).dtype is torch.int64)
  assert (Tensor([1.0], dtype="float16") / np.sqrt(2)).dtype is dtypes.float16
  x = Tensor([-7])
  assert (x // 2).tolist() == [-7 // 2] and (x % 4).tolist() == [-7 % 4]
  assert x.div(2, rounding_mode="trunc").tolist() == [-3] and x.fmod(4).tolist() == [-3]

def layouts() -> None:
  assert nn.Linear(3, 2).weight.shape == tuple(torch.nn.Linear(3, 2).weight.shape) == (2, 3)
  assert nn.Conv2d(3, 8, 5).weight.shape == tuple(torch.nn.Conv2d(3, 8, 5).weight.shape)
  assert nn.Conv2d(1, 8, 3, padding=1)(Tensor.zeros(2, 1, 6, 7)).shape == (2, 8, 6, 7)
  assert sorted(nn.state.get_state_dict(Net())) == sorted(TorchNet().state_dict())

def equal_extremes() -> None:
  def gradient(make: Any, value: Any) -> list[float]:
    x = make([2.0, 1.0, 2.0], requires_grad=True)
    value(x).backward()
    return x.grad.tolist()
  assert gradient(torch.tensor, lambda x: x.max(0)[0]) == [1, 0, 0]
  assert gradient(Tensor, lambda x: x.max(0)) == gradient(torch.tensor, lambda x: x.amax(0)) == [0.5, 0, 0.5]
  windows = [gradient(torch.tensor, lambda x: torch.nn.functional.max_pool1d(x.reshape(1, 1, 3), 3).sum()),
             gradient(Tensor, lambda x: x.reshape(1, 1, 1, 3).max_pool2d((1, 3)).sum())]
  assert windows == [[1, 0, 0], [0.5, 0, 0.5]]
  assert gradient(torch.tensor, lambda x: x.cummax(0)[0].sum()) == gradient(Tensor, lambda x: x.cummax(0)[0].sum())

STATEMENTS = {"Lazy.": lazy, "Gradients add up": gradients_add_up, "In-place writes": in_place_writes,
              "Equal extremes": equal_extremes,
              "Shared memory.": shared_memory, "Parameters.": parameters,
              "Indices in a Tensor": places_in_a_tensor, "Training.": training, "Training mode": training_mode,
              "Types.": types, "Layouts": layouts}

def test_each_statement_is_known() -> None: assert re.findall(r"^- \*\*(.*?)\*\*", PYTORCH, re.M) == list(STATEMENTS)

@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(name: str) -> None: STATEMENTS[name]()

# ***** tinygrad *****

def default_device() -> None:
  from tinyhw.device import PREFERENCE
  assert (next(name for name in PREFERENCE if name in {*Device.get_available_devices()}) == "CPU"
          and not {"AMD", "NV"} & {*PREFERENCE})

def grads() -> None:
  x = Tensor([1.0, 2.0])
  y, z = x * 2, x * 3
  z.retain_grad()
  (y * z).sum().backward()
  assert x.grad is not None and y.grad is None and z.grad is not None

def kernels_on_a_cpu() -> None:
  assert Device["CPU"].arch.startswith("x86_64")

def tinyjit() -> None:
  state = {"scale": 2.0}
  jitted = TinyJit(lambda x: (x * state["scale"]).realize())
  for _ in range(3): jitted(Tensor([1.0]))
  state["scale"] = 3.0
  with pytest.raises(JitError): jitted(Tensor([1.0]))

def first_call() -> None:
  calls: list[int] = []
  def f(x: Tensor) -> Tensor:
    calls.append(1)
    return (x + 1).realize()
  jitted = TinyJit(f)
  for k in range(4): assert jitted(Tensor([k])).tolist() == [k + 1]
  assert len(calls) == 2

def plus_one(x: Tensor) -> Tensor: return (x + 1).realize()

def pickles_of_a_tinyjit() -> None:
  for function in (plus_one, lambda x: (x + 1).realize()):
    jitted = TinyJit(function)
    for k in range(3): jitted(Tensor([k]))
    again = pickle.loads(pickle.dumps(jitted))
    kernels = again.captured
    assert (kernels is not None and [again(Tensor([k])).tolist() for k in range(3)] == [[1], [2], [3]]
            and again.captured is kernels)
    again.reset()
    if function is plus_one: assert again(Tensor([1])).tolist() == [2]
    else:
      with pytest.raises(JitError, match="has no name by which it could be found"): again(Tensor([1]))
  class Scaled:
    """A model whose method is captured."""
    def __init__(self) -> None: self.w = Tensor([2.0]).realize()
    def run(self, x: Tensor) -> Tensor: return (x * self.w).realize()
  method = TinyJit(Scaled().run)
  for k in range(3): method(Tensor([1.0]))
  # the object would come along
  with pytest.raises((AttributeError, pickle.PicklingError), match="local object"): pickle.dumps(method)

def training() -> None:
  with Tensor.train(): assert Tensor.training
  with Context(TRAINING=1): assert Tensor.training
  Tensor.training = True
  assert Tensor.training
  Tensor.training = False

def counters() -> None:
  for debug, counted in ((0, False), (2, True)):
    with Context(DEBUG=debug):
      GlobalCounters.reset()
      (Tensor([1.0, 2.0]) + 1).realize()
    assert GlobalCounters.kernel_count == 1
    assert bool(GlobalCounters.global_ops) is bool(GlobalCounters.global_mem) is bool(
      GlobalCounters.time_sum_s) is counted

def integers() -> None:
  with pytest.raises(DTypeError): Tensor([1], dtype="uint8") + 300
  assert Tensor([300]).cast("uint8").tolist() == [44]

def errors() -> None:
  with pytest.raises(ShapeError, match="reshape|expand|cannot"): Tensor.ones(2) + Tensor.ones(3)

def debug() -> None:
  from tinyhw.config import documentation
  assert "7 annotated machine code" in next(meaning for key, _, _, meaning in documentation() if key == "DEBUG")

def rules() -> None:
  assert all(value.__module__ == "tinyhw.uop.upat" or callable(value)
             for value in (UPat, PatternMatcher, graph_rewrite))

DIFFERENT: dict[str, Callable[[], None]] = {
  "kernels on a CPU": kernels_on_a_cpu, "default device": default_device, "in-place writes": in_place_writes,
  "`grad` after `backward()`": grads, "TinyJit": tinyjit,
  "first call of a TinyJit function": first_call, "pickles of a TinyJit": pickles_of_a_tinyjit,
  "`Tensor.training`": training,
  "`GlobalCounters`": counters, "integers that do not fit": integers, "errors": errors,
  "`DEBUG`": debug, "graphs of rules": rules}

def different() -> Iterator[str]:
  table = TINYGRAD.partition("## What is different")[2].partition("\n## ")[0]
  yield from re.findall(r"^\| ([^|]+?) \|", table, re.M)

def test_each_difference_is_known() -> None: assert list(different()) == list(DIFFERENT)

@pytest.mark.parametrize("name", DIFFERENT)
def test_differences(name: str) -> None: DIFFERENT[name]()

def test_random_numbers_have_a_seed() -> None:
  Tensor.manual_seed(3)
  first = Tensor.rand(4).tolist()
  Tensor.manual_seed(3)
  assert Tensor.rand(4).tolist() == first != Tensor.rand(4).tolist()

def test_the_older_names_of_tinygrad_work() -> None:
  x = Tensor([1.0], requires_grad=True)
  assert x.requires_grad and x.lazydata is x.uop
  with Tensor.no_grad(): y = x * 2
  assert y.sum().gradient(x)[0].tolist() == [0] != (x * 2).sum().gradient(x)[0].tolist()   # cut off from x
