"""What all processors have, and the module of each kind."""
import importlib

import pytest

from tinyhw import device as devices
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu.processor import Processor
from tinyhw.errors import DeviceError

class Invented(Processor):
  levels = {"best": ("a", "b"), "least": ("a",)}  # type: ignore[assignment]
  cache_bytes = (1, 1000, 0)  # type: ignore[assignment]

  def __init__(self, *features: str): self.features = frozenset(features)

@pytest.mark.parametrize("features, arch, missing", [(("a", "b"), "best", []), (("a", "c"), "least", ["b"]),
                                                     (("b",), None, ["a"])])
def test_levels_and_what_they_lack(features: tuple[str, ...], arch: str | None, missing: list[str]) -> None:
  found = Invented(*features)
  assert found.arch == arch and found.missing("best") == missing and found.local_bytes == 500
  assert (found.vector_rate("best"), found.second_level_rate("best")) == (2, 0)

@pytest.mark.parametrize("kind", sorted(set(devices.PROCESSORS.values())))
def test_each_kind_has_its_modules(kind: str) -> None:
  """All of what `ProcessorModule` asks for, and the driver's machine code."""
  module = importlib.import_module(f"tinyhw.drivers.cpu.{kind}")
  assert all(callable(getattr(module, name)) for name in ("find", "visibility", "worker_loop", "sample"))
  assert callable(importlib.import_module(f"tinyhw.isa.{kind}.runtime").code)

def test_a_processor_without_an_assembler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(devices, "processor", lambda: "z80")
  with pytest.raises(DeviceError, match="tinyhw has no assembler for z80 yet; use DEV=CLANG"):
    cpu.module(devices.runtime)
