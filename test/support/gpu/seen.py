"""Devices of GPUs whose kernels nothing executes, and what their hardware was told: the same questions for all vendors.

AMD's is a stand-in for the computer (amd/box.py), NVIDIA's a virtual computer with blocks that do nothing
(nvidia/box.py).
"""
from __future__ import annotations
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from amd import box as amd_box
from nvidia import box as nvidia_box
import pytest

from tinyhw.config import Context
from tinyhw.drivers import amd, nvidia
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.engines import ChannelProcessor
from tinyhw.machine.ir.code import Code

KINDS = ("gfx1100", "gfx1200", "gfx942", "gfx950", "sm_80", "sm_89", "sm_90")
FEW = ("gfx1100", "gfx942", "sm_90")

class Seen:
  """The calls that a device got. waits: how often it waited for all kernels before: once in a submission, and once for
  each barrier."""
  def code(self, **fields: Any) -> Code:
    """A kernel that does nothing, of a buffer and a variable."""
    raise NotImplementedError
  def launched(self, arguments: int = 2) -> list[tuple[int, list[int]]]:
    """(workgroups, so many arguments) of each launch."""
    raise NotImplementedError
  def waits(self) -> int: raise NotImplementedError
  def forget(self) -> None:
    """Forget the calls so far."""
    raise NotImplementedError

class SeenAMD(Seen):
  def __init__(self, box: amd_box.AMDBox): self.box = box
  def code(self, **fields: Any) -> Code: return amd_box.code(self.box.kind, **fields)
  def launched(self, arguments: int = 2) -> list[tuple[int, list[int]]]:
    return [(groups, amd_box.arguments(registers, arguments)) for registers, groups in self.box.dispatches]
  def waits(self) -> int: return self.box.packets.count("EVENT_WRITE")
  def forget(self) -> None:
    self.box.packets.clear()
    self.box.dispatches.clear()

class SeenNV(Seen):
  def __init__(self, computer: GpuHost, kind: str, patch: pytest.MonkeyPatch):
    self.kind, self.note, self.found = kind, nvidia_box.Note(computer), list[str]()
    compute = ChannelProcessor._compute
    def noted(processor: ChannelProcessor, name: str, fields: dict[str, Any], state: dict[int, int]) -> bool:
      done = compute(processor, name, fields, state)
      if done: self.found.append(name)
      return done
    patch.setattr(ChannelProcessor, "_compute", noted)
  def code(self, **fields: Any) -> Code: return nvidia_box.code(self.kind, **fields)
  def launched(self, arguments: int = 2) -> list[tuple[int, list[int]]]:
    return [(grid.blocks, [nvidia_box.argument(grid, i) for i in range(arguments)]) for grid in self.note.launches]
  def waits(self) -> int: return self.found.count("WAIT_FOR_IDLE")
  def forget(self) -> None:
    self.found.clear()
    self.note.launches.clear()

@contextlib.contextmanager
def seeing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[Seen, GpuDevice]]]:
  """seen("sm_90") -> (what it is told, the device). Devices are closed afterwards, and nothing may be left."""
  undo: list[Callable[[], None]] = []
  def make(kind: str) -> tuple[Seen, GpuDevice]:
    computer: Any = GpuHost(kind, [kind]) if kind.startswith("sm_") else amd_box.AMDBox(kind)
    monkeypatch.setattr(files, "COMPUTER", computer)
    driver: Any = nvidia if kind.startswith("sm_") else amd
    device: GpuDevice = driver.open(0, lambda name: None)
    def close() -> None:
      device.close()
      (rm if driver is nvidia else kfd).forget(computer)
      if driver is nvidia: assert computer.census() == {}
      else:
        assert computer.held() == {"files": 0, "mappings": 0, "memory": 1, "queues": 0,
                                   "events": 0}, "the event page is the kernel's"
    undo.append(close)
    return (SeenNV(computer, kind, monkeypatch) if driver is nvidia else SeenAMD(computer)), device
  with Context(EMULATE=""): yield make
  for close in undo: close()
