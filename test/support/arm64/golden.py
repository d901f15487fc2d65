"""The lines of test/golden/arm64.txt."""
from __future__ import annotations
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "arm64.txt"

def encodings() -> Iterator[tuple[str, bytes, str]]:
  """(text, bytes, the spelling that the decoder prefers) of each encoding."""
  for line in GOLDEN.read_text(encoding="utf-8").splitlines():
    text, mark, rest = line.partition(" ; ")
    if not mark or line[0] == "#": continue
    code, _, other = rest.partition(" = ")
    yield text, bytes.fromhex(code), other or text

def refusals() -> Iterator[tuple[str, str]]:
  """(text, reason) of each text that is refused."""
  for line in GOLDEN.read_text(encoding="utf-8").splitlines():
    text, mark, reason = line.partition(" ! ")
    if mark and line[0] != "#": yield text, reason
