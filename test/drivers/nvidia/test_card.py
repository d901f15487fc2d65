"""Memory: kinds, refusals, sharing and freeing; the properties of a card."""

import pytest

from tinyhw.drivers.linux.files import Refused
from tinyhw.drivers.nvidia.card import HOST, RING, VRAM
from tinyhw.errors import DeviceError, OutOfMemory

@pytest.mark.parametrize("kind", (VRAM, RING, HOST))
def test_memory_is_seen_at_low_addresses_and_given_back(opened, kind) -> None:
  computer, device = opened("sm_90")
  before = computer.census()
  memory = device.card.allocate(5000, kind, "some")
  assert memory.address < 1 << 40 and memory.size % kind.page == 0
  if kind.visible:
    memory.mapping.store32(8, 77)
    assert memory.mapping.load32(8) == 77 and memory.mapping.address == memory.address
  memory.close()
  assert computer.census() == before

def test_there_is_no_more_memory_than_there_is(opened) -> None:
  _, device = opened("sm_90")
  with pytest.raises(Refused, match="making memory of the GPU: .* no memory; drop references"):
    device.card.allocate(8 << 30, VRAM, "too much")
  with pytest.raises(OutOfMemory): device.allocator.alloc(8 << 30)

def test_multiprocessors_are_counted_where_masks_are_not_told(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  computer, device = opened("sm_89")
  assert device.card._count() == 64
  del computer.objects.controls[computer.structures.GrGetTpcMask.NUMBER]
  assert device.card._count() == 64
  del computer.objects.controls[computer.structures.GrGetInfo.NUMBER]
  with pytest.raises(Refused, match="GrGetInfo"): device.card._count()

def test_local_memory_has_a_place_for_each_tpc_that_the_chip_has(opened) -> None:
  """Disabled TPCs count too: it is not known whether the GPU skips them."""
  computer, device = opened("sm_90")
  assert (device.card.tpcs, device.card.tpc_places) == (66, 72)
  device.reserve_local(16)
  assert device.local is not None and device.local[0].size >= 72 * device.local[1]
  del computer.objects.controls[computer.structures.GrGetInfo.NUMBER]
  assert device.card._places() == 66

def test_a_gpu_without_known_classes_is_refused(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  _, device = opened("sm_90")
  monkeypatch.setattr(device.card, "classes", [0xB0C0])
  with pytest.raises(DeviceError, match="has no compute class that is known here; known are sm_80"): device.card._chip()
  monkeypatch.setattr(device.card, "classes", [0xCBC0, 0xCDC0])
  with pytest.raises(DeviceError, match="NVIDIA H200 at 0000:17:00.0 is of the kind sm_100, for which nothing "
                     "compiles"):
    device.card._chip()
  with pytest.raises(DeviceError, match="NVIDIA H200 at 0000:17:00.0 has no channel of a known class"):
    device.card.class_of((1, 2), "channel")
