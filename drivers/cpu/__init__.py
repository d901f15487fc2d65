"""The CPU device: machine code from the in-repo assemblers, run by native worker threads that read a command ring."""
from __future__ import annotations
import importlib
from collections.abc import Callable
from typing import Any

from tinyhw import device
from tinyhw.config import ARCH
from tinyhw.drivers.cpu.launch import HostDevice, HostProgram
from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.drivers.cpu.processor import Processor, ProcessorModule, Runtime, Visibility
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

class CPUDevice(HostDevice):
  """The owner of the pages of the worker loop and of the kernels."""
  def __init__(self, name: str, arch: str, processor: Processor, loop: MachineLoop,
               threads: int | None = None,
               visible: Callable[[int, int], None] | None = None):
    self.processor, self.arena = processor, CodeArena(visible=visible)
    super().__init__(name, arch, loop, threads)

  def place(self, code: Code) -> HostProgram:
    """Copy the code to executable pages. Raises DeviceError for code of another machine."""
    levels = list(self.processor.levels)
    if (code.arch not in levels or levels.index(code.arch) < levels.index(self.arch)
        or self.processor.missing(code.arch)):
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
            "second_level_rate": self.processor.second_level_rate(self.arch),
            "next_level": next_level(self.processor, self.arch), "memory_limit": self.allocator.limit}

  def close(self) -> None:
    super().close()
    self.arena.close()

_processor: Processor | None = None

def module(runtime: Runtime) -> ProcessorModule:
  """Return the module for this kind of processor. Raises DeviceError where the repository has no assembler for it."""
  kind = device.PROCESSORS.get(device.processor())
  if kind is None: runtime("ring")  # says what to do
  found: ProcessorModule = importlib.import_module(f"tinyhw.drivers.cpu.{kind}")
  return found

def processor(runtime: Runtime) -> Processor:
  """Return this machine's CPU, detected once."""
  global _processor
  if _processor is None: _processor = module(runtime).find(runtime)
  return _processor

def visible_code(runtime: Runtime) -> Visibility | None:
  """Return the function that makes placed code visible to instruction fetch, where a processor needs one."""
  return module(runtime).visibility(runtime)

def machine_loop(runtime: Runtime, visible: Visibility | None) -> MachineLoop:
  """Return the worker loop as machine code of this processor. visible: of visible_code."""
  return module(runtime).worker_loop(runtime, processor(runtime), visible)

def choose_arch(found: Processor, wanted: str) -> str:
  """Return the arch string to compile for: the best, or the value of ARCH.

  Raises DeviceError if the processor does not have it.
  """
  if wanted and wanted not in found.levels:
    raise DeviceError(f"ARCH={wanted} is not known; use one of {', '.join(found.levels)}, or unset it")
  if wanted and found.missing(wanted):
    raise DeviceError(f"ARCH={wanted} needs {', '.join(found.missing(wanted))}, which this processor or its operating "
                      f"system has not; unset ARCH")
  best = wanted or found.arch
  if best is None:
    least = list(found.levels)[-1]
    raise DeviceError(f"processor {found.brand or found.vendor} lacks {', '.join(found.missing(least))}, which "
                      f"{least} needs; use DEV=CLANG with a C "
                      "compiler, or DEV=PYTHON")
  return best

def next_level(found: Processor, arch: str) -> str:
  """Why kernels are not compiled for the level above an arch string. Empty for the highest one."""
  levels = list(found.levels)
  above = levels[:levels.index(arch)]
  if not above: return ""
  missing = found.missing(above[-1])
  if not missing: return f"{above[-1]} is possible, too: ARCH={arch} is set"
  return f"no {above[-1]}: the processor or its operating system lacks {', '.join(missing)}"

def open(ordinal: int, runtime: Runtime) -> CPUDevice:
  """Open the CPU. Raises DeviceError for a processor without AVX2 or AdvSIMD, or without an assembler here."""
  found, visible = processor(runtime), visible_code(runtime)
  return CPUDevice(f"CPU:{ordinal}" if ordinal else "CPU", choose_arch(found, ARCH.value), found,
                   machine_loop(runtime, visible), visible=visible)
