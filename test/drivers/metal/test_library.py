"""The libraries of a Mac, and the virtual ones."""
import sys

import pytest

from tinyhw.config import Context
from tinyhw.drivers.metal import library
from tinyhw.errors import DeviceError

def test_the_virtual_ones() -> None:
  with Context(EMULATE="apple8"): assert library.load_library().virtual
  with Context(EMULATE="gfx1100"):
    with pytest.raises(DeviceError, match="EMULATE=gfx1100 has no Metal; name a GPU of Apple, such as EMULATE=apple7"):
      library.load_library()

def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
  with Context(EMULATE=""):
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(DeviceError, match="Metal is part of macOS; on other systems EMULATE=apple7 DEV=METAL runs"):
      library.load_library()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(library, "PATHS", {"objc": "/nowhere/libobjc.A.dylib"})
    with pytest.raises(DeviceError, match="loading /nowhere/libobjc.A.dylib: .*it is part of macOS, so the system"):
      library.load_library()
