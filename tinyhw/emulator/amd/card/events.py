"""Events of the virtual kernel's driver: signals with slots in a page that GPUs write, memory faults, exceptions of the
hardware.

An interrupt names an event. When it arrives, the slot of a signal must differ from all ones. Otherwise the interrupt is
lost. So a GPU that interrupts before it writes the slot, or without writing it, wakes nobody, as with the real driver.
Source: Linux, amdkfd/kfd_events.c.
"""
from __future__ import annotations
import errno
import time
from typing import TYPE_CHECKING, Any

from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.emulator.amd.card.memory import FramesWatcher
from tinyhw.emulator.files import VirtualMapping, refuse
from tinyhw.emulator.memory.physical import Frames

if TYPE_CHECKING:
  from tinyhw.emulator.amd.card.computer import GpuHost
  from tinyhw.emulator.amd.card.gpu import GpuContext

SLOTS = kfd.KFD_SIGNAL_EVENT_LIMIT
UNSIGNALED = b"\xff" * 8
MMAP_TYPE_EVENTS = 2 << 62
NO_TIMEOUT = 0xFFFFFFFF
SIGNALS = (kfd.KFD_IOC_EVENT_SIGNAL, kfd.KFD_IOC_EVENT_DEBUG_EVENT)
STEPS = 1 << 12                # of the devices, between two checks of the events
STEPS_OF_MS = 1 << 4           # of the devices, in a millisecond of a wait

class DriverEvent:
  """One event. waiters: number of calls that wait for it now."""
  def __init__(self, number: int, kind: int, auto_reset: bool):
    self.number, self.kind, self.auto_reset, self.signaled, self.waiters, self.age = (number, kind, auto_reset, False,
                                                                                      0, 1)
    self.memory: kfd.MemoryException | None = None
    self.hardware: kfd.HwException | None = None

  def set(self) -> None:
    """Set the event. With auto_reset and a waiter it stays set until the waiter takes it."""
    self.signaled = True
    self.age += 1

