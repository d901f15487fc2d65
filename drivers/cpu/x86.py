"""This x86 processor, from its own CPUID instruction: features that the operating system also supports, caches, name.

The tile registers (AMX) need permission. Their 8 KiB are saved for each thread that uses them, so Linux gives it to a
process that asks, for all of its threads. It refuses where a thread has a signal stack that is too small for them.

Sources: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E; Linux, Documentation/arch/x86/xstate.rst. The latency
tables map signatures to cores.
"""
from __future__ import annotations
import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from tinyhw.data_class import dataclass, replace
from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.processor import Processor, Runtime, Visibility
from tinyhw.machine.ir.code import Code

# (leaf, subleaf) -> eax, ebx, ecx, edx. Leaf XCR0 gives the halves of that register in eax, ebx
Query = Callable[[int, int], tuple[int, int, int, int]]
XCR0 = 0xffffffff

EAX, EBX, ECX, EDX = range(4)
# feature -> leaf, subleaf, register, bit
FEATURES = {
  "sse4_2": (1, 0, ECX, 20), "popcnt": (1, 0, ECX, 23), "fma": (1, 0, ECX, 12), "movbe": (1, 0, ECX, 22),
  "osxsave": (1, 0, ECX, 27),
  "avx": (1, 0, ECX, 28), "f16c": (1, 0, ECX, 29),
  "bmi1": (7, 0, EBX, 3), "avx2": (7, 0, EBX, 5), "bmi2": (7, 0, EBX, 8), "avx512f": (7, 0, EBX, 16),
  "avx512dq": (7, 0, EBX, 17),
  "avx512ifma": (7, 0, EBX, 21), "avx512cd": (7, 0, EBX, 28), "avx512bw": (7, 0, EBX, 30), "avx512vl": (7, 0, EBX, 31),
  "avx512vbmi": (7, 0, ECX, 1), "vaes": (7, 0, ECX, 9), "avx512vnni": (7, 0, ECX, 11), "avx512fp16": (7, 0, EDX, 23),
  "amx_bf16": (7, 0, EDX, 22), "amx_tile": (7, 0, EDX, 24), "amx_int8": (7, 0, EDX, 25),
  "avx_vnni": (7, 1, EAX, 4), "avx512bf16": (7, 1, EAX, 5), "avx10": (7, 1, EDX, 19),
  "lzcnt": (0x80000001, 0, ECX, 5),
}
YMM_STATE, ZMM_STATE, TILE_STATE = 0x6, 0xe6, 0x60000  # bits of XCR0 that the system must set

# Of the third-level cache, for each CPU that the system sees. CPUID tells a virtual machine of the whole cache, which
# other guests use, too: a guest with 2 CPUs of a Granite Rapids reads 8 MB at 48 ns and 32 MB at 164 ns, of 480 MB
THIRD_LEVEL_BYTES = 4 << 20

_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt")
# arch string -> features it needs, best first
LEVELS = {
  "x86_64:amx": ("amx_tile", "amx_bf16", "amx_int8", "avx512bf16", "avx512vnni", *_AVX512),
  "x86_64:avx512bf16": ("avx512bf16", "avx512vnni", *_AVX512),
  "x86_64:avx512vnni": ("avx512vnni", *_AVX512),
  "x86_64:avx512": _AVX512,
  "x86_64:avx2": ("avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt"),
}

@dataclass(frozen=True)
class X86Processor(Processor):
  """A processor as CPUID describes it.

  signature: family, model and stepping, as in eax of leaf 1. caches: (level, "data", "instruction" or "unified", bytes,
  threads that share it), as CPUID lists them.
  """
  vendor: str
  brand: str
  signature: int
  features: frozenset[str]
  caches: tuple[tuple[int, str, int, int], ...]

  @property
  def levels(self) -> Mapping[str, tuple[str, ...]]: return LEVELS

  def without(self, prefix: str) -> X86Processor:
    """Return the processor without the features whose names begin so."""
    return replace(self, features=frozenset(name for name in self.features if not name.startswith(prefix)))

  @property
  def cache_bytes(self) -> tuple[int, int, int]:
    """The bytes of data caches L1, L2 and L3; 0 for a missing cache. Of L3, a virtual machine has its CPUs' share."""
    sizes = {level: size for level, kind, size, _ in self.caches if kind != "instruction"}
    return sizes.get(1, 0), sizes.get(2, 0), min(sizes.get(3, 0), THIRD_LEVEL_BYTES * (os.cpu_count() or 1))

  def vector_rate(self, arch: str) -> int:
    """Return the operations on full vectors of floats that start in a cycle.

    AMD's processors of family 25 with AVX-512 are Zen 4. There 512 bits take the units of 256 bits for two cycles.
    Source: AMD 57647, Software Optimization Guide for Zen 4.
    """
    family = (self.signature >> 8 & 15) + (self.signature >> 20 & 0xff)
    return 1 if self.vendor == "AuthenticAMD" and family == 25 and "avx512" in arch else 2

  def second_level_rate(self, arch: str) -> float:
    """Return the bytes that the second-level cache gives to a tile in a cycle; 0 if that is not known.

    Measured on a Granite Rapids, where tiles of a @ b of 1920x1024x1920 with 24 sums read 2 to 8 vectors of 64 bytes in
    12 cycles, four steps in a body (captured calls, in turns). Up to 5 vectors take no more time than 3; 6 take 1.09
    times as long, and 8 take 1.12 to 1.3 times. Other processors have not been measured.
    """
    return 28.0 if self.vendor == "GenuineIntel" and ("avx512" in arch or "amx" in arch) else 0.0

