"""Tables of latency: complete, well formed, found for their processors."""
from __future__ import annotations

import pytest

from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.isa.riscv64.model import latency
from tinyhw.isa.riscv64.model.latency_cores import TABLES
from tinyhw.isa.riscv64.table.table import TABLE
from tinyhw.machine.model.scoreboard import bound

@pytest.mark.parametrize("name", TABLES)
def test_every_pipe_of_the_instruction_table_has_a_row(name: str) -> None:
  """A core without V has none of its pipes."""
  pipes = {row.pipe for row in TABLE}
  vectors = {pipe for pipe in pipes if pipe[:4] == "vec_"} if name == "u74" else set()
  assert pipes - set(latency.find(name).costs) == vectors

@pytest.mark.parametrize("name", TABLES)
def test_rows_name_known_ports_and_carry_their_evidence(name: str) -> None:
  table = latency.find(name)
  assert table.source and table.title and table.name == name
  for row, cost in table.costs.items():
    assert set(cost.ports) <= set(table.ports) | {"|"}, row
    assert table.evidence[row] in ("p", "a") and cost.latency >= 0 and cost.slots >= 1, row

@pytest.mark.parametrize("name, text, cycles", [
  ("p670", "vfmacc.vf v1, fa0, v2", 0.5), ("p670", "vle32.v v1, (a0)", 1.0), ("p670", "add a0, a1, a2", 0.25),
  ("u74", "fmadd.s fa0, fa1, fa2, fa3", 1.0), ("u74", "add a0, a1, a2", 0.5), ("u74", "fdiv.s fa0, fa1, fa2", 26.0)])
def test_reciprocal_throughputs(name: str, text: str, cycles: float) -> None:
  table = latency.find(name)
  assert bound([parse(text)], table.costs, table.issue_width).ports == cycles

@pytest.mark.parametrize("features, name", [((*"imafdv", "vlen128"), "p670"), ((*"imafdc", "zba"), "u74"), ((), "u74")])
def test_processors_find_their_table(features: tuple[str, ...], name: str) -> None:
  assert latency.microarchitecture("", 0, features) == name

def test_an_unknown_name_has_a_table_with_vectors() -> None: assert latency.find("z80").name == "p670"
