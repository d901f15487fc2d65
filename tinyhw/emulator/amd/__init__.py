"""Virtual AMD GPUs that serve /dev/kfd and the render nodes. `make` builds a computer with them."""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.chips import CHIPS
from tinyhw.errors import ConfigError

def make(name: str, cards: Sequence[str], seed: int, strict: int) -> GpuHost:
  """Make a computer with these cards. Raises ConfigError for an unknown card."""
  for card in cards:
    if card not in CHIPS:
      raise ConfigError(f"EMULATE={name!r}: there is no virtual {card}; there are {', '.join(CHIPS)}")
  return GpuHost(name, cards, seed, strict)
