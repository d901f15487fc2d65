"""Names of virtual Apple GPUs."""
import pytest

from tinyhw import emulator
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.emulator.metal import make
from tinyhw.errors import ConfigError, DeviceError

def test_names() -> None:
  assert len(make("apple7x3", ["apple7"] * 3, 0, 1).gpus) == 3
  with pytest.raises(ConfigError, match="there is no virtual apple5; there are apple7, apple8, apple9"):
    emulator.make("apple5")

def test_other_drivers_find_nothing_there() -> None:
  with Context(EMULATE="apple7"):
    with pytest.raises(DeviceError, match="device AMD:9 does not open"): Device["AMD:9"]
  Device.refused.pop("AMD:9")
