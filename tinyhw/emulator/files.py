"""A virtual computer that serves the files that drivers open: the part common to all devices.

Implements the protocol of drivers/linux/files.py. A device adds its files (`nodes`) and sysfs texts (`texts`). This
file has descriptors, mappings, the faults that tests inject, and the census, which shows tests that nothing leaks.
Refusals are OSErrors with the kernel's errno.

A `VirtualComputer` is the computer as one process sees it. `process` makes another process in the same interpreter.
Each process has its own descriptors, mappings and state of the kernel's drivers. Processes share the GPUs with their
memory, the pages of the computer, and the scheduler. A family makes the state of a process in `begin_process`. Not
modelled: descriptors that one process sends to another, and the delay until the memory of a killed process is free.
"""
from __future__ import annotations
import copy
import errno
import os
import posixpath
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from tinyhw.drivers.linux.files import HostMapping
from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.memory.pages import PageTable
from tinyhw.emulator.memory.physical import Physical
from tinyhw.emulator.schedule import ActorScheduler
from tinyhw.errors import DriverError

FIRST_DESCRIPTOR = 1 << 20  # beyond those of real files
ENOTSUPP = 524              # the kernel's own, not POSIX; programs do see it
AnyBox = TypeVar("AnyBox", bound="VirtualComputer")

def refuse(number: int, why: str = "") -> OSError:
  """Return the error of a refused call, for the caller to raise. why: for people who debug the virtual box; a real
  kernel at most logs it."""
  text = os.strerror(number) if number != ENOTSUPP else "Operation is not supported"
  return OSError(number, f"{text} ({why})" if why else text)

