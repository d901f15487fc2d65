"""Virtual hardware that serves the files that drivers open. `box` returns the computer that EMULATE names.

A family of devices is a module with `make(name, cards, seed, strict) -> VirtualComputer`. The first characters of a
card's name select the family. A family is loaded when a card of it is first asked for. A process has one computer for
each name. Another process, also a forked child, has its own.
"""
from __future__ import annotations
import importlib
import os
import re

from tinyhw.config import EMULATE_SEED, EMULATE_STRICT
from tinyhw.drivers.linux.files import HostFiles as Files
from tinyhw.errors import ConfigError

FAMILIES = {"gfx": "tinyhw.emulator.amd", "sm_": "tinyhw.emulator.nvidia",
            "apple": "tinyhw.emulator.metal"}
MOST_CARDS = 16
_boxes: dict[tuple[int, str], Files] = {}

def box(name: str) -> Files:
  """Return the computer with these cards: "gfx1100", or "gfx942x2" for two cards.

  Each call of this process returns the same computer. Raises ConfigError.
  """
  key = os.getpid(), name
  found = _boxes.get(key)
  return _boxes.setdefault(key, make(name, EMULATE_SEED.value, EMULATE_STRICT.value)) if found is None else found

def make(name: str, seed: int = 0, strict: int = 1) -> Files:
  """Make a new computer. seed: of all its random choices; strict: the level, as in EMULATE_STRICT."""
  found = re.fullmatch(r"([a-z]+_?)([0-9a-f]+)(?:x([0-9]+))?", name)
  family = None if found is None else FAMILIES.get(found[1])
  if found is None or family is None:
    raise ConfigError(f"EMULATE={name!r} is no virtual card; a name is that of a chip, which begins with "
                      f"{' or '.join(FAMILIES)}, and for "
                      "several cards x and their number after it: gfx1100, sm_90, gfx1100x2")
  count = int(found[3] or 1)
  if not 1 <= count <= MOST_CARDS: raise ConfigError(f"EMULATE={name!r}: name 1 to {MOST_CARDS} cards")
  # a family loads with its first card
  made: Files = importlib.import_module(family).make(name, [found[1] + found[2]] * count, seed, strict)
  return made
