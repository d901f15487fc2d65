"""Random programs around a function, once plain and once with TinyJit. Visible results are equal, or JitError is
raised.

A program is a function and the actions between its calls. The function has statements over an input, state, attributes,
Tensors without storage, random numbers and gradients. Actions change attributes, write or replace state, express and
hold values, and hold, write and feed back results. At the end all held values are read again. If TinyJit refuses a
call, the plain program stops there too, and both are compared.
"""
from __future__ import annotations
import pickle
from collections import Counter
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tinyhw.capture.jit import TinyJit
from tinyhw.errors import JitError, TinyError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

SIZE = 4
V = UOp.variable("v", 1, SIZE)

class Settings:
  scale = 2.0
  def __init__(self) -> None: self.level = 1.0

class Layer:
  def __init__(self, k: int): self.w, self.bias = tensor(k + 1), 0.5
  def __call__(self, x: Tensor) -> Tensor: return x * self.w + self.bias

def tensor(k: float) -> Tensor: return Tensor([float(k + i) for i in range(SIZE)]).realize()

class Model:
  """Everything that a function may read and write."""
  def __init__(self) -> None:
    self.state = [tensor(k) for k in range(2)]
    self.settings, self.layers, self.count = Settings(), [Layer(k) for k in range(2)], 3
    self.lazy, self.constant = self.state[0] * 2, Tensor(1.5)
    self.held: list[Any] = []

def _assign_part(m: Model, y: Tensor) -> Tensor:
  m.state[1][1:3].assign(y[1:3]).realize()
  return y

def _assign(m: Model, y: Tensor, realize: bool) -> Tensor:
  written = m.state[0].assign(m.state[0] * 0.5 + y)
  if realize: written.realize()
  return y + 1

def _backward(m: Model, y: Tensor) -> Tensor:
  m.state[1].grad = None
  (m.state[1] * y).sum().backward()
  return y

def _count(m: Model, y: Tensor) -> Tensor:
  m.count += 1
  return y * m.count

def _keep(m: Model, y: Tensor) -> Tensor:
  m.held.append(y)
  return y

# Most statements are twice or more in the list, those that a capture refuses once.
STATEMENTS: dict[str, Any] = {
  "add": lambda m, y, x: y + x, "double": lambda m, y, x: y * 2, "state": lambda m, y, x: y + m.state[0],
  "other": lambda m, y, x: y - m.state[1],
  "realize": lambda m, y, x: y.realize(), "assign": lambda m, y, x: _assign(m, y, True), "assign later": lambda m, y,
  x: _assign(m, y, False),
  "part": lambda m, y, x: _assign_part(m, y), "set": lambda m, y, x: m.state[1].__setitem__(slice(0, 2), y[2:4]) or y,
  "rand": lambda m, y, x: y + Tensor.rand(SIZE), "dropout": lambda m, y, x: y.dropout(0.5), "seed": lambda m, y,
  x: Tensor.manual_seed(7) or y,
  "scale": lambda m, y, x: y * m.settings.scale, "level": lambda m, y, x: y + m.settings.level, "layer": lambda m, y,
  x: m.layers[1](m.layers[0](y)),
  "lazy": lambda m, y, x: y + m.lazy, "constant": lambda m, y, x: y * m.constant, "data": lambda m, y,
  x: y + Tensor([float(m.count)] * SIZE),
  "grad": lambda m, y, x: _backward(m, y), "flip": lambda m, y, x: y.flip(0), "sum": lambda m, y, x: y + y.sum(),
  "new": lambda m, y, x: Tensor([1.0, 2.0, 3.0, 4.0]).assign(y + 1), "input": lambda m, y, x: (x.assign(x + 1), y)[1],
  "count": lambda m, y, x: _count(m, y), "keep": lambda m, y, x: _keep(m, y),
}
RARE = ("count", "keep", "input")
RESULTS: dict[str, Any] = {
  "one": lambda m, y, x: y, "two": lambda m, y, x: [y, y + 1], "twice": lambda m, y, x: (y, y),
  "state": lambda m, y, x: {"y": y, "state": m.state[0]}, "input": lambda m, y, x: (x, y),
  "view": lambda m, y, x: (y[1:], x[:2], m.state[1][2:]), "nothing": lambda m, y, x: None,
}

