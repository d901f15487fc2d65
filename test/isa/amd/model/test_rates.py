"""Cards reach their published peaks, and the documentation has their numbers."""
from __future__ import annotations
from pathlib import Path

import pytest

from tinyhw.isa.amd.model.rates import CARDS

@pytest.mark.parametrize("arch, element, teraflops", [
  ("gfx942", "f16", 1307), ("gfx942", "fp8", 2615), ("gfx942", "xf32", 654), ("gfx942", "vf32", 163.4),
  ("gfx942", "vf64", 81.7),
  ("gfx950", "f16", 2517), ("gfx950", "fp8", 5033), ("gfx950", "vf32", 157.3), ("gfx1100", "f16", 122.8),
  ("gfx1100", "vf32", 61.4),
  ("gfx1201", "f16", 195), ("gfx1201", "iu8", 389), ("gfx1201", "vf32", 48.7)])
def test_cards_reach_their_published_peaks(arch: str, element: str, teraflops: float) -> None:
  found = CARDS[arch]
  assert (found.flops[element] * found.unit.simds * found.units * found.clock_ghz / 1000
          == pytest.approx(teraflops, rel=0.01))

def test_the_table_of_the_documentation() -> None:
  """docs/hardware/amd.md, "The model", has the numbers of CARDS."""
  page = (Path(__file__).parents[4] / "docs/hardware/amd.md").read_text(encoding="utf-8")
  archs = ("gfx1100", "gfx1200", "gfx1201", "gfx942", "gfx950")
  def row(*cells: object) -> str: return f"| {' | '.join(map(str, cells))} |"
  cards = [CARDS[arch] for arch in archs]
  assert row("", *archs).replace("|  |", "| |") in page and row("typical card", *[one.title for one in cards]) in page
  assert row("f16 matrix, operations a cycle and SIMD", *[one.flops["f16"] for one in cards]) in page
  assert row("LDS, bytes a cycle and unit", *[one.local_rate for one in cards]) in page
  assert row("first cache, bytes a cycle and unit", *[one.first_rate for one in cards]) in page
  assert row("last-level cache", *[f"{one.last_gbs / 1000:g} TB/s" for one in cards]) in page
  for one in cards: assert f"{one.units}" in page and f"{one.clock_ghz} GHz" in page
