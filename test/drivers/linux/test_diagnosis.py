"""Reasons why a device file cannot be used: modules, containers, groups, the PCI bus."""
import errno

import pytest

from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding, cards, module, node
from tinyhw.emulator.files import VirtualComputer, VirtualFile

PATH, OPTIONS = "/dev/gpu", "--device=/dev/gpu"

def computer(texts: dict[str, str] | None = None, there: bool = True) -> VirtualComputer:
  box = VirtualComputer("test")
  box.texts |= texts or {}
  if there: box.nodes[PATH] = lambda: VirtualFile(box, PATH)
  return box

def pci(name: str, vendor: str, kind: str, device: str = "0x744c") -> dict[str, str]:
  return {f"/sys/bus/pci/devices/{name}/{file}": text + "\n" for file, text in (("vendor", vendor), ("class", kind),
                                                                                ("device", device))}

def test_cards_are_gpus_of_the_vendor() -> None:
  sound, other = pci("0000:03:00.1", "0x1002", "0x040300"), pci("0000:04:00.0", "0x10de", "0x030000")
  box = computer({**pci("0000:03:00.0", "0x1002", "0x030000"), **sound, **other,
                  **pci("0000:c1:00.0", "0x1002", "0x120000", "0x74a1")})
  assert cards(box, 0x1002) == ["0000:03:00.0 (device 0x744c)", "0000:c1:00.0 (device 0x74a1)"]
  assert cards(computer(), 0x1002) is None

def test_a_card_that_cannot_be_read_is_left_out() -> None:
  box = computer(pci("0000:03:00.0", "0x1002", "0x030000"))
  del box.texts["/sys/bus/pci/devices/0000:03:00.0/class"]
  assert cards(box, 0x1002) == []

def test_modules() -> None:
  assert module(computer({"/sys/module/gpu/version": "1"}), "gpu", PATH, None).state == OK
  assert module(computer(), "gpu", PATH, None) == Finding("kernel module", OK, "gpu is not listed, but made /dev/gpu")
  missing = module(computer(there=False), "gpu", PATH, ["0000:03:00.0 (device 0x744c)"])
  assert (missing.state, missing.words) == (PROBLEM, "0000:03:00.0 (device 0x744c) is on the PCI bus, but the "
                                            "kernel's module gpu is not loaded")
  assert missing.fix.startswith("sudo modprobe gpu;") and module(computer(there=False), "gpu", PATH,
                                                                 []).words.startswith("the kernel's module")

def test_a_file_that_is_there() -> None:
  box = computer()
  assert node(box, PATH, OPTIONS) == Finding(PATH, OK, "this user may open it") and not box.census()

@pytest.mark.parametrize("mark", ["/.dockerenv", "/run/.containerenv"])
def test_a_container_without_the_file(mark: str) -> None:
  found = node(computer({mark: ""}, there=False), PATH, OPTIONS)
  assert found == Finding(PATH, PROBLEM, "it does not exist: this container was started without it",
                          "start the container with --device=/dev/gpu")

def test_no_file_outside_of_containers() -> None:
  found = node(computer(there=False), PATH, OPTIONS)
  assert ("the module knows no device" in found.words and found.fix == "dmesg says what the module found; in a "
          "container: --device=/dev/gpu")

def test_a_container_with_the_file_that_may_not_use_it() -> None:
  box = computer()
  box.refused[PATH] = errno.EPERM
  found = node(box, PATH, OPTIONS)
  assert found == Finding(PATH, PROBLEM, "it is there, but the container may not use it",
                          "start the container with --device=/dev/gpu")

def test_another_error_is_told() -> None:
  box = computer()
  box.refused[PATH] = errno.ENODEV
  assert "no such device (ENODEV)" in node(box, PATH, OPTIONS).words

# (in the group now, in it by the system's list): the message, and the advice
@pytest.mark.parametrize("membership, words, fix", [
  ((False, False), "it belongs to the group render, in which this user is not",
   "sudo usermod -aG render $USER, then log in again"),
  ((False, True), "the user is in the group render, but this session began before that",
   "newgrp render, or log out of everything and log in again"),
  ((True, True), "although this process is in the group render, which owns it: the file's mode forbids it",
   "sudo chmod g+rw /dev/gpu")])
def test_groups(membership: tuple[bool, bool], words: str, fix: str) -> None:
  box = computer()
  box.refused[PATH], box.membership = errno.EACCES, membership
  found = node(box, PATH, OPTIONS)
  assert found.state == PROBLEM and words in found.words and found.fix.startswith(fix)

@pytest.mark.parametrize("inside, fix", [(True, "start the container with --group-add 992"),
                                         (False, "sudo groupadd -g 992 gpu && sudo usermod")])
def test_a_group_without_a_name(inside: bool, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
  box = computer({"/.dockerenv": ""} if inside else {})
  box.refused[PATH] = errno.EACCES
  monkeypatch.setattr(box, "group", lambda path: "992")
  found = node(box, PATH, OPTIONS)
  assert "it belongs to group number 992, which has no name here" in found.words and found.fix.startswith(fix)

def test_states_are_words() -> None: assert (OK, NOTE, PROBLEM) == ("ok", "note", "problem")
