"""What the processor is, from its own CPUID: feature level, name, family. Source: Intel SDM volume 2 (CPUID), AMD APM volume 3, appendix E."""
from __future__ import annotations
import ctypes
import struct
from typing import NamedTuple

from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.machine.code import Code

class Bit(NamedTuple):
  """A feature's place: leaf, output register (0 eax to 3 edx), bit."""
  leaf: int
  register: int
  bit: int

FEATURES = {
  "fma": Bit(1, 2, 12), "osxsave": Bit(1, 2, 27), "avx": Bit(1, 2, 28), "f16c": Bit(1, 2, 29),
  "avx2": Bit(7, 1, 5), "bmi2": Bit(7, 1, 8), "avx512f": Bit(7, 1, 16), "avx512dq": Bit(7, 1, 17), "avx512bw": Bit(7, 1, 30), "avx512vl": Bit(7, 1, 31),
  "avx512vnni": Bit(7, 2, 11),
}
AVX2 = ("osxsave", "avx", "avx2", "fma", "f16c", "bmi2")
AVX512 = AVX2 + ("avx512f", "avx512dq", "avx512bw", "avx512vl")
AVX_STATE, AVX512_STATE = 0x6, 0xE6     # bits of XCR0: what the operating system saves

class Processor(NamedTuple):
  """features: those of FEATURES that are there; missing: what the AVX2 level lacks. signature: leaf 1, eax. state: XCR0."""
  vendor: str
  name: str
  signature: int
  features: tuple[str, ...]
  state: int

  @property
  def missing(self) -> tuple[str, ...]:
    lacking = tuple(f for f in AVX2 if f not in self.features)
    return lacking or (() if self.state & AVX_STATE == AVX_STATE else ("the operating system's support for AVX",))

  @property
  def has_avx512(self) -> bool: return all(f in self.features for f in AVX512) and self.state & AVX512_STATE == AVX512_STATE

def detect(code: Code, arena: CodeArena) -> Processor:
  """Ask the processor. `code` is the runtime's "cpuid" function."""
  address, chunk = arena.add(code.text)
  function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address)
  out = (ctypes.c_uint32 * 4)()

  def ask(leaf: int, subleaf: int = 0) -> tuple[int, ...]:
    function(leaf, subleaf, ctypes.addressof(out))
    return tuple(out)

  most, *letters = ask(0)
  vendor = struct.pack("<3I", letters[0], letters[2], letters[1]).decode("ascii", "replace")
  leaves = {leaf: ask(leaf) for leaf in (1, 7) if leaf <= most}
  features = tuple(name for name, (leaf, register, bit) in FEATURES.items() if leaf in leaves and leaves[leaf][register] >> bit & 1)
  state = ask(0xFFFFFFFF)[0] if "osxsave" in features else 0
  name = ""
  if ask(0x80000000)[0] >= 0x80000004:
    name = b"".join(struct.pack("<4I", *ask(leaf)) for leaf in range(0x80000002, 0x80000005)).split(b"\0")[0].decode("ascii", "replace").strip()
  arena.release(chunk)
  return Processor(vendor, name, leaves[1][0], features, state)
