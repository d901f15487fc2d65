"""CPUID decoded: from made-up processors, and on this processor against the system's data."""
import ctypes
import os
import sys

import pytest

from tinyhw import device as devices
from tinyhw.data_class import replace
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import x86
from tinyhw.drivers.cpu.x86 import FEATURES, LEVELS, XCR0, X86Processor, detect, may_use_tiles
from tinyhw.errors import DeviceError

def invented(features: set[str], vendor: str = "GenuineIntel", state: int = 0xe7, signature: int = 0x50654,
             highest: int = 7) -> X86Processor:
  """Return the result of `detect` for a processor with these features."""
  words = [int.from_bytes(vendor[i:i + 4].encode(), "little") for i in (0, 4, 8)]
  def query(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    if leaf == XCR0: return state, 0, 0, 0
    if leaf == 0: return highest, words[0], words[2], words[1]
    if leaf == 0x80000000: return 0x80000004, 0, 0, 0
    if 0x80000002 <= leaf <= 0x80000004:
      return tuple(int.from_bytes(b"Fake", "little") for _ in range(4))  # type: ignore[return-value]
    if leaf == 4:
      caches = {0: (0x1c004121, 0x01c0003f, 63), 1: (0x1c004122, 0x01c0003f, 63),
                2: (0x1c004143, 0x03c0003f, 1023), 3: (0x1c03c163, 0x02c0003f, 0x7fff)}
      row = caches.get(subleaf, (0, 0, 0))
      return row[0], row[1], row[2], 0
    registers = [signature if leaf == 1 else 0, 0, 0, 0]
    if (leaf, subleaf) == (7, 0): registers[0] = 1
    for name, (at, sub, register, bit) in FEATURES.items():
      if (at, sub) == (leaf, subleaf) and name in features: registers[register] |= 1 << bit
    return registers[0], registers[1], registers[2], registers[3]
  return detect(query)

AVX2 = {*LEVELS["x86_64:avx2"], "avx", "osxsave"}
AVX512 = AVX2 | set(LEVELS["x86_64:avx512"])
AMX = AVX512 | set(LEVELS["x86_64:amx"])

def test_levels() -> None:
  assert invented(AVX512).arch == "x86_64:avx512"
  assert invented(AVX512 | {"avx512vnni"}).arch == "x86_64:avx512vnni"
  assert invented(AVX512 | {"avx512bf16"}).arch == "x86_64:avx512", "pairs of bfloat16 come with products of bytes"
  assert invented(AVX512 | {"avx512vnni", "avx512bf16"}).arch == "x86_64:avx512bf16"
  assert invented(AMX, state=0x600e7).arch == "x86_64:amx" and invented(AMX).arch == "x86_64:avx512bf16"
  assert invented(AMX, state=0x600e7).without("amx").arch == "x86_64:avx512bf16"
  assert invented(AVX2).arch == "x86_64:avx2"
  assert invented(AVX2 - {"f16c"}).arch is None
  assert invented({"sse4_2"}).missing("x86_64:avx2")[0] == "avx2"

def test_the_system_must_save_the_registers() -> None:
  assert invented(AVX512, state=0x7).arch == "x86_64:avx2"
  assert invented(AVX512, state=0x3).arch is None
  assert invented(AVX512 - {"osxsave"}).arch is None

def test_old_processors_have_no_leaf_7() -> None:
  assert "avx2" not in invented(AVX2, highest=6).features

def test_facts() -> None:
  found = invented(AVX512)
  assert (found.vendor, found.brand[:8], found.signature) == ("GenuineIntel", "FakeFake", 0x50654)
  assert found.cache_bytes == (32 << 10, 1 << 20, min(12 * 64 * 0x8000, (os.cpu_count() or 1) * 4 << 20))
  assert [kind for _, kind, _, _ in found.caches] == ["data", "instruction", "unified", "unified"]

def test_bytes_that_the_second_cache_gives_in_a_cycle() -> None:
  assert invented(AVX512).second_level_rate("x86_64:avx512") == invented(AVX512).second_level_rate("x86_64:amx") == 28
  assert invented(AVX512).second_level_rate("x86_64:avx2") == 0
  assert replace(invented(AVX512), vendor="AuthenticAMD").second_level_rate("x86_64:avx512") == 0

def test_choice_of_the_arch() -> None:
  assert cpu.choose_arch(invented(AVX512), "") == "x86_64:avx512"
  assert cpu.choose_arch(invented(AVX512), "x86_64:avx2") == "x86_64:avx2"
  with pytest.raises(DeviceError, match="ARCH=x86_64:avx512 needs avx512f, .*; unset ARCH"):
    cpu.choose_arch(invented(AVX2), "x86_64:avx512")
  with pytest.raises(DeviceError, match="ARCH=z80 is not known; use one of "
                                         "x86_64:amx, x86_64:avx512bf16, x86_64:avx512vnni, x86_64:avx512, "
                                         "x86_64:avx2"):
    cpu.choose_arch(invented(AVX2), "z80")
  with pytest.raises(DeviceError, match="lacks avx2.*use DEV=CLANG with a C compiler, or DEV=PYTHON"):
    cpu.choose_arch(invented({"avx"}), "")

def test_this_processor() -> None:
  """Linux lists features by nearly the same names, except AVX10."""
  if not os.path.exists("/proc/cpuinfo"): pytest.skip("no /proc/cpuinfo")
  try: found = cpu.processor(devices.runtime)
  except DeviceError as error: pytest.skip(error.message)
  with open("/proc/cpuinfo") as file: rows = dict(line.split(":", 1) for line in file if ":" in line)
  info = {key.strip(): value.strip() for key, value in rows.items()}
  flags = set(info["flags"].split())
  other = {"lzcnt": "abm", "osxsave": "fpu", "avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16",
           "avx512fp16": "avx512_fp16"}
  for name in set(FEATURES) - {"avx10"}: assert (name in found.features) == (other.get(name, name) in flags), name
  assert found.vendor == info["vendor_id"] and found.brand == info["model name"]
  assert found.cache_bytes[0] > 0 and found.cache_bytes[1] > 0

def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(sys, "platform", "win32")
  monkeypatch.setattr(ctypes, "CDLL", None)
  assert not may_use_tiles()

@pytest.mark.parametrize("answer", (0, -1))
def test_linux_is_asked_for_the_process(monkeypatch: pytest.MonkeyPatch, answer: int) -> None:
  asked: list[tuple[int, ...]] = []
  class Call:
    def __call__(self, *arguments: int) -> int:
      asked.append(arguments)
      return answer
  class Library: syscall = Call()
  monkeypatch.setattr(sys, "platform", "linux")
  monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library)
  assert may_use_tiles() is (answer == 0)
  assert asked == [(158, 0x1023, 18)]

@pytest.mark.parametrize("allowed, arch", [(True, "x86_64:amx"), (False, "x86_64:avx512bf16")])
def test_a_process_that_may_not_use_tiles_uses_the_next_level(monkeypatch: pytest.MonkeyPatch, allowed: bool,
                                                             arch: str) -> None:
  if devices.PROCESSORS[devices.processor()] != "x86": pytest.skip("no x86-64")
  monkeypatch.setattr(x86, "detect", lambda query: invented(AMX, state=0x600e7))
  monkeypatch.setattr(x86, "may_use_tiles", lambda: allowed)
  assert x86.find(devices.runtime).arch == arch
