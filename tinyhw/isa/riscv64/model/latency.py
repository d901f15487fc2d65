"""The table of latency and ports for a RISC-V processor. machine/model/core_tables.py has the notation."""
from __future__ import annotations
from collections.abc import Collection

from tinyhw.isa.riscv64.model.latency_cores import TABLES
from tinyhw.machine.model.core_tables import CoreTable, read_table
from tinyhw.threads import once

def microarchitecture(vendor: str, signature: int, features: Collection[str] = ()) -> str:
  """The name of the table for a processor. No processor says which one with vectors it is, so all have that of P670."""
  return "p670" if "v" in features else "u74"

@once
def find(name: str) -> CoreTable:
  """The table with a name; that of a core with vectors if there is none."""
  name = name if name in TABLES else "p670"
  return read_table(name, TABLES[name])
