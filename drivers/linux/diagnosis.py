"""Reasons why a device file cannot be used, beyond the errno: kernel module, containers, groups, cards on the PCI bus.

For `doctor --device`. Only reads. Drivers add their own findings (chips, versions) after these. Nothing here knows a
vendor.
"""
from __future__ import annotations
import errno
import os

from tinyhw.drivers.linux.files import HostFiles, refusal
from tinyhw.named_tuple import NamedTuple

OK, NOTE, PROBLEM = "ok", "note", "problem"
PCI = "/sys/bus/pci/devices"
DISPLAY, ACCELERATOR = 0x03, 0x12                        # PCI classes that GPUs have
CONTAINERS = ("/.dockerenv", "/run/.containerenv")       # files that Docker and Podman make in their containers

class Finding(NamedTuple):
  """The result of one check.

  state: OK, NOTE (it works, but not as well as it could) or PROBLEM. fix: a command, or other advice.
  """
  name: str
  state: str
  words: str
  fix: str = ""

def cards(box: HostFiles, vendor: int) -> list[str] | None:
  """Return the GPUs of a vendor on the PCI bus, as "0000:03:00.0 (device 0x744c)"; None if the bus cannot be read."""
  if not box.exists(PCI): return None
  found = []
  for name in sorted(box.listdir(PCI)):
    def number(file: str, name: str = name) -> int: return int(box.read_text(f"{PCI}/{name}/{file}"), 16)
    try:
      if number("vendor") == vendor and number("class") >> 16 in (DISPLAY, ACCELERATOR):
        found.append(f"{name} (device {number('device'):#06x})")
    except (OSError, ValueError): continue  # removed, or hidden
  return found

def module(box: HostFiles, name: str, node: str, found: list[str] | None) -> Finding:
  """Check that the kernel module of a device file is loaded. found: cards on the bus."""
  if box.exists(f"/sys/module/{name}"): return Finding("kernel module", OK, f"{name} is loaded")
  if box.exists(node): return Finding("kernel module", OK, f"{name} is not listed, but made {node}")
  card = f"{found[0]} is on the PCI bus, but " if found else ""
  return Finding("kernel module", PROBLEM, f"{card}the kernel's module {name} is not loaded",
                 f"sudo modprobe {name}; dmesg | grep {name} says why it fails")

def node(box: HostFiles, path: str, options: str) -> Finding:
  """Check that a device file exists and that this process may open it for reading and writing. options: for the start
  of a container."""
  inside = any(map(box.exists, CONTAINERS))
  if not box.exists(path):
    if inside:
      return Finding(path, PROBLEM, "it does not exist: this container was started without it",
                     f"start the container with {options}")
    return Finding(path, PROBLEM, "it does not exist: the module knows no device, or /dev is that of a container or "
                   "sandbox",
                   f"dmesg says what the module found; in a container: {options}")
  try: box.open(path, os.O_RDWR).close()
  except OSError as error:
    if error.errno == errno.EACCES: return _group(box, path, inside)
    if error.errno == errno.EPERM:
      return Finding(path, PROBLEM, "it is there, but the container may not use it",
                     f"start the container with {options}")
    return Finding(path, PROBLEM, refusal("opening it", error).message)
  return Finding(path, OK, "this user may open it")

def _group(box: HostFiles, path: str, inside: bool) -> Finding:
  """Explain why the group of the file does not admit this process."""
  group = box.group(path)
  now, listed = box.member(group)
  if group.isdecimal():
    added = f"start the container with --group-add {group}"
    return Finding(path, PROBLEM, f"permission denied: it belongs to group number {group}, which has no name here",
                   added if inside else f"sudo groupadd -g {group} gpu && sudo usermod -aG gpu $USER, then log in "
                   f"again")
  if now:
    return Finding(path, PROBLEM, f"permission denied, although this process is in the group {group}, which owns it: "
                   f"the file's mode forbids it",
                   f"sudo chmod g+rw {path}, and look into the rules of udev")
  if listed:
    return Finding(path, PROBLEM, f"permission denied: the user is in the group {group}, but this session began "
                   f"before that",
                   f"newgrp {group}, or log out of everything and log in again")
  return Finding(path, PROBLEM, f"permission denied: it belongs to the group {group}, in which this user is not",
                 f"sudo usermod -aG {group} $USER, then log in again")
