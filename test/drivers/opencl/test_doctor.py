"""Findings about OpenCL, in the order in which a user meets them."""
import pytest
from opencl.fake_opencl import FakeOpenCl, Loaded, facts

from tinyhw.autogen import opencl as cl
from tinyhw.config import Context
from tinyhw.drivers import opencl
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM
from tinyhw.drivers.opencl.doctor import diagnose
from tinyhw.errors import DeviceError

def with_library(monkeypatch: pytest.MonkeyPatch, fake: FakeOpenCl) -> None:
  monkeypatch.setattr(opencl, "load_library", lambda: Loaded(fake))
  monkeypatch.setattr(opencl, "_libraries", [])

def test_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
  with_library(monkeypatch, FakeOpenCl(facts("Card"), facts("Host", cl.DEVICE_TYPE_CPU)))
  found = {finding.name: finding for finding in diagnose(1)}
  assert {finding.state for finding in found.values()} == {OK} and found["drivers"].words == "Fakes"
  assert found["OPENCL:0"].words == "Card of Fakes, GPU" and found["OPENCL:1"].words == "Host of Fakes, processor"
  assert found["memory"].words == "1.00 GB, 256.00 MB in one buffer; a cache of 1.00 MB"
  assert found["workgroup"].words == "up to 1024 lanes, 32.00 KB of shared memory; no subgroups"

def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
  with_library(monkeypatch, FakeOpenCl(facts("Old", DEVICE_SINGLE_FP_CONFIG=cl.FP_INF_NAN, DEVICE_DOUBLE_FP_CONFIG=0)))
  found = {finding.name: finding for finding in diagnose(0)}
  assert found["needed"].state == PROBLEM and "inexactly" in found["needed"].words and found["OPENCL:0"].state == NOTE
  assert found["float64"].state == NOTE and found["subnormals"].words == "float32 flushes them to 0"

def test_reasons_that_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
  def absent() -> None: raise DeviceError("it is not there; install it")
  monkeypatch.setattr(opencl, "load_library", absent)
  monkeypatch.setattr(opencl, "_libraries", [])
  assert diagnose(0) == [("library", PROBLEM, "it is not there", "install it")]
  fake = FakeOpenCl()
  fake.failing["clGetPlatformIDs"] = (1, -1001)
  with_library(monkeypatch, fake)
  assert [finding.name for finding in diagnose(0)] == ["library", "drivers"]
  with_library(monkeypatch, FakeOpenCl())
  assert diagnose(3)[-1].words == "there is no number 3: the drivers have 1 devices that OPENCL_DEVICES allows"
  with Context(OPENCL_DEVICES="none"): assert diagnose(0)[-1].name == "names"
