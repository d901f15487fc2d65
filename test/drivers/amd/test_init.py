"""Opening: by name, on systems without such a device, and the text of every refusal."""
import errno
import sys

import pytest
from amd.box import AMDBox

from tinyhw.device import Device
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.linux import files
from tinyhw.errors import DeviceError

@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> AMDBox:
  made = AMDBox("gfx1200", count=2)
  monkeypatch.setattr(files, "COMPUTER", made)
  monkeypatch.setattr(Device, "_opened", {})
  monkeypatch.setattr(Device, "refused", {})
  return made

def test_a_device_opens_by_its_name(box: AMDBox) -> None:
  assert Device["AMD"].arch == Device["HIP:1"].arch == "gfx1200" and Device["AMD:1"].name == "AMD:1"
  assert repr(Device["AMD"]) == "<AMDDevice AMD gfx1200>"
  for name in ("AMD", "AMD:1"): Device.close(name)
  assert Device["AMD"].arch == "gfx1200", "a device that was closed opens again"
  Device.close("AMD")
  kfd.forget(box)

def test_reasons_come_through(box: AMDBox) -> None:
  box.fail("open", 1, errno.EACCES)
  with pytest.raises(DeviceError, match="device AMD does not open: opening /dev/kfd: permission denied"): Device["AMD"]
  assert "join the group render, which owns it (sudo usermod -aG render $USER)" in Device.refused["AMD"]
  with pytest.raises(DeviceError, match="there are 2 GPUs, and number 7 is none of them"): Device["AMD:7"]
  kfd.forget(box)

def test_another_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "darwin")
  with pytest.raises(DeviceError, match="driven through the Linux kernel"):
    amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
