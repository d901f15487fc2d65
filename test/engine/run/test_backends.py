"""Every architecture has a module with its capabilities and compiler. Later registrations are found too."""
import importlib

import pytest

from tinyhw import isa
from tinyhw.engine.run.backends import BACKENDS
from tinyhw.engine.run.compile import backend
from tinyhw.errors import DeviceError

@pytest.mark.parametrize("name", ["x86_64", "c", "python"])
def test_a_backend_is_opened_by_name(name: str) -> None:
  module = importlib.import_module(BACKENDS[name])
  assert callable(module.capabilities) and callable(module.compile)

def test_an_architecture_that_nothing_compiles_for() -> None:
  with pytest.raises(DeviceError, match="architecture 'zz:1'; there are .*python.*NULL_ARCH"): backend("zz:1")

def test_an_architecture_from_outside() -> None:
  assert "abacus" not in BACKENDS
  isa.register("abacus", "some.module")
  try: assert BACKENDS["abacus"] == "some.module"
  finally: del isa.TARGETS["abacus"]
  assert "abacus" not in BACKENDS
