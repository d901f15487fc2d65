"""Which devices there are, in which order, chosen by names, and what they must have."""
import pytest
from opencl.fake_opencl import FakeOpenCl, Loaded, facts

from tinyhw.autogen import opencl as cl
from tinyhw.config import Context
from tinyhw.drivers.opencl.facts import all_devices, chosen, find_device
from tinyhw.drivers.opencl.library import ClLibrary
from tinyhw.errors import DeviceError

def library(*devices: dict[int, bytes]) -> ClLibrary: return ClLibrary(Loaded(FakeOpenCl(*devices)))

THREE = facts("Slow", cl.DEVICE_TYPE_CPU), facts("Fast"), facts("Other", DEVICE_DOUBLE_FP_CONFIG=0)

def test_gpus_come_before_processors() -> None:
  devices = all_devices(library(*THREE))
  assert [(found.name, found.kind, found.arch) for found in devices] == [
    ("Fast", "GPU", "opencl:fp64"), ("Other", "GPU", "opencl"), ("Slow", "processor", "opencl:fp64")]

def test_processors_have_vectors_unless_lanes_are_wanted() -> None:
  found = library(facts(kind=cl.DEVICE_TYPE_CPU, DEVICE_NATIVE_VECTOR_WIDTH_FLOAT=8))
  assert find_device(found, 0).arch == "opencl:fp64+vectors32"
  with Context(OPENCL_LANES=1): assert find_device(found, 0).arch == "opencl:fp64"
  found = library(facts(DEVICE_NATIVE_VECTOR_WIDTH_FLOAT=8, DEVICE_DOUBLE_FP_CONFIG=0))   # a GPU
  assert find_device(found, 0).arch == "opencl"

def test_devices_are_chosen_by_names() -> None:
  found = library(*THREE)
  with Context(OPENCL_DEVICES="slow, FAST"):
    assert [facts.name for facts in chosen(all_devices(found))] == ["Slow", "Fast"]
    assert find_device(found, 0).name == "Slow"
  with Context(OPENCL_DEVICES="fakes"): assert len(chosen(all_devices(found))) == 3
  with Context(OPENCL_DEVICES="slow,nothing"):
    with pytest.raises(DeviceError, match="no OpenCL device has 'nothing' in its name; there are Fast of Fakes, Other"):
      find_device(found, 0)

@pytest.mark.parametrize("changes, words", [
  ({"DEVICE_SINGLE_FP_CONFIG": 0x7F}, "divides float32 and takes square roots inexactly"),
  ({"DEVICE_MAX_WORK_GROUP_SIZE": 64}, "allows 64 lanes in a workgroup, not 256"),
  ({"DEVICE_LOCAL_MEM_SIZE": 1024}, "has 1024 bytes of shared memory, not 16384"),
  ({"DEVICE_ADDRESS_BITS": 32}, "has other than 64-bit addresses"),
  ({"DEVICE_COMPILER_AVAILABLE": 0}, "has no compiler for source"), ({"DEVICE_AVAILABLE": 0}, "is not available now"),
])
def test_a_device_without_what_kernels_need_is_refused(changes: dict[str, int], words: str) -> None:
  with pytest.raises(DeviceError, match=f"Bad of Fakes {words}; kernels need that; use OPENCL:1"):
    find_device(library(facts("Bad", **changes), facts("Good")), 0)
  with pytest.raises(DeviceError, match="kernels need that; use another device"):
    find_device(library(facts("Bad", **changes)), 0)

def test_a_number_that_there_is_not() -> None:
  with pytest.raises(DeviceError, match="there is no OpenCL device number 7; there are 0: Example of Fakes"):
    find_device(library(), 7)

def test_no_driver_and_no_device() -> None:
  fake = FakeOpenCl()
  fake.failing["clGetPlatformIDs"] = (1, -1001)
  with pytest.raises(DeviceError, match="no OpenCL driver answers: .*install an OpenCL driver"):
    find_device(ClLibrary(Loaded(fake)), 0)
  fake.failing = {"clGetDeviceIDs": (1, -1)}
  with pytest.raises(DeviceError, match="the OpenCL drivers here have no device; clinfo shows them"):
    find_device(ClLibrary(Loaded(fake)), 0)

def test_questions_that_an_old_driver_does_not_know() -> None:
  answers = facts()
  del answers[cl.DEVICE_DOUBLE_FP_CONFIG]
  assert find_device(library(answers), 0).double == 0
