"""The choice of the GPU to open."""
import pytest

from tinyhw.drivers import nvidia
from tinyhw.errors import DeviceError

def test_gpus_are_counted(opened) -> None:
  opened("sm_80x2")
  second = nvidia.open(1, lambda name: None)  # type: ignore[arg-type,return-value]
  assert second.name == "NV:1" and second.card.minor == 1
  second.close()
  with pytest.raises(DeviceError, match="there is no GPU number 2: NVIDIA's kernel driver runs 2; use NV to NV:1"):
    nvidia.open(2, lambda name: None)  # type: ignore[arg-type,return-value]

def test_other_systems_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("sys.platform", "darwin")
  with pytest.raises(DeviceError, match="through the Linux kernel"):
    nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
