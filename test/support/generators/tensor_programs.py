"""Random programs of tensor operations, each with its meaning in NumPy: what test_devices.py compares devices with.

`make(seed)` is one of them, `programs()` a hypothesis strategy that shrinks to a small one. `run(program, device)`
computes it with Tensors, `check` compares. How programs are chosen stands in generators/tensor_maker.py and
generators/tensor_methods.py.
"""
from __future__ import annotations
import random
from typing import Any

from hypothesis import strategies as st
import numpy as np
from generators.tensor_maker import TYPES, Program
from generators.tensor_methods import Methods

from tinyhw import Tensor

def run(program: Program, device: str) -> list[Any]:
  """The results as a device computes them, in arrays."""
  values = [Tensor(a, device=device) for a in program.inputs]
  for step in program.steps: values.append(step.tensor(*[values[k] for k in step.operands]))
  wanted = [values[k] for k in program.results]
  Tensor.realize(*wanted)
  return [t.numpy() for t in wanted]

def check(program: Program, found: list[Any]) -> None:
  """Results are NumPy's: equal where arithmetic was exact, else about equal."""
  halves = any(v.kind == "float16" and v.bits is None for v in program.values)
  for k, got in zip(program.results, found):
    want = program.values[k]
    where = f"%{k} of\n{program}"
    assert got.shape == want.array.shape and got.dtype == want.array.dtype, f"{got.dtype}{got.shape}: {where}"
    if want.bits is not None or not want.is_float: np.testing.assert_array_equal(got, want.array, err_msg=where)
    else:
      tolerance = 2e-2 if halves else 2e-4
      np.testing.assert_allclose(got.astype(np.float64), want.array.astype(np.float64), rtol=tolerance, atol=tolerance,
                                 err_msg=where)

OPERATIONS = [name for name in dir(Methods) if name.startswith("op_")]
INEXACT = ("op_row", "op_function", "op_rows", "op_activation", "op_statistic")
LIKELY = ["op_row", "op_exact_row", "op_exact_row",
          "op_unary", "op_binary", "op_binary", "op_scalar", "op_reduce", "op_cast", "op_pad", "op_slice", "op_reshape"]

def make(seed: int, steps: int = 8, functions: bool = True, inexact: bool = True) -> Program:
  """A random program. functions: with transcendental functions. inexact: with values that devices may round
  differently."""
  return choose(random.Random(seed), steps, functions, inexact)

@st.composite
def programs(draw: st.DrawFn, most: int = 10) -> Program:
  """Programs of 1 to `most` steps."""
  return choose(draw(st.randoms(use_true_random=False)), draw(st.integers(1, most)))

def choose(choices: random.Random, steps: int, functions: bool = True, inexact: bool = True) -> Program:
  """A program by random choices."""
  maker = Methods(choices, inexact)
  kinds = [choices.choice(TYPES) for _ in range(2)] + ["float32", "bool", "int32"]
  shapes = [maker.shape() for _ in range(2)]
  for kind in dict.fromkeys(kinds):
    for _ in range(2): maker.input(choices.choice(shapes), kind)
  names = [n for n in OPERATIONS if functions or n not in INEXACT] + LIKELY
  tries = 0
  while len(maker.program.steps) < steps and tries < 50 * steps:
    getattr(maker, choices.choice(names))()
    tries += 1
  used = {o for s in maker.program.steps for o in s.operands}
  first = len(maker.program.inputs)
  ends = [k for k in range(first, len(maker.values)) if k not in used]
  extra = [k for k in range(first, len(maker.values)) if k in used and choices.random() < 0.15]
  maker.program.results = sorted(ends + extra)
  return maker.program
