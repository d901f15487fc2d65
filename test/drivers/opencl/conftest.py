"""A device on a stand-in for the library."""
from collections.abc import Callable, Iterator

import pytest
from opencl.fake_opencl import FakeOpenCl, Loaded

from tinyhw.config import Context
from tinyhw.drivers import opencl
from tinyhw.drivers.opencl.device import ClDevice
from tinyhw.machine.ir.code import Code

Opener = Callable[..., tuple[FakeOpenCl, ClDevice]]

@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  """Return a function that opens a device of a fake library."""
  def make(*devices: dict[int, bytes], ordinal: int = 0) -> tuple[FakeOpenCl, ClDevice]:
    made = FakeOpenCl(*devices)
    monkeypatch.setattr(opencl, "load_library", lambda: Loaded(made))
    monkeypatch.setattr(opencl, "_libraries", [])
    return made, opencl.open(ordinal, lambda name: None)  # type: ignore[arg-type,return-value]
  with Context(OPENCL_DEVICES=""): yield make

def code(name: str = "example", lanes: int = 64, arch: str = "opencl:fp64") -> Code:
  """A kernel with a buffer and a variable."""
  return Code(name, arch, b"source", ("buffer", "int64"), lanes=lanes)
