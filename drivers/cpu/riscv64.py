"""This RISC-V processor, as Linux describes it: extensions, identity and caches; and code made visible to its
instruction fetch.

The base and V are bits of the auxiliary vector. Other extensions are told by the system call riscv_hwprobe, from Linux
6.4 on, and are those that all cores have. Sources: Linux, arch/riscv/include/uapi/asm/hwcap.h, hwprobe.h and unistd.h,
Documentation/arch/riscv/hwprobe.rst and vector.rst, arch/riscv/include/asm/vendorid_list.h.
"""
from __future__ import annotations
import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tinyhw.drivers.cpu.linux import AT_HWCAP, CORE, LinuxProcessor, auxiliary, caches_of
from tinyhw.drivers.cpu.loop import SPIN_NS, MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.processor import Processor, Runtime, Visibility
from tinyhw.errors import DriverError
from tinyhw.machine.ir.code import Code

HWPROBE, FLUSH_ICACHE, PRCTL = 258, 259, 167   # system calls
VENDOR, ARCHITECTURE, EXTENSIONS = 0, 1, 4     # keys of riscv_hwprobe
V_CONTROL, V_OFF = 70, 1                       # PR_RISCV_V_GET_CONTROL, PR_RISCV_V_VSTATE_CTRL_OFF
LETTERS = "imafdcv"                            # extensions whose bit of AT_HWCAP is their place in the alphabet
# extension -> its bit in the value of EXTENSIONS
PROBED = {"zba": 3, "zbb": 4, "zbs": 5, "zfh": 27, "zfhmin": 28, "zvfh": 30, "zvfhmin": 31, "zacas": 34, "zicond": 35}
# arch string -> what it needs, best first. vlen128: vector registers of 128 bits
_BASE = ("i", "m", "a", "f", "d")
_RVA22 = (*_BASE, "zba", "zbb", "zfhmin")
LEVELS = {"riscv64:v256": (*_RVA22, "v", "vlen256"), "riscv64:v128": (*_RVA22, "v", "vlen128"),
          "riscv64:rva22": _RVA22, "riscv64:g": _BASE}
VENDORS = {0x029: "Microchip", 0x127: "MIPS", 0x31e: "Andes", 0x489: "SiFive", 0x5b7: "T-Head"}
CPUINFO = Path("/proc/cpuinfo")
MEASURED_NS = 1_000_000   # how long the rate of the counter is measured

class RiscvProcessor(LinuxProcessor):
  """A RISC-V processor. signature: marchid, 0 if unknown."""

  @property
  def levels(self) -> Mapping[str, tuple[str, ...]]: return LEVELS

def system_call(number: int, *arguments: int) -> int:
  """A system call of Linux: its result, or -1."""
  call = ctypes.CDLL(None, use_errno=True).syscall
  call.restype = ctypes.c_long
  return int(call(ctypes.c_long(number), *(ctypes.c_long(value) for value in arguments)))

def probe(keys: Sequence[int]) -> dict[int, int]:
  """The values of riscv_hwprobe for all cores. Keys that the system does not know are left out; all of them before
  Linux 6.4."""
  pairs = (ctypes.c_uint64 * (2 * len(keys)))()
  for k, key in enumerate(keys): pairs[2 * k] = key
  if system_call(HWPROBE, ctypes.addressof(pairs), len(keys), 0, 0, 0): return {}
  return {key: pairs[2 * k + 1] for k, key in enumerate(keys) if pairs[2 * k] == key}

def vectors_are_off() -> bool:
  """Was this process started without V? A program that manages processes may do so."""
  found = system_call(PRCTL, V_CONTROL, 0, 0, 0, 0)
  return found >= 0 and found & 3 == V_OFF

def microarchitecture(path: Path = CPUINFO) -> str:
  """The name of the first core in the system's list, such as "sifive,u74-mc"; empty if it has none."""
  try: lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
  except OSError: return ""
  return next((line.partition(":")[2].strip() for line in lines if line.startswith("uarch")), "")

