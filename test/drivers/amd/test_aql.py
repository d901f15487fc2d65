"""AQL queues: the descriptor, packets that contain PM4, pointers in packets."""
import ctypes

from amd.box import Opener

from tinyhw.autogen.amd import hsa, kfd_ioctl, pm4
from tinyhw.drivers.amd.aql import AQL_RING_BYTES, AqlQueue
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.amd.queue import READ_POINTER, WRITE_POINTER, Indirect

def queue_of(device: AMDDevice) -> AqlQueue:
  queue = device.compute
  assert isinstance(queue, AqlQueue)
  return queue

def test_several_dies_have_an_aql_queue(opened: Opener) -> None:
  box, device = opened("gfx942")
  queue = queue_of(device)
  request = next(q.request for q in box.queues.values()
                 if q.request.queue_type == kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
  found = hsa.Queue.from_address(request.read_pointer_address - READ_POINTER)
  assert (found.base_address, found.size) == (request.ring_base_address,
                                              AQL_RING_BYTES // 64) and request.ring_size == AQL_RING_BYTES
  assert found.read_dispatch_id_field_base_byte_offset == 128 and found.max_cu_id == 303 and found.queue_properties == 2
  assert request.write_pointer_address - request.read_pointer_address == WRITE_POINTER - READ_POINTER == 56 - 128
  assert ctypes.c_uint16.from_address(request.ring_base_address + AQL_RING_BYTES - 64).value == hsa.PACKET_TYPE_INVALID
  assert queue.name == "compute"

def test_words_become_an_indirect_buffer_in_a_vendor_packet(opened: Opener) -> None:
  box, device = opened("gfx942")
  queue = queue_of(device)
  event = pm4.GFX9.EVENT_WRITE(event_type=7, event_index=4)
  queue.put(event, event, Indirect(0x1000, 0), event)
  words = [queue.memory.mapping.load32(4 * i) for i in range(48)]
  for start in (0, 16, 32):
    assert words[start] == 0x00010100 and words[start + 1] == 0xC0023F00 and words[start + 5] == 10
  assert words[4] == 0x800004 and words[20] == 0x800000 and words[36] == 0x800002, ("sizes: two pieces of words are "
                                                                                    "one buffer")
  assert words[18:20] == [0x1000, 0]
  queue.ring.ring()
  assert (queue.pointers.load64(WRITE_POINTER) == 3 == queue.pointers.load64(READ_POINTER)
          and queue.doorbell.load64(queue.doorbell_offset) == 2)
  assert [name for name in box.packets if name != "INDIRECT_BUFFER"] == ["EVENT_WRITE"] * 3 and queue.consumed() == 48

def test_the_ring_goes_round(opened: Opener) -> None:
  box, device = opened("gfx942")
  queue = queue_of(device)
  for _ in range(10_000): queue.put(Indirect(0x1000, 0))
  queue.ring.ring()
  assert queue.pointers.load64(WRITE_POINTER) == 10_000 and queue.consumed() == 10_000 * 16 % (AQL_RING_BYTES // 4)
  assert queue.recent()[0].startswith("INDIRECT_BUFFER")
