"""The family of virtual NVIDIA cards."""
import pytest

import tinyhw.emulator as emulator
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.errors import ConfigError

def test_emulate_knows_the_family() -> None:
  assert isinstance(emulator.make("sm_80x2"), GpuHost) and len(emulator.make("sm_80x2").gpus) == 2
  with pytest.raises(ConfigError, match="there is no virtual sm_70; there are sm_80, sm_89, sm_90"):
    emulator.make("sm_70")
