"""The NULL device: it allocates nothing and runs nothing, so that a measurement has only schedule and compile. Reading
from it is an error.

arch: the target of kernels: NULL_ARCH, "python" by default, e.g. "x86_64:avx2".
"""
from __future__ import annotations
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.config import getenv
from tinyhw.device import Allocator, Compiled, Launch
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """Open the device NULL, or NULL:1, ..."""
  return NullDevice(f"NULL:{ordinal}" if ordinal else "NULL")

class NullMemory:
  """A buffer that only has a size."""
  __slots__ = ("size",)
  def __init__(self, size: int): self.size = size

class NullAllocator(Allocator):
  """An allocator that returns sizes."""
  def _alloc(self, size: int) -> NullMemory: return NullMemory(size)
  def _copyin(self, dest: NullMemory, src: memoryview) -> None: pass
  def _copyout(self, dest: memoryview, src: NullMemory) -> None:
    raise DeviceError(f"{self.dev} has no memory to read; it only measures compilation, use another device to get "
                      f"values")
  def address(self, opaque: NullMemory) -> int: return 0
  def offset(self, opaque: NullMemory, size: int, offset: int) -> NullMemory: return NullMemory(size)

class NullRecording:
  """Launches that never run."""
  def __init__(self, launches: int): self.launches = launches
  def patch(self, launch: int, position: int, value: Any) -> None: pass
  def patch_grid(self, launch: int, grid: int) -> None: pass
  def submit(self) -> None: pass
  def submit_timed(self) -> list[tuple[int, int]]: return [(time.perf_counter_ns(),) * 2] * self.launches

class NullDevice(Compiled):
  """A device that accepts everything."""
  def __init__(self, name: str): super().__init__(name, NullAllocator(name), arch=getenv("NULL_ARCH", "python"))

  def load(self, code: Code) -> Code: return code
  def submit(self, launches: Sequence[Launch]) -> None: pass
  def record(self, launches: Sequence[Launch]) -> NullRecording: return NullRecording(len(launches))
