"""tinyhw/emulator/amd/card/events.py: slots, interrupts, waits, limits."""
import ctypes
import errno
import signal
import threading
import time
from typing import Any

import pytest

from test.support.amd.virtual import GTT, PAGE, PUBLIC, Program
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.autogen.amd import pm4
from tinyhw.drivers.linux.files import MAP_SHARED, READ_WRITE
from tinyhw.emulator.amd.card.events import MMAP_TYPE_EVENTS, SLOTS
from tinyhw.emulator.errors import PacketError

COMPLETE, TIMEOUT, FAIL = range(3)

def create(program: Program, kind: int = kfd.KFD_IOC_EVENT_SIGNAL, auto_reset: int = 1, page: int = 0) -> Any:
  return program.call(kfd.CreateEvent(event_page_offset=page, event_type=kind, auto_reset=auto_reset))

def wait(program: Program, *events: Any, timeout: int = 0, everything: int = 0) -> tuple[int, Any]:
  array = (kfd.EventData * len(events))(*(kfd.EventData(event_id=event.event_id) for event in events))
  call = kfd.WaitEvents(events_ptr=ctypes.addressof(array), num_events=len(events), wait_for_all=everything,
                        timeout=timeout)
  program.call(call)
  return call.wait_result, array

def with_page(program: Program) -> tuple[Any, Any]:
  """Return the page of events, and the first event."""
  area = program.allocate(SLOTS * 8)
  return area, create(program, page=area.handle)

@pytest.mark.parametrize("int_sel,wakes", [(pm4.INT_WRITE_CONFIRM, True), (pm4.INT_ONLY, False), (pm4.INT_NONE, False)])
def test_a_fence_wakes_who_waits_if_its_slot_is_written_first(int_sel: int, wakes: bool) -> None:
  program = Program()
  area, event = with_page(program)
  queue = program.queue()
  slot = area.address + 8 * event.event_slot_index
  queue.submit(program.release(slot, event.event_id, int_sel=int_sel, int_ctxid=event.event_id))
  result, data = wait(program, event, timeout=1000 if wakes else 1)
  assert result == (COMPLETE if wakes else TIMEOUT)
  if wakes: assert area.mapping.load64(8 * event.event_slot_index) == (1 << 64) - 1
  assert program.computer.events.lost_interrupts == (int_sel == pm4.INT_ONLY)

def test_an_interrupt_without_a_slot_wakes_nobody() -> None:
  program = Program()
  _, event = with_page(program)
  queue = program.queue()
  queue.submit(program.release(data=pm4.DATA_NONE, interrupt=event.event_id))
  assert wait(program, event, timeout=1)[0] == TIMEOUT and program.computer.events.lost_interrupts == 1

def test_a_wait_takes_an_event_with_auto_reset_and_leaves_one_without() -> None:
  program = Program()
  for auto_reset, again in ((1, TIMEOUT), (0, COMPLETE)):
    event = create(program, auto_reset=auto_reset)
    program.call(kfd.SetEvent(event_id=event.event_id))
    assert wait(program, event)[0] == COMPLETE and wait(program, event)[0] == again
    program.call(kfd.ResetEvent(event_id=event.event_id))
    assert wait(program, event)[0] == TIMEOUT

def test_waits_for_one_and_for_all() -> None:
  program = Program()
  first, second = create(program), create(program)
  program.call(kfd.SetEvent(event_id=second.event_id))
  assert wait(program, first, second, everything=1)[0] == TIMEOUT
  program.call(kfd.SetEvent(event_id=second.event_id))
  assert wait(program, first, second)[0] == COMPLETE

def test_an_event_that_another_thread_sets() -> None:
  program = Program()
  event = create(program)
  thread = threading.Thread(target=lambda: (time.sleep(0.02), program.call(kfd.SetEvent(event_id=event.event_id))))
  thread.start()
  assert wait(program, event, timeout=0xFFFFFFFF)[0] == COMPLETE
  thread.join()

def test_a_wait_ends_with_an_interruption() -> None:
  program = Program()
  event = create(program)
  timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
  timer.start()
  with pytest.raises(KeyboardInterrupt): wait(program, event, timeout=0xFFFFFFFF)
  timer.join()
  program.call(kfd.SetEvent(event_id=event.event_id))
  assert wait(program, event)[0] == COMPLETE

