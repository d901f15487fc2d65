"""RISC-V processors as Linux describes them; code made visible; the device."""
from __future__ import annotations
import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tinyhw import device as devices
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import riscv64
from tinyhw.errors import DeviceError, DriverError
from tinyhw.isa.riscv64 import runtime
from tinyhw.isa.riscv64.select.rules import LEVELS
from tinyhw.machine.ir.code import Code

# HWCAP, what riscv_hwprobe tells, and the bytes of a vector register: of QEMU 10's processors
BASE, WITH_V = 0x112d, 0x20112d
PROCESSORS: dict[str, tuple[int, dict[int, int], int]] = {
  "rva22s64": (BASE, {0: 0, 1: 0, 4: 0x1001007b}, 0), "rv64": (BASE, {0: 0, 1: 0, 4: 0x1200000fb}, 0),
  "v128": (WITH_V, {0: 0, 1: 0, 4: 0x1300000ff}, 16), "v256": (WITH_V, {0: 0x710, 1: 0x58, 4: 0x1300000ff}, 32),
  "v512": (WITH_V, {0: 0, 1: 0, 4: 0x1300000ff}, 64), "before Linux 6.4": (WITH_V, {}, 16),
  "no floats": (BASE & ~(1 << 5 | 1 << 3), {4: 0xfa}, 0), "U74": (BASE, {0: 0x489, 1: 0x8000000000000007, 4: 0x1b}, 0)}

def detected(name: str, off: bool = False, folder: Path = Path("absent")) -> riscv64.RiscvProcessor:
  hwcap, values, vector_bytes = PROCESSORS[name]
  def asked() -> int:
    assert vector_bytes and not off, "vlenb stops a processor whose V is absent or off"
    return vector_bytes
  def probed(keys: Sequence[int]) -> dict[int, int]: return {key: values[key] for key in keys if key in values}
  return riscv64.detect(asked, {riscv64.AT_HWCAP: hwcap}.__getitem__, probed, lambda: off, folder, folder / "cpuinfo")

@pytest.mark.parametrize("name, level, missing", [
  ("rva22s64", "rva22", ["v", "vlen128"]), ("rv64", "g", ["zfhmin"]), ("v128", "v128", ["vlen256"]),
  ("v256", "v256", []), ("v512", "rva22", ["vlen128"]), ("before Linux 6.4", "g", ["zba", "zbb", "zfhmin"]),
  ("U74", "g", ["zfhmin"])])
def test_the_best_level_and_what_the_next_one_lacks(name: str, level: str, missing: list[str]) -> None:
  found = detected(name)
  assert found.arch == f"riscv64:{level}" and {*"ima"} <= found.features
  words = cpu.next_level(found, f"riscv64:{level}")
  assert words == (f"no {words.split()[1].rstrip(':')}: the processor or its operating system lacks "
                   f"{', '.join(missing)}" if missing else "")

def test_levels_are_those_that_kernels_are_compiled_for() -> None:
  """The best one comes first. Those of vectors need one size of registers."""
  assert list(riscv64.LEVELS) == list(reversed(LEVELS))
  assert not set(riscv64.LEVELS["riscv64:v128"]) <= set(riscv64.LEVELS["riscv64:v256"])

def test_code_for_shorter_vectors_is_refused() -> None:
  """Its plans count the elements of a register."""
  found = detected("v256")
  device = object.__new__(cpu.CPUDevice)
  device.name, device.arch, device.processor = "CPU", "riscv64:v256", found
  with pytest.raises(DeviceError, match="kernel k is for riscv64:v128, device CPU is riscv64:v256"):
    device.place(Code("k", "riscv64:v128", b"", ()))
  with pytest.raises(DeviceError, match="ARCH=riscv64:v128 needs vlen128, which this processor"):
    cpu.choose_arch(found, "riscv64:v128")
  assert cpu.choose_arch(found, "riscv64:rva22") == "riscv64:rva22"

def test_vectors_that_are_off() -> None:
  """The process may not use them: the first one would end it."""
  found = detected("v128", off=True)
  assert found.arch == "riscv64:rva22" and "v" not in found.features

def test_a_processor_without_floats_is_refused() -> None:
  with pytest.raises(DeviceError, match="lacks f, d, which riscv64:g needs; use DEV=CLANG"):
    cpu.choose_arch(detected("no floats"), "")

