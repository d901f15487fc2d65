"""Which adapters there are, in which order, chosen by names, and what they must have."""
import pytest
from webgpu.fake_wgpu import Adapter, FakeWgpu

from tinyhw.config import Context
from tinyhw.drivers.webgpu.facts import all_adapters, chosen, find_adapter
from tinyhw.drivers.webgpu.library import WgpuLibrary
from tinyhw.errors import DeviceError

THREE = Adapter("Software", 3), Adapter("Fast", 1), Adapter("Small", 2, backend=5)

def library(*adapters: Adapter) -> tuple[FakeWgpu, WgpuLibrary]:
  fake = FakeWgpu(*adapters)
  return fake, WgpuLibrary(fake)

def test_gpus_come_before_processors() -> None:
  assert [(facts.title, facts.kind) for facts in all_adapters(library(*THREE)[1])] == [
    ("Fast by Vulkan", "discrete GPU"), ("Small by Metal", "integrated GPU"), ("Software by Vulkan", "processor")]

def test_adapters_are_chosen_by_names_and_others_are_released() -> None:
  fake, found = library(*THREE)
  with Context(WEBGPU_DEVICES="soft, vulkan"):
    assert [facts.name for facts in chosen(all_adapters(found))] == ["Software", "Fast", "Software"]
    fake.held.clear()
    assert find_adapter(found, 0).name == "Software" and fake.held == [100]
  with Context(WEBGPU_DEVICES="nothing"):
    fake.held.clear()
    with pytest.raises(DeviceError, match="WEBGPU_DEVICES: no adapter has 'nothing' in its name; there are Fast by V"):
      find_adapter(found, 0)
    assert not fake.held

@pytest.mark.parametrize("limits, words", [
  ({"maxComputeWorkgroupSizeX": 32}, "allows 32 lanes in a workgroup, not 64"),
  ({"maxComputeWorkgroupStorageSize": 1024}, "has 1024 bytes of shared memory, not 16384"),
  ({"maxStorageBuffersPerShaderStage": 4}, "binds 4 buffers to a kernel, not 8")])
def test_an_adapter_without_what_kernels_need_is_refused(limits: dict[str, int], words: str) -> None:
  fake, found = library(Adapter("Bad", **limits))
  with pytest.raises(DeviceError, match=f"Bad by Vulkan {words}; kernels need that; use another adapter"):
    find_adapter(found, 0)
  assert not fake.held

def test_a_number_that_there_is_not_and_no_adapter() -> None:
  with pytest.raises(DeviceError, match="there is no WebGPU adapter number 3; there are 0: Card by Vulkan"):
    find_adapter(library(Adapter())[1], 3)
  with pytest.raises(DeviceError, match="no adapter is there: wgpu-native found no driver of Vulkan, .*; install"):
    find_adapter(library()[1], 0)

def test_timestamps() -> None:
  facts = find_adapter(library(Adapter(timestamps=False))[1], 0)
  assert not facts.has_timestamps and find_adapter(library(Adapter())[1], 0).has_timestamps
