"""tinyhw/emulator/files.py: files, descriptors, injected failures, mappings, the census."""
import errno
import os
from typing import Any

import pytest
from gpu.forks import in_child_of_fork

from tinyhw.drivers.linux.files import HostFiles as Files
from tinyhw.drivers.linux.files import READ_WRITE, File, Mapping, map_memory
from tinyhw.emulator.files import FIRST_DESCRIPTOR, VirtualComputer, VirtualFile, VirtualMapping
from tinyhw.emulator.errors import EmulatorError
from tinyhw.errors import DriverError

def box() -> VirtualComputer:
  made = VirtualComputer("test")
  made.texts.update({"/sys/a/one": "1\n", "/sys/a/b/two": lambda: "2\n", "/sys/c": "3\n"})
  made.nodes["/dev/thing"] = lambda: VirtualFile(made, "/dev/thing")
  return made

def test_it_has_the_protocol_of_drivers() -> None:
  files: Files = box()
  file: File = files.open("/dev/thing", os.O_RDWR)
  assert file.fileno() >= FIRST_DESCRIPTOR and not file.poll(0)
  file.close()

def test_texts_and_folders() -> None:
  it = box()
  assert it.read_text("/sys/a/one") == "1\n" and it.read_text("/sys/a/../a/b/two") == "2\n"
  assert sorted(it.listdir("/sys/a")) == ["b", "one"] and sorted(it.listdir("/sys/")) == ["a", "c"]
  assert it.exists("/sys/a/b") and it.exists("/dev/thing") and not it.exists("/sys/x") and not it.exists("/sys/a/on")
  for call, path, number in ((it.read_text, "/sys/x", errno.ENOENT), (it.read_text, "/sys/a", errno.EISDIR),
                             (it.listdir, "/sys/x", errno.ENOENT),
                             (it.listdir, "/sys/c", errno.ENOTDIR)):
    with pytest.raises(OSError) as caught: call(path)
    assert caught.value.errno == number

def test_files_that_are_refused() -> None:
  it = box()
  it.refused.update({"/dev/thing": errno.EACCES, "/sys/c": errno.EPERM})
  with pytest.raises(PermissionError): it.open("/dev/thing", os.O_RDWR)
  with pytest.raises(PermissionError): it.read_text("/sys/c")
  with pytest.raises(FileNotFoundError): it.open("/dev/other", os.O_RDWR)
  del it.refused["/dev/thing"]
  with pytest.raises(EmulatorError, match="open it with O_RDWR"): it.open("/dev/thing", os.O_RDONLY)

def test_descriptors_differ_and_are_counted() -> None:
  it = box()
  files = [it.open("/dev/thing", os.O_RDWR) for _ in range(3)]
  assert (len({file.fileno() for file in files}) == 3 and it.census() == {"files": 3}
          and it.descriptor(files[1].fileno()) is files[1])
  for file in files:
    file.close()
    file.close()
  assert it.census() == {} and it.descriptor(files[1].fileno()) is None

def test_calls_that_a_file_has_not() -> None:
  file = box().open("/dev/thing", os.O_RDWR)
  with pytest.raises(OSError) as caught: file.ioctl(1, None)
  assert caught.value.errno == errno.ENOTTY
  with pytest.raises(OSError) as caught: file.mmap(4096, 0, 0, 3, 1)
  assert caught.value.errno == errno.ENODEV

def test_failures_are_injected_by_name_and_number() -> None:
  it = box()
  it.fail("open", 2, errno.ENFILE)
  it.open("/dev/thing", os.O_RDWR)
  with pytest.raises(OSError, match="injected into open") as caught: it.open("/dev/thing", os.O_RDWR)
  assert caught.value.errno == errno.ENFILE
  file = it.open("/dev/thing", os.O_RDWR)
  it.fail("*", 2, errno.EIO)
  file.check("One")
  with pytest.raises(OSError, match="injected into Two"): file.check("Two")
  file.check("Two")
  file.close()
  with pytest.raises(OSError, match="closed"): file.check("Two")

class Watcher:
  """Records its calls."""
  def __init__(self) -> None: self.log: list[tuple[Any, ...]] = []
  def before_load(self, offset: int, size: int) -> None: self.log.append(("load", offset, size))
  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    self.log.append(("store", offset, bytes(data)))
  def after_store(self, offset: int, size: int) -> None: self.log.append(("stored", offset, size))
  def closed(self) -> None: self.log.append(("closed",))

