"""Random programs with symbolic sizes, and the same programs with numbers.

A program is a list of steps over inputs, Variables and a cache. `run` takes numbers for the Variables, or bound
Variables. While a program is made, each step runs with numbers, lazily, for all values that its Variables will have:
what numbers refuse is no step. The kinds of steps stand in generators/symbolic_steps.py.
"""
from __future__ import annotations
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generators.symbolic_steps import STEPS, Step, Value

from tinyhw import Tensor, TinyJit, Variable
from tinyhw.errors import TinyError

NAMES = ("v", "w", "p")
MOST = 6                     # the largest value of a Variable
CACHE = (3, 8)

@dataclass
class Program:
  """inputs: arrays. bounds, values: of each Variable, by name; each of `values` is one call. steps: in order. results:
  which values are compared."""
  seed: int
  inputs: list[Any]
  bounds: dict[str, tuple[int, int]]
  values: list[dict[str, int]]
  steps: list[Step] = field(default_factory=list)
  results: list[int] = field(default_factory=list)
  inexact: set[int] = field(default_factory=set)

  def __str__(self) -> str:
    lines = [f"seed {self.seed}; {self.bounds}; values {self.values}"]
    lines += [f"%{k} = input {list(a.shape)}" for k, a in enumerate(self.inputs)]
    lines += [f"%{k} = {s.text}" for k, s in enumerate(self.steps, len(self.inputs))]
    return "\n".join([*lines, f"results {self.results}"])

def make(seed: int, most: int = 6) -> Program:
  """A random program of at most so many steps."""
  rng = random.Random(seed)
  numbers = np.random.default_rng(seed)
  shapes = [rng.choice([(8,), (3, 8), (8, 3), (2, 3, 8), (8, 8), (2, 8, 4)]) for _ in range(2)]
  inputs = [numbers.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
  bounds = {name: (rng.choice([0, 1, 1]) if name == "p" else 1, rng.choice([MOST, MOST, 8, 12, 16])) for name in NAMES}
  values = [{name: rng.randint(max(low, 2 if rng.random() < 0.8 else 1) if name != "p" else low,
                               MOST if name != "p" else 5)
             for name, (low, _) in bounds.items()} for _ in range(2)]
  program = Program(seed, inputs, bounds, values)
  states = [_start(program, dict(v)) for v in values]
  known = [Value(shape, 4.0, True) for shape in shapes]
  tries = 0
  while len(program.steps) < most and tries < 40:
    tries += 1
    step = rng.choice(STEPS)(rng, [(k, [s[k].shape for s in states], v) for k, v in enumerate(known)])
    if step is None: continue
    try: made = [step.run(values, s) for values, s in zip(program.values, states)]
    except TinyError: continue
    if any(t.ndim > 4 or t.numel() > 600 or 0 in t.shape for t in made): continue
    program.steps.append(step)
    known.append(step.value._replace(shape=made[0].shape))
    for s, t in zip(states, made): s.append(t)
  used = {k for s in program.steps for k in s.operands}
  first = len(inputs)
  program.results = [k for k in range(first, len(known)) if k not in used] or [0]
  program.inexact = {k for k, v in enumerate(known) if not v.exact}
  return program

class State(list[Any]):
  """The values of a run, and its cache."""
  def __init__(self, inputs: list[Tensor], cache: Tensor):
    super().__init__(inputs)
    self.inputs, self.cache = list(inputs), cache

def _start(program: Program, values: dict[str, Any]) -> State:
  return State([Tensor(a) for a in program.inputs], Tensor.zeros(*CACHE).contiguous().realize())

def run(program: Program, values: dict[str, Any], state: State) -> list[Tensor]:
  """The results, and what the cache holds then."""
  for step in program.steps: state.append(step.run(values, state))
  return [*[state[k] for k in program.results], state.cache]

def with_numbers(program: Program, values: dict[str, int], state: State) -> list[Any]:
  found = run(program, values, state)
  Tensor.realize(*found)
  return [t.numpy() for t in found]

def bound(program: Program, values: dict[str, int]) -> dict[str, Any]:
  return {name: Variable(name, *program.bounds[name]).bind(x) for name, x in values.items()}

class Wrong(AssertionError):
  """A symbolic program gave something else than the same program with numbers."""

def same(program: Program, what: str, got: list[Any], want: list[Any]) -> None:
  """Raise Wrong unless shapes, types and values are equal; about equal for what sums may round differently."""
  for k, g, w in zip([*program.results, -1], got, want):
    where = f"{what}, %{k} of\n{program}"
    if g.shape != w.shape or g.dtype != w.dtype: raise Wrong(f"{g.dtype}{g.shape}, not {w.dtype}{w.shape}: {where}")
    try:
      if k in program.inexact or k < 0: np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-4, err_msg=where)
      else: np.testing.assert_array_equal(g, w, err_msg=where)
    except AssertionError as error: raise Wrong(str(error)) from None

def _arrays(found: list[Tensor]) -> list[Any]: return [t.numpy() for t in found]

@dataclass
class Outcome:
  """The outcome of a program: "same", "refused" or "wrong", "internal"; and why."""
  kind: str
  why: str = ""
  message: str = ""

def check(program: Program, captured: bool = True) -> Outcome:
  """Compare a program with numbers: each call by itself, then captured by TinyJit and replayed with other values. The
  first two calls of programs with an odd seed have different values."""
  one, other = program.values
  calls = [one, other, one, other, one] if program.seed % 2 else [one, one, other, one]
  state = _start(program, {})
  wanted = [with_numbers(program, values, State(state.inputs, state.cache)) for values in calls]
  stage = "eager"
  try:
    plain = _start(program, {})
    found = run(program, bound(program, one), State(plain.inputs, plain.cache))
    Tensor.realize(*found)
    same(program, stage, _arrays(found), wanted[0])
    if not captured: return Outcome("same")
    stage = "captured"
    fresh = _start(program, {})
    jit = TinyJit(_function(program, fresh.cache))
    for k, values in enumerate(calls):
      got = _arrays(jit(fresh.inputs, bound(program, values)))
      same(program, f"call {k}", got, wanted[k])
    if jit.captured is None: raise Wrong(f"nothing was captured in calls with {calls} of\n{program}")
  except Wrong as error: return Outcome("wrong", stage, str(error))
  except TinyError as error:
    kind = "internal" if "Internal" in type(error).__name__ or "Verify" in type(error).__name__ else "refused"
    return Outcome(kind, f"{stage}: {type(error).__name__}: {re.sub(r'[0-9]+', '#', str(error))[:110]}",
                   f"{error}\n{program}")
  # faults, all of them
  except (AssertionError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
    return Outcome("internal", f"{stage}: {type(error).__name__}: {str(error)[:100]}", f"{error!r}\n{program}")
  return Outcome("same")

def _function(program: Program, cache: Tensor) -> Callable[[list[Tensor], dict[str, Any]], list[Tensor]]:
  def call(inputs: list[Tensor], variables: dict[str, Any]) -> list[Tensor]:
    return run(program, variables, State(inputs, cache))
  return call