def function_of(m: Model, names: list[str], result: str) -> Any:
  """Return the function with these statements. If none computes, it adds 1."""
  def function(x: Tensor) -> Any:
    y = x + 1
    for name in names: y = STATEMENTS[name](m, y, x)
    return RESULTS[result](m, y, x)
  return function

class Run:
  """A running program, and its visible results."""
  def __init__(self, names: list[str], result: str, jit: bool):
    Tensor.manual_seed(1)
    self.model = Model()
    self.function = function_of(self.model, names, result)
    self.jit: Any = TinyJit(self.function) if jit else None
    self.seen: list[Any] = []
    self.results: list[Any] = []
    self.waiting: list[Tensor] = []

  def step(self, action: str, k: int) -> None:
    m = self.model
    if action == "call": self._call(tensor(k))
    elif action == "call again" and self.results and isinstance(self.results[-1], Tensor): self._call(self.results[-1])
    elif action == "call with state": self._call(m.state[k % 2])
    elif action == "call with lazy": self._call(tensor(k) * 2)
    elif action == "express": self.waiting.append(m.state[k % 2] * 10 + k)
    elif action == "look": self.seen += [t.tolist() for t in self.waiting]
    elif action == "assign": m.state[k % 2].assign(m.state[(k + 1) % 2] + k)
    elif action == "replace": m.state[k % 2] = tensor(k)
    elif action == "scale": m.settings.scale = float(k)  # type: ignore[misc]  # shadows that of the class
    elif action == "scale of all": Settings.scale = float(k)
    elif action == "level": m.settings.level = float(k)
    elif action == "bias": m.layers[k % 2].bias = float(k)
    elif action == "weight": m.layers[k % 2].w.assign(tensor(k))
    elif action == "realize lazy": m.lazy.realize()
    elif action == "lazy": m.lazy = m.state[k % 2] + k
    elif action == "constant": m.constant.assign(Tensor(float(k)))
    elif action == "read": self.seen.append([t.tolist() for t in m.state])
    elif action == "spoil" and self.results and isinstance(self.results[-1], Tensor):
      self.results[-1].assign(self.results[-1] * 0 - k).realize()
    elif action == "reset" and self.jit is not None: self.jit.reset()

  def _call(self, x: Tensor) -> None: self.results.append((self.jit or self.function)(x))

  def end(self) -> list[Any]:
    """Return all visible results, and the present values of everything held."""
    grad = self.model.state[1].grad
    return [self.seen, [values(r) for r in self.results], [t.tolist() for t in self.waiting],
            [t.tolist() for t in self.model.state],
            [values(h) for h in self.model.held], None if grad is None else grad.tolist(), self.model.count,
            Tensor.rand(1).tolist()]

def values(result: Any) -> Any:
  if isinstance(result, Tensor): return result.tolist()
  if isinstance(result, dict): return {k: values(v) for k, v in result.items()}
  return [values(v) for v in result] if isinstance(result, (list, tuple)) else result

ACTIONS = ["call"] * 8 + ["call again", "call with state", "call with lazy", *["express"] * 4, "look", "look",
                          *["assign"] * 4, "replace", "scale",
                          "scale of all", "level", "bias", "weight", "realize lazy", "lazy", "constant", "read",
                          "spoil", "spoil", "reset"]
statements = st.lists(st.sampled_from([name for name in STATEMENTS if name not in RARE] * 3 + list(RARE)), max_size=5)
actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2)), min_size=5, max_size=14)
ended: Counter[str] = Counter()

def finished(names: list[str], result: str, steps: list[tuple[str, int]],
             jit: bool) -> tuple[str, int, list[Any], list[Any]]:
  """Return how a run ended, after how many steps, its results, and the results before a step whose capture was
  refused."""
  Settings.scale = 2.0
  run = Run(names, result, jit)
  with Tensor.train():
    for k, (action, number) in enumerate(steps):
      try: run.step(action, number)
      except JitError:
        how = "refused at the capture" if run.jit.captured is None else "refused at a replay"
        return how, k, run.end() if how == "refused at a replay" else [], run.seen
      except TinyError as error: return f"{type(error).__name__} {error.message[:60]}", k, [], run.seen
    return "done", len(steps), run.end(), run.seen

