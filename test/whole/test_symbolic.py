"""Symbolic sizes: random programs against the same programs with numbers, some of them new each day.

test/campaigns/symbolic.py runs ten thousands of them.
"""
from __future__ import annotations
from collections import Counter
import time
from typing import Any

import numpy as np
import pytest
from generators import symbolic_programs

from test.helpers import HOME, on
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.errors import ArgumentError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

PROGRAMS = 200
SEED = int(time.time() // 86400) * 100_000 + 50_000   # of today, and not that of the nightly campaign; a failure prints
                                                      # its own
NEVER_REFUSED = ("cat", "pad", "split", "chunk", "cumsum", "argmax", "roll", "arange", "back", "from the end",
                 "step down", "conv1d", "conv2d")

@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_programs_are_what_numbers_give(part: int) -> None:
  kinds: Counter[str] = Counter()
  with on(HOME):
    for seed in range(SEED + part * PROGRAMS // 4, SEED + (part + 1) * PROGRAMS // 4):
      found = symbolic_programs.check(symbolic_programs.make(seed))
      kinds[found.kind] += 1
      hint = f"python3 test/campaigns/symbolic.py --programs 1 --seed {seed}"
      assert found.kind in ("same", "refused"), f"{hint}\n{found.kind}, {found.why}\n{found.message}"
  assert kinds["refused"] <= 2, f"{kinds}; see {hint}"

def test_a_seed_is_one_program() -> None:
  assert str(symbolic_programs.make(7)) == str(symbolic_programs.make(7)) != str(symbolic_programs.make(8))

def test_every_operation_is_drawn() -> None:
  drawn = "\n".join(str(symbolic_programs.make(seed)) for seed in range(400))
  for text in (*NEVER_REFUSED, "sort", "topk", "softmax", "layernorm", "max_pool", "attention", "cache[", "gather",
               "einsum", "eye", "tril", "gradient of"):
    assert f"= {text}" in drawn, text

def test_differences_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  """The oracle finds a wrong value, and a wrong shape."""
  program = symbolic_programs.make(5)
  plain = symbolic_programs.with_numbers
  def changed(how: Any) -> Any: return lambda *given: [how(a) for a in plain(*given)]
  for how in (lambda a: a + 1, lambda a: a[None], lambda a: a.astype(np.float64)):
    monkeypatch.setattr(symbolic_programs, "with_numbers", changed(how))
    assert symbolic_programs.check(program).kind == "wrong"

def test_a_sort_reads_inside_of_what_is_padded_by_a_variable() -> None:
  """It was sorted at its size of now, by a kernel that read outside of the buffer for other values of the Variable
  (SPEC=2 refused it)."""
  x = np.arange(24, dtype=np.float32).reshape(8, 3)
  for n in (1, 5):
    w = UOp.variable("w", 1, 6).bind(n)
    with Context(SPEC=2): found = Tensor(x).pad(((0, 0), (w * 2, 0))).topk(3, dim=1)[1].tolist()
    assert found == Tensor(x).pad(((0, 0), (n * 2, 0))).topk(3, dim=1)[1].tolist()

@pytest.mark.parametrize("axis", (1, None))
def test_a_roll_by_a_variable_is_one_capture(axis: int | None) -> None:
  x, calls = np.arange(14, dtype=np.float32).reshape(2, 7), []
  shift = UOp.variable("shift", -16, 16)
  @TinyJit
  def rolled(t: Tensor, by: UOp) -> Tensor:
    calls.append(1)
    return t.roll(by, axis).realize()
  source = Tensor(x).realize()
  for n in (3, 5, *range(-16, 17)):
    expected = np.roll(x, n, axis).tolist()
    assert rolled(source, shift.bind(n)).tolist() == expected == source.roll(shift.bind(n), axis).tolist(), n
  assert len(calls) == 2

def test_a_roll_by_variables_of_an_axis_of_a_variable_size() -> None:
  x, calls = np.arange(14, dtype=np.float32).reshape(2, 7), []
  shift, size = UOp.variable("shift", -9, 9), UOp.variable("size", 1, 7)
  @TinyJit
  def rolled(t: Tensor, by: UOp, n: UOp) -> Tensor:
    calls.append(1)
    return t[:, :n].roll((by, 1), (1, 0)).sum(0).realize()
  source = Tensor(x).realize()
  for n, by in ((7, 3), (4, 2), (1, 9), (5, -9), (7, 0), (7, 7), (6, -1)):
    assert rolled(source, shift.bind(by), size.bind(n))[:size.bind(n)].tolist() == np.roll(x[:, :n], (by, 1),
                                                                                           (1, 0)).sum(0).tolist()
  assert len(calls) == 2
  w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
  (w.roll(shift.bind(-8)) * Tensor([1.0, 10.0, 100.0])).sum().backward()
  assert w.grad.tolist() == [10.0, 100.0, 1.0]
  with pytest.raises(ArgumentError, match="a shift is a whole number or a Variable"): w.roll(shift.bind(1) / 2)

@pytest.mark.parametrize("most, values, captures",
                         [(64, (10, 33, 64, 50), 1), (200, (40, 63, 50), 1), (200, (40, 64, 50, 70, 71), 3)])
def test_running_sums_are_captured_for_each_number_of_blocks(most: int, values: tuple[int, ...], captures: int) -> None:
  calls: list[int] = []
  n, x = UOp.variable("n", 1, most), Tensor.ones(most, dtype="int32").contiguous().realize()
  def f(part: Tensor) -> Tensor:
    calls.append(1)
    return part.cumsum(0).sum().realize()
  jitted = TinyJit(f)
  assert [jitted(x[:n.bind(k)]).item() for k in values] == [k * (k + 1) // 2 for k in values]
  assert len(calls) == captures + 1
