"""Latency and ports of AArch64 cores: the notation of the tables, and the choice of a table for a processor.

A table is text, one row a line: pipe, latency in cycles, ports, issue slots, evidence.

    fp_fma     4  vwxy  1 p     one micro-operation, for any of four ports
    fp_div     10 v*7   1 p     a port is occupied for seven cycles
    nop        0  -     1 a     done at renaming

Evidence: p published (the table's `source` has the place), a assumed. Latencies of loads count from an address in a
register to the value, with a hit in the first cache.
"""
from __future__ import annotations
from collections.abc import Collection, Mapping

from tinyhw.data_class import dataclass
from tinyhw.isa.arm64.model.latency_cores import TABLES
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.threads import once

@dataclass(frozen=True)
class CoreTable:
  """A table. ports: the names of the characters in port groups. evidence: row -> "p" or "a"."""
  name: str
  title: str
  source: str
  issue_width: int
  ports: Mapping[str, str]
  costs: Mapping[str, PipeCost]
  evidence: Mapping[str, str]

GENERIC = "n1"  # of an unknown processor: two pipes of vectors, as most cores have

# implementer and part of MIDR_EL1 -> table. Cores without a table take that of their family.
# Source: Linux, arch/arm64/include/asm/cputype.h
CORES = {(0x41, 0xd08): "a72", (0x41, 0xd07): "a72", (0x41, 0xd09): "a72", (0x41, 0xd0a): "a72", (0x41, 0xd0b): "n1",
         (0x41, 0xd0c): "n1", (0x41, 0xd0d): "n1", (0x41, 0xd41): "n1", (0x41, 0xd49): "n1", (0x41, 0xd40): "v1",
         (0x41, 0xd44): "v1", (0x41, 0xd4f): "v2", (0x41, 0xd84): "v2"}
APPLE = 0x61  # all its parts take Firestorm's

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """The name of the table for a processor. signature: MIDR_EL1, 0 if unknown."""
  implementer = signature >> 24
  if implementer == APPLE or vendor == "Apple": return "firestorm"
  return CORES.get((implementer, signature >> 4 & 0xfff), GENERIC)

def repeated(groups: str) -> str:
  """Expand "*" in port groups: "0*2" -> "0|0"; "-" -> none."""
  if groups == "-": return ""
  parts = [part.partition("*") for part in groups.split("|")]
  return "|".join(group for group, _, times in parts for _ in range(int(times or 1)))

def memory_of(pipe: str) -> str:
  """Whether the ports of a pipe count toward the bound by memory: "load", "store" or ""."""
  return next((kind for kind in ("load", "store") if pipe.startswith(kind)), "load" if pipe == "prefetch" else "")

@once
def find(name: str) -> CoreTable:
  """The table with a name; the generic one if there is none."""
  name = name if name in TABLES else GENERIC
  title, source, issue_width, text, ports = TABLES[name]
  costs: dict[str, PipeCost] = {}
  evidence: dict[str, str] = {}
  for line in text.splitlines():
    if not line: continue
    pipe, latency, groups, slots, mark = line.split()
    costs[pipe] = PipeCost(int(latency), repeated(groups), memory_of(pipe), int(slots))
    evidence[pipe] = mark
  return CoreTable(name, title, source, issue_width, ports, costs, evidence)