@settings(max_examples=150)
@given(statements, st.sampled_from(list(RESULTS)), actions)
@example(["state", "assign"], "one", [("call", 1), ("express", 0), ("look", 0), ("call", 1), ("express", 0)])
@example(["state"], "one", [("assign", 0), ("call", 1), ("assign", 0), ("assign", 0), ("call", 2)])
@example(["state", "assign later", "grad"], "one", [("call", 0), ("assign", 0), ("call", 0)])
def programs(names: list[str], result: str, steps: list[tuple[str, int]]) -> None:
  how, count, end, seen = finished(names, result, [("call", 1), ("call", 2), *steps], True)
  ended[how] += 1
  refused = how.startswith("refused")
  plain, stopped, expected, before = finished(names, result,
                                              [("call", 1), ("call", 2), *steps][:count if refused else None], False)
  assert (plain, stopped) == ("done" if refused else how, count) and seen == before
  if how != "refused at the capture": assert end == expected

def test_programs() -> None:
  """Random programs. Most of them run to the end, or the test would show nothing."""
  ended.clear()
  programs()
  assert ended["done"] * 3 > sum(ended.values()), ended

def outcome(jit: Any, k: int) -> Any:
  Tensor.manual_seed(k)
  return values(jit(tensor(k))), Tensor.rand(1).tolist()

BETWEEN = ["express", "assign", "weight", "read", "look", "spoil", "constant", "scale", "level", "realize lazy", "lazy",
           "replace"]

@settings(max_examples=150)
@given(statements, st.sampled_from(list(RESULTS)),
       st.lists(st.tuples(st.sampled_from(BETWEEN[:6] * 4 + BETWEEN), st.integers(0, 2)), max_size=3))
def pickled_programs(names: list[str], result: str, steps: list[tuple[str, int]]) -> None:
  """After a capture and some actions, a TinyJit from a pickle gives, call by call, the results of the original. It has
  its own storage."""
  Settings.scale = 2.0
  run = Run(names, result, True)
  with Tensor.train():
    try:
      for action, k in [("call", 0), ("call", 1), ("call", 2), *steps]: run.step(action, k)
    except TinyError:
      ended["not captured"] += 1
      return
    try: loaded = pickle.loads(pickle.dumps(run.jit))
    except JitError as error:
      ended["refused"] += 1
      assert "before it is pickled" in error.message or refuses(run.jit, tensor(3))
      return
    later = pickle.loads(pickle.dumps(loaded))    # of one that has not been called
    try: want = [outcome(run.jit, k) for k in (5, 3, 4)]
    # A pending write was done, as the first call does it, and the next call finds values that were computed before it.
    except JitError:
      ended["refused later"] += 1
      return
    ended["done"] += 1
    assert [outcome(loaded, k) for k in (5, 3, 4)] == want
    assert [outcome(later, k) for k in (5, 3, 4)] == want
    last = pickle.loads(pickle.dumps(loaded))
    assert outcome(last, 6) == outcome(loaded, 6) == outcome(run.jit, 6)

def refuses(jit: Any, x: Tensor) -> bool:
  try: jit(x)
  except JitError: return True
  return False

def test_programs_from_pickles() -> None:
  ended.clear()
  pickled_programs()
  assert ended["done"] * 3 > sum(ended.values()), ended

def test_programs_with_variables() -> None:
  """One capture for all lengths; the state grows as in plain calls."""
  def seen(jit: bool) -> list[Any]:
    m = Model()
    def f(x: Tensor, n: UOp) -> Any:
      y = (x[:n] + m.state[0][:n]).realize()
      m.state[1][n - 1:n].assign(y.sum().reshape(1)).realize()
      return y, (m.state[1][:n] * 2).sum()
    function: Any = TinyJit(f) if jit else f
    return [[t.tolist() for t in function(tensor(k), V.bind(1 + k % SIZE))] for k in range(7)] + [m.state[1].tolist()]
  assert seen(True) == seen(False)
