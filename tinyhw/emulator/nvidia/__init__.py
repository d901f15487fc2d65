"""Virtual NVIDIA GPUs behind /dev/nvidiactl, /dev/nvidia0 and /dev/nvidia-uvm: `make` puts a computer together."""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.nvidia.card.computer import Computer
from tinyhw.emulator.nvidia.chips import CHIPS
from tinyhw.errors import ConfigError

def make(name: str, cards: Sequence[str], seed: int, strict: int) -> Computer:
  """A computer with these cards. Raises ConfigError for a card that is not known."""
  for card in cards:
    if card not in CHIPS:
      raise ConfigError(f"EMULATE={name!r}: there is no virtual {card}; there are {', '.join(CHIPS)}")
  return Computer(name, cards, seed, strict)
