"""The lines of test/golden/sass.txt."""
from __future__ import annotations
import functools
import re
from pathlib import Path
from typing import NamedTuple

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "sass.txt"

class Vector(NamedTuple):
  """An instruction at address pc, its 16 bytes, and the disassembler's text, which has no control word."""
  arch: str
  pc: int
  code: bytes
  text: str

  def same(self, text: str) -> bool:
    """Whether our text is the disassembler's, which on sm_8x leaves out the memory descriptor, and shows it where bit
    101 is set (our VOLATILE); it leaves out the lane's register before a base, too, if that is RZ."""
    if self.arch not in ("sm_80", "sm_89"): return text == self.text
    if ".VOLATILE" in text: return text.replace(".VOLATILE", "") == self.text
    if "LDGSTS" not in text: text = text.replace("[RZ.U32+UR", "[UR")
    return re.sub(r"desc\[UR\w+\](?=\[)", "", text) == self.text

@functools.lru_cache(maxsize=None)
def vectors() -> tuple[Vector, ...]:
  """All of them, one for each architecture of a line."""
  found = []
  for line in GOLDEN.read_text(encoding="utf-8").splitlines():
    if line.startswith("#"): continue
    archs, pc, code, text = line.split(" ", 3)
    found += [Vector(f"sm_{arch}", int(pc, 16), int(code, 16).to_bytes(16, "little"), text)
              for arch in archs.split(",")]
  return tuple(found)
