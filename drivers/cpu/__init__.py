"""The CPU device: kernels are machine code in this process's memory, run by worker threads that read a command ring (workers.py)."""
from __future__ import annotations
import atexit
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.config import THREADS
from tinyhw.device import Compiled, Launch
from tinyhw.drivers.cpu.memory import CodeArena, HostAllocator
from tinyhw.drivers.cpu.processor import Processor, detect
from tinyhw.drivers.cpu.workers import Batch, Program, Ring
from tinyhw.errors import DeviceError
from tinyhw.machine.code import Code

def thread_count() -> int:
  """Threads that run a grid together: THREADS, else the processors that this process may use."""
  if THREADS.value > 0: return THREADS.value
  return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """Open the processor. Raises DeviceError where its instructions or the repository's assembler do not suffice."""
  if ordinal: raise DeviceError(f"there is one CPU device, not CPU:{ordinal}; set THREADS to use fewer of its cores")
  arena = CodeArena()
  processor = detect(runtime("cpuid"), arena)
  if processor.missing:
    raise DeviceError(f"{processor.name or processor.vendor} lacks {', '.join(processor.missing)}; use DEV=CLANG with a C compiler, or DEV=PYTHON")
  return CpuDevice("CPU", "x86_64:avx2", processor, arena, Ring(runtime("ring"), thread_count(), arena))

class CpuDevice(Compiled):
  """Machine code on this process's threads. `submit` returns when the batch is done: the submitting thread works too."""

  def __init__(self, name: str, arch: str, processor: Processor | None, arena: CodeArena, ring: Ring):
    super().__init__(name, arch, HostAllocator(name))
    self.processor, self.arena, self.ring = processor, arena, ring
    _open_devices.add(self)

  def load(self, code: Code) -> Program:
    with self.ring.lock:
      self.ring.reserve(code.local_bytes)
      return Program(code, self.arena, self.ring.lock)

  def submit(self, launches: Sequence[Launch]) -> None:
    if launches: self.ring.submit(launches)

  def record(self, launches: Sequence[Launch]) -> Batch: return Batch(self.ring, launches)

  def close(self) -> None:
    """Stop the threads and give memory back. Programs must not run afterwards."""
    self.ring.stop()
    self.allocator.close()
    _open_devices.discard(self)

  def facts(self) -> dict[str, Any]:
    facts: dict[str, Any] = {"arch": self.arch, "threads": self.ring.threads}
    if self.processor is not None: facts |= {"processor": self.processor.name, "features": " ".join(self.processor.features)}
    return facts

_open_devices: weakref.WeakSet[CpuDevice] = weakref.WeakSet()

@atexit.register
def _stop_all() -> None:
  """Workers must not run while the interpreter takes its memory down."""
  for device in list(_open_devices): device.ring.stop()
