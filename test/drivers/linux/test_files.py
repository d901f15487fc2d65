"""Device files of this computer that every Linux has: /dev/zero, pipes and folders of the test's own."""
import ctypes
import errno
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from gpu.forks import in_child_of_fork

from tinyhw.config import Context
from tinyhw.drivers.linux import files
from tinyhw.errors import DeviceError, DriverError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="device files of Linux")

class Request(ctypes.Structure):
  """A call that no driver knows."""
  _fields_ = [("value", ctypes.c_uint32)]
  REQUEST = 0xC0047F01

def test_machine_is_this_computer_unless_emulate_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
  assert files.machine() is files.COMPUTER
  asked: list[str] = []
  class Emulator:
    @staticmethod
    def box(name: str) -> str:
      asked.append(name)
      return f"box of {name}"
  monkeypatch.setattr(files.importlib, "import_module", lambda name: {"tinyhw.emulator": Emulator}[name])
  with Context(EMULATE="gfx1100"): assert str(files.machine()) == "box of gfx1100"
  assert asked == ["gfx1100"] and files.machine() is files.COMPUTER

def test_text_files_and_folders(tmp_path: Path) -> None:
  (tmp_path / "name").write_text("value 3\n")
  assert (files.COMPUTER.read_text(str(tmp_path / "name")) == "value 3\n" and files.COMPUTER.listdir(str(tmp_path))
          == ["name"])
  assert files.COMPUTER.exists(str(tmp_path)) and not files.COMPUTER.exists(str(tmp_path / "none"))

def test_a_node_that_a_container_keeps_from_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """access(2) reports the rules of a cgroup by EPERM, and the mode of a file by EACCES."""
  (tmp_path / "node").write_text("")
  path = str(tmp_path / "node")
  assert not files.COMPUTER.barred(path) and not files.COMPUTER.barred(path + "missing")
  for number, barred in ((errno.EPERM, True), (errno.EACCES, False)):
    class Library:
      @staticmethod
      def access(name: bytes, mode: int, number: int = number) -> int:
        assert name == os.fsencode(path) and mode == os.R_OK | os.W_OK
        ctypes.set_errno(number)
        return -1
    monkeypatch.setattr(files, "_libc", Library)
    assert files.COMPUTER.barred(path) == barred

def test_a_kernel_with_other_pages_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(files.mmap, "PAGESIZE", 65536)
  with pytest.raises(DeviceError, match="pages have 65536 bytes, .* pages of 4096; start a kernel that has those"):
    files.machine()

def test_words_and_bytes_of_a_mapping() -> None:
  mapping = files.map_memory(files.PAGE)
  mapping.store64(8, 0x1122334455667788)
  assert (mapping.load32(8) == 0x55667788 and mapping.load32(12) == 0x11223344
          and mapping.load64(8) == 0x1122334455667788)
  mapping.store32(12, 0xFFFFFFFF)
  assert mapping.load64(8) == 0xFFFFFFFF55667788
  mapping.copyin(files.PAGE - 3, b"end")
  found = bytearray(3)
  mapping.copyout(files.PAGE - 3, memoryview(found))
  assert found == b"end" and ctypes.string_at(mapping.address + 8, 4) == b"\x88\x77\x66\x55"
  mapping.close()
  mapping.close()

@pytest.mark.parametrize("access", [lambda m: m.load32(2), lambda m: m.load64(4), lambda m: m.store64(files.PAGE, 0),
                                    lambda m: m.load32(-4),
                                    lambda m: m.store32(files.PAGE - 2, 0), lambda m: m.copyin(files.PAGE - 1, b"ab"),
                                    lambda m: m.copyout(-1, memoryview(bytearray(2)))])
def test_an_access_outside_or_not_aligned_is_refused(access: Any) -> None:
  mapping = files.map_memory(files.PAGE)
  with pytest.raises(DriverError, match="inside"): access(mapping)
  mapping.close()

def test_a_closed_mapping_is_not_touched() -> None:
  mapping = files.map_memory(files.PAGE)
  mapping.close()
  with pytest.raises(DriverError, match="closed"): mapping.load32(0)
  with pytest.raises(DriverError, match="closed"): mapping.copyin(0, b"x")

def test_closing_a_mapping_at_a_reserved_address_keeps_the_reservation() -> None:
  reserved = files.map_memory(4 * files.PAGE, prot=files.PROT_NONE, flags=files.RESERVED)
  inner = files.Node(files.COMPUTER, "/dev/zero").mmap(files.PAGE, 0, reserved.address + files.PAGE)
  assert inner.address == reserved.address + files.PAGE and inner.load64(0) == 0
  inner.store64(0, 7)
  inner.close()
  def protection(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
      first, last = (int(word, 16) for word in line.split()[0].split("-"))
      if first <= address < last: return line.split()[1]
    return ""
  assert protection(reserved.address + files.PAGE) == "---p"
  reserved.close()
  assert protection(reserved.address + files.PAGE) != "---p"

@pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(mmap, "MADV_DONTFORK"), reason="no fork, or another system")
def test_the_child_of_a_fork_has_neither_mappings_nor_descriptors() -> None:
  reserved = files.map_memory(4 * files.PAGE, prot=files.PROT_NONE, flags=files.RESERVED)
  node = files.Node(files.COMPUTER, "/dev/zero")
  closed, inner, other = (node.mmap(files.PAGE, 0, address) for address in (reserved.address, reserved.address
                                                                            + files.PAGE, 0))
  closed.close()
  plain = files.map_memory(files.PAGE)
  def is_mapped(address: int) -> bool:
    with open("/proc/self/maps", encoding="utf-8") as lines: ranges = [line.split()[0].split("-") for line in lines]
    return any(int(first, 16) <= address < int(last, 16) for first, last in ranges)
  def child() -> None:
    found = [is_mapped(x.address) for x in (reserved, closed, inner, other, plain)]
    assert found == [False, False, False, False, True]
    with pytest.raises(OSError): os.fstat(descriptor)
    for access in (lambda: inner.load32(0), lambda: other.store64(0, 1)):
      with pytest.raises(DriverError, match="closed"): access()
    inner.close()    # which does nothing
    assert not is_mapped(inner.address)
  descriptor = node.fileno()
  in_child_of_fork(child)
  inner.store64(0, 7)
  assert inner.load64(0) == 7 and os.fstat(descriptor) and all(is_mapped(x.address) for x in (reserved, closed, other))
  for mapping in (inner, other, plain, reserved): mapping.close()
  node.close()