class Watcher(Protocol):
  """Observer of the program's accesses through a mapping. Offsets are relative to the mapping."""
  def before_load(self, offset: int, size: int) -> None:
    """Called before the program reads."""
  def before_store(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    """Called before the program writes these bytes."""
  def after_store(self, offset: int, size: int) -> None:
    """Called after the program has written."""
  def closed(self) -> None:
    """Called when the program has ended the mapping."""

class VirtualMapping:
  """Memory that the program sees. Every access lets the devices move first."""
  def __init__(self, box: VirtualComputer, memory: HostMapping, watcher: Watcher):
    self.box, self.memory, self.watcher = box, memory, watcher
    self.address, self.size, self.closed = memory.address, memory.size, False
    box.mappings.add(self)

  def _check(self) -> None:
    if self.closed: raise DriverError(f"an access to {self.memory!r}, which is closed")

  def _load(self, offset: int, size: int) -> None:
    self._check()
    self.box.scheduler.advance(self.box)
    self.watcher.before_load(offset, size)

  def _store(self, offset: int, data: bytes | bytearray | memoryview, write: Callable[[], None]) -> None:
    self._check()
    with self.box.scheduler.whole():
      self.box.scheduler.advance(self.box)
      self.watcher.before_store(offset, data)
      write()
      self.watcher.after_store(offset, len(data))

  def load32(self, offset: int) -> int:
    self._load(offset, 4)
    return self.memory.load32(offset)

  def load64(self, offset: int) -> int:
    self._load(offset, 8)
    return self.memory.load64(offset)

  def store32(self, offset: int, value: int) -> None:
    self._store(offset, value.to_bytes(4, "little"), lambda: self.memory.store32(offset, value))

  def store64(self, offset: int, value: int) -> None:
    self._store(offset, value.to_bytes(8, "little"), lambda: self.memory.store64(offset, value))

  def copyin(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    flat = memoryview(data).cast("B") if len(data) else data
    self._store(offset, flat, lambda: self.memory.copyin(offset, flat))

  def copyout(self, offset: int, dest: memoryview) -> None:
    self._load(offset, dest.nbytes)
    self.memory.copyout(offset, dest)

  def close(self) -> None:
    if self.closed: return
    self.closed = True
    self.memory.close()
    self.watcher.closed()
    self.box.mappings.discard(self)

  def leave(self) -> None:
    self.closed = True
    self.memory.leave()

class VirtualFile:
  """An open file of the box. It belongs to the process that opened it. Each device has a subclass.

  The child of a fork has copies of these objects, but shares the pages (physical.py) with its parent. So its calls do
  nothing to them: they are refused, and a close is not the last one.
  """
  def __init__(self, box: VirtualComputer, path: str):
    self.box, self.path, self.process, self.closed = box, path, os.getpid(), False
    self.descriptor = box.take_descriptor(self)

  def fileno(self) -> int: return self.descriptor

  def ioctl(self, request: int, argument: Any) -> None: raise refuse(errno.ENOTTY)

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> VirtualMapping:
    raise refuse(errno.ENODEV)

  def poll(self, timeout_ms: int) -> bool: return False

  def check(self, call: str) -> None:
    """Check, at the start of every call, that the file is open and of this process. Raise the failure that a test
    injected.
    """
    if self.closed: raise refuse(errno.EBADF, "closed")
    if os.getpid() != self.process: raise refuse(errno.EBADF, "the file is that of another process")
    self.box.injected(call)
    self.box.scheduler.advance(self.box)

  def close(self) -> None:
    if self.closed: return
    self.closed = True
    self.box.descriptors.pop(self.descriptor, None)
    if os.getpid() == self.process: self.released()

  def released(self) -> None:
    """Called when the last descriptor is closed."""

class VirtualComputer:
  """A virtual computer, as one process sees it. seed: of every random choice in it.

  strict: 1: report mistakes that real hardware punishes only now and then; 2: also mistakes that hardware never
  punishes. processes: those that have begun and not ended, including this one. All processes hold the same list.
  """
  virtual = True

  def __init__(self, name: str, seed: int = 0, strict: int = 1):
    self.name, self.strict = name, strict
    self.scheduler = ActorScheduler(seed)
    self.physical = Physical()
    self.texts: dict[str, str | Callable[[], str]] = {}
    self.processes: list[Any] = []
    self._begin()

  # **** processes ****

  def _begin(self) -> None:
    self.fault = ""                            # text of the last page fault
    self.nodes: dict[str, Callable[[], VirtualFile]] = {}
    self.descriptors: dict[int, VirtualFile] = {}
    self.mappings: set[VirtualMapping] = set()
    self.membership = (False, False)  # is the program in the group of the devices: now, and by the system's list
    self.refused: dict[str, int] = {}          # paths that cannot be opened or read, with the errno: for tests
    self.failures: dict[str, list[tuple[int, int]]] = {}  # set by `fail`: (number of calls from now, errno)
    self._next_descriptor = FIRST_DESCRIPTOR
    self.processes.append(self)

  def process(self: AnyBox) -> AnyBox:
    """Start another process on the same computer. It has opened nothing yet."""
    made = copy.copy(self)
    made._begin()
    made.begin_process()
    return made

  def begin_process(self) -> None:
    """Make the state that the devices' drivers keep for a process.

    A family calls it for the first process when its hardware exists.
    """

  def kill(self) -> None:
    """End the process at any point. The kernel ends its work on the devices, and takes back files, mappings and memory.

    The process can open nothing any more.
    """
    with self.scheduler.whole():
      self.end_process()
      for mapping in list(self.mappings): mapping.close()
      for file in list(self.descriptors.values()): file.close()
      self.scheduler.ended(self)
      self.processes.remove(self)

  def end_process(self) -> None:
    """End the process: the kernel's drivers take back its resources, whatever files are open."""

  # **** the protocol ****

  def open(self, path: str, flags: int) -> VirtualFile:
    if self not in self.processes: raise refuse(errno.ESRCH, "the process was killed")
    self.injected("open")
    make = self.nodes.get(path)
    if path in self.refused: raise refuse(self.refused[path])
    if make is None: raise refuse(errno.ENOENT, path)
    if flags & (os.O_WRONLY | os.O_RDWR) != os.O_RDWR:
      raise EmulatorError(f"opening {path}: open it with O_RDWR, its calls write")
    return make()

  def read_text(self, path: str) -> str:
    path = posixpath.normpath(path)
    if path in self.refused: raise refuse(self.refused[path])
    found = self.texts.get(path)
    if found is None: raise refuse(errno.EISDIR if self.exists(path) else errno.ENOENT, path)
    return found if isinstance(found, str) else found()

  def listdir(self, path: str) -> list[str]:
    start = posixpath.normpath(path).rstrip("/") + "/"
    names = {known[len(start):].split("/")[0] for known in (*self.texts, *self.nodes) if known.startswith(start)}
    if not names: raise refuse(errno.ENOTDIR if path in self.texts or path in self.nodes else errno.ENOENT, path)
    return self.scheduler.random.sample(sorted(names), len(names))  # a folder has no order

  def exists(self, path: str) -> bool:
    path = posixpath.normpath(path)
    return path in self.texts or path in self.nodes or any(known.startswith(path + "/")
                                                           for known in (*self.texts, *self.nodes))

  def barred(self, path: str) -> bool: return self.refused.get(path) == errno.EPERM

  def group(self, path: str) -> str: return "render"
  def member(self, group: str) -> tuple[bool, bool]: return self.membership

  # **** descriptors ****

  def take_descriptor(self, file: VirtualFile) -> int:
    """Return a number for a file that is being opened."""
    self._next_descriptor += 1
    self.descriptors[self._next_descriptor] = file
    return self._next_descriptor

  def descriptor(self, number: int) -> VirtualFile | None:
    """Return the open file with this number."""
    return self.descriptors.get(number)

  # **** state that the kernel's drivers do not report ****

  def told(self) -> str:
    found, self.fault = self.fault, ""
    return found

  def outline(self, address: int, size: int, whole: int) -> None:
    if not self.strict: return
    found = next((entry for table in self.tables() if (entry := table.find(address)) is not None), None)
    assert found is not None and address + whole <= found.end, f"{address:#x} is mapped nowhere"
    found.frames.outline(found.offset + address - found.start, size, whole)

  def tables(self) -> Iterable[PageTable]:
    """Return the address spaces of this process's devices."""
    return ()

  # **** faults ****

  def fail(self, call: str, nth: int = 1, number: int = errno.ENOMEM) -> None:
    """Make the nth next call of this name fail: "open", "mmap", or an ioctl's structure, such as "CreateQueue"; "*"
    counts all of them."""
    self.failures.setdefault(call, []).append((nth, number))

  def injected(self, call: str) -> None:
    """Raise the failure that `fail` set. Every call begins with it, and passes its name."""
    for name in (call, "*"):
      left = [(nth - 1, number) for nth, number in self.failures.get(name, ())]
      self.failures[name] = [item for item in left if item[0] > 0]
      for nth, number in left:
        if nth == 0: raise self.failing(number, call)

  def failing(self, number: int, call: str) -> Exception:
    """Return the error of a call that a test makes fail."""
    return refuse(number, f"injected into {call}")

  # **** resources of a process ****

  def census(self) -> dict[str, int]:
    """Count the resources that the process holds, by name. Counts of 0 are left out, so an empty result means no leak.
    """
    counted = {"files": len(self.descriptors), "mappings": len(self.mappings), "bytes": self.physical.held[self],
               **self.devices_census()}
    return {name: count for name, count in counted.items() if count}

  def devices_census(self) -> dict[str, int]:
    """Return the devices' part of the census."""
    return {}

