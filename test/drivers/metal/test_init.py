"""DEV=METAL: it opens when it is asked for, and never by itself; tensors on it."""
import os
import subprocess
import sys

import pytest

from tinyhw.device import DRIVERS, EMULATED, PREFERENCE
from tinyhw.drivers import metal

def test_it_is_never_a_default() -> None:
  assert DRIVERS["METAL"] == metal.__name__ and "METAL" not in PREFERENCE and EMULATED["apple"] == "METAL"

PROGRAM = """
from tinyhw import Device, Tensor, TinyJit
@TinyJit
def step(x): return ((x * 2 + 1).softmax(1) @ x).realize()
for k in range(4):
  x = Tensor([[0.5 * k + i + j for j in range(40)] for i in range(40)]).realize()
  wanted = ((x.to("PYTHON") * 2 + 1).softmax(1) @ x.to("PYTHON")).tolist()
  for a, b in zip(step(x).tolist(), wanted): assert all(abs(p - q) <= 1e-5 * abs(q) for p, q in zip(a, b))
print(Device.DEFAULT)
"""

@pytest.mark.parametrize("chip", ("apple7", "apple9"))
def test_tensors_and_captured_steps(chip: str) -> None:
  done = subprocess.run([sys.executable, "-c", PROGRAM], env=dict(os.environ, EMULATE=chip, DEV=""),
                        capture_output=True, text=True)
  assert (done.stdout, done.stderr) == ("METAL\n", "")

def test_float64_is_refused_by_name() -> None:
  program = "from tinyhw import Tensor, dtypes\n(Tensor([1.0], dtype=dtypes.float64) + 1).tolist()"
  done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, EMULATE="apple7", DEV=""),
                        capture_output=True, text=True)
  assert "the target has no ADD of dtypes.float64" in done.stderr
