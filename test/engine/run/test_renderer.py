"""engine/run/renderer.py: what programs ask of Device[...].renderer."""
from __future__ import annotations
import os
import subprocess
import sys

import pytest

from tinyhw import Device, dtypes
from tinyhw.engine.run.compile import capabilities_of

def test_a_processor() -> None:
  found = Device["PYTHON"].renderer
  assert (found.device, found.arch, found.target.arch) == ("PYTHON", "python", "python")
  assert not found.has_local and not found.has_shared and found.shared_max == 0
  assert dtypes.float64 in found.supported_dtypes() and dtypes.bfloat16 in found.supported_dtypes()
  assert found.capabilities == capabilities_of("python", "PYTHON") and "PYTHON" in repr(found)

@pytest.mark.parametrize("card, units", (("gfx1100", True), ("apple7", False)))
def test_cards(card: str, units: bool) -> None:
  program = ("from tinyhw import Device, dtypes; r = Device[Device.DEFAULT].renderer; "
             "print(r.has_local, r.has_shared, r.supports_float4, dtypes.float64 in r.supported_dtypes())")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                        env={**os.environ, "EMULATE": card, "DEV": ""})
  assert done.stdout == f"True True True {units}\n"
