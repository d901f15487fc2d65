"""One GPU: bytes to the GPU and back, launches, local memory, the order of its channels, faults and deadlines."""
import struct

import pytest
from nvidia.box import KINDS, Note, argument, code

from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import nvidia
from tinyhw.errors import DeviceError, DriverError

@pytest.mark.parametrize("kind", KINDS)
def test_launches_reach_the_gpu_with_their_arguments(opened, kind: str) -> None:
  computer, device = opened(kind)
  note, program, a = Note(computer, stores=True), device.load(code(kind)), device.allocator.alloc(400)
  device.submit([Launch(program, [a], [-5], 3), Launch(program, [a], [1 << 40], 0), Launch(program, [a], [7], 9)])
  device.synchronize()
  assert [grid.blocks for grid in note.launches] == [3, 9], "no blocks are no launch"
  assert [argument(grid, 1) for grid in note.launches] == [-5, 7] and argument(note.launches[0], 0) == a.address
  out = bytearray(36)
  device.allocator.copyout(memoryview(out), a)
  assert struct.unpack("<9I", out) == tuple(range(1, 10))
  fields = note.launches[0].fields
  assert (fields["program_address"] == program.start and fields["cta_thread_dimension0"] == 64
          and fields["register_count"] == 34)

def test_a_kernel_sees_what_the_one_before_wrote(opened) -> None:
  """The caches of a multiprocessor are invalidated between kernels. The test finds a missing invalidation."""
  computer, device = opened("sm_90")
  note, program, a = Note(computer, stores=True), device.load(code()), device.allocator.alloc(400)
  read = note.Block.step
  def both(block, budget: int) -> bool:
    if argument(block.grid, 1): block.port.load(argument(block.grid, 0), 4)
    else: read(block, budget)
    return True
  note.Block.step = both
  try:
    for _ in range(10): device.submit([Launch(program, [a], [0], 1), Launch(program, [a], [1], 40)])
    device.synchronize()
  finally: note.Block.step = read

def test_local_memory_grows_and_is_told_before_kernels(opened) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  device.load(code(private_bytes=16))
  small = device.local
  assert small is not None and device.local_lane == 16
  device.load(code(private_bytes=8))
  assert device.local is small
  program, a = device.load(code(private_bytes=1000)), device.allocator.alloc(4)
  device.submit([Launch(program, [a], [1], 2)])
  device.synchronize()
  assert device.local[1] >= 1000 * 32 * 64 * 2 and device.local is not small

def test_a_page_fault_names_the_address_and_loses_the_device(opened) -> None:
  computer, device = opened("sm_90")
  note, program = Note(computer, stores=True), device.load(code())
  bad = device.allocator.alloc(8)
  bad.address += 1 << 36
  device.submit([Launch(program, [bad], [0], 1)])
  with pytest.raises(DriverError) as error: device.synchronize()
  assert ("touches memory that it has not (Xid 31, compute channel)" in error.value.message
          and f"{bad.address:#x} (FAULT_PTE)" in error.value.message)
  assert "example" in error.value.message and "SEND_PCAS_A" in error.value.message
  with pytest.raises(DeviceError, match="NV is lost since it touches memory"): device.allocator.alloc(1 << 20)
  bad.address -= 1 << 36
  assert note.launches

def test_a_kernel_that_never_ends_misses_the_deadline(opened) -> None:
  computer, device = opened("sm_90")
  note, program, a = Note(computer), device.load(code()), device.allocator.alloc(4)
  note.Block.step, kept = lambda block, budget: False, note.Block.step
  try:
    device.submit([Launch(program, [a], [0], 1)])
    with Context(HCQDEV_WAIT_TIMEOUT_MS=50), pytest.raises(DriverError, match=r"NV \(sm_90\) did not finish "
                                                           r"submission .* in 0.05 s"):
      device.synchronize()
  finally: note.Block.step = kept

def test_what_buffers_hold_outlives_the_device(opened) -> None:
  _, device = opened("sm_90")
  data, out = bytes(range(100)), bytearray(100)
  a = device.allocator.alloc(100)
  device.allocator.copyin(a, memoryview(data))
  device.close()
  again = nvidia.open(0, lambda name: None)  # type: ignore[arg-type,return-value]
  again.allocator.copyout(memoryview(out), a)
  assert out == data and again.allocator is device.allocator
  again.allocator.free(a)
  again.close()

def test_facts(opened) -> None:
  _, device = opened("sm_80")
  facts = device.facts()
  assert (facts["processor"] == "NVIDIA A100-SXM4-80GB, 108 multiprocessors"
          and facts["kernel_interface"] == "NVIDIA 580.142")
  assert facts["local_bytes"] == 163 << 10 and facts["cache_bytes"] == (192 << 10, 40 << 20)
