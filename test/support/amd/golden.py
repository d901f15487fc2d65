"""The lines of test/golden/amd_*.txt."""
from __future__ import annotations
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tinyhw.isa.amd.table.form import GENERATIONS

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ARCHS = GENERATIONS

class Vector(NamedTuple):
  """An instruction of a golden file. arch: with ":wave64" where it is one of those. mark: ";" and its bytes, or "!"
  and why it is refused."""
  arch: str
  text: str
  mark: str
  right: str

def vectors(name: str, mark: str) -> Iterator[Vector]:
  """Return the vectors with this mark in the file of an architecture."""
  arch = name
  for line in (GOLDEN / f"amd_{name}.txt").read_text(encoding="utf-8").splitlines():
    if line.startswith("#"): continue
    if line.startswith("@"): arch = line[2:]
    else:
      at = line.rfind(f" {mark} ")
      if at >= 0: yield Vector(arch, line[:at], mark, line[at + 3:])
