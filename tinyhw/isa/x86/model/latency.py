"""Latency and ports of x86-64 microarchitectures: the tables, their notation, and the choice of a table for a
processor.

A table is text, one row a line: pipe, latency in cycles, ports, issue slots, evidence. The notation of ports is that of
costs.PipeCost. `*4` repeats a group four times, and `-` is for none. Rows of a pipe may differ by vector size and
memory operand, as in scoreboard.costs_of:

    fma           4  01    1  p      any form
    fma/512       4  05    1  p      with a zmm register
    vec_mov/memory 0  -    1  p      with a memory operand (which costs a "load" or a "store" besides)
    double/512  fma fp_add           rows like those named, but each micro-operation occupies its port for two cycles

A pipe (column of the instruction table) is the row of many instructions, so it has the values of the typical or most
used one. Instructions that differ much have their own pipe.

Evidence: p published (the table's `source` has the place), m measured by test/bench/latency.py, a assumed. A row marked
m has a measured throughput, and a measured latency if a chain can show it. Latencies of stores and of flags are
published. So is each part of a sum that the script prints.

Memory: latencies of "load" rows count from an address in a register to the value, with a hit in the first cache. Those
of "store" rows count until a load of the same bytes can proceed.
"""
from __future__ import annotations
from collections.abc import Collection, Mapping

from tinyhw.data_class import dataclass
from tinyhw.isa.x86.model import latency_intel, latency_zen
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.threads import once

# Pipes that only move data between registers and memory: their ports are the bound by memory.
MEMORY = {"load": "load", "store": "store", "load_masked": "load", "store_masked": "store", "load_pop": "load",
          "store_push": "store",
          "store_nt": "store", "gather": "load", "scatter": "store", "prefetch": "load", "tile_load": "load",
          "tile_store": "store"}

@dataclass(frozen=True)
class Microarchitecture:
  """A table. ports: the vendor's names of the characters in port groups. evidence: row -> "p", "m" or "a"."""
  name: str
  title: str
  source: str
  issue_width: int
  ports: Mapping[str, str]
  costs: Mapping[str, PipeCost]
  evidence: Mapping[str, str]

# name -> title, source, issue width, names of ports, evidence mark -> mark for this table, text
TABLES = {**latency_zen.TABLES, **latency_intel.TABLES}

# vendor -> (family, least and greatest model) -> table. Family and model include the extended parts of CPUID leaf 1.
# Sources: AMD, "Revision Guide" of each family; Intel SDM volume 4, table 2-1.
PROCESSORS: dict[str, dict[tuple[int, int, int], str]] = {
  "AuthenticAMD": {(25, 0x00, 0x0f): "zen3", (25, 0x20, 0x5f): "zen3", (25, 0x10, 0x1f): "zen4",
                   (25, 0x60, 0xaf): "zen4",
                   # nearest: Zen, Zen 2 and Zen 5 have no table of their own
                   (23, 0x00, 0xff): "zen3", (26, 0x00, 0xff): "zen4"},
  "GenuineIntel": {(6, 0x55, 0x55): "skylakex", (6, 0x4e, 0x4e): "skylakex", (6, 0x5e, 0x5e): "skylakex",
                   (6, 0x8e, 0x8e): "skylakex",
                   (6, 0x9e, 0x9e): "skylakex", (6, 0x6a, 0x6a): "icelake", (6, 0x6c, 0x6c): "icelake",
                   (6, 0x7d, 0x7e): "icelake",
                   (6, 0x8c, 0x8d): "icelake", (6, 0xa7, 0xa7): "icelake", (6, 0x97, 0x97): "alderlake",
                   (6, 0x9a, 0x9a): "alderlake",
                   (6, 0xb7, 0xb7): "alderlake", (6, 0xba, 0xba): "alderlake", (6, 0xbf, 0xbf): "alderlake",
                   (6, 0x8f, 0x8f): "alderlake",
                   (6, 0xcf, 0xcf): "alderlake",  # 8f, cf: Sapphire and Emerald Rapids have the same core
                   (6, 0xad, 0xae): "graniterapids"},
}

# vendor -> (feature, table of the first core with it), newest first. A hypervisor may show another model than the
# processor's. It reports true features, however, since programs depend on them. So features overrule an older model.
# Source: Intel SDM volume 1, table of CPUID features; Intel 319433, Architecture Instruction Set Extensions, table 1-1.
INTRODUCED: dict[str, tuple[tuple[str, str], ...]] = {
  "GenuineIntel": (("avx10", "graniterapids"), ("amx_tile", "alderlake"), ("avx512fp16", "alderlake")),
}

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """The name of the table for a processor: CPUID's vendor, eax of leaf 1, features.

  "generic" for an unknown processor.
  """
  for feature, name in INTRODUCED.get(vendor, ()):
    if feature in features: return name
  family, model = signature >> 8 & 15, signature >> 4 & 15
  if family in (6, 15): model |= signature >> 12 & 0xf0
  if family == 15: family += signature >> 20 & 0xff
  for (wanted, low, high), name in PROCESSORS.get(vendor, {}).items():
    if family == wanted and low <= model <= high: return name
  return "generic"

@once
def find(name: str) -> Microarchitecture:
  """The table with a name; the generic one if there is none."""
  name = name if name in TABLES else "generic"
  title, source, issue_width, ports, worth, text = TABLES[name]
  costs: dict[str, PipeCost] = {}
  evidence: dict[str, str] = {}
  for line in text.splitlines():
    words = line.split("#")[0].split()
    if not words: continue
    if words[0].startswith("double/"):
      for pipe in words[1:]:
        row = pipe + words[0][6:]
        one = costs[pipe]
        if row not in costs:
          costs[row], evidence[row] = PipeCost(one.latency, doubled(one.ports), one.memory, one.slots), evidence[pipe]
      continue
    pipe, latency, groups, slots, mark = words
    costs[pipe], evidence[pipe] = PipeCost(int(latency), repeated(groups), MEMORY.get(pipe.split("/")[0], ""),
                                           int(slots)), worth.get(mark, mark)
  return Microarchitecture(name, title, source, issue_width, ports, costs, evidence)

def repeated(groups: str) -> str:
  """Expand "*" in port groups: "0|12*2" -> "0|12|12"; "-" -> none."""
  if groups == "-": return ""
  parts = [part.partition("*") for part in groups.split("|")]
  return "|".join(group for group, _, times in parts for _ in range(int(times or 1)))

def doubled(ports: str) -> str: return "|".join(part for part in ports.split("|") if part for _ in range(2))
