"""The vendor's library: missing functions, and statuses in words."""
import ctypes
import errno

import pytest
from nvidia.fake_cuda import FakeCuda, Loaded

from tinyhw.drivers.nvidia import library
from tinyhw.drivers.nvidia.library import Failure, Library
from tinyhw.errors import DeviceError

def test_no_library_and_an_old_one_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(library, "NAMES", ("libthat_is_nowhere.so",))
  with pytest.raises(DeviceError, match="libcuda.so.1.* is not there; install"): library.load_library()
  with pytest.raises(DeviceError, match="has no cuMemAlloc_v2; it is older than CUDA 12"):
    Library(Loaded(FakeCuda(), without="cuMemAlloc_v2"))

def test_a_library_that_the_loader_does_not_know_is_found_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
  tried = list[str]()
  def load(name: str) -> str:
    tried.append(name)
    if not name.startswith("/usr/local/nvidia/lib64"): raise OSError("no such file")
    return name
  monkeypatch.setattr(ctypes, "CDLL", load)
  assert library.load_library() == "/usr/local/nvidia/lib64/libcuda.so.1" and tried[:2] == ["libcuda.so.1",
                                                                                            "libcuda.so"]

def test_statuses_become_words() -> None:
  fake = FakeCuda()
  made = Library(Loaded(fake))
  assert made.number("cuDriverGetVersion") == 12080 and made.text("cuDeviceGetName", 0) == "Stand-in"
  for status, said, number in ((2, "drop references", errno.ENOMEM), (100, "CUDA_VISIBLE_DEVICES", errno.ENODEV),
                               (700, "kernel log", errno.EIO),
                               (999, "kernel log", errno.EINVAL), (803, "different versions", errno.EINVAL)):
    fake.failing["cuCtxSetCurrent"] = (0, status)
    with pytest.raises(Failure,
                       match=rf"cuCtxSetCurrent: error number {status} \(CUDA_ERROR_{status}\); .*{said}") as failure:
      made.call("cuCtxSetCurrent", 1)
    assert failure.value.errno == number and failure.value.status == status
  assert ctypes.sizeof(ctypes.c_void_p) == 8
