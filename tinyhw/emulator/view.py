"""Registers as people see them: a 32-bit word as text, and the words of all lanes, a few in a line."""
from __future__ import annotations
import struct
from collections.abc import Callable, Sequence

COLUMNS = 8  # lanes in a line

def floats(form: str, word: int, digits: int) -> str:
  return ",".join(f"{value:.{digits}g}" for value in struct.unpack(form, struct.pack("<I", word)))

FORMATS: dict[str, Callable[[int], str]] = {
  "x32": lambda x: f"{x:#x}", "u32": str, "i32": lambda x: str((x ^ 0x80000000) - 0x80000000),
  "f32": lambda x: floats("<f", x, 6),
  "f16": lambda x: floats("<2e", x, 4)}

def by_lane(name: str, cells: Sequence[str]) -> list[str]:
  """Return lines with a cell for each lane."""
  width = max(map(len, cells))
  return [f"{name + ':' if not first else '':6}{first:3} " + " ".join(c.rjust(width)
                                                                      for c in cells[first:first + COLUMNS])
          for first in range(0, len(cells), COLUMNS)]
