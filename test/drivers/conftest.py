"""The stand-in computer of test/support/amd/box.py instead of this one, and devices on it; self-tests of virtual
GPUs."""
from collections.abc import Iterator

import pytest
from amd.box import AMDBox, Opener
from gpu.selftest import Tried, trying

from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.linux import files

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """Return opened("gfx1100") -> (box, device). Devices are closed afterwards, and no resource may be left."""
  boxes: list[AMDBox] = []
  devices: list[AMDDevice] = []
  def make(kind: str = "gfx1100", **arguments: int) -> tuple[AMDBox, AMDDevice]:
    boxes.append(AMDBox(kind, **arguments))
    monkeypatch.setattr(files, "COMPUTER", boxes[-1])
    devices.append(amd.open(0, lambda name: None))  # type: ignore[arg-type,return-value]
    return boxes[-1], devices[-1]
  yield make
  for device in devices: device.close()
  for box in boxes:
    kfd.forget(box)
    left = box.held()
    assert left == {"files": 0, "mappings": 0, "memory": 1, "queues": 0,
                    "events": 0}, (f"{left}: only the event page is the kernel's to free")

@pytest.fixture(params=["AMD"])
def tester(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tried]:
  """Return the self-test of a virtual card, step by step.

  A test chooses another card by parametrize("tester", ["NV"], indirect=True).
  """
  with trying(request.param, monkeypatch) as made: yield made