def test_mappings_tell_their_watcher_and_let_devices_move() -> None:
  it, watcher, moved = box(), Watcher(), [0]
  class Mover:
    def step(self) -> bool:
      moved[0] += 1
      return True
  it.scheduler.add(Mover())
  mapping: Mapping = VirtualMapping(it, map_memory(4096), watcher)
  mapping.store32(4, 7)
  mapping.store64(8, 9)
  mapping.copyin(16, b"abc")
  back = bytearray(3)
  mapping.copyout(16, memoryview(back))
  assert (mapping.load32(4), mapping.load64(8), bytes(back)) == (7, 9, b"abc")
  assert watcher.log == [("store", 4, b"\7\0\0\0"), ("stored", 4, 4), ("store", 8, b"\t" + bytes(7)), ("stored", 8, 8),
                         ("store", 16, b"abc"),
                         ("stored", 16, 3), ("load", 16, 3), ("load", 4, 4), ("load", 8, 8)]
  for _ in range(20): mapping.load32(0)
  assert moved[0] > 0 and it.census() == {"mappings": 1}
  mapping.close()
  mapping.close()
  assert it.census() == {} and watcher.log[-1] == ("closed",)

# **** processes ****

class Counting(VirtualFile):
  """A file that counts its releases."""
  releases = 0
  def released(self) -> None: self.releases += 1

@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_a_fork_does_nothing_to_what_its_parent_has_opened() -> None:
  it, watcher, moved = box(), Watcher(), []
  class Mover:
    def step(self) -> bool:
      moved.append(1)
      return True
  frames = it.physical.allocate(4096)
  file = Counting(it, "/dev/thing")
  mapping = VirtualMapping(it, it.physical.map(frames, 0, 4096, 0, READ_WRITE), watcher)
  mapping.store32(0, 7)
  it.scheduler.add(Mover())
  before = len(watcher.log)
  def child() -> None:
    moved.clear()
    with pytest.raises(OSError, match="another process"): file.check("call")
    mapping.leave()
    for access in (lambda: mapping.load32(0), lambda: mapping.store32(0, 1)):
      with pytest.raises(DriverError, match="closed"): access()
    mapping.close()
    file.close()
    assert not moved and not file.releases and len(watcher.log) == before
  in_child_of_fork(child)
  assert mapping.load32(0) == 7
  file.close()
  mapping.close()
  assert file.releases == 1 and watcher.log[-1] == ("closed",)


class Shared(VirtualComputer):
  """A box that makes a file for each process."""
  def __init__(self) -> None:
    super().__init__("shared")
    self.begin_process()

  def begin_process(self) -> None: self.nodes["/dev/thing"] = lambda: VirtualFile(self, "/dev/thing")

def test_processes_have_their_own_files_and_share_the_computer() -> None:
  one = Shared()
  other = one.process()
  assert (other.scheduler is one.scheduler and other.physical is one.physical and one.processes == other.processes
          == [one, other])
  file = one.open("/dev/thing", os.O_RDWR)
  assert one.census() == {"files": 1} and other.census() == {} and other.descriptor(file.fileno()) is None
  one.fail("open")
  other.open("/dev/thing", os.O_RDWR).close()
  with pytest.raises(OSError, match="injected"): one.open("/dev/thing", os.O_RDWR)

def test_a_process_that_is_killed_holds_nothing_and_opens_nothing() -> None:
  one = Shared()
  other = one.process()
  kept, file = one.open("/dev/thing", os.O_RDWR), other.open("/dev/thing", os.O_RDWR)
  class Quiet:
    def before_load(self, offset: int, size: int) -> None: pass
    def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None: pass
    def after_store(self, offset: int, size: int) -> None: pass
    def closed(self) -> None: pass
  mapping = VirtualMapping(other, map_memory(4096), Quiet())
  other.kill()
  assert other.census() == {} and mapping.closed and one.processes == [one] and not kept.closed
  for call in (lambda: other.open("/dev/thing", os.O_RDWR), lambda: file.check("call")):
    with pytest.raises(OSError): call()
  with pytest.raises(DriverError, match="closed"): mapping.load32(0)
  kept.check("call")
