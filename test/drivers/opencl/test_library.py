"""Calls of the OpenCL library: statuses in words, answers of any size, a library that is missing or old."""
import ctypes

import pytest
from opencl.fake_opencl import FakeOpenCl, Loaded

from tinyhw.autogen import opencl as cl
from tinyhw.drivers.opencl.library import MAKING_CALLS, STATUS_CALLS, ClFailure, ClLibrary, failure, load_library
from tinyhw.errors import DeviceError

def test_answers() -> None:
  found = ClLibrary(Loaded(FakeOpenCl()))
  assert found.list("clGetPlatformIDs") == [1] and found.text("clGetPlatformInfo", 1, cl.PLATFORM_NAME) == "Fakes"
  assert found.number("clGetDeviceInfo", 10, cl.DEVICE_GLOBAL_MEM_SIZE) == 1 << 30

def test_failures_are_named_and_have_advice() -> None:
  fake = FakeOpenCl()
  found = ClLibrary(Loaded(fake))
  fake.failing = {"clGetPlatformIDs": (1, -1001), "clCreateContext": (1, -2), "clFlush": (1, -36)}
  with pytest.raises(ClFailure, match=r"clGetPlatformIDs: PLATFORM_NOT_FOUND_KHR \(-1001\); install an OpenCL driver"):
    found.list("clGetPlatformIDs")
  with pytest.raises(ClFailure, match="clCreateContext: DEVICE_NOT_AVAILABLE .* another process may have it") as raised:
    found.make("clCreateContext", None, 1, None, None, None)
  assert raised.value.status == "DEVICE_NOT_AVAILABLE"
  with pytest.raises(ClFailure, match="INVALID_COMMAND_QUEUE.*report this with"): found.call("clFlush", 1)
  assert failure("something", -4242).status == "status -4242"

def test_a_library_that_is_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
  with pytest.raises(DeviceError, match="has no clGetKernelWorkGroupInfo; it is older than OpenCL 1.2: update it"):
    ClLibrary(Loaded(FakeOpenCl(), without=("clGetKernelWorkGroupInfo",)))
  def absent(name: str) -> None: raise OSError(name)
  monkeypatch.setattr(ctypes, "CDLL", absent)
  with pytest.raises(DeviceError, match=r"the OpenCL library \(libOpenCL.so.1\) is not there; install its loader"):
    load_library()

def test_prototypes_take_what_c_takes() -> None:
  """A prototype for each call; calls that make objects end with the place of their status."""
  assert not set(STATUS_CALLS) & set(MAKING_CALLS)
  assert all(types[-1] is ctypes.c_void_p for types in MAKING_CALLS.values())
