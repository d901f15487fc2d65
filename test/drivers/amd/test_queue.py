"""Queues: requests to the kernel, pointers and doorbells. A failure at any call leaves nothing allocated."""
import ctypes
import errno
from typing import Any

import pytest
from amd.box import AMDBox, Opener

from tinyhw.autogen.amd import kfd_ioctl, pm4
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.queue import READ_POINTER, WRITE_POINTER, Indirect, Pm4Queue, show_packets
from tinyhw.drivers.linux import files
from tinyhw.errors import TinyError

def created(box: AMDBox, kind: int) -> Any:
  return next(queue.request for queue in box.queues.values() if queue.request.queue_type == kind)

def test_memory_of_a_queue_is_as_the_kernel_wants_it(opened: Opener) -> None:
  box, device = opened("gfx1100")
  request = created(box, kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE)
  allocations = {kept.va_addr: kept.size for kept, _ in box.memory.values()}
  assert allocations[request.ring_base_address] == request.ring_size == 1 << 20
  page = request.write_pointer_address & -4096
  assert (allocations[page] == 4096 and request.read_pointer_address - page == READ_POINTER == 128
          and request.write_pointer_address - page == 56)
  assert allocations[request.eop_buffer_address] == request.eop_buffer_size == 4096
  sizes = device.gpu.queue_sizes()
  assert (request.ctl_stack_size, request.ctx_save_restore_size) == (sizes.control_stack, sizes.save)
  assert allocations[request.ctx_save_restore_address] == sizes.total
  copies = created(box, kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA)
  assert copies.eop_buffer_address == copies.ctx_save_restore_address == 0 and copies.queue_percentage == 100

def queue_of(device: Any) -> Pm4Queue:
  assert isinstance(device.compute, Pm4Queue)
  return device.compute

def test_the_write_pointer_counts_for_ever_and_the_read_pointer_wraps(opened: Opener) -> None:
  box, device = opened("gfx1100")
  queue = queue_of(device)
  piece, total = pm4.GFX10.NOP(data=[0] * 16_000), 0
  for _ in range(40):
    queue.put(piece)
    queue.ring.ring()
    total += len(piece)
    assert queue.pointers.load64(WRITE_POINTER) == total == queue.doorbell.load64(queue.doorbell_offset)
    assert queue.pointers.load32(READ_POINTER) == total % (1 << 18) == queue.consumed()

def test_a_piece_longer_than_the_ring_goes_in_parts(opened: Opener) -> None:
  box, device = opened("gfx1100")
  words = pm4.GFX10.NOP(data=[0] * 15) * 20_000
  queue_of(device).put(words)
  queue_of(device).ring.ring()
  assert box.packets.count("NOP") == 20_000

def test_an_indirect_buffer_is_a_packet(opened: Opener) -> None:
  box, device = opened("gfx1100")
  words = pm4.GFX10.EVENT_WRITE(event_type=7, event_index=4)
  memory = device.transient.write(b"".join(word.to_bytes(4, "little") for word in words))
  queue_of(device).put(Indirect(memory, len(words)))
  queue_of(device).ring.ring()
  assert box.packets[-2:] == ["INDIRECT_BUFFER", "EVENT_WRITE"]
  shown = queue_of(device).recent()
  assert shown[-2].startswith("INDIRECT_BUFFER ib_base=0x") and shown[-1] == "  EVENT_WRITE event_type=7 event_index=4"

def test_the_state_says_how_far_it_is(opened: Opener) -> None:
  _, device = opened("gfx1100")
  queue = queue_of(device)
  queue.put(pm4.GFX10.NOP(data=[0]))
  queue.ring.ring()
  assert queue.state() == f"compute queue {queue.number}: 2 of 2 words read (modulo 262144)"

def test_packets_are_shown_from_where_words_are_such(opened: Opener) -> None:
  _, device = opened("gfx1100")
  words = [0x12345678, *pm4.GFX10.EVENT_WRITE(event_type=7, event_index=4),
           *pm4.GFX10.SET_SH_REG(reg_offset=0x20C, values=[16, 1])]
  assert show_packets(device, words) == ["EVENT_WRITE event_type=7 event_index=4",
                                         "SET_SH_REG reg_offset=0x20c values=0x10,0x1"]
  assert show_packets(device, [1, 2, 3]) == []
  assert (show_packets(device, pm4.GFX10.INDIRECT_BUFFER(ib_base=0x1000, ib_size=4, valid=1))
          == ["INDIRECT_BUFFER ib_base=0x1000 ib_size=4 valid=1"])

CALLS = [(call, nth) for call, count in {"AllocMemoryOfGpu": 10, "MapMemoryToGpu": 10, "CreateEvent": 3,
                                         "CreateQueue": 2, "mmap": 9, "open": 2,
                                         "AcquireVm": 1, "GetVersion": 1, "RuntimeEnable": 1}.items()
         for nth in range(1, count + 1)]

@pytest.mark.parametrize("kind", ("gfx1100", "gfx942"))
@pytest.mark.parametrize("call, nth", CALLS)
def test_a_device_that_fails_to_open_leaves_nothing_and_opens_later(monkeypatch: pytest.MonkeyPatch, kind: str,
                                                                    call: str, nth: int) -> None:
  """Each call in turn fails.

  Only files and the page of events stay. The kernel frees them with the process.
  """
  box = AMDBox(kind)
  monkeypatch.setattr(files, "COMPUTER", box)
  box.fail(call, nth, errno.ENOMEM)
  with pytest.raises(TinyError) as caught: amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  assert "ENOMEM" in caught.value.message and "; " in caught.value.message, "the reason, and what to do"
  left = box.held()
  assert left["queues"] == left["events"] == 0 and left["files"] <= 2 and left["memory"] <= 1 and left["mappings"] <= 1
  device = amd.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  device.close()
  kfd.forget(box)
  assert box.held() == {"files": 0, "mappings": 0, "memory": 1, "queues": 0, "events": 0}

def test_a_descriptor_is_never_read_outside_of_the_page() -> None:
  assert READ_POINTER + ctypes.sizeof(ctypes.c_uint64) <= 4096
