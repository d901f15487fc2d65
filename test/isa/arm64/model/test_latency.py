"""Tables of latency: complete, well formed, found for their processors."""
from __future__ import annotations

import pytest

from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.isa.arm64.model import latency
from tinyhw.isa.arm64.model.latency_cores import TABLES
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.model.scoreboard import bound

# pipes that only SVE has, and products that a core lacks
WITHOUT = {"pred", "pred_count", "gather", "scatter"}
LACKING = {"a72": set(), "n1": set(), "v1": set(), "v2": set(), "firestorm": set()}

@pytest.mark.parametrize("name", TABLES)
def test_every_pipe_of_the_instruction_table_has_a_row(name: str) -> None:
  assert {row.pipe for row in TABLE} - set(latency.find(name).costs) == WITHOUT | LACKING[name]

@pytest.mark.parametrize("name", TABLES)
def test_rows_name_known_ports_and_carry_their_evidence(name: str) -> None:
  table = latency.find(name)
  assert table.source and table.title and table.name == name
  for row, cost in table.costs.items():
    assert set(cost.ports) <= set(table.ports) | {"|"}, row
    assert table.evidence[row] in ("p", "a") and cost.latency >= 0 and cost.slots >= 1, row

@pytest.mark.parametrize("name,cycles", [("a72", 1.0), ("n1", 0.5), ("v1", 0.25), ("v2", 0.25), ("firestorm", 0.25)])
def test_a_product_on_whole_vectors(name: str, cycles: float) -> None:
  table = latency.find(name)
  assert bound([parse("fmla v0.4s, v1.4s, v2.4s")], table.costs, table.issue_width).ports == cycles

@pytest.mark.parametrize("vendor,signature,name", [
  ("Arm", 0x410fd083, "a72"), ("Arm", 0x414fd0b1, "n1"), ("Arm", 0x413fd0c1, "n1"), ("Arm", 0x411fd401, "v1"),
  ("NVIDIA", 0x410fd4f0, "v2"), ("Apple", 0, "firestorm"), ("", 0x61000221, "firestorm"), ("", 0, "n1"),
  ("Qualcomm", 0x51008050, "n1")])
def test_processors_find_their_table(vendor: str, signature: int, name: str) -> None:
  assert latency.microarchitecture(vendor, signature) == name

def test_an_unknown_name_has_the_generic_table() -> None: assert latency.find("z80").name == latency.GENERIC