def _text(*words: int) -> str:
  return b"".join(word.to_bytes(4, "little") for word in words).decode("latin-1").strip("\0 ")

def _features(query: Query, highest: int, highest_extended: int) -> frozenset[str]:
  found = set()
  for name, (leaf, subleaf, register, bit) in FEATURES.items():
    if leaf > (highest_extended if leaf >= 0x80000000 else highest): continue
    if subleaf and query(leaf, 0)[EAX] < subleaf: continue
    if query(leaf, subleaf)[register] >> bit & 1: found.add(name)
  state = query(XCR0, 0)[EAX] if "osxsave" in found else 0
  if state & YMM_STATE != YMM_STATE:
    found -= {name for name in found if name.startswith("avx") or name in ("fma", "f16c", "vaes")}
  if state & ZMM_STATE != ZMM_STATE: found -= {name for name in found if name.startswith("avx512")}
  if state & TILE_STATE != TILE_STATE: found -= {name for name in found if name.startswith("amx")}
  return frozenset(found)

def _caches(query: Query, leaf: int) -> tuple[tuple[int, str, int, int], ...]:
  """Read the caches. Intel's leaf 4 and AMD's leaf 0x8000001d have the same layout."""
  found = []
  for subleaf in range(16):
    eax, ebx, ecx, _ = query(leaf, subleaf)
    if eax & 31 == 0: break
    kind = {1: "data", 2: "instruction", 3: "unified"}.get(eax & 31, "other")
    ways, partitions, line = (ebx >> 22) + 1, (ebx >> 12 & 0x3ff) + 1, (ebx & 0xfff) + 1
    found.append((eax >> 5 & 7, kind, ways * partitions * line * (ecx + 1), (eax >> 14 & 0xfff) + 1))
  return tuple(found)

def detect(query: Query) -> X86Processor:
  """Detect the processor.

  Cost: about 60 CPUID instructions. Each takes 0.1 us, or 1 to 20 us in a virtual machine, so results are cached.
  """
  answers: dict[tuple[int, int], tuple[int, int, int, int]] = {}

  def ask(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    if (leaf, subleaf) not in answers: answers[leaf, subleaf] = query(leaf, subleaf)
    return answers[leaf, subleaf]

  highest, ebx, ecx, edx = ask(0, 0)
  vendor, highest_extended = _text(ebx, edx, ecx), ask(0x80000000, 0)[EAX]
  brand = (_text(*(word for i in range(2, 5) for word in ask(0x80000000 + i, 0))) if highest_extended >= 0x80000004
           else "")
  cache_leaf = 4
  if vendor in ("AuthenticAMD", "HygonGenuine"): cache_leaf = 0x8000001d
  known = cache_leaf <= (highest_extended if cache_leaf >= 0x80000000 else highest)
  return X86Processor(vendor, brand, ask(1, 0)[EAX], _features(ask, highest, highest_extended), _caches(ask, cache_leaf)
                      if known else ())

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18    # a system call, its first argument, a number of a state

def may_use_tiles() -> bool:
  """Ask the system for the tile registers. Returns whether this process may use them."""
  if sys.platform != "linux": return False
  call = ctypes.CDLL(None, use_errno=True).syscall
  call.argtypes, call.restype = (ctypes.c_long,) * 3, ctypes.c_long
  return int(call(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)) == 0

def find(runtime: Runtime) -> X86Processor:
  """Detect this processor, by the CPUID call of the runtime."""
  code, arena = runtime("cpuid"), CodeArena(chunk_bytes=4096)
  address, _ = arena.add(code.text)
  call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address + code.entry)
  out = (ctypes.c_uint32 * 4)()
  def query(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    call(leaf, subleaf, ctypes.addressof(out))
    return out[0], out[1], out[2], out[3]
  try: found = detect(query)
  finally: arena.close(unmap=True)
  return found if "amx_tile" not in found.features or may_use_tiles() else found.without("amx")

def visibility(runtime: Runtime) -> Visibility | None:
  """Instruction caches are coherent."""
  return None

def worker_loop(runtime: Runtime, found: Processor, visible: Visibility | None) -> MachineLoop:
  """The loop is the same for all processors."""
  return MachineLoop(runtime)

def sample(runtime: Runtime) -> tuple[Code, Callable[[int], Sequence[int]]]:
  """Leaf 0 of CPUID, which has the vendor's name."""
  code = runtime("cpuid")
  def call(address: int) -> list[int]:
    out = (ctypes.c_uint32 * 4)()
    function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address + code.entry)
    function(0, 0, ctypes.addressof(out))
    return list(out)
  return code, call
