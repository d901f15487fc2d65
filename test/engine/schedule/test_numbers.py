"""tinyhw/engine/schedule/numbers.py: a changing number becomes an argument, with few kernels and the same bits."""
from __future__ import annotations
from collections.abc import Callable, Iterator
import random
from typing import Any

import numpy as np
import pytest

from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.dtype import DType
from tinyhw.engine.run import compile as compiling
from tinyhw.engine.schedule import numbers, schedule as scheduling
from tinyhw.engine.schedule.schedule import canonicalize
from tinyhw.nn.optim import SGD
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

@pytest.fixture(autouse=True)
def no_families(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(numbers, "_families", type(numbers._families)())
  monkeypatch.setattr(numbers, "_small", type(numbers._small)())
  monkeypatch.setattr(scheduling, "_schedules", type(scheduling._schedules)())

@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[UOp]]:
  """Return a list that grows with each compiled kernel. No test before has compiled one."""
  found: list[UOp] = []
  plain = compiling._compile
  monkeypatch.setattr(compiling, "_compile", lambda sink, *rest: found.append(sink) or plain(sink, *rest))
  monkeypatch.setattr(Device[Device.DEFAULT], "kernels", {})
  with Context(CACHE=0): yield found

INF = float("inf")

# ***** counts *****

FLOATING = [0.01 + 0.37 * k for k in range(1000)]
# what, the numbers, the most kernels and schedules
PROGRAMS: dict[str, tuple[Callable[[Any], Tensor], list[Any], int]] = {
  "float": (lambda v: Tensor([1.5, 2.5, -3.0]).contiguous() * v, FLOATING, 4),
  "half": (lambda v: Tensor([1.5, 2.5, -3.0], dtype="half").contiguous() * v + 1, FLOATING, 4),
  "int": (lambda v: Tensor([1, 2, -3]).contiguous() + v, list(range(1000)), 7),   # 0, 1 and 2 are kernels of their own
  "long": (lambda v: Tensor([1, 2, -3], dtype="int64").contiguous() - v, list(range(1 << 40, (1 << 40) + 1000)), 4),
  "full": (lambda v: Tensor.full((3,), v).contiguous(), FLOATING, 4),
  "two": (lambda v: (Tensor([1.5, 2.5]).contiguous() * v + (1 - v)).sum(), FLOATING, 4),
  "noise": (lambda v: Tensor([1.5, 2.5]).contiguous() + Tensor.randn(2) * v, FLOATING, 6),
}

