"""How Linux describes a processor other than x86: the auxiliary vector of the process, and files of sysfs.

Source: Linux, include/uapi/linux/auxvec.h; Documentation/ABI/testing/sysfs-devices-system-cpu.
"""
from __future__ import annotations
import ctypes
from collections.abc import Mapping
from pathlib import Path

from tinyhw.data_class import dataclass
from tinyhw.drivers.cpu.processor import Processor

AT_HWCAP, AT_HWCAP2 = 16, 26  # types of the auxiliary vector
CORE = Path("/sys/devices/system/cpu/cpu0")

@dataclass(frozen=True)
class LinuxProcessor(Processor):
  """A processor whose identity and caches are in sysfs. caches: level -> bytes of the data or unified cache."""
  vendor: str
  brand: str
  signature: int
  features: frozenset[str]
  caches: Mapping[int, int]

  @property
  def cache_bytes(self) -> tuple[int, int, int]:
    """The bytes of data caches L1, L2 and L3; 0 for a missing cache."""
    return self.caches.get(1, 0), self.caches.get(2, 0), self.caches.get(3, 0)

def auxiliary(kind: int) -> int:
  """A word of the auxiliary vector of this process, by the C library."""
  read = ctypes.CDLL(None).getauxval
  read.argtypes, read.restype = (ctypes.c_ulong,), ctypes.c_ulong
  return int(read(kind))

def read_text(path: Path) -> str:
  """The text of a file of the system; "" if it is absent, as in some virtual machines."""
  try: return path.read_text(encoding="ascii").strip()
  except (OSError, ValueError): return ""

def size_of(text: str) -> int:
  """The bytes of a size as sysfs writes it: 64K, 8M."""
  unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
  digits = text.rstrip("KM")
  return int(digits) * unit if digits.isdigit() else 0

def caches_of(core: Path = CORE) -> dict[int, int]:
  """The data and unified caches of a core, by level."""
  found: dict[int, int] = {}
  for folder in sorted(core.glob("cache/index*")):
    level, kind = read_text(folder / "level"), read_text(folder / "type")
    if level.isdigit() and kind in ("Data", "Unified"): found[int(level)] = size_of(read_text(folder / "size"))
  return found
