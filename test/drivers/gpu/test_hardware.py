"""The drivers on real GPUs of this computer, if there are any. HARDWARE_FAULTS=1 adds a kernel with a bad access, which
costs the process its GPU.

  python3 -m pytest -v test/drivers/gpu/test_hardware.py     in this order: begin with the first failure
"""
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu.programs import DUTIES

from tinyhw.device import Device
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.linux import files
from tinyhw.errors import DeviceError

ROOT = Path(__file__).resolve().parents[3]

@pytest.fixture(scope="module", params=["AMD", "NV"])
def device(request: pytest.FixtureRequest) -> GpuDevice:
  if files.machine() is not files.COMPUTER: pytest.skip("EMULATE is set: unset it to reach this computer's GPUs")
  try: opened = Device[request.param]
  except DeviceError as error: pytest.skip(f"no GPU: {error.message}")
  if not isinstance(opened, GpuDevice): pytest.skip("it opens through the vendor's library")
  return opened

@pytest.mark.parametrize("duty", DUTIES, ids=lambda duty: duty.__name__)
def test_a_device(device: GpuDevice, duty: Callable[[GpuDevice], None]) -> None: duty(device)

ASTRAY = """
import sys
from gpu.programs import Vectors
from tinyhw.device import Device, Launch
v = Vectors(Device[sys.argv[1]])
class Beyond: address = 0x100000
v.device.submit([Launch(v.program, [Beyond(), v.one, v.half], [0], 1)])
v.device.synchronize()
"""

@pytest.mark.skipif(os.environ.get("HARDWARE_FAULTS") != "1", reason="HARDWARE_FAULTS=1 has a kernel go astray")
def test_a_kernel_that_goes_astray_is_told(device: GpuDevice) -> None:
  environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/test/support"}
  done = subprocess.run([sys.executable, "-c", ASTRAY, device.name], env=environment, capture_output=True, text=True)
  assert "touches memory that it has not" in done.stderr and "which it was at: add" in done.stderr
