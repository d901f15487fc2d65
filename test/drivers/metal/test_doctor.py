"""Findings about Metal, in the order in which a user meets them."""
import pytest

from tinyhw.drivers import metal
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM
from tinyhw.drivers.metal.doctor import diagnose, of_device, of_system
from tinyhw.drivers.metal.facts import MetalFacts
from tinyhw.errors import DeviceError
from test.drivers.metal.conftest import Opener

def test_all_is_well(mac: Opener) -> None:
  computer, device = mac("apple9x2")
  found = {finding.name: finding for finding in diagnose(1)}
  assert [name for name, finding in found.items() if finding.state != OK] == ["float64", "subnormals"]
  assert found["METAL:1"].words == "Apple M3 (Apple9)" and found["memory"].words == "6.00 GB, 3.00 GB in one buffer"
  assert computer.census()["MTLDevice"] == 1 and device.lost is None

def test_reasons_that_end_it(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  mac()
  assert diagnose(3)[-1][:3] == ("device", PROBLEM, "there is no number 3: Metal has 1 devices")
  def absent() -> None: raise DeviceError("it is not there; install it")
  monkeypatch.setattr(metal, "load_library", absent)
  assert diagnose(0) == [("library", PROBLEM, "it is not there", "install it")]

def test_facts_of_other_macs() -> None:
  poor = MetalFacts(1, "Apple Paravirtual device", (), False, True, 32768, 1 << 30, 1 << 29)
  found = {finding.name: finding for finding in of_device(poor)}
  assert found["needed"].state == PROBLEM and found["virtual"].state == NOTE
  assert [finding.name for finding in of_system()] == ["system", "processor"]