@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_numbers_make_a_handful_of_kernels(name: str, compiled: list[UOp],
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
  """There was once a kernel and a schedule for each number."""
  program, values, most = PROGRAMS[name]
  for v in values: program(v).realize()
  assert 0 < len(compiled) <= 2 * most and len(scheduling._schedules) <= 2 * most

PLACES: dict[str, Callable[[Tensor, int], Tensor]] = {
  "row": lambda x, k: x[k] * 2, "rows": lambda x, k: x[k:k + 5].sum(1), "block": lambda x,
  k: x[k:k + 3, k + 2:k + 9] + 1,
  "steps": lambda x, k: x[k:k + 6:2].max(0), "product": lambda x, k: x[k:k + 8] @ x[k + 1:k + 9].T, "padded": lambda x,
  k: x.pad((k, 100 - k)),
  "write": lambda x, k: x.contiguous().realize()[k:k + 2].assign(Tensor.full((2, 100), k + 0.5)),
  "gradient": lambda x, k: (x[k:k + 3] * x[k + 1:k + 4]).sum().gradient(x)[0],
}

@pytest.mark.parametrize("name", PLACES)
def test_places_make_a_handful_of_kernels(name: str, compiled: list[UOp]) -> None:
  """There was once a kernel for each offset: a loop over minibatches had as many kernels as batches."""
  x = Tensor(np.arange(9000, dtype=np.float32).reshape(90, 100) % 7).realize()
  for k in range(40): PLACES[name](x, k).realize()
  assert 0 < len(compiled) <= 10 and len(scheduling._schedules) <= 8

def test_a_second_round_finds_its_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
  x = Tensor(np.arange(40, dtype=np.float32)).realize()
  for k in range(20): (x[k:k + 3] * 2).realize()
  monkeypatch.setattr(numbers, "_with_arguments", None)   # nothing is made again
  for k in range(20): assert (x[k:k + 3] * 2).tolist() == [2.0 * (k + j) for j in range(3)]

def test_a_learning_rate_that_changes_in_each_step(compiled: list[UOp]) -> None:
  with Context(TRAINING=1):
    weight = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = SGD([weight], lr=0.1, momentum=0.9)
    counts = []
    for step in range(40):
      optimizer.zero_grad()
      (weight * weight * (0.3 + 0.01 * step)).sum().backward()
      optimizer.lr = Tensor([0.1 / (1 + step)]) if isinstance(optimizer.lr, Tensor) else 0.1 / (1 + step)
      optimizer.step()
      counts.append(len(compiled))
  assert counts[-1] == counts[10], "steps compile nothing new"

def test_two_numbers_are_constants(compiled: list[UOp]) -> None:
  x = Tensor([1.0, 2.0]).contiguous().realize()
  compiled.clear()
  for v in (0.3, 0.7, 0.3, 0.7): (x * v).realize()
  assert len(compiled) == 2 and not any(sink.variables() for sink in compiled)
  (x * 0.9).realize()
  assert [v.arg[0] for v in compiled[-1].variables()] == ["_number0"]

def test_a_number_that_stays_the_same_is_a_constant(compiled: list[UOp]) -> None:
  x = Tensor([1.0, 2.0]).contiguous().realize()
  for k in range(5): (x * 0.3 + (k + 5.5)).realize()
  assert [v.arg[0] for v in compiled[-1].variables()] == ["_number1"] and 0.3 in [u.arg
                                                                                  for u in compiled[-1].toposort()]
  for k in range(5): (x * (0.4 + k) + 9.5).realize()
  assert len(compiled[-1].variables()) == 2

@pytest.mark.parametrize("make", [
  lambda v: Tensor([1.0]).contiguous() ** v, lambda v: Tensor([True]).contiguous() ^ bool(v % 2),
  lambda v: Tensor([1.0]).contiguous() * (0, 1, 2, -1)[int(v) % 4],
  lambda v: Tensor([1.0]).contiguous().maximum((INF, -INF)[int(v) % 2])])
def test_what_decides_what_is_computed_stays(make: Callable[[float], Tensor]) -> None:
  for k in range(6):
    canonical = canonicalize([make(3.5 + k).uop])
    roots, values = numbers.with_arguments(canonical.roots)
    assert roots == canonical.roots and not values

def test_a_capture_keeps_its_numbers(compiled: list[UOp]) -> None:
  x = Tensor([1.0, 2.0]).contiguous().realize()
  for v in (0.3, 0.7, 0.9, 1.1): (x * v).realize()
  made = [TinyJit(lambda y, v=v: (y * v).realize()) for v in (1.3, 1.7)]
  for f, v in zip(made, (1.3, 1.7)):
    for _ in range(4): assert f(x).tolist() == (x * v).tolist()
  assert [sink.variables() for sink in compiled[-2:]] == [[], []]

def test_numbers_on_several_devices() -> None:
  devices = ("PYTHON:1", "PYTHON:2")
  for v in FLOATING[:6]:
    x = Tensor([1.0, 2.0, 3.0, 4.0], device="PYTHON").shard(devices, 0).realize()
    assert (x * v + Tensor.full((4,), v, device="PYTHON").shard(devices)).tolist() == (Tensor([1.0, 2.0, 3.0, 4.0]) * v
                                                                                       + v).tolist()

@pytest.mark.parametrize("device", ["PYTHON", "PYTHON:1"])
def test_a_number_is_computed_where_it_was_made(device: str) -> None:
  for v in FLOATING[:5]:
    x = Tensor.full((3,), v, device=device).contiguous()
    assert x.device == device and x.tolist() == [Tensor(v).item()] * 3

def test_families_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(numbers, "MOST_FAMILIES", 5)
  for n in range(2, 20): numbers.with_arguments(canonicalize([(Tensor.empty(n) * 0.3).uop]).roots)
  assert len(numbers._families) == 5

def test_lines_go_with_what_stands_for_a_node() -> None:
  for v in (0.3, 0.4, 0.5):
    u = (Tensor.empty(3) * v).uop
    canonical = canonicalize([u])
    roots, values = numbers.with_arguments(canonical.roots)
  assert values and roots != canonical.roots and roots[0].line == canonical.roots[0].line is not None

# ***** bits *****

EDGES: dict[DType, list[Any]] = {
  **{t: [0.1, -0.3, 1 / 3, 1e-3, 60000.0, 5.5, -2.0, 3.0000001, 2.0 ** -20] for t in numbers.FLOATS},
  **{t: [t.max, t.max - 1, 3, 7, 100, *([t.min, -7, -100] if t.min else [])] for t in numbers.INTEGERS},
}

@pytest.mark.parametrize("dtype", sorted(EDGES, key=str), ids=str)
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_an_argument_has_the_bits_of_the_constant(device: str, dtype: DType) -> None:
  found = {}
  for members in (99, 0):
    numbers._families.clear()
    scheduling._schedules.clear()
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(numbers, "CONSTANT_MEMBERS", members)
      found[members] = [Tensor.full((2,), v, dtype=dtype, device=device).contiguous().tolist() for v in EDGES[dtype]]
  assert repr(found[0]) == repr(found[99])

def random_program(choose: random.Random) -> Callable[[list[float]], list[Tensor]]:
  """Return a program over two inputs, floats and ints, with a number in most of its operations."""
  steps = [
    (choose.choice("add mul sub div where clip sum pad max cast half mod and floordiv gather cumsum less".split()),
     choose.randrange(6))
           for _ in range(choose.randrange(3, 8))]
  def program(values: list[float]) -> list[Tensor]:
    x = Tensor([[0.5, -1.25, 3.0, 7.75], [2.5, -0.125, 1e3, -8.0]]).contiguous()
    i = Tensor([[5, -7, 11, 0], [3, 100, -100, 1]]).contiguous()
    for operation, k in steps:
      v, n = values[k], int(values[k] * 8) + 3
      match_float: dict[str, Callable[[], Tensor]] = {
        "add": lambda: x + v, "mul": lambda: x * v + n, "sub": lambda: v - x, "div": lambda: x / v,
        "where": lambda: (x < v).where(x * 3.3, v),
        "clip": lambda: x.clip(-v, v), "sum": lambda: x + (x * v).sum(1, keepdim=True),
        "pad": lambda: x.pad((1, 0), value=v)[:, :4],
        "max": lambda: x.maximum(v) + x.max(0), "cast": lambda: (i + n).float() * v + x,
        "half": lambda: (x.half() * v).float(),
        "cumsum": lambda: (x + v).cumsum(1), "gather": lambda: x + x[:, (i[0] + n) % 4],
        "less": lambda: x + (i < n).float() * v,
      }
      match_int: dict[str, Callable[[], Tensor]] = {"mod": lambda: i % n, "and": lambda: (i & n) + n,
                                                    "floordiv": lambda: i // n}
      if operation in match_int: i = match_int[operation]()
      else: x = match_float[operation]()
    return [x, i]
  return program

@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_same_bits(seed: int) -> None:
  choose = random.Random(seed)
  program = random_program(choose)
  all_values = [[choose.uniform(0.1, 9.0) for _ in range(6)] for _ in range(2)]
  results: dict[int, list[bytes]] = {}
  for members in (99, 0):   # constants, then arguments
    numbers._families.clear()
    scheduling._schedules.clear()
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(numbers, "CONSTANT_MEMBERS", members)
      results[members] = [t.contiguous().data().tobytes() for values in all_values for t in program(values)]
  assert results[0] == results[99]

# ***** places *****

def place_program(r: random.Random) -> tuple[str, list[int]]:
  """Return a program for NumPy and Tensor, with {0}, {1} ... for changing numbers, and the maximum of each."""
  lines, most, shape = [], list[int](), [12, 10]
  def slot(largest: int) -> str:
    most.append(largest)
    return "{" + str(len(most) - 1) + "}"
  def part(size: int, of: int, step: int = 1) -> str:
    k = slot(of - (size - 1) * step - 1)
    return f"{k}:{k}+{(size - 1) * step + 1}:{step}"
  for _ in range(r.randint(2, 5)):
    axis = r.randrange(2)
    size, old = r.randint(1, shape[axis]), shape[axis]
    kind = r.choice(["part", "part", "step", "pad", "flip", "sum", "write", "add"])
    if kind == "part": lines.append(f"v = v[{':, ' * axis}{part(size, old)}] + 1")
    elif kind == "step":
      size = min(size, (old + 1) // 2)
      lines.append(f"v = v[{':, ' * axis}{part(size, old, 2)}] * 2")
    elif kind == "pad":
      room, size = r.randint(1, 5), old
      k = slot(room)
      lines.append(f"v = pad(v, {axis}, {k}, {room} - {k})")
      size += room
    elif kind == "flip": lines, size = [*lines, "v = v[::-1] - v"], old
    elif kind == "sum": lines, size = [*lines, "v = v + v.sum(0)"], old
    else:
      n, m = min(shape[0], r.randint(1, 9)), min(shape[1], r.randint(1, 9))
      sign = "=" if kind == "write" else "+="
      lines.append(f"b[{part(n, 14)}, {part(m, 9)}] {sign} v[{part(n, shape[0])}, {part(m, shape[1])}]")
      if r.random() < 0.5: lines.append(f"v = v + b[{part(1, 14)}, {part(1, 9)}]")
      size = old
    shape[axis] = size
  return "\n".join(lines), most

def _padded(v: Any, axis: int, before: int, after: int) -> Any:
  pairs = [(before, after) if k == axis else (0, 0) for k in range(2)]
  return np.pad(v, pairs) if isinstance(v, np.ndarray) else v.pad(tuple(pairs))

@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_programs_with_moving_places(part: int) -> None:
  x, b = np.arange(120, dtype=np.float32).reshape(12, 10) % 11, np.arange(126, dtype=np.float32).reshape(14, 9) % 5
  for seed in range(part * 25, part * 25 + 25):
    r = random.Random(seed)
    text, most = place_program(r)
    for _ in range(5):
      code = text.format(*[r.randint(0, largest) for largest in most])
      names = [{"v": x.copy(), "b": b.copy(), "pad": _padded},
               {"v": Tensor(x).realize(), "b": Tensor(b).realize(), "pad": _padded}]
      for scope in names: exec(code, scope)  # the program made above
      for what in ("v", "b"): assert names[1][what].tolist() == names[0][what].tolist(), f"seed {seed}, {what}:\n{code}"
