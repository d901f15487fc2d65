"""A virtual AMD GPU: its caches and clock, a process's address space on it, and its faults."""
from __future__ import annotations
import time
from random import Random
from typing import TYPE_CHECKING

from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.autogen.amd.gc import Registers, registers
from tinyhw.emulator.amd.card.port import Port, Xcc
from tinyhw.emulator.amd.chips import ChipParameters
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.cache import HostWrites
from tinyhw.emulator.memory.pages import PageTable

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.computer import GpuHost, RenderFile
  from tinyhw.emulator.amd.card.dispatch import Dispatch
  from tinyhw.emulator.amd.card.queues import HardwareQueue

FIRST_MINOR = 128  # of render nodes
FAVOUR = 0.8       # part of all workgroups that go to the favoured units
CLOCK_NS = 10      # the clock of timestamps ticks at 100 MHz

class GpuHardware:
  """The part of a GPU that all processes share. vram_used: bytes that they hold together."""
  def __init__(self, chip: ChipParameters, index: int):
    self.chip, self.index = chip, index
    self.name = f"GPU {index} ({chip.name})"
    self.gpu_id = 0x4B00 + 0x1D * index + 1  # 16 bits, never 0
    self.host_writes = HostWrites(self.name)
    self.xccs = [Xcc(i, chip.packets, chip.cus // (chip.engines * chip.arrays) if chip.first_level else 0)
                 for i in range(chip.xccs)]
    self.vram_used = 0

class GpuContext:
  """A card as one process has it. drm: the render node's file whose address space this process uses, None before
  ACQUIRE_VM.

  stopped: the fault after which it does nothing for this process. port: memory as engines see it, without the caches of
  compute units. work: the dispatches that run for this process.
  """
  def __init__(self, computer: GpuHost, card: GpuHardware):
    self.computer, self.card, self.chip, self.index, self.name, self.gpu_id = (computer, card, card.chip, card.index,
                                                                               card.name, card.gpu_id)
    self.node, self.minor = card.index + 1, FIRST_MINOR + card.index
    self.registers: Registers = registers(card.chip.generation)
    self.host_writes, self.xccs = card.host_writes, card.xccs
    self.table = PageTable()
    self.port = Port(self.table, computer.coherence, f"an engine of {self.name}")
    self.drm: RenderFile | None = None
    self.stopped: str | None = None
    self.work: list[Dispatch] = []
    self.workgroups = 0                     # number of workgroups started on it

  @property
  def vram_used(self) -> int: return self.card.vram_used

  def engine_port(self, who: str) -> Port:
    """Return the memory port of an engine. Errors call it `who`."""
    return Port(self.table, self.computer.coherence, who)

  def unit_port(self, who: str, xcc: Xcc, unit: int) -> Port:
    """Return the memory port of waves on a compute unit."""
    return Port(self.table, self.computer.coherence, who, xcc, unit, shared=len(self.xccs) > 1)

  def pick_unit(self, random: Random) -> int:
    """Choose the compute unit of a workgroup.

    Four units of two shader arrays get most workgroups, so that stale lines in caches are hit.
    """
    if random.random() > FAVOUR: return random.randrange(self.chip.cus)
    return (random.randrange(2) * (self.xccs[0].array_units or 2) + random.randrange(2)) % self.chip.cus

  def clock(self) -> int:
    """Return the counter of timestamps."""
    return time.monotonic_ns() // CLOCK_NS

  # **** faults ****

  def page_fault(self, fault: PageFault, who: str) -> None:
    """Stop all queues of the process on this GPU, as the driver does, and report the fault."""
    found = f"{who}: {fault.summary}; {self.table.nearest(fault.address)}{fault.where}"
    if self.stopped is None: self.stopped = self.computer.fault = found
    self.computer.events.memory_exception(self, fault.address, fault.reason == "not present",
                                          fault.reason == "read only",
                                          fault.reason == "not executable")
    self.drop_work(None)

  def reset(self, cause: int = kfd.KFD_HW_EXCEPTION_GPU_HANG) -> None:
    """Reset the GPU, as the driver does: for tests. The queues of all processes and the contents of VRAM are lost. Each
    process is told. Only a process that begins later can use the GPU again.

    Source: Linux, kfd_signal_reset_event in amdkfd/kfd_events.c.
    """
    for process in self.computer.processes: process.gpus[self.index].lose(cause)

  def lose(self, cause: int) -> None:
    """Apply a reset to one process."""
    self.stopped = "the GPU was reset"
    self.drop_work(None)
    for buffer in self.computer.memory.buffers.values():
      if buffer.gpu is self and buffer.domain == kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
        buffer.frames.view[:] = bytes(buffer.frames.size)
    self.computer.events.hardware_exception(self, kfd.KFD_HW_EXCEPTION_WHOLE_GPU_RESET, cause, memory_lost=True)

  def drop_work(self, queue: HardwareQueue | None) -> None:
    """End the dispatches of a queue, or all."""
    for dispatch in list(self.work):
      if queue is None or dispatch.queue is queue: dispatch.abandon()

  def released(self) -> None:
    """Drop the address space of a process that has ended."""
    self.drm = self.stopped = None