def test_a_wait_fails_when_its_event_goes(monkeypatch: pytest.MonkeyPatch) -> None:
  program = Program()
  event, events = create(program), program.computer.events
  # as another thread does, while nothing moves
  monkeypatch.setattr(events, "_rest", lambda deadline: events.destroy(event))
  assert wait(program, event, timeout=10000)[0] == FAIL
  with pytest.raises(OSError, match="no event") as caught: wait(program, event)
  assert caught.value.errno == errno.EINVAL

def test_the_page_is_set_once_and_large_enough() -> None:
  program = Program()
  small, area = program.allocate(PAGE), program.allocate(SLOTS * 8)
  with pytest.raises(OSError, match="has 0x8000 bytes"): create(program, page=small.handle)
  create(program, page=area.handle)
  assert area.mapping.load64(0) == area.mapping.load64(SLOTS * 8 - 8) == (1 << 64) - 1
  with pytest.raises(OSError, match="set already") as caught: create(program, page=area.handle)
  assert caught.value.errno == errno.EINVAL
  program.unmap(area.handle)
  with pytest.raises(OSError, match="cannot be freed") as caught: program.call(kfd.FreeMemoryOfGpu(handle=area.handle))
  assert caught.value.errno == errno.EPERM

def test_the_kernel_makes_a_page_if_the_program_gives_none() -> None:
  program = Program()
  event = create(program)
  assert event.event_page_offset == MMAP_TYPE_EVENTS
  page = program.kfd.mmap(SLOTS * 8, MMAP_TYPE_EVENTS, 0, READ_WRITE, MAP_SHARED)
  assert page.load64(8 * event.event_slot_index) == (1 << 64) - 1
  with pytest.raises(OSError, match="has 0x8000 bytes"):
    program.kfd.mmap(SLOTS * 16, MMAP_TYPE_EVENTS, 0, READ_WRITE, MAP_SHARED)

@pytest.mark.slow
def test_slots_end() -> None:
  program = Program()
  numbers = [create(program).event_slot_index for _ in range(SLOTS - 1)]
  assert numbers[0] == 1 and len(set(numbers)) == SLOTS - 1
  with pytest.raises(OSError, match="no more events") as caught: create(program)
  assert caught.value.errno == errno.ENOSPC
  assert create(program, kfd.KFD_IOC_EVENT_MEMORY).event_id >= SLOTS

@pytest.mark.parametrize("kind", [9, 100])
def test_types(kind: int) -> None:
  with pytest.raises(OSError) as caught: create(Program(), kind)
  assert caught.value.errno == errno.EINVAL

def test_only_signals_can_be_set() -> None:
  program = Program()
  event = create(program, kfd.KFD_IOC_EVENT_MEMORY)
  with pytest.raises(OSError, match="only signals"): program.call(kfd.SetEvent(event_id=event.event_id))

def test_a_memory_fault_tells_where_and_how() -> None:
  program = Program()
  memory, hardware = create(program, kfd.KFD_IOC_EVENT_MEMORY, 0), create(program, kfd.KFD_IOC_EVENT_HW_EXCEPTION, 0)
  area = program.allocate(PAGE, GTT | PUBLIC)
  queue = program.queue()
  queue.submit(program.release(area.address + 8, 1))
  result, data = wait(program, memory, hardware, timeout=1000)
  fault = data[0].memory_exception_data
  assert result == COMPLETE and fault.va == area.address and fault.gpu_id == program.gpu.gpu_id
  assert (fault.failure.NotPresent, fault.failure.ReadOnly, fault.failure.NoExecute) == (0, 1, 0)
  assert wait(program, hardware)[0] == TIMEOUT

def test_a_wait_for_what_never_comes_tells_the_error_again() -> None:
  program = Program()
  _, event = with_page(program)
  queue = program.queue()
  queue.submit([0])
  for _ in range(2):
    with pytest.raises(PacketError, match="no header"): wait(program, event, timeout=60_000)

def test_a_reset_is_an_exception_of_the_hardware() -> None:
  program = Program()
  event = create(program, kfd.KFD_IOC_EVENT_HW_EXCEPTION)
  program.queue()
  program.gpu.reset()
  result, data = wait(program, event)
  assert (result == COMPLETE and data[0].hw_exception_data.memory_lost == 1 and data[0].hw_exception_data.gpu_id
          == program.gpu.gpu_id)
  with pytest.raises(OSError, match="was reset") as caught: program.queue()
  assert caught.value.errno == errno.EIO
