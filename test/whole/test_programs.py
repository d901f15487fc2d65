"""The programs of test/programs, as a user runs them: the losses of 50 steps beside those of their twins in PyTorch
(golden/programs.txt).

How near is near: both compute in float32, where sums in another order differ by some 1e-7, and training amplifies
differences. Six programs stay within 1e-6 of their twins. NEAR has the others. One is a transformer whose keys have a
bias: its gradient is zero, and Adam makes steps of the rounding errors (7e-6). Two networks play against each other
(2e-5). cifar_resnet has relu between batchnorms (2e-4; PyTorch with one thread is 1e-4 from itself with two). Learning
rates are chosen so that it stays so: with thrice the rate PyTorch's losses of cifar_resnet differ by 1e-3.
"""
from __future__ import annotations
import importlib.util
from pathlib import Path

import pytest
from formats.mutations import cases

from test.golden.make_programs import FILE, STEPS, losses
from tinyhw.device import Device

PROGRAMS = sorted(path.stem.removesuffix("_torch") for path in Path(__file__).parents[1].glob("programs/*_torch.py"))
GOLDEN = {line.split()[0]: [float(loss) for loss in line.split()[1:]]
          for line in FILE.read_text("utf-8").splitlines()[1:]}
SLOW = Device.DEFAULT == "PYTHON"   # no machine code: minutes for a step

NEAR = {"vit": 5e-5, "gan": 2e-4, "cifar_resnet": 1e-3}

def compare(program: str, found: list[float]) -> None:
  """The first ten losses are as near for all programs."""
  expected = GOLDEN[program][:len(found)]
  assert found[:10] == pytest.approx(expected[:10], rel=1e-5)
  assert found == pytest.approx(expected, rel=NEAR.get(program, 1e-5))

def test_each_program_has_a_twin_and_losses() -> None:
  assert len(PROGRAMS) == 9 and sorted(GOLDEN) == PROGRAMS
  assert all(len(found) == STEPS for found in GOLDEN.values())

@pytest.mark.parametrize("program", PROGRAMS)
def test_is_short(program: str) -> None:
  for name in (program, f"{program}_torch"):
    assert len((Path(__file__).parents[1] / f"programs/{name}.py").read_text("utf-8").splitlines()) <= 150

@pytest.mark.slow
@pytest.mark.skipif(SLOW, reason="needs a device with machine code")
@pytest.mark.parametrize("program", PROGRAMS)
def test_losses_are_those_of_pytorch(program: str) -> None:
  """The step runs, is captured, and is replayed 48 times."""
  found = losses(program, STEPS)
  assert len(found) == STEPS
  compare(program, found)

@pytest.mark.slow
@pytest.mark.skipif(SLOW, reason="needs a device with machine code")
@pytest.mark.parametrize("program", PROGRAMS)
def test_losses_without_a_capture(program: str) -> None:
  compare(program, losses(program, cases(3, STEPS), "--plain"))

@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_twin_has_these_losses(program: str) -> None:
  """Three steps; each night all."""
  compare(program, losses(f"{program}_torch", cases(3, STEPS)))
