"""The first findings of the doctors of all GPUs: the card, the kernel module, the count of GPUs."""
from __future__ import annotations
import pytest

from tinyhw.drivers.amd.doctor import AMD
from tinyhw.drivers.gpu.doctor import Vendor, begin, counted, refused
from tinyhw.drivers.linux.diagnosis import OK, PROBLEM, Finding
from tinyhw.drivers.nvidia.doctor import NVIDIA
from tinyhw.emulator.files import VirtualComputer
from tinyhw.errors import DriverError

VENDORS = (AMD, NVIDIA)
CARD = "0000:03:00.0"

def computer(vendor: Vendor, bus: int | None, loaded: bool) -> VirtualComputer:
  """Make a computer with a card of a firm, and the module of a vendor.

  bus: the number of the firm on the PCI bus; None hides the bus. loaded: whether the module is there.
  """
  box = VirtualComputer("examined")
  if bus is not None:
    words = {"vendor": f"{bus:#06x}", "class": "0x030000", "device": "0x744c"}
    box.texts |= {f"/sys/bus/pci/devices/{CARD}/{file}": f"{text}\n" for file, text in words.items()}
  if loaded: box.texts[f"/sys/module/{vendor.module}/version"] = "1\n"
  return box

@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.device)
@pytest.mark.parametrize("bus, loaded, states", [
  ("its", True, {"card": OK, "kernel module": OK}),
  ("other", True, {"card": PROBLEM, "kernel module": OK}),   # a virtual machine may hide the card, and it works
  (None, True, {"kernel module": OK}),
  ("its", False, {"kernel module": PROBLEM}),
  ("other", False, {"card": PROBLEM}),
  (None, False, {"kernel module": PROBLEM}),
])
def test_the_first_thing_that_lacks_is_told(vendor: Vendor, bus: str | None, loaded: bool,
                                            states: dict[str, str]) -> None:
  number = {"its": vendor.pci, "other": 0x8086, None: None}[bus]
  found = begin(computer(vendor, number, loaded), vendor)
  assert {f.name: f.state for f in found} == states
  assert (found[-1].state == PROBLEM) is not loaded, "the last one says whether it makes sense to go on"

@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.device)
def test_words_name_the_vendor(vendor: Vendor) -> None:
  assert begin(computer(vendor, 0x8086, False), vendor)[0].words == f"no GPU of {vendor.name} is on the PCI bus"
  missing = begin(computer(vendor, vendor.pci, False), vendor)[0]
  assert (missing.words == f"{CARD} (device 0x744c) is on the PCI bus, but the kernel's module {vendor.module} is not "
          f"loaded")
  assert missing.fix.startswith(f"sudo modprobe {vendor.module};")

@pytest.mark.parametrize("count, ordinal, words, fix", [
  (1, 0, "1 GPU that this process may use", ""), (8, 7, "8 GPUs that this process may use", ""),
  (1, 1, "there is 1 GPU, and number 1 is none of them", "use NV"),
  (4, 9, "there are 4 GPUs, and number 9 is none of them", "use NV:3"),
  (0, 0, "the kernel's driver shows no GPU that this process may use",
   f"start the container with {NVIDIA.container}; dmesg | grep NVRM says whether the module refused the card")])
def test_a_number_is_looked_for_among_those_that_there_are(count: int, ordinal: int, words: str, fix: str) -> None:
  assert counted(NVIDIA, "cards", count, ordinal) == Finding("cards", PROBLEM if fix else OK, words, fix)

def test_a_refusal_is_taken_apart() -> None:
  assert refused("chip", DriverError("it is old; buy another; or wait")) == Finding("chip", PROBLEM, "it is old",
                                                                                    "buy another; or wait")
  assert refused("chip", DriverError("it is old")) == Finding("chip", PROBLEM, "it is old")
