"""DEV=OPENCL: it opens when it is asked for, by number, and never by itself."""
import pytest
from opencl.fake_opencl import facts

from tinyhw.device import DRIVERS, PREFERENCE
from tinyhw.drivers import opencl
from tinyhw.errors import DeviceError
from test.drivers.opencl.conftest import Opener

def test_devices_by_number(fake: Opener) -> None:
  library, device = fake(facts("One"), facts("Two"), ordinal=1)
  assert device.name == "OPENCL:1" and device.about.name == "Two"
  assert opencl.open(0, lambda name: None).name == "OPENCL"  # type: ignore[arg-type,return-value]

def test_it_is_never_a_default() -> None:
  assert DRIVERS["OPENCL"] == "tinyhw.drivers.opencl" and "OPENCL" not in PREFERENCE

def test_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
  def absent() -> None: raise DeviceError("it is not there; install it")
  monkeypatch.setattr(opencl, "load_library", absent)
  monkeypatch.setattr(opencl, "_libraries", [])
  with pytest.raises(DeviceError, match="it is not there; install it"): opencl.library()
