"""AArch64 processors as Linux describes them; code made visible; the device."""
from __future__ import annotations
from pathlib import Path
from typing import Any

import pytest

from tinyhw import device as devices
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import arm64
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.errors import DeviceError
from tinyhw.isa.arm64 import runtime
from tinyhw.isa.arm64.select.rules import LEVELS

# HWCAP and HWCAP2 of processors, as their kernels report them
WORDS = {"Cortex-A72": (0x8fb, 0), "Neoverse N1": (0x119ffb, 0), "max": (0xecfffffb, 0x7f877fff),
         "no AdvSIMD": (0x80, 0), "max without I8MM": (0xecfffffb, 0x7f877fff & ~(1 << 13)),
         "max without FHM": (0xecfffffb & ~(1 << 23), 0x7f877fff)}

def core(folder: Path, midr: str, caches: dict[str, tuple[str, str, str]]) -> Path:
  """A folder as /sys/devices/system/cpu/cpu0."""
  if midr:
    (folder / "regs/identification").mkdir(parents=True)
    (folder / "regs/identification/midr_el1").write_text(midr + "\n")
  for name, values in caches.items():
    (folder / "cache" / name).mkdir(parents=True)
    for file, text in zip(("level", "type", "size"), values): (folder / "cache" / name / file).write_text(text + "\n")
  return folder

def detected(name: str, folder: Path) -> arm64.ArmProcessor:
  words = dict(zip((arm64.AT_HWCAP, arm64.AT_HWCAP2), WORDS[name]))
  return arm64.detect(words.__getitem__, folder)

@pytest.mark.parametrize("name,level,has,lacks", [
  ("Cortex-A72", "neon", {"asimd", "crc32"}, {"lse", "fp16", "dotprod", "sve"}),
  ("Neoverse N1", "dotprod", {"asimd", "lse", "fp16", "dotprod", "rcpc"}, {"bf16", "i8mm", "sve"}),
  ("max without I8MM", "dotprod", {"bf16"}, {"i8mm"}), ("max without FHM", "bf16", {"bf16", "i8mm"}, {"fhm"}),
  ("max", "fhm", {"lse", "bf16", "i8mm", "sve", "sve2"}, set())])
def test_features_and_the_best_level(name: str, level: str, has: set[str], lacks: set[str], tmp_path: Path) -> None:
  found = detected(name, tmp_path)
  assert has <= found.features and not lacks & found.features
  assert found.arch == f"arm64:{level}" and not found.missing(f"arm64:{level}")

def test_levels_are_those_that_kernels_are_compiled_for() -> None:
  """Each has the features of the lower ones; the best one comes first."""
  assert list(arm64.LEVELS) == list(reversed(LEVELS))
  needed = [set(features) for features in arm64.LEVELS.values()]
  assert all(lower < higher for higher, lower in zip(needed, needed[1:]))

def test_a_lower_level_may_be_asked_for_and_a_higher_one_is_refused(tmp_path: Path) -> None:
  n1 = detected("Neoverse N1", tmp_path)
  assert cpu.choose_arch(n1, "") == "arm64:dotprod" and cpu.choose_arch(n1, "arm64:neon") == "arm64:neon"
  with pytest.raises(DeviceError, match="ARCH=arm64:bf16 needs bf16, i8mm, which this processor"):
    cpu.choose_arch(n1, "arm64:bf16")

def test_identity_and_caches(tmp_path: Path) -> None:
  caches = {"index0": ("1", "Data", "64K"), "index1": ("1", "Instruction", "32K"), "index2": ("2", "Unified", "1M"),
            "index3": ("3", "Unified", "32768K")}
  found = detected("Neoverse N1", core(tmp_path, "0x00000000413fd0c1", caches))
  assert (found.vendor, found.brand, found.signature) == ("Arm", "Neoverse N1", 0x413fd0c1)
  assert found.cache_bytes == (65536, 1 << 20, 32 << 20) and found.local_bytes == 1 << 19
  assert found.vector_rate("arm64:neon") == 2

def test_a_processor_that_is_not_in_the_table_has_its_numbers(tmp_path: Path) -> None:
  """A bug report should say which one it was."""
  for number, midr in enumerate(("0x00000000610f0220", "0x00000000990fabc0")): core(tmp_path / str(number), midr, {})
  assert detected("max", tmp_path / "0").brand == "Apple, part 0x22"
  assert detected("max", tmp_path / "1").brand == "implementer 0x99, part 0xabc"

@pytest.mark.parametrize("name,arch,words", [
  ("max", "arm64:fhm", ""), ("max", "arm64:neon", "arm64:dotprod is possible, too: ARCH=arm64:neon is set"),
  ("Neoverse N1", "arm64:dotprod", "no arm64:bf16: the processor or its operating system lacks bf16, i8mm"),
  ("Cortex-A72", "arm64:neon", "no arm64:dotprod: the processor or its operating system lacks dotprod")])
def test_the_level_above_and_what_it_lacks(name: str, arch: str, words: str, tmp_path: Path) -> None:
  assert cpu.next_level(detected(name, tmp_path), arch) == words

def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
  found = detected("max", tmp_path / "absent")
  assert (found.vendor, found.brand, found.signature, found.cache_bytes) == ("", "", 0, (0, 0, 0))

def test_a_processor_without_vectors_is_refused(tmp_path: Path) -> None:
  with pytest.raises(DeviceError, match="lacks fp, asimd, which arm64:neon needs; use DEV=CLANG"):
    cpu.choose_arch(detected("no AdvSIMD", tmp_path), "")
  with pytest.raises(DeviceError, match="ARCH=x86_64:avx2 is not known; use one of arm64:fhm, arm64:bf16, "
                     "arm64:dotprod, arm64:neon"):
    cpu.choose_arch(detected("max", tmp_path), "x86_64:avx2")

def test_every_placed_piece_of_code_is_made_visible() -> None:
  """At its final address, once, before the address is given away."""
  seen: list[tuple[int, int]] = []
  arena = CodeArena(visible=lambda address, size: seen.append((address, size)))
  try:
    placed = [(arena.add(bytes(size))[0], size) for size in (4, 100, 70_000)]
    assert seen == placed
  finally: arena.close(unmap=True)

class Clock(arm64.CodeVisibility):
  def __init__(self, counter_hz: int): self.counter_hz, self.closed = counter_hz, False
  def close(self) -> None: self.closed = True

@pytest.mark.parametrize("hertz,ticks", [(1_000_000_000, 40_000), (54_000_000, 2160), (1000, 1)])
def test_the_time_to_spin_is_that_of_the_counter(hertz: int, ticks: int) -> None:
  assert Clock(hertz).spin_ticks == ticks

@pytest.mark.parametrize("name,ring", [("Cortex-A72", "ring"), ("Neoverse N1", "ring_lse")])
def test_the_ring_is_that_of_the_processor(name: str, ring: str, tmp_path: Path) -> None:
  asked: list[str] = []
  def code(wanted: str) -> Any:
    asked.append(wanted)
    return runtime.Code(wanted, "arm64", runtime.STORED.code(wanted), ())
  clock = Clock(1 << 30)
  clock.clean = lambda start, end: None
  loop = arm64.worker_loop(code, detected(name, tmp_path), clock)
  loop.close()
  assert asked == [ring, "submit"] and clock.closed

@pytest.mark.skipif(devices.processor() not in devices.ARM64, reason="the processor is no AArch64")
def test_the_device_opens_here() -> None:
  found = devices.Device["CPU"].facts()
  assert found["arch"] in LEVELS and "asimd" in found["features"]