def detect(vector_bytes: Callable[[], int], words: Callable[[int], int] = auxiliary,
           probed: Callable[[Sequence[int]], dict[int, int]] = probe, off: Callable[[], bool] = vectors_are_off,
           core: Path = CORE, cpuinfo: Path = CPUINFO) -> RiscvProcessor:
  """Detect the processor.

  vector_bytes: the size of a vector register, asked only where V is on. words: reads the auxiliary vector.
  """
  caps, values = words(AT_HWCAP), probed((VENDOR, ARCHITECTURE, EXTENSIONS))
  features = {letter for letter in LETTERS if caps >> ord(letter) - ord("a") & 1}
  features |= {name for name, bit in PROBED.items() if values.get(EXTENSIONS, 0) >> bit & 1}
  if "v" in features and off(): features -= {"v", "zvfh", "zvfhmin"}
  if "v" in features: features.add(f"vlen{8 * vector_bytes()}")
  number, kind = values.get(VENDOR, 0), values.get(ARCHITECTURE, 0)
  vendor = VENDORS.get(number, "")
  brand = microarchitecture(cpuinfo) or (f"{vendor or f'vendor {number:#x}'}, architecture {kind:#x}" if number else "")
  return RiscvProcessor(vendor, brand, kind, frozenset(features), caches_of(core))

class FlushedCode:
  """Code made visible by the system, to all threads: a thread may move to another core at any time, so no instruction
  of this thread would do."""

  def __call__(self, address: int, size: int) -> None:
    """Make code at an address visible to the instruction fetch of all threads. Raises DriverError."""
    if system_call(FLUSH_ICACHE, address, address + size, 0):
      raise DriverError(f"riscv_flush_icache: {os.strerror(ctypes.get_errno())}; a sandbox may forbid the system call: "
                        f"allow it, or use DEV=PYTHON")

  def close(self) -> None: pass

@contextlib.contextmanager
def placed(runtime: Runtime, name: str) -> Iterator[Callable[[], int]]:
  """A function of the runtime that gives a number, while it is in memory."""
  arena, out = CodeArena(chunk_bytes=4096, visible=FlushedCode()), (ctypes.c_uint64 * 1)()
  try:
    call = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(arena.add(runtime(name).text)[0])
    def number() -> int:
      call(ctypes.addressof(out))
      return int(out[0])
    yield number
  finally: arena.close(unmap=True)

def ticks_in(ns: int, clock: Callable[[], int], now_ns: Callable[[], int] = time.perf_counter_ns) -> int:
  """The ticks of the counter in some nanoseconds, at least 1. No register has its rate, so it is measured."""
  began, first = now_ns(), clock()
  while now_ns() < began + MEASURED_NS: pass
  ticks, taken = clock() - first, now_ns() - began
  return max(ticks * ns // taken, 1)

def find(runtime: Runtime) -> RiscvProcessor:
  """Detect this processor."""
  def vector_bytes() -> int:
    with placed(runtime, "vector_bytes") as number: return number()
  return detect(vector_bytes)

def visibility(runtime: Runtime) -> FlushedCode:
  """Return what makes placed code visible."""
  return FlushedCode()

def worker_loop(runtime: Runtime, found: Processor, visible: Visibility | None) -> MachineLoop:
  """The loop is the same for all processors."""
  with placed(runtime, "clock") as clock: spin = ticks_in(SPIN_NS, clock)
  return MachineLoop(runtime, "ring", spin, visible)

def sample(runtime: Runtime) -> tuple[Code, Callable[[int], Sequence[int]]]:
  """The counter, which is not 0."""
  code = runtime("clock")
  def call(address: int) -> list[int]:
    out = (ctypes.c_uint64 * 1)()
    ctypes.CFUNCTYPE(None, ctypes.c_size_t)(address + code.entry)(ctypes.addressof(out))
    return list(out)
  return code, call
