"""Floating point operations and methods keep the bars of docs/numerics.md. The virtual GPU's approximate units have
their largest errors."""
from __future__ import annotations
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import accuracy
from test.numerics.test_page import BARS

ROOT = Path(__file__).parents[2]
SAMPLES = 1 << 10
MEASURE = f"""
import json
import accuracy
from tinyhw.dtype import dtypes
found = {{}}
for name, method in {{**accuracy.OPERATIONS, **accuracy.METHODS}}.items():
  operands = accuracy.inputs(method, dtypes.float32, {SAMPLES})
  results = accuracy.run(method, dtypes.float32, operands, "DEVICE")
  found[name] = accuracy.worst_of(method, dtypes.float32, operands, results)[0]
print(json.dumps({{name: float(error) for name, error in found.items()}}))
"""

@pytest.mark.slow
@pytest.mark.skipif(not accuracy.EXACT, reason="NumPy's longdouble is no wider than a float64 here")
@pytest.mark.parametrize("device, chip, seed", [("AMD", "gfx1100", "3"), ("AMD", "gfx942", "4"), ("NV", "sm_89", "3"),
                                                ("NV", "sm_90", "6")])
def test_methods_keep_the_bars(device: str, chip: str, seed: str) -> None:
  path = os.pathsep.join(map(str, (ROOT, ROOT / "test/support")))
  environment = {**os.environ, "PYTHONPATH": path, "DEV": device, "EMULATE": chip, "EMULATE_SEED": seed, "CACHE": "0"}
  program = MEASURE.replace("DEVICE", device)
  done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd=ROOT,
                        timeout=600)
  assert done.returncode == 0, done.stderr
  errors = json.loads(done.stdout.splitlines()[-1])
  assert set(errors) == {*accuracy.OPERATIONS, *accuracy.METHODS}
  above = {name: error for name, error in errors.items() if not error <= BARS.get(name, 4)}
  assert not above, above
  if device == "AMD":
    assert max(errors[name] for name in ("exp", "log", "log2")) > 0.7, "the units' results are not rounded correctly"
