"""Unified memory: ranges do not overlap, memory is mapped whole, GPUs are registered first."""
import pytest

from tinyhw.drivers import nvidia
from tinyhw.drivers.linux.files import Node, Refused
from tinyhw.drivers.nvidia.card import HOST, VRAM, _uuid

def test_ranges_are_checked(opened) -> None:
  computer, device = opened("sm_90")
  card, s = device.card, computer.structures
  call = card.connection.call_uvm
  memory = card.allocate(4096, HOST, "some")
  with pytest.raises(Refused, match="uvm address in use"): call(s.UvmCreateExternal(base=memory.address, length=4096))
  with pytest.raises(Refused, match="invalid address"): call(s.UvmCreateExternal(base=memory.address + 1, length=4096))
  with pytest.raises(Refused, match="invalid address"): call(s.UvmFree(base=memory.address + 4096))
  with pytest.raises(Refused, match="invalid state"): call(s.UvmUnregisterGpu(gpu_uuid=_uuid(card.uuid)))
  with pytest.raises(Refused, match="invalid device"): call(s.UvmRegisterGpu(gpu_uuid=_uuid(bytes(16))))
  memory.close()

def test_huge_pages_lie_at_their_multiples(opened) -> None:
  computer, device = opened("sm_90")
  card, s = device.card, computer.structures
  memory = card.allocate(4096, VRAM, "some")
  place = card.addresses().take(4 << 20, 2 << 20) + 4096
  card.connection.call_uvm(s.UvmCreateExternal(base=place, length=4096))
  request = s.UvmMapExternal(base=place, length=4096, gpuAttributesCount=1, rmCtrlFd=card.connection.node.fileno(),
                             hMemory=memory.handle)
  request.perGpuAttributes[0].gpuUuid = _uuid(card.uuid)
  with pytest.raises(Refused, match="invalid address"): card.connection.call_uvm(request)
  card.connection.call_uvm(s.UvmFree(base=place))
  memory.close()

def test_memory_of_another_gpu_wants_a_link(opened) -> None:
  computer, device = opened("sm_90x2")
  second = nvidia.open(1, lambda name: None)  # type: ignore[arg-type,return-value]
  memory = device.card.allocate(4096, VRAM, "some")
  second.card.share(memory)
  assert len(computer.uvm.peers) == 1 and memory.seen_by == [device.card, second.card]
  memory.close()
  second.close()

def test_a_file_that_began_nothing_ends_nothing(opened) -> None:
  """A test whether the node opens does no harm to the process's own connection."""
  computer, device = opened("sm_90")
  other = Node(computer, "/dev/nvidia-uvm")
  with pytest.raises(Refused, match="UvmFree: operation not permitted"):
    other.ioctl(computer.structures.UvmFree(base=0))
  before = computer.census()["registered"]
  other.close()
  assert computer.census()["registered"] == before == 1
