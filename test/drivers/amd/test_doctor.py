"""Findings of `doctor --device AMD`: each possible problem is named, with its fix."""
import errno
from collections.abc import Callable, Iterator

import pytest

from tinyhw.drivers.amd import doctor, kfd
from tinyhw.drivers.linux import files
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding
from tinyhw.emulator.amd.card.computer import GpuHost

NODE = "/sys/devices/virtual/kfd/kfd/topology/nodes/1"
PCI = "/sys/bus/pci/devices/0000:03:00.0"

@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuHost]:
  """Make a computer with one card, which is on the PCI bus too."""
  box = GpuHost("examined", ["gfx1100"], large_bar=True)
  box.texts |= {f"{PCI}/vendor": "0x1002\n", f"{PCI}/class": "0x030000\n", f"{PCI}/device": "0x744c\n"}
  monkeypatch.setattr(files, "COMPUTER", box)
  yield box
  kfd.forget(box)

def change(box: GpuHost, path: str, old: str, new: str) -> None:
  text = box.texts[path]
  assert isinstance(text, str) and old in text
  box.texts[path] = text.replace(old, new)

def test_a_card_that_is_driven(computer: GpuHost) -> None:
  found = doctor.diagnose(0)
  names = ["card", "kernel module", "/dev/kfd", "topology", "chip", "/dev/dri/renderD128", "driver", "interface",
           "PCI window"]
  assert [f.name for f in found] == names
  assert all(f.state == OK and not f.fix for f in found)

def no_card(box: GpuHost) -> None: change(box, f"{PCI}/vendor", "0x1002", "0x8086")
def no_module(box: GpuHost) -> None:
  box.nodes.clear()
  for path in [path for path in box.texts if path.startswith(("/sys/module", "/sys/devices/virtual/kfd"))]:
    del box.texts[path]
def no_card_and_no_module(box: GpuHost) -> None:
  no_card(box)
  no_module(box)
def bare_container(box: GpuHost) -> None:
  box.nodes.clear()
  box.texts["/.dockerenv"] = ""
def wrong_group(box: GpuHost) -> None: box.refused["/dev/kfd"] = errno.EACCES
def not_yet_in_the_group(box: GpuHost) -> None: box.refused["/dev/kfd"], box.membership = errno.EACCES, (False, True)
def other_render_node(box: GpuHost) -> None: del box.nodes["/dev/dri/renderD128"]
def hidden_gpus(box: GpuHost) -> None: box.refused[f"{NODE}/gpu_id"] = errno.EPERM
def hidden_sysfs(box: GpuHost) -> None: box.refused[f"{NODE}/gpu_id"] = errno.EIO
def unknown_chip(box: GpuHost) -> None: change(box, f"{NODE}/properties", "110000", "100302")
def six_dies(box: GpuHost) -> None: change(box, f"{NODE}/properties", "num_xcc 1", "num_xcc 6")
def old_kernel(box: GpuHost) -> None: box.version = (1, 6)
def small_window(box: GpuHost) -> None:
  change(box, f"{NODE}/mem_banks/0/properties", f"size_in_bytes {4 << 30}", f"size_in_bytes {256 << 20}")
  box.texts[f"{NODE}/mem_banks/1/properties"] = f"heap_type 2\nsize_in_bytes {(4 << 30) - (256 << 20)}\n"

# The problem, the finding that names it, words of it, and of its fix
@pytest.mark.parametrize("wrong, name, state, words, fix", [
  (no_card_and_no_module, "card", PROBLEM, "no GPU of AMD is on the PCI bus", "look whether it has power"),
  (no_module, "kernel module", PROBLEM, "(device 0x744c) is on the PCI bus, but the kernel's module amdgpu is not "
   "loaded", "sudo modprobe amdgpu"),
  (bare_container, "/dev/kfd", PROBLEM, "this container was started without it",
   "start the container with --device=/dev/kfd --device=/dev/dri"),
  (wrong_group, "/dev/kfd", PROBLEM, "it belongs to the group render, in which this user is not",
   "sudo usermod -aG render $USER, then log in again"),
  (not_yet_in_the_group, "/dev/kfd", PROBLEM, "this session began before that", "newgrp render"),
  (other_render_node, "/dev/dri/renderD128", PROBLEM, "it does not exist", "--device=/dev/kfd --device=/dev/dri"),
  (hidden_gpus, "topology", PROBLEM, "shows no GPU that this process may use", "start the container with"),
  (hidden_sysfs, "topology", PROBLEM, "cannot be read (", "let the container or service see /sys"),
  (unknown_chip, "chip", PROBLEM, "it is a gfx1032, which has no driver here; there are gfx942, gfx950, gfx1100",
   "use another device"),
  (six_dies, "driver", PROBLEM, "6 compute dies as one", "change its compute partition"),
  (old_kernel, "interface", PROBLEM, "interface 1.6, and 1.11 is the oldest that is driven",
   "update the kernel to 6.1 or newer"),
  (small_window, "PCI window", NOTE, "the processor sees 256.00 MB of 4.00 GB",
   "enable Resizable BAR and Above 4G Decoding"),
], ids=lambda value: value.__name__ if callable(value) else "")
def test_what_is_wrong_is_named(computer: GpuHost, wrong: Callable[[GpuHost], None], name: str, state: str,
                                words: str, fix: str) -> None:
  wrong(computer)
  bad = [f for f in doctor.diagnose(0) if f.state != OK]
  assert bad[0].name == name and bad[0].state == state, bad
  assert words in bad[0].words and fix in bad[0].fix

def test_a_number_that_no_gpu_has(computer: GpuHost) -> None:
  assert doctor.diagnose(3)[-1] == Finding("topology", PROBLEM, "there is 1 GPU, and number 3 is none of them",
                                           "use AMD")

def test_a_card_that_is_not_on_the_bus_but_driven(computer: GpuHost) -> None:
  """A virtual machine may hide the bus."""
  no_card(computer)
  assert [f.name for f in doctor.diagnose(0) if f.state == PROBLEM] == ["card"]

def test_several_problems_are_all_told(computer: GpuHost) -> None:
  wrong_group(computer)
  unknown_chip(computer)
  assert [f.name for f in doctor.diagnose(0) if f.state == PROBLEM] == ["/dev/kfd", "chip"]
