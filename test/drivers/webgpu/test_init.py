"""DEV=WEBGPU: it opens when it is asked for, and never by itself."""
import pytest
from webgpu.fake_wgpu import Adapter, FakeWgpu

from tinyhw.device import DRIVERS, PREFERENCE
from tinyhw.drivers import webgpu
from tinyhw.errors import DeviceError

def test_it_is_never_a_default() -> None:
  assert DRIVERS["WEBGPU"] == "tinyhw.drivers.webgpu" and "WEBGPU" not in PREFERENCE

def test_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
  def absent() -> None: raise DeviceError("it is not there; install it")
  monkeypatch.setattr(webgpu, "load_library", absent)
  monkeypatch.setattr(webgpu, "_libraries", [])
  with pytest.raises(DeviceError, match="it is not there; install it"): webgpu.library()

def test_a_device_that_is_refused_keeps_no_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
  fake = FakeWgpu(Adapter(), Adapter("Other"))
  monkeypatch.setattr(webgpu, "load_library", lambda: fake)
  monkeypatch.setattr(webgpu, "_libraries", [])
  with pytest.raises(DeviceError, match="Card by Vulkan gives no device: no more devices; update its driver"):
    webgpu.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  assert not fake.held
