"""Findings about WebGPU, in the order in which a user meets them."""
import pytest
from webgpu.fake_wgpu import Adapter, FakeWgpu

from tinyhw.config import Context
from tinyhw.drivers import webgpu
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM
from tinyhw.drivers.webgpu.doctor import diagnose
from tinyhw.errors import DeviceError

def with_library(monkeypatch: pytest.MonkeyPatch, fake: FakeWgpu) -> FakeWgpu:
  monkeypatch.setattr(webgpu, "load_library", lambda: fake)
  monkeypatch.setattr(webgpu, "_libraries", [])
  return fake

def test_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
  fake = with_library(monkeypatch, FakeWgpu(Adapter(), Adapter("Soft", 3)))
  found = {finding.name: finding for finding in diagnose(1)}
  assert found["library"].words == "wgpu-native 29.0.0.0 is loaded" and not fake.held
  assert found["WEBGPU:1"].words == "Soft by Vulkan, processor" and found["WEBGPU:0"].state == OK
  assert found["memory"].words == "1.00 GB in one buffer, of which a kernel is given 128.00 MB; 10 buffers of a kernel"
  assert found["float64"].state == NOTE and found["times"].state == OK

def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
  with_library(monkeypatch, FakeWgpu(Adapter(timestamps=False, maxStorageBuffersPerShaderStage=4)))
  found = {finding.name: finding for finding in diagnose(0)}
  assert found["needed"].state == PROBLEM and found["WEBGPU:0"].state == NOTE and found["times"].state == NOTE

def test_reasons_that_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
  def absent() -> None: raise DeviceError("it is not there; install it")
  monkeypatch.setattr(webgpu, "load_library", absent)
  monkeypatch.setattr(webgpu, "_libraries", [])
  assert diagnose(0) == [("library", PROBLEM, "it is not there", "install it")]
  with_library(monkeypatch, FakeWgpu())
  assert [finding.name for finding in diagnose(0)] == ["library", "adapters"]
  fake = with_library(monkeypatch, FakeWgpu(Adapter()))
  assert diagnose(3)[-1].words == "there is no number 3: 1 adapters are there that WEBGPU_DEVICES allows"
  with Context(WEBGPU_DEVICES="none"): assert diagnose(0)[-1].name == "names"
  assert not fake.held