def test_errors_say_what_failed_why_and_what_to_do(tmp_path: Path) -> None:
  with pytest.raises(files.Refused, match=r"opening /dev/tinyhw-none: no such file or directory \(ENOENT\); load the "
                     r"kernel module") as caught:
    files.Node(files.COMPUTER, "/dev/tinyhw-none")
  assert caught.value.errno == errno.ENOENT
  with pytest.raises(files.Refused, match="plug it in"):
    files.Node(files.COMPUTER, "/dev/tinyhw-none", {"open": {errno.ENOENT: "plug it in"}})
  os.mkfifo(tmp_path / "pipe")
  node = files.Node(files.COMPUTER, str(tmp_path / "pipe"))
  with pytest.raises(files.Refused, match="/pipe: Request: .*ENOTTY.*update it"): node.ioctl(Request(3))
  with pytest.raises(files.Refused, match="/pipe: mapping 0x1000 bytes: no such device"): node.mmap(files.PAGE, 0)
  node.close()
  node.close()

def test_no_permission_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  import grp
  def refuse(path: str, flags: int) -> int: raise PermissionError(errno.EACCES, "no")
  (tmp_path / "node").touch()
  monkeypatch.setattr(files.os, "open", refuse)
  name = grp.getgrgid((tmp_path / "node").stat().st_gid).gr_name
  with pytest.raises(files.Refused, match=rf"permission denied \(EACCES\); join the group {name}, which owns it "
                     rf"\(sudo usermod -aG {name} \$USER\)"):
    files.Node(files.COMPUTER, str(tmp_path / "node"))
  def unknown(number: int) -> None: raise KeyError
  monkeypatch.setattr(files.grp, "getgrgid", unknown)
  assert files.COMPUTER.group(str(tmp_path / "node")) == str((tmp_path / "node").stat().st_gid)

def test_membership_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
  import grp
  groups = {"render": grp.struct_group(("render", "x", 992, ["ada"])),
            "mine": grp.struct_group(("mine", "x", 1000, []))}
  monkeypatch.setattr(files.grp, "getgrnam", groups.__getitem__)
  monkeypatch.setattr(files.pwd, "getpwuid", lambda number: files.pwd.struct_passwd(("ada", "x", 1, 1, "", "", "")))
  monkeypatch.setattr(files.os, "getgroups", lambda: [1000])
  monkeypatch.setattr(files.os, "getegid", lambda: 1)
  assert (files.COMPUTER.member("render"), files.COMPUTER.member("mine")) == ((False, True), (True, False))
  assert files.COMPUTER.member("none") == (False, False) and files.COMPUTER.member("4294967295") == (False, False)

def test_an_unknown_errno_still_has_words() -> None:
  with pytest.raises(TimeoutError, match="an alarm"): files.refusal("call", TimeoutError("an alarm"))
  error = files.refusal("call", OSError(errno.EXDEV, ""))
  assert "EXDEV" in error.message and "dmesg" in error.message

def test_poll_tells_whether_there_is_something_to_read(tmp_path: Path) -> None:
  path = tmp_path / "pipe"
  os.mkfifo(path)
  node = files.Node(files.COMPUTER, str(path))
  assert not node.file.poll(0)
  os.write(node.fileno(), b"x")
  assert node.file.poll(1000)
  node.close()

def test_a_fence_is_no_error() -> None:
  files.fence()

def test_what_is_refused_is_given_back_later() -> None:
  """Steps run from the last to the first. The refused step and those before it wait for another try."""
  unreturned = files.Unreturned()
  done: list[str] = []
  refuse = True
  def refused() -> None:
    if refuse: raise files.Refused("the middle: not now", errno.EBUSY)
    done.append("middle")
  returns = files.Returns(unreturned)
  for step in (lambda: done.append("first"), refused, lambda: done.append("last")): returns.add(step)
  for _ in range(2):
    with pytest.raises(files.Refused, match="not now"): returns.close()
    assert done == ["last"] and unreturned == [returns]
  unreturned.offer_again()
  assert done == ["last"] and unreturned == [returns], "what is refused again is no error there"
  refuse = False
  unreturned.offer_again()
  returns.close()
  assert done == ["last", "middle", "first"] and not unreturned

class Interrupted:
  """A file whose calls are interrupted by a signal, twice."""
  def __init__(self) -> None: self.calls = 0

  def ioctl(self, request: int, argument: object) -> None:
    self.calls += 1
    if self.calls < 3: raise InterruptedError(errno.EINTR, "interrupted")

def test_interrupted_calls_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
  file = Interrupted()
  monkeypatch.setattr(files.COMPUTER, "open", lambda path, flags: file, raising=False)
  class Call:
    REQUEST = 1
  files.Node(files.COMPUTER, "/dev/x").ioctl(Call())
  assert file.calls == 3
