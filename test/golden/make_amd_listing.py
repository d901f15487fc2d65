"""Writes amd_listing.txt beside it: the listing of one kernel in assembly (test/support/amd/listed.py) for each
generation. Run by hand, when what makes listings changes; review the diff.

  python3 test/golden/make_amd_listing.py
"""
from __future__ import annotations
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from amd.listed import ARCHS, listed

HERE = Path(__file__).resolve().parent

def text() -> str:
  """The file: listings one after the other, in front of each a line with its architecture."""
  return "".join(f"# {arch}\n{listed(arch)}\n\n" for arch in ARCHS)

if __name__ == "__main__":
  (HERE / "amd_listing.txt").write_text(text(), encoding="utf-8")
