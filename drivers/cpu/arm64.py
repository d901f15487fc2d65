"""This AArch64 processor, as Linux describes it: features, identity and caches; and code made visible to its
instruction fetch.

Features are bits of the auxiliary vector, which all cores share. Sources: Linux, arch/arm64/include/uapi/asm/hwcap.h
and Documentation/arch/arm64/elf_hwcaps.rst; Arm Architecture Reference Manual, DDI 0487, MIDR_EL1.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from tinyhw.data_class import dataclass
from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.machine.ir.code import Code

AT_HWCAP, AT_HWCAP2 = 16, 26  # types of the auxiliary vector
# feature -> the word of the auxiliary vector, and the bit
FEATURES = {
  "fp": (AT_HWCAP, 0), "asimd": (AT_HWCAP, 1), "crc32": (AT_HWCAP, 7), "lse": (AT_HWCAP, 8), "fphp": (AT_HWCAP, 9),
  "fp16": (AT_HWCAP, 10), "rdm": (AT_HWCAP, 12), "fcma": (AT_HWCAP, 14), "rcpc": (AT_HWCAP, 15),
  "dotprod": (AT_HWCAP, 20), "sve": (AT_HWCAP, 22), "fhm": (AT_HWCAP, 23),
  "sve2": (AT_HWCAP2, 1), "i8mm": (AT_HWCAP2, 13), "bf16": (AT_HWCAP2, 14), "sme": (AT_HWCAP2, 23)}
# arch string -> features it needs, best first
_NEON = ("fp", "asimd")
_BF16 = (*_NEON, "dotprod", "bf16", "i8mm")
LEVELS = {"arm64:fhm": (*_BF16, "fhm"), "arm64:bf16": _BF16, "arm64:dotprod": (*_NEON, "dotprod"), "arm64:neon": _NEON}

# implementer and part number of MIDR_EL1 -> name. Source: Linux, arch/arm64/include/asm/cputype.h
IMPLEMENTERS = {0x41: "Arm", 0x46: "Fujitsu", 0x4e: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0xc0: "Ampere"}
PARTS = {(0x41, 0xd03): "Cortex-A53", (0x41, 0xd05): "Cortex-A55", (0x41, 0xd08): "Cortex-A72",
         (0x41, 0xd0b): "Cortex-A76", (0x41, 0xd0c): "Neoverse N1", (0x41, 0xd40): "Neoverse V1",
         (0x41, 0xd49): "Neoverse N2", (0x41, 0xd4f): "Neoverse V2"}
CORE = Path("/sys/devices/system/cpu/cpu0")
SPIN_US = 40  # microseconds that a thread spins before it sleeps

@dataclass(frozen=True)
class ArmProcessor:
  """The identity, caches and features of a processor.

  signature: MIDR_EL1, 0 if unknown. caches: level -> bytes of the data or unified cache.
  """
  vendor: str
  brand: str
  signature: int
  features: frozenset[str]
  caches: Mapping[int, int]

  @property
  def levels(self) -> Mapping[str, tuple[str, ...]]: return LEVELS

  @property
  def arch(self) -> str | None:
    """The best arch string whose features are all present, or None."""
    return next((name for name, needed in LEVELS.items() if self.features.issuperset(needed)), None)

  def missing(self, arch: str) -> list[str]:
    """Return the features that an arch string needs and this processor lacks."""
    return [feature for feature in LEVELS[arch] if feature not in self.features]

  @property
  def cache_bytes(self) -> tuple[int, int, int]:
    """The bytes of data caches L1, L2 and L3; 0 for a missing cache."""
    return self.caches.get(1, 0), self.caches.get(2, 0), self.caches.get(3, 0)

  def vector_rate(self, arch: str) -> int:
    """Return the operations on full vectors of floats that start in a cycle: two, four on the widest cores."""
    return 4 if self.brand in ("Neoverse V1", "Neoverse V2") or self.vendor == "Apple" else 2

  def second_level_rate(self, arch: str) -> float: return 0.0

  @property
  def local_bytes(self) -> int:
    """The bytes of a worker's own data: half of L2; 0 if its size is unknown."""
    return self.cache_bytes[1] // 2

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

def detect(words: Callable[[int], int] = auxiliary, core: Path = CORE) -> ArmProcessor:
  """Detect the processor. words: reads the auxiliary vector."""
  caps = {kind: words(kind) for kind in (AT_HWCAP, AT_HWCAP2)}
  features = frozenset(name for name, (kind, bit) in FEATURES.items() if caps[kind] >> bit & 1)
  text = read_text(core / "regs/identification/midr_el1")
  midr = int(text, 16) if text else 0
  implementer = midr >> 24
  vendor, part = IMPLEMENTERS.get(implementer, ""), midr >> 4 & 0xfff
  brand = PARTS.get((implementer, part), f"{vendor or f'implementer {implementer:#x}'}, part {part:#x}" if midr else "")
  return ArmProcessor(vendor, brand, midr, features, caches_of(core))

class CodeVisibility:
  """Caches made coherent after code was placed. Its own code is on a fresh page, which Linux cleans when the page
  becomes executable (arch/arm64/mm/flush.c)."""

  def __init__(self, runtime: Callable[[str], Code]):
    self.arena = CodeArena(chunk_bytes=4096)
    self.clean = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)(self.arena.add(runtime("clean").text)[0])
    out = (ctypes.c_uint64 * 3)()
    ctypes.CFUNCTYPE(None, ctypes.c_size_t)(self.arena.add(runtime("identify").text)[0])(ctypes.addressof(out))
    self.cache_type, self.counter_hz = out[0], out[1]

  def __call__(self, address: int, size: int) -> None:
    """Make code at an address visible to the instruction fetch of all cores. Each thread needs an isb before it runs
    it; the worker loop has one before each call."""
    self.clean(address, address + size)

  @property
  def spin_ticks(self) -> int:
    """The time to spin in ticks of the counter, whose rate differs between processors: 1 MHz to 1 GHz."""
    return max(self.counter_hz * SPIN_US // 1_000_000, 1)

  def machine_loop(self, runtime: Callable[[str], Code], features: Collection[str]) -> MachineLoop:
    """The worker loop for a processor with these features. It owns this object, and closes it."""
    return ArmLoop(runtime, "ring_lse" if "lse" in features else "ring", self)

  def close(self) -> None: self.arena.close(unmap=True)

class ArmLoop(MachineLoop):
  """The worker loop, with the code that makes other code visible."""

  def __init__(self, runtime: Callable[[str], Code], ring: str, visible: CodeVisibility):
    super().__init__(runtime, ring, visible.spin_ticks, visible)
    self.owned = visible

  def close(self) -> None:
    super().close()
    self.owned.close()
