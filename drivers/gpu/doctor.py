"""What keeps a GPU from being driven, as far as it is the same for all vendors: the card on the PCI bus, the kernel's
module, the number of GPUs.

A vendor's module `doctor` says who it is in a `Vendor`, begins with `begin`, and puts its own findings behind:
versions, chips, what its driver insists on. Looks only.
"""
from __future__ import annotations
from dataclasses import dataclass

from tinyhw.drivers.linux.diagnosis import OK, PROBLEM, Finding, cards, module
from tinyhw.drivers.linux.files import Box
from tinyhw.errors import TinyError

@dataclass(frozen=True)
class Vendor:
  """Whose GPUs are looked for.

  name: of the firm; device: what its GPUs are called here; pci: its number on the PCI bus; module: of the kernel, which
  makes the device file `control` and tells its troubles to dmesg under the word `log`; container: options with which a
  container is started.
  """
  name: str
  device: str
  pci: int
  module: str
  control: str
  log: str
  container: str

def begin(box: Box, vendor: Vendor) -> list[Finding]:
  """The card and the module.

  Where no module is loaded, the first problem alone, since all others would follow from it: then it is the last one.
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
  """Is GPU number `ordinal` among the `count` ones that the kernel's driver shows? name: of the finding."""
  if ordinal < count: return Finding(name, OK, f"{count} GPU{'s' if count > 1 else ''} that this process may use")
  if not count:
    return Finding(name, PROBLEM, "the kernel's driver shows no GPU that this process may use",
                   f"start the container with {vendor.container}; dmesg | grep {vendor.log} says whether the module "
                   f"refused the card")
  return Finding(name, PROBLEM, f"there {'is 1 GPU' if count == 1 else f'are {count} GPUs'}, and number {ordinal} is "
                 f"none of them",
                 f"use {vendor.device}{f':{count - 1}' if count > 1 else ''}")

def refused(name: str, error: TinyError) -> Finding:
  """What the driver says, as a finding: errors name the trouble, and behind a semicolon what to do."""
  words, _, fix = error.message.partition("; ")
  return Finding(name, PROBLEM, words, fix)
