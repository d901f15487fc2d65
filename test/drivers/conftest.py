"""The stand-in computer of test/support/amd_box.py in place of this one, and devices on it."""
from collections.abc import Iterator

import pytest
from amd_box import AMDBox, Opener
from amd_selftest import Tried

from tinyhw.device import Device
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.linux import files
from tinyhw.emulator.amd.computer import Computer

@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """opened("gfx1100") -> (box, device). Devices are closed afterwards, and nothing may be left."""
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
    assert left == {"files": 0, "mappings": 0, "memory": 1, "queues": 0, "events": 0}, f"{left}: only the event page is the kernel's to free"

@pytest.fixture
def tester(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tried]:
  """The self-test of a virtual gfx1100, step by step; there are two, so that they can copy from each other."""
  Device.close("AMD")
  computer = Computer("tested", ["gfx1100"] * 2, seed=5)
  monkeypatch.setattr(files, "COMPUTER", computer)
  made = Tried(computer)
  yield made
  monkeypatch.undo()
  made.close()
