"""Events: how a process sleeps until its GPUs signal, and how it learns of their faults. Source: Linux, kfd_events.c.

A GPU signals event n by writing n into slot n of the event page, and by an interrupt that carries n. The process has
one page. It lies in memory of the first GPU with events, and the other GPUs map it too.
"""
from __future__ import annotations
import contextlib
import ctypes

from tinyhw.autogen.amd import kfd_ioctl
from tinyhw.drivers.amd.kfd import HOST, Kfd, Reserved
from tinyhw.drivers.amd.topology import Gpu
from tinyhw.drivers.linux.files import Returns
from tinyhw.named_tuple import NamedTuple

PAGE_BYTES = 8 * kfd_ioctl.KFD_SIGNAL_EVENT_LIMIT

class MemoryFault(NamedTuple):
  """An access that the GPU's page tables do not allow. address: of the page."""
  address: int
  not_present: bool
  read_only: bool
  no_execute: bool
  imprecise: bool
  error_type: int

class HardwareFault(NamedTuple):
  """The GPU, or an engine of it, was reset."""
  whole: bool
  ecc: bool
  memory_lost: bool

class Events:
  """The events of one GPU. Its queues signal `number` through `mailbox`. Faults have events of their own."""
  def __init__(self, kfd: Kfd, gpu: Gpu):
    self.kfd, self.gpu = kfd, gpu
    with contextlib.ExitStack() as undo:
      page = self._page()
      done = self._create(undo, kfd_ioctl.KFD_IOC_EVENT_SIGNAL, 0 if kfd.events_begun else page.handle)
      kfd.events_begun = True
      self.number, self.mailbox = int(done.event_id), page.address + 8 * int(done.event_slot_index)
      self.memory_fault = int(self._create(undo, kfd_ioctl.KFD_IOC_EVENT_MEMORY).event_id)
      self.hardware_fault = int(self._create(undo, kfd_ioctl.KFD_IOC_EVENT_HW_EXCEPTION).event_id)
      self.undo = undo.pop_all()

  def _page(self) -> Reserved:
    """Return the process's page, visible to this GPU."""
    page = self.kfd.event_page
    if page is None: page = self.kfd.event_page = self.kfd.allocate(self.gpu, PAGE_BYTES, HOST, "event page")
    else: self.kfd.share(page, self.gpu)
    return page

  def _create(self, undo: contextlib.ExitStack, kind: int, page: int = 0) -> ctypes.Structure:
    request = kfd_ioctl.CreateEvent(event_page_offset=page, event_type=kind, auto_reset=1)
    self.kfd.node.ioctl(request)
    returns = Returns(self.kfd.unreturned)
    returns.add(lambda: self.kfd.node.ioctl(kfd_ioctl.DestroyEvent(event_id=request.event_id)))
    undo.callback(returns.close)
    return request

  def wait(self, timeout_ms: int) -> MemoryFault | HardwareFault | None:
    """Sleep until a queue signals, for timeout_ms at most. Return a fault if one happened, else None."""
    waited = (kfd_ioctl.EventData * 3)()
    for data, number in zip(waited, (self.number, self.memory_fault, self.hardware_fault)): data.event_id = number
    self.kfd.node.ioctl(kfd_ioctl.WaitEvents(events_ptr=ctypes.addressof(waited), num_events=len(waited),
                                             wait_for_all=0, timeout=timeout_ms))
    memory, hardware = waited[1].memory_exception_data, waited[2].hw_exception_data
    if memory.gpu_id == self.gpu.gpu_id:
      failure = memory.failure
      return MemoryFault(memory.va, bool(failure.NotPresent), bool(failure.ReadOnly), bool(failure.NoExecute),
                         bool(failure.imprecise),
                         memory.ErrorType)
    if hardware.gpu_id == self.gpu.gpu_id:
      return HardwareFault(hardware.reset_type == kfd_ioctl.KFD_HW_EXCEPTION_WHOLE_GPU_RESET,
                           hardware.reset_cause == kfd_ioctl.KFD_HW_EXCEPTION_ECC, bool(hardware.memory_lost))
    return None

  def close(self) -> None:
    """Free the events. A second call does nothing."""
    self.undo.close()
