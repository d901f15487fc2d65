"""Tensors on virtual GPUs, end to end: schedule, our machine code, the driver's QMDs, warps with all checks; compared
with the CPU's results.

The programs are those of test/emulator/amd/test_tensors.py.
"""
import os
import subprocess
import sys

import pytest

from test.emulator.amd.test_tensors import ROOT, SPILLED, differences, results

CHIPS = ("sm_80", "sm_89", "sm_90")

@pytest.fixture(scope="module")
def expected() -> dict[str, object]: return results("CPU")

@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
def test_tensors(chip: str, expected: dict[str, object]) -> None:
  found = results("NV", chip)
  assert list(found) == list(expected)
  assert not [d for name in expected for d in differences(expected[name], found[name], name)][:20]

@pytest.mark.parametrize("chip", CHIPS)
def test_a_kernel_that_spills(chip: str) -> None:
  """There are 320 registers of live values. Some are spilled to the local memory of the launch."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "NV", "EMULATE": chip, "CACHE": "0"}
  program = SPILLED.replace("isa.amd", "isa.sass").replace('"AMD"', '"NV"')
  done = subprocess.run([sys.executable, "-c", program, "160", "0"], env=environment, capture_output=True, text=True,
                        timeout=600)
  assert done.returncode == 0, done.stderr[-3000:]

PRODUCTS = """
import math, random
from tinyhw import Context, Tensor, dtypes

rng = random.Random(4)
def factor(rows, columns, dtype):
  made = Tensor([[rng.uniform(-4, 4) for _ in range(columns)] for _ in range(rows)]).cast(dtype).realize()
  return made, made.cast("float32").tolist()

def error(a, b, **allowed):
  (x, left), (y, right) = a, b
  with Context(**allowed): found = x.matmul(y, dtype="float32").tolist()
  worst = 0.0
  for row, sums in zip(left, found):
    for column, value in zip(zip(*right), sums):
      terms = [p * q for p, q in zip(row, column)]
      worst = max(worst, abs(value - math.fsum(terms)) / sum(map(abs, terms)))
  return worst

n = 96
for kinds in (("fp8e4m3", "fp8e4m3"), ("fp8e5m2", "fp8e5m2"), ("fp8e4m3", "float16"), ("int8", "bfloat16"),
              ("float32", "float32")):
  a, b = factor(32, n, kinds[0]), factor(n, 16, kinds[1])
  print(error(a, b), error(a, b, ALLOW_FP8_SUMS=1, ALLOW_TF32=1))
"""

@pytest.mark.parametrize("chip", CHIPS)
def test_products_of_narrow_types(chip: str) -> None:
  """Errors against exact sums, in units of the sum of absolute values. docs/numerics.md has the bounds, which are wider
  where a variable allows it."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "NV", "EMULATE": chip, "CACHE": "0"}
  done = subprocess.run([sys.executable, "-c", PRODUCTS], env=environment, capture_output=True, text=True, timeout=600)
  assert done.returncode == 0, done.stderr[-3000:]
  errors = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
  assert len(errors) == 5 and all(exact < 1e-6 for exact, _ in errors)
  short, whole, tf32 = errors[:2], errors[2:4], errors[4][1]
  assert (all(allowed < (2 ** -13 * 3 if chip == "sm_89" else 1e-6) for _, allowed in short)
          and all(exact == allowed for exact, allowed in whole))
  assert (chip != "sm_89" or min(allowed for _, allowed in short) > 1e-6) and 1e-6 < tf32 < 2 ** -10
