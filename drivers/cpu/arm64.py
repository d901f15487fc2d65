"""This AArch64 processor, as Linux describes it: features, identity and caches; and code made visible to its
instruction fetch.

Features are bits of the auxiliary vector, which all cores share. Sources: Linux, arch/arm64/include/uapi/asm/hwcap.h
and Documentation/arch/arm64/elf_hwcaps.rst; Arm Architecture Reference Manual, DDI 0487, MIDR_EL1.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tinyhw.drivers.cpu.linux import AT_HWCAP, AT_HWCAP2, CORE, LinuxProcessor, auxiliary, caches_of, read_text
from tinyhw.drivers.cpu.loop import SPIN_NS, MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.processor import Processor, Runtime, Visibility
from tinyhw.machine.ir.code import Code

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

class ArmProcessor(LinuxProcessor):
  """An AArch64 processor. signature: MIDR_EL1, 0 if unknown."""

  @property
  def levels(self) -> Mapping[str, tuple[str, ...]]: return LEVELS

  def vector_rate(self, arch: str) -> int:
    """Return the operations on full vectors of floats that start in a cycle: two, four on the widest cores."""
    return 4 if self.brand in ("Neoverse V1", "Neoverse V2") or self.vendor == "Apple" else 2

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

  def __init__(self, runtime: Runtime):
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
    return max(self.counter_hz * SPIN_NS // 1_000_000_000, 1)

  def close(self) -> None: self.arena.close(unmap=True)

class ArmLoop(MachineLoop):
  """The worker loop, with the code that makes other code visible."""

  def __init__(self, runtime: Runtime, ring: str, visible: CodeVisibility):
    super().__init__(runtime, ring, visible.spin_ticks, visible)
    self.owned = visible

  def close(self) -> None:
    super().close()
    self.owned.close()

def find(runtime: Runtime) -> ArmProcessor:
  """Detect this processor."""
  return detect()

def visibility(runtime: Runtime) -> CodeVisibility:
  """Return what makes placed code visible."""
  return CodeVisibility(runtime)

def worker_loop(runtime: Runtime, found: Processor, visible: Visibility | None) -> MachineLoop:
  """The worker loop for a processor with these features. It owns `visible`, and closes it."""
  assert isinstance(visible, CodeVisibility), "AArch64 needs the object of `visibility`"
  return ArmLoop(runtime, "ring_lse" if "lse" in found.features else "ring", visible)

def sample(runtime: Runtime) -> tuple[Code, Callable[[int], Sequence[int]]]:
  """Registers that every program may read; none of them is 0."""
  code = runtime("identify")
  def call(address: int) -> list[int]:
    out = (ctypes.c_uint64 * 3)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address + code.entry)(ctypes.addressof(out))
    return list(out)
  return code, call
