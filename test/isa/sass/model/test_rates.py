"""Tables of rates: every pipe that kernels use has a row, cards reach their published peaks."""
from __future__ import annotations
from pathlib import Path

import pytest

from tinyhw.isa.sass.model.rates import CARDS, COSTS, RESOURCES, costs
from tinyhw.isa.sass.table.units import column

@pytest.mark.parametrize("arch, element, teraflops", [
  ("sm_80", "f16", 312), ("sm_80", "tf32", 156), ("sm_80", "i8", 624), ("sm_80", "vf32", 19.5), ("sm_80", "vf64", 9.7),
  ("sm_80", "f64", 19.5),
  ("sm_80", "vf16", 78), ("sm_86", "f16", 71), ("sm_86", "vf32", 35.6), ("sm_89", "f16", 362), ("sm_89", "fp8", 733),
  ("sm_89", "vf32", 91.6),
  ("sm_90", "f16", 0.62 * 989.4), ("sm_90", "wgmma bf16", 989.4), ("sm_90", "vf32", 61.8), ("sm_90", "vf64", 30.9)])
def test_cards_reach_their_published_peaks(arch: str, element: str, teraflops: float) -> None:
  found = CARDS[arch]
  assert (found.flops[element] * found.unit.simds * found.units * found.clock_ghz / 1000
          == pytest.approx(teraflops, rel=0.02))

@pytest.mark.parametrize("arch", COSTS)
def test_rows_take_what_there_is(arch: str) -> None:
  rows = costs(arch)
  assert {letter for row in rows.values() for letter in row.ports.split("|")} <= set(RESOURCES)
  assert ({"alu", "fma", "half", "fp64", "xu"} <= set(rows) and len(rows["fp64"].ports.split("|"))
          * CARDS[arch].flops["vf64"] == 64)

def test_names_with_an_a_are_the_same_card() -> None:
  assert column("sm_90a") == "sm_90" and costs("sm_90a") == costs("sm_90")

def test_the_table_of_the_documentation() -> None:
  """docs/hardware/nvidia.md, "The model", has the numbers of CARDS."""
  page = (Path(__file__).parents[4] / "docs/hardware/nvidia.md").read_text(encoding="utf-8")
  def row(*cells: object) -> str: return f"| {' | '.join(map(str, cells))} |"
  cards = list(CARDS.values())
  assert row("typical card", *[one.title for one in cards]) in page
  assert row("SMs, GHz, memory", *[f"{one.units}, {one.clock_ghz}, {one.memory_gbs} GB/s" for one in cards]) in page
  assert row("float16 products, operations a cycle and sub-partition", *[one.flops["f16"] for one in cards]) in page
  assert row("second-level cache, bytes a cycle", *[one.second_rate for one in cards]) in page
