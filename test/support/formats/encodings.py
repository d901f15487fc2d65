"""The lines of a golden file of encodings: `text ; bytes`, with `= other text` where the decoder prefers another
spelling, and `text ! reason` of refused texts."""
from __future__ import annotations
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "golden"

def encodings(name: str) -> Iterator[tuple[str, bytes, str]]:
  """(text, bytes, the spelling that the decoder prefers) of each encoding in a file of golden/."""
  for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
    text, mark, rest = line.partition(" ; ")
    if not mark or line[0] == "#": continue
    code, _, other = rest.partition(" = ")
    yield text, bytes.fromhex(code), other or text

def refusals(name: str) -> Iterator[tuple[str, str]]:
  """(text, reason) of each text that is refused."""
  for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
    text, mark, reason = line.partition(" ! ")
    if mark and line[0] != "#": yield text, reason
