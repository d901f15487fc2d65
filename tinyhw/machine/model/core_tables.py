"""Latency and ports of processors' cores: the notation of the tables.

A table is text, one row a line: pipe, latency in cycles, ports, issue slots, evidence.

    fp_fma     4  vwxy  1 p     one micro-operation, for any of four ports
    fp_div     10 v*7   1 p     a port is occupied for seven cycles
    nop        0  -     1 a     done at renaming

Evidence: p published (the table's `source` has the place), a assumed. Latencies of loads count from an address in a
register to the value, with a hit in the first cache.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.data_class import dataclass
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.named_tuple import NamedTuple

class CoreText(NamedTuple):
  """A table as it is written. ports: the names of the characters in port groups."""
  title: str
  source: str
  issue_width: int
  text: str
  ports: Mapping[str, str]

@dataclass(frozen=True)
class CoreTable:
  """A table. evidence: row -> "p" or "a"."""
  name: str
  title: str
  source: str
  issue_width: int
  ports: Mapping[str, str]
  costs: Mapping[str, PipeCost]
  evidence: Mapping[str, str]

def repeated(groups: str) -> str:
  """Expand "*" in port groups: "0*2" -> "0|0"; "-" -> none."""
  if groups == "-": return ""
  parts = [part.partition("*") for part in groups.split("|")]
  return "|".join(group for group, _, times in parts for _ in range(int(times or 1)))

def memory_of(pipe: str) -> str:
  """Whether the ports of a pipe count toward the bound by memory: "load", "store" or ""."""
  words = pipe.split("_")
  return next((kind for kind in ("load", "store") if kind in words), "load" if pipe == "prefetch" else "")

def read_table(name: str, written: CoreText) -> CoreTable:
  """Read a table."""
  costs: dict[str, PipeCost] = {}
  evidence: dict[str, str] = {}
  for line in filter(None, written.text.splitlines()):
    pipe, latency, groups, slots, mark = line.split()
    costs[pipe] = PipeCost(int(latency), repeated(groups), memory_of(pipe), int(slots))
    evidence[pipe] = mark
  return CoreTable(name, written.title, written.source, written.issue_width, written.ports, costs, evidence)
