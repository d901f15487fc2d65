"""tinyhw/emulator/amd/__init__.py: the available cards."""
import pytest

from tinyhw.emulator.amd import make
from tinyhw.errors import ConfigError

def test_cards() -> None:
  assert [gpu.chip.name for gpu in make("gfx1100x2", ["gfx1100", "gfx1100"], 0, True).gpus] == ["gfx1100", "gfx1100"]

def test_unknown_cards() -> None:
  with pytest.raises(ConfigError, match="EMULATE='gfx906': there is no virtual gfx906; there are gfx1100, gfx1200, "
                     "gfx1201, gfx942"):
    make("gfx906", ["gfx906"], 0, True)
