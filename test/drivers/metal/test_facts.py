"""Devices by number, and what they must have."""
import pytest

from tinyhw.drivers import metal
from tinyhw.drivers.metal.facts import MetalFacts
from tinyhw.emulator.metal.device import CHIPS, AppleGpu, AppleChip
from tinyhw.errors import DeviceError
from test.drivers.metal.conftest import Opener

def test_families_of_virtual_chips(mac: Opener) -> None:
  for name, title in (("apple7", "Apple M1 (Apple7)"), ("apple8", "Apple M2 (Apple8)"),
                      ("apple9", "Apple M3 (Apple9)")):
    _, device = mac(name)
    assert device.about.title == title and device.about.missing() == [] and device.about.local_bytes == 32768

def test_a_number_that_does_not_exist(mac: Opener) -> None:
  computer, device = mac("apple7x2", ordinal=1)
  assert device.name == "METAL:1"
  with pytest.raises(DeviceError, match="no Metal device number 2; there are 0: Apple M1 .Apple7., 1: Apple M1"):
    metal.open(2, lambda name: None)  # type: ignore[arg-type,return-value]
  assert computer.census()["MTLDevice"] == 1
  computer.gpus.clear()
  with pytest.raises(DeviceError, match="Metal has no device; a sandbox, a login without a screen"):
    metal.open(0, lambda name: None)  # type: ignore[arg-type,return-value]

def test_older_devices_are_refused(mac: Opener) -> None:
  computer, device = mac()
  computer.gpus = [AppleGpu(0, AppleChip("AMD Radeon", ("mac2", "common3"), 1 << 30, 1 << 29, 13))]
  with pytest.raises(DeviceError, match=r"AMD Radeon .no Apple family. is no Apple GPU of M1 or newer, has no M"):
    metal.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  assert computer.census() == {"MTLDevice": 1, "MTLCommandQueue": 1, "MTLFence": 1} and device.lost is None
  poor = MetalFacts(1, "x", ("Apple7",), True, False, 16384, 1, 1)
  assert poor.missing() == ["has memory apart from the processor's", "has 16384 bytes of threadgroup memory, not 32768"]
  assert set(CHIPS) == {"apple7", "apple8", "apple9"}
