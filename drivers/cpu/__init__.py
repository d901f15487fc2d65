"""The CPU device: machine code from the in-repo assembler, run by native worker threads that read a command ring."""
from __future__ import annotations
import ctypes
from collections.abc import Callable
from typing import Any

from tinyhw.config import ARCH
from tinyhw.drivers.cpu.launch import HostDevice, HostProgram
from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.processor import LEVELS, Processor, detect
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

class CPUDevice(HostDevice):
  """The owner of the pages of the worker loop and of the kernels."""
  def __init__(self, name: str, arch: str, processor: Processor, loop: MachineLoop, threads: int | None = None):
    self.processor, self.arena = processor, CodeArena()
    super().__init__(name, arch, loop, threads)

  def place(self, code: Code) -> HostProgram:
    """Copy the code to executable pages. Raises DeviceError for code of another machine."""
    levels = list(LEVELS)
    if code.arch not in levels or levels.index(code.arch) < levels.index(self.arch):
      raise DeviceError(f"kernel {code.name} is for {code.arch}, device {self.name} is {self.arch}; compile it for "
                        f"that")
    address, chunk = self.arena.add(code.text)
    return HostProgram(code, address + code.entry, self.arena, chunk)

  def facts(self) -> dict[str, Any]:
    return {"arch": self.arch, "processor": self.processor.brand, "vendor": self.processor.vendor,
            "signature": self.processor.signature,
            "features": sorted(self.processor.features), "cache_bytes": self.processor.cache_bytes,
            "local_bytes": self.processor.local_bytes, "threads": self.ring.threads,
            "vector_rate": self.processor.vector_rate(self.arch),
            "memory_limit": self.allocator.limit}

  def close(self) -> None:
    super().close()
    self.arena.close()

_processor: Processor | None = None

def processor(runtime: Callable[[str], Code]) -> Processor:
  """Return this machine's CPU, detected once."""
  global _processor
  if _processor is None:
    code, arena = runtime("cpuid"), CodeArena(chunk_bytes=4096)
    address, _ = arena.add(code.text)
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address + code.entry)
    out = (ctypes.c_uint32 * 4)()
    def query(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
      call(leaf, subleaf, ctypes.addressof(out))
      return out[0], out[1], out[2], out[3]
    try: _processor = detect(query)
    finally: arena.close(unmap=True)
  return _processor

def choose_arch(found: Processor, wanted: str) -> str:
  """Return the arch string to compile for: the best, or the value of ARCH.

  Raises DeviceError if the processor does not have it.
  """
  if wanted and wanted not in LEVELS:
    raise DeviceError(f"ARCH={wanted} is not known; use one of {', '.join(LEVELS)}, or unset it")
  if wanted and found.missing(wanted):
    raise DeviceError(f"ARCH={wanted} needs {', '.join(found.missing(wanted))}, which this processor or its operating "
                      f"system has not; unset ARCH")
  best = wanted or found.arch
  if best is None:
    least = list(LEVELS)[-1]
    raise DeviceError(f"processor {found.brand or found.vendor} lacks {', '.join(found.missing(least))}, which "
                      f"{least} needs; use DEV=CLANG with a C "
                      "compiler, or DEV=PYTHON")
  return best

def open(ordinal: int, runtime: Callable[[str], Code]) -> CPUDevice:
  """Open the CPU. Raises DeviceError for a processor without AVX2, or without an assembler here."""
  found = processor(runtime)
  return CPUDevice(f"CPU:{ordinal}" if ordinal else "CPU", choose_arch(found, ARCH.value), found, MachineLoop(runtime))
