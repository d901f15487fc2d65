"""Reasons why a GPU cannot be driven that are the same for all vendors: the card on the PCI bus, the kernel module, the
count of GPUs.

A vendor's module `doctor` describes itself by a `Vendor`, begins with `begin`, and adds its own findings: versions,
chips, requirements of its driver. Only reads.
"""
from __future__ import annotations

from tinyhw.data_class import dataclass
from tinyhw.drivers.linux.diagnosis import OK, PROBLEM, Finding, cards, module
from tinyhw.drivers.linux.files import HostFiles
from tinyhw.errors import TinyError

@dataclass(frozen=True)
class Vendor:
  """The vendor of the GPUs.

  name: of the firm. device: the name of its GPUs in tinyhw. pci: its number on the PCI bus. module: the kernel module
  that makes the device file `control`. log: the word of its messages in dmesg. container: options for the start of a
  container.
  """
  name: str
  device: str
  pci: int
  module: str
  control: str
  log: str
  container: str

def begin(box: HostFiles, vendor: Vendor) -> list[Finding]:
  """Check the card and the module.

  If no module is loaded, this problem is the only finding, since all others would follow from it.
  """
  on_bus = cards(box, vendor.pci)
  found = [] if on_bus is None else [_card(vendor, on_bus)]
  found.append(module(box, vendor.module, vendor.control, on_bus))
  if found[-1].state != PROBLEM: return found
  return [next(f for f in found if f.state == PROBLEM)]

def _card(vendor: Vendor, on_bus: list[str]) -> Finding:
  if on_bus: return Finding("card", OK, ", ".join(on_bus))
  return Finding("card", PROBLEM, f"no GPU of {vendor.name} is on the PCI bus",
                 "look whether it has power and sits well; pass it on to a virtual machine")

def counted(vendor: Vendor, name: str, count: int, ordinal: int) -> Finding:
  """Check that GPU number `ordinal` is among the `count` ones of the kernel driver. name: of the finding."""
  if ordinal < count: return Finding(name, OK, f"{count} GPU{'s' if count > 1 else ''} that this process may use")
  if not count:
    return Finding(name, PROBLEM, "the kernel's driver shows no GPU that this process may use",
                   f"start the container with {vendor.container}; dmesg | grep {vendor.log} says whether the module "
                   f"refused the card")
  return Finding(name, PROBLEM, f"there {'is 1 GPU' if count == 1 else f'are {count} GPUs'}, and number {ordinal} is "
                 f"none of them",
                 f"use {vendor.device}{f':{count - 1}' if count > 1 else ''}")

def refused(name: str, error: TinyError) -> Finding:
  """Return an error of the driver as a finding. The text after the semicolon of the message is the advice."""
  words, _, fix = error.message.partition("; ")
  return Finding(name, PROBLEM, words, fix)
