"""Virtual Apple GPUs behind Metal's Objective-C messages. `make` builds a Mac with them.

| file | content |
|---|---|
| computer.py | a Mac: its GPUs, objects and libraries |
| runtime.py | calls of C and objc_msgSend, arguments by the headers' types |
| objects.py | reference counts, pools, messages |
| device.py | devices, buffers, the compiler, pipelines |
| commands.py | queues, command buffers, encoders, fences, dispatches |
| memory.py | memory that program and GPU share |
| words.py, parse.py | the words and the grammar of kernels |
| types.py, values.py | types, and expressions as Python |
| translate.py | kernels as Python |
| numbers.py | arithmetic of the GPU |
| lanes.py | threads, their memory, and where they meet |
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.emulator.metal.device import CHIPS
from tinyhw.errors import ConfigError

def make(name: str, cards: Sequence[str], seed: int, strict: int) -> MetalComputer:
  """Make a Mac with these GPUs. Raises ConfigError for an unknown one."""
  for card in cards:
    if card not in CHIPS:
      raise ConfigError(f"EMULATE={name!r}: there is no virtual {card}; there are {', '.join(CHIPS)}")
  return MetalComputer(name, cards, seed, strict)
