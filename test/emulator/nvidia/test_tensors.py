"""Tensors on virtual GPUs, all the way: schedule, our machine code, the driver's QMDs, warps under all checks; beside the CPU's results.

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

@pytest.mark.parametrize("chip", CHIPS)
def test_tensors(chip: str, expected: dict[str, object]) -> None:
  found = results("NV", chip)
  assert list(found) == list(expected)
  assert not [d for name in expected for d in differences(expected[name], found[name], name)][:20]

@pytest.mark.parametrize("chip", CHIPS)
def test_a_kernel_that_spills(chip: str) -> None:
  """320 registers of values that are alive at once: some go to the local memory that the launch provides."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "NV", "EMULATE": chip, "CACHE": "0"}
  program = SPILLED.replace("isa.amd", "isa.sass").replace('"AMD"', '"NV"')
  done = subprocess.run([sys.executable, "-c", program, "160", "0"], env=environment, capture_output=True, text=True, timeout=600)
  assert done.returncode == 0, done.stderr[-3000:]