def test_identity(tmp_path: Path) -> None:
  (tmp_path / "cpuinfo").write_text("processor\t: 0\nhart\t\t: 1\nuarch\t\t: sifive,u74-mc\n\nuarch: second\n")
  (tmp_path / "cache/index2").mkdir(parents=True)
  for file, text in (("level", "2"), ("type", "Unified"), ("size", "2048K")):
    (tmp_path / "cache/index2" / file).write_text(text)
  found = detected("U74", folder=tmp_path)
  assert (found.vendor, found.brand, found.signature) == ("SiFive", "sifive,u74-mc", 0x8000000000000007)
  assert found.cache_bytes == (0, 2 << 20, 0) and found.local_bytes == 1 << 20
  assert detected("U74").brand == "SiFive, architecture 0x8000000000000007"
  assert detected("v256").brand == "vendor 0x710, architecture 0x58" and detected("rv64").brand == ""

class System:
  """The system calls of a made-up Linux."""
  def __init__(self, results: dict[int, int]): self.results, self.calls = results, list[tuple[int, ...]]()

  def __call__(self, number: int, *arguments: int) -> int:
    self.calls.append((number, *arguments))
    return self.results[number]

@pytest.mark.parametrize("answer, off", [(-1, False), (0, False), (1, True), (2, False), (1 | 2 << 2, True), (9, True)])
def test_the_control_of_vectors(answer: int, off: bool, monkeypatch: pytest.MonkeyPatch) -> None:
  """The lowest two bits are the state now; -1 is a system without vectors or without the control."""
  system = System({riscv64.PRCTL: answer})
  monkeypatch.setattr(riscv64, "system_call", system)
  assert riscv64.vectors_are_off() is off and system.calls == [(167, 70, 0, 0, 0, 0)]

def test_keys_that_the_system_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
  """It writes -1 in the place of such a key. Before Linux 6.4 there is no such call."""
  def call(number: int, pairs: int, count: int, *rest: int) -> int:
    words = (ctypes.c_uint64 * (2 * count)).from_address(pairs)
    assert (number, rest) == (258, (0, 0, 0)) and [words[2 * k] for k in range(count)] == [0, 4]
    words[0], words[3] = (1 << 64) - 1, 5
    return 0
  monkeypatch.setattr(riscv64, "system_call", call)
  assert riscv64.probe((0, 4)) == {4: 5}
  monkeypatch.setattr(riscv64, "system_call", lambda *_: -1)
  assert riscv64.probe((0, 4)) == {}

def test_code_is_made_visible_to_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
  """flags 0: one of this thread alone would not do."""
  system = System({259: 0})
  monkeypatch.setattr(riscv64, "system_call", system)
  riscv64.FlushedCode()(0x1000, 24)
  assert system.calls == [(259, 0x1000, 0x1018, 0)]
  system.results[259] = -1
  with pytest.raises(DriverError, match="riscv_flush_icache: .*; a sandbox may forbid the system call"):
    riscv64.FlushedCode()(0x1000, 24)

def test_the_rate_of_the_counter_is_measured() -> None:
  """24 MHz: 960 ticks in 40 us. A counter that stands still, as some virtual machines have, gives one tick."""
  time = [0]
  def now() -> int:
    time[0] += 100
    return time[0]
  assert riscv64.ticks_in(40_000, lambda: time[0] * 24 // 1000, now) in range(958, 963)
  assert riscv64.ticks_in(40_000, lambda: 7, now) == 1

def test_the_loop_makes_its_code_visible(monkeypatch: pytest.MonkeyPatch) -> None:
  seen: list[int] = []
  monkeypatch.setattr(riscv64, "ticks_in", lambda ns, clock: 12)
  monkeypatch.setattr(riscv64, "system_call", lambda *_: 0)
  asked: list[str] = []
  def code(name: str) -> Any:
    asked.append(name)
    return Code(name, "riscv64", runtime.STORED.code(name), ())
  class Visible(riscv64.FlushedCode):
    def __call__(self, address: int, size: int) -> None: seen.append(size)
  loop = riscv64.worker_loop(code, detected("v128"), Visible())
  loop.close()
  assert asked == ["clock", "ring", "submit"] and loop.spin == 12 and seen == [len(runtime.STORED.code("ring"))]

@pytest.mark.skipif(devices.processor() != "riscv64", reason="the processor is no RISC-V")
def test_the_device_opens_here() -> None:
  found = devices.Device["CPU"].facts()
  assert found["arch"] in LEVELS and {*"imafd"} <= set(found["features"])
