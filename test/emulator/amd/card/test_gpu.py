"""tinyhw/emulator/amd/card/gpu.py: clock, faults, reset."""
import time

import pytest

from test.support.amd.virtual import DEVICE_MEMORY, PAGE, Program
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.emulator.errors import PageFault

def test_the_clock_ticks_at_100_mhz() -> None:
  gpu = Program().gpu
  before, start = time.monotonic_ns(), gpu.clock()
  time.sleep(0.01)
  ticks, after = gpu.clock() - start, time.monotonic_ns()
  assert 1_000_000 <= ticks <= (after - before) // 10 + 1

def test_ids_are_16_bits_and_differ() -> None:
  gpus = Program(count=16).computer.gpus
  assert len({gpu.gpu_id for gpu in gpus}) == 16 and all(0 < gpu.gpu_id < 1 << 16 for gpu in gpus)

def test_a_fault_names_what_lies_nearby_and_stops_all_queues() -> None:
  program = Program()
  area, signal, queue = program.allocate(PAGE), program.allocate(PAGE), program.queue()
  program.gpu.page_fault(PageFault(area.address + PAGE + 16, False), "somebody")
  assert (program.gpu.stopped is not None
          and program.gpu.stopped.startswith(f"somebody: read of {area.address + PAGE + 16:#x}: not present; "))
  queue.submit(program.release(signal.address, 1))
  program.settle()
  assert signal.mapping.load64(0) == 0

def test_a_reset_loses_the_contents_of_vram() -> None:
  program = Program()
  vram, host = program.allocate(PAGE, DEVICE_MEMORY), program.allocate(PAGE)
  for area in (vram, host): area.mapping.store32(0, 7)
  program.gpu.reset()
  assert vram.mapping.load32(0) == 0 and host.mapping.load32(0) == 7 and program.gpu.stopped == "the GPU was reset"

# **** two processes ****

def works(program: Program) -> bool:
  signal, queue = program.allocate(PAGE), program.queue()
  queue.submit(program.release(signal.address, 1))
  program.settle()
  return bool(signal.mapping.load64(0) == 1)

def exceptions(program: Program) -> list[str]:
  """Return the exceptions that the process is told, through events that it made before."""
  found = program.computer.events.events.values()
  return ["memory" for event in found if event.memory is not None] + ["hardware" for event in found
                                                                      if event.hardware is not None]

def test_a_fault_of_one_process_concerns_no_other() -> None:
  one = Program()
  other = Program(beside=one)
  for program in (one, other):
    for kind in (kfd.KFD_IOC_EVENT_MEMORY, kfd.KFD_IOC_EVENT_HW_EXCEPTION):
      program.call(kfd.CreateEvent(event_type=kind))
  queue = one.queue()
  queue.submit(one.release(0x1000, 1))
  other.settle()
  assert exceptions(one) == ["memory"] and exceptions(other) == []
  assert one.gpu.stopped is not None and other.gpu.stopped is None and works(other)

def test_a_reset_is_told_to_all_processes_and_who_comes_later_can_go_on() -> None:
  one = Program()
  other = Program(beside=one)
  for program in (one, other): program.call(kfd.CreateEvent(event_type=kfd.KFD_IOC_EVENT_HW_EXCEPTION))
  area = other.allocate(PAGE, DEVICE_MEMORY)
  area.mapping.store32(0, 7)
  one.gpu.reset()
  assert exceptions(one) == exceptions(other) == ["hardware"] and area.mapping.load32(0) == 0
  for program in (one, other):
    with pytest.raises(OSError, match="was reset"): program.queue()
  assert works(Program(beside=one))