class EventTable:
  """The events of the process, and their page."""
  def __init__(self, computer: GpuHost):
    self.computer = computer
    self.events: dict[int, DriverEvent] = {}
    self.page: Frames | None = None
    self.page_handle = 0
    self.owned: Frames | None = None     # the page, if the kernel's driver allocated it
    self.lost_interrupts = 0             # those that found no written slot

  # **** calls ****

  def create(self, request: Any) -> None:
    """CreateEvent. The first one may pass the page."""
    if request.event_page_offset: self._set_page(request.event_page_offset)
    if request.event_type > kfd.KFD_IOC_EVENT_MEMORY: raise refuse(errno.EINVAL, f"event type {request.event_type}")
    signal = request.event_type in SIGNALS
    if signal and self.page is None:
      self.page = self.owned = self.computer.memory.system_pages(SLOTS * 8)
      self.page.view[:] = UNSIGNALED * SLOTS
    number = self._free_number(signal)
    self.events[number] = DriverEvent(number, request.event_type, bool(request.auto_reset))
    request.event_id = number
    request.event_trigger_data = number
    request.event_slot_index = number if signal else 0
    if signal and self.owned is not None: request.event_page_offset = MMAP_TYPE_EVENTS

  def _free_number(self, signal: bool) -> int:
    """Return a free number. A signal has the number of its slot, and slot 0 is unused. Other events have numbers after
    all slots.
    """
    numbers = range(1, SLOTS) if signal else range(SLOTS, 2 * SLOTS)
    for number in numbers:
      if number not in self.events: return number
    raise refuse(errno.ENOSPC, "no more events")

  def _set_page(self, handle: int) -> None:
    if self.page is not None: raise refuse(errno.EINVAL, "the page of events is set already")
    buffer = self.computer.memory.find(handle, errno.EINVAL)
    if buffer.size < SLOTS * 8: raise refuse(errno.EINVAL, f"a page of events has {SLOTS * 8:#x} bytes")
    self.page, self.page_handle = buffer.frames, handle
    self.page.view[:SLOTS * 8] = UNSIGNALED * SLOTS

  def find(self, number: int) -> DriverEvent:
    """Return the event with this number. EINVAL where there is none."""
    event = self.events.get(number)
    if event is None: raise refuse(errno.EINVAL, f"no event {number}")
    return event

  def destroy(self, request: Any) -> None:
    """DestroyEvent: calls that wait for it fail."""
    event = self.find(request.event_id)
    del self.events[event.number]
    if event.kind in SIGNALS: self._clear_slot(event.number)

  def set(self, request: Any) -> None:
    """SetEvent: the same as a signal from a device."""
    self._user_event(request.event_id).set()

  def reset(self, request: Any) -> None:
    """ResetEvent."""
    self._user_event(request.event_id).signaled = False

  def _user_event(self, number: int) -> DriverEvent:
    event = self.find(number)
    if event.kind not in SIGNALS: raise refuse(errno.EINVAL, "only signals can be set and reset")
    return event

  def wait(self, request: Any) -> None:
    """Let the devices move until the events have happened, or the time is over.

    While devices move, their steps count as time, so that a seed determines the run. When nothing moves, real time
    counts, since other threads of the program may act.
    """
    wanted = self.computer.read_structures(kfd.EventData, request.events_ptr, request.num_events)
    events = [self.find(item.event_id) for item in wanted]
    deadline = None if request.timeout == NO_TIMEOUT else time.monotonic() + request.timeout / 1000
    most, taken = request.timeout * STEPS_OF_MS, 0
    done = [False] * len(events)
    while True:
      for i, event in enumerate(events):
        if not done[i] and self.events.get(event.number) is not event:
          request.wait_result = kfd.KFD_IOC_WAIT_RESULT_FAIL
          return
        if not done[i] and event.signaled:
          done[i], event.signaled = True, not event.auto_reset
          self._tell(event, wanted[i])
      if all(done) if request.wait_for_all else any(done) or not events:
        request.wait_result = kfd.KFD_IOC_WAIT_RESULT_COMPLETE
        return
      moved = self.computer.scheduler.run(STEPS, self.computer)
      if self.computer.scheduler.interrupted: raise refuse(errno.EINTR)
      taken += moved
      over = deadline is not None and (taken >= most if moved else time.monotonic() >= deadline)
      if over and not any(event.signaled for event in events):
        request.wait_result = kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
        return
      if not moved: self._rest(deadline)

  def _rest(self, deadline: float | None) -> None:
    """Sleep without the lock: nothing moves, but another thread of the program may change that.

    After an error of a device the program would wait forever, so the error is raised again.
    """
    error = self.computer.scheduler.errors.get(self.computer)
    if error is not None: raise error
    lock = self.computer.scheduler.lock
    lock.release()
    try: time.sleep(0.0005 if deadline is None else max(0.0, min(0.0005, deadline - time.monotonic())))
    finally: lock.acquire()

  def _tell(self, event: DriverEvent, asked: kfd.EventData) -> None:
    if event.memory is not None: asked.memory_exception_data = event.memory
    elif event.hardware is not None: asked.hw_exception_data = event.hardware
    else: asked.signal_event_data.last_event_age = event.age

  def map_page(self, length: int, address: int, prot: int) -> VirtualMapping:
    """Map the page that the kernel's driver made for the program."""
    if self.owned is None: raise refuse(errno.EINVAL, "the page of events is the program's own, or not made yet")
    if length > self.owned.size: raise refuse(errno.EINVAL, f"the page of events has {self.owned.size:#x} bytes")
    self.computer.memory.users[self.owned] += 1
    return VirtualMapping(self.computer, self.computer.physical.map(self.owned, 0, length, address, prot),
                          FramesWatcher(self.computer, self.owned))

  def drop_page(self) -> None:
    """Drop the page: the process ends."""
    if self.owned is not None: self.computer.memory.release(self.owned)
    self.page, self.owned, self.page_handle = None, None, 0

  # **** raised by devices ****

  def interrupt(self, number: int) -> None:
    """Handle an interrupt of a queue with this context."""
    event = self.events.get(number)
    if (event is None or self.page is None or event.kind not in SIGNALS or self.page.view[number * 8:number * 8 + 8]
        == UNSIGNALED):
      self.lost_interrupts += 1
      return
    self._clear_slot(number)
    event.set()

  def _clear_slot(self, number: int) -> None:
    if self.page is not None: self.page.view[number * 8:number * 8 + 8] = UNSIGNALED

  def memory_exception(self, gpu: GpuContext, address: int, not_present: bool, read_only: bool,
                       no_execute: bool) -> None:
    """Report a fault of the page table, at the page of this address."""
    failure = kfd.MemoryExceptionFailure(NotPresent=not_present, ReadOnly=read_only, NoExecute=no_execute, imprecise=0)
    for event in self.events.values():
      if event.kind != kfd.KFD_IOC_EVENT_MEMORY: continue
      event.memory = kfd.MemoryException(failure=failure, va=address & -4096, gpu_id=gpu.gpu_id)
      event.set()

  def hardware_exception(self, gpu: GpuContext, reset_type: int, reset_cause: int, memory_lost: bool) -> None:
    """Report the reset of a GPU."""
    for event in self.events.values():
      if event.kind != kfd.KFD_IOC_EVENT_HW_EXCEPTION: continue
      event.hardware = kfd.HwException(reset_type=reset_type, reset_cause=reset_cause, memory_lost=memory_lost,
                                       gpu_id=gpu.gpu_id)
      event.set()
