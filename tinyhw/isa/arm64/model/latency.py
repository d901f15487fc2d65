"""The table of latency and ports for an AArch64 processor. machine/model/core_tables.py has the notation."""
from __future__ import annotations
from collections.abc import Collection

from tinyhw.isa.arm64.model.latency_cores import TABLES
from tinyhw.machine.model.core_tables import CoreTable, read_table
from tinyhw.threads import once

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

@once
def find(name: str) -> CoreTable:
  """The table with a name; the generic one if there is none."""
  name = name if name in TABLES else GENERIC
  return read_table(name, TABLES[name])
