"""wgpu-native's library: where it is looked for, its version, functions that are missing."""
import ctypes
import os
import sys
from pathlib import Path

import pytest
from webgpu.fake_wgpu import Adapter, FakeWgpu

from tinyhw.config import Context
from tinyhw.drivers.webgpu.library import Text, WgpuLibrary, library_paths, load_library, text_of, without_wayland
from tinyhw.errors import DeviceError

def test_a_named_library_is_the_only_one() -> None:
  with Context(WEBGPU_LIBRARY="/nowhere/libwgpu.so"):
    assert library_paths() == ["/nowhere/libwgpu.so"]
    with pytest.raises(DeviceError, match="WEBGPU_LIBRARY: .*nowhere.*; name the file of wgpu-native's library"):
      load_library()

def test_the_wheel_is_found_without_its_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  folder = tmp_path / "wgpu/resources"
  folder.mkdir(parents=True)
  (tmp_path / "wgpu/__init__.py").write_text("raise SystemExit('it was imported')")
  (folder / "libwgpu_native-release.so").write_bytes(b"")
  monkeypatch.syspath_prepend(tmp_path)
  with Context(WEBGPU_LIBRARY=""): assert library_paths()[0] == str(folder / "libwgpu_native-release.so")

def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
  def absent(name: str) -> None: raise OSError(name)
  monkeypatch.setattr(ctypes, "CDLL", absent)
  monkeypatch.setattr(sys.modules[WgpuLibrary.__module__], "WHEEL", "no_such_package")
  with Context(WEBGPU_LIBRARY=""):
    with pytest.raises(DeviceError, match="the library of wgpu-native is not there; install the Python package wgpu"):
      load_library()

def test_other_versions_and_libraries_are_refused() -> None:
  with pytest.raises(DeviceError, match=r"wgpu-native is version 27.0.4.0, and this driver knows the structures of 29"):
    WgpuLibrary(FakeWgpu(Adapter(), version=27 << 24 | 4 << 8))
  with pytest.raises(DeviceError, match="the library has no wgpuQueueSubmit; it is another library, or of another"):
    WgpuLibrary(FakeWgpu(Adapter(), without=("QueueSubmit",)))

@pytest.mark.parametrize("given", [{}, {"XDG_RUNTIME_DIR": "/run/user/1"}, {"WAYLAND_DISPLAY": "wayland-1"}])
def test_without_a_display_libwayland_is_quiet(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
  for name in ("XDG_RUNTIME_DIR", "WAYLAND_DISPLAY"): monkeypatch.delenv(name, raising=False)
  for name, value in given.items(): monkeypatch.setenv(name, value)
  before = dict(os.environ)
  with without_wayland():
    assert dict(os.environ) == (before if given else {**before, "WAYLAND_DISPLAY": os.devnull})
  assert dict(os.environ) == before

def test_texts() -> None:
  text = Text("größer".encode())
  assert text_of(text.view) == "größer" and text_of(Text(b"").view) == ""
