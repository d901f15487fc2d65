"""What a driver sees of the operating system: device files, their ioctls and mappings, and the text files of sysfs.

`machine()` is the one place where a driver gets at them. It gives this computer (`Computer`), or with EMULATE=gfx1100
(...) a virtual one with the same protocol, so the same driver runs against both. The protocol raises OSError with the
kernel's errno, as the system calls do; `Node`, what a driver holds, turns that into a DriverError that says what to do.
Nothing here knows a vendor.
"""
from __future__ import annotations
import contextlib
import ctypes
import errno
import importlib
import mmap
import os
import select
import sys
import threading
from collections.abc import Callable
from collections.abc import Mapping as Table
from typing import Any, Protocol

from tinyhw.config import EMULATE
from tinyhw.errors import DeviceError, DriverError
from tinyhw.once import once

if sys.platform == "linux":
  import fcntl
  import grp
  import pwd

READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE if sys.platform != "win32" else 3
PROT_NONE, MAP_FIXED, MAP_NORESERVE = 0, 0x10, 0x4000  # Linux on x86-64 and AArch64: uapi/asm-generic/mman-common.h,
                                                       # mman.h
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS = 0x01, 0x02, 0x20
RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE  # with PROT_NONE: addresses that nothing else gets
PAGE = 4096

# **** the protocol: what this computer and a virtual one have in common ****

class Mapping(Protocol):
  """Memory that the processor sees, at a host address. All accesses of a driver go through these methods, so a virtual
  device sees them: the store to a doorbell rings it.

  Offsets and sizes are in bytes; words are aligned to their size. `close` ends the mapping; where it was made at a
  given address (MAP_FIXED) the addresses stay reserved, and belong to whoever had reserved them.
  """
  @property
  def address(self) -> int: ...
  @property
  def size(self) -> int: ...
  def load32(self, offset: int) -> int: ...
  def load64(self, offset: int) -> int: ...
  def store32(self, offset: int, value: int) -> None: ...
  def store64(self, offset: int, value: int) -> None: ...
  def copyin(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    """Write bytes."""
  def copyout(self, offset: int, dest: memoryview) -> None:
    """Read as many bytes as dest (writable, contiguous) holds."""
  def close(self) -> None:
    """End it. A second call does nothing."""

class File(Protocol):
  """An opened device file. What it refuses is an OSError with the kernel's errno."""
  def fileno(self) -> int:
    """The descriptor's number, as ioctls pass it; a virtual file has one that no real file has."""
  def ioctl(self, request: int, argument: Any) -> None:
    """Call the driver in the kernel. argument: a ctypes Structure; what the call answers is written into it."""
  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> Mapping:
    """Map a part of the file. address: 0, or with MAP_FIXED in flags where it must lie: in addresses that the caller
    has reserved."""
  def poll(self, timeout_ms: int) -> bool:
    """Wait until the file has something to read; False when the time is over."""
  def close(self) -> None:
    """Give the descriptor back. A second call does nothing."""

class Box(Protocol):
  """A computer's files.

  Paths are absolute. virtual: its devices move when a program looks at them, and time is nothing to them.
  """
  @property
  def virtual(self) -> bool: ...
  def open(self, path: str, flags: int) -> File:
    """Open a device file. flags: of os.open."""
  def read_text(self, path: str) -> str:
    """The contents of a text file of sysfs or procfs."""
  def listdir(self, path: str) -> list[str]:
    """The names in a folder, in any order."""
  def exists(self, path: str) -> bool: ...
  def barred(self, path: str) -> bool:
    """Do a container's rules (the cgroup's) keep this process from a device file that is there, whatever its mode
    says?"""
  def group(self, path: str) -> str:
    """The name of the group that a file belongs to; its number where that has no name."""
  def member(self, group: str) -> tuple[bool, bool]:
    """Is this process in a group; does the system's list of groups have its user in it?"""
  def outline(self, address: int, size: int, whole: int) -> None:
    """Tell a virtual computer that of `whole` bytes of memory at a GPU's address the first `size` are a buffer, and
    that the others are nobody's."""
  def told(self) -> str:
    """What a virtual computer knows of the last page fault, with instruction and lane; once.

    Nothing of a real one: its kernel's log is not read.
    """

def machine() -> Box:
  """The computer whose devices are driven: the virtual one that EMULATE names, else this one. The only way to a device
  file or to sysfs.

  Raises DeviceError where this one's memory comes in other pages than drivers know.
  """
  name = EMULATE.value
  if not name:
    if sys.platform == "linux" and mmap.PAGESIZE != PAGE and not COMPUTER.virtual:
      raise DeviceError(f"this system's pages have {mmap.PAGESIZE} bytes, and GPUs are driven with pages of {PAGE}; "
                        f"start a kernel that has those, "
                        "or use a device that goes through its vendor's library")
    return COMPUTER
  found: Box = importlib.import_module("tinyhw.emulator").box(name)
  return found

# **** this computer ****

@once
def _libc() -> Any:
  libc = ctypes.CDLL(None, use_errno=True)
  libc.mmap.restype = ctypes.c_void_p
  libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
  libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
  return libc

def map_memory(length: int, address: int = 0, prot: int = READ_WRITE, flags: int = MAP_PRIVATE | MAP_ANONYMOUS,
               descriptor: int = -1,
               offset: int = 0) -> HostMapping:
  """mmap of the C library, which unlike Python's takes an address. Raises OSError."""
  found = _libc().mmap(address or None, length, prot, flags, descriptor, offset)
  if found in (None, ctypes.c_void_p(-1).value):
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
  return HostMapping(int(found), length, bool(flags & MAP_FIXED))

class HostMapping:
  """Memory of this process. fixed: it lies in addresses that somebody has reserved; they stay reserved when it is
  closed."""
  __slots__ = ("address", "size", "fixed", "closed", "_bytes", "_words", "_quads")

  def __init__(self, address: int, size: int, fixed: bool = False):
    self.address, self.size, self.fixed, self.closed = address, size, fixed, False
    self._bytes = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
    whole = self._bytes[:size & -8]
    self._words, self._quads = whole.cast("I"), whole.cast("Q")

  def _index(self, offset: int, width: int) -> int:
    if offset % width or not 0 <= offset <= self.size - width or self.closed:
      raise DriverError(f"a {width}-byte access at offset {offset} of {self!r}; it must be aligned, inside, and the "
                        f"mapping open")
    return offset // width

  def load32(self, offset: int) -> int: return int(self._words[self._index(offset, 4)])
  def load64(self, offset: int) -> int: return int(self._quads[self._index(offset, 8)])
  def store32(self, offset: int, value: int) -> None: self._words[self._index(offset, 4)] = value
  def store64(self, offset: int, value: int) -> None: self._quads[self._index(offset, 8)] = value

  def copyin(self, offset: int, data: bytes | bytearray | memoryview) -> None:
    self._check(offset, len(data))
    self._bytes[offset:offset + len(data)] = data

  def copyout(self, offset: int, dest: memoryview) -> None:
    self._check(offset, dest.nbytes)
    dest[:] = self._bytes[offset:offset + dest.nbytes]

  def _check(self, offset: int, size: int) -> None:
    if offset < 0 or offset + size > self.size or self.closed:
      raise DriverError(f"an access to bytes {offset} to {offset + size} of {self!r}; it must be inside, and the "
                        f"mapping open")

  def close(self) -> None:
    if self.closed: return
    self.closed = True
    if self.fixed: _libc().mmap(self.address, self.size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0)
    else: _libc().munmap(self.address, self.size)

  def __repr__(self) -> str:
    return f"<mapping of {self.size} bytes at {self.address:#x}{', closed' if self.closed else ''}>"

class ComputerFile:
  """A device file of this computer."""
  def __init__(self, path: str, flags: int):
    self.path, self.descriptor = path, os.open(path, flags | os.O_CLOEXEC)

  def fileno(self) -> int: return self.descriptor

  def ioctl(self, request: int, argument: Any) -> None: fcntl.ioctl(self.descriptor, request, argument, True)

  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> HostMapping:
    return map_memory(length, address, prot, flags, self.descriptor, offset)

  def poll(self, timeout_ms: int) -> bool:
    waiting = select.poll()
    waiting.register(self.descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_ms))

  def close(self) -> None:
    descriptor, self.descriptor = self.descriptor, -1
    if descriptor >= 0: os.close(descriptor)

class Computer:
  """The computer that this program runs on."""
  virtual = False

  def open(self, path: str, flags: int) -> ComputerFile: return ComputerFile(path, flags)
  def read_text(self, path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file: return file.read()
  def listdir(self, path: str) -> list[str]: return os.listdir(path)
  def exists(self, path: str) -> bool: return os.path.exists(path)
  def barred(self, path: str) -> bool:
    # the mode's no is EACCES
    return _libc().access(os.fsencode(path), os.R_OK | os.W_OK) != 0 and ctypes.get_errno() == errno.EPERM

  def outline(self, address: int, size: int, whole: int) -> None: pass
  def told(self) -> str: return ""

  def group(self, path: str) -> str:
    number = os.stat(path).st_gid
    try: return grp.getgrgid(number).gr_name
    except KeyError: return str(number)  # a container knows its own groups only

  def member(self, group: str) -> tuple[bool, bool]:
    try: entry = grp.getgrgid(int(group)) if group.isdecimal() else grp.getgrnam(group)
    except KeyError: return group.isdecimal() and int(group) in os.getgroups(), False
    try: user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError: user = ""           # a number without a name, as containers have it
    return entry.gr_gid in (*os.getgroups(), os.getegid()), user in entry.gr_mem

COMPUTER: Box = Computer()

# **** what a driver holds ****

class Refused(DriverError):
  """A system call that failed. errno: why, as a number."""
  def __init__(self, message: str, number: int):
    super().__init__(message)
    self.errno = number

ADVICE = {  # what an errno means wherever a call has no advice of its own
  errno.EPERM: "the system does not allow it; look at the container's or the service's security settings",
  errno.ENOENT: "load the kernel module that makes it, or look whether the device is there",
  errno.ENODEV: "the device is gone, or its driver did not start; look into the kernel log (dmesg)",
  errno.ENOTTY: "the kernel does not know the call; update it",
  errno.EBADF: "the file belongs to the process that opened it; open the device again after a fork",
  errno.EBUSY: "another user of the device is in the way; end it",
  errno.EINVAL: "the kernel refuses an argument; look into the kernel log (dmesg)",
  errno.ENOMEM: "free memory, or use a smaller batch",
  errno.EMFILE: "the process has too many open files; raise ulimit -n",
  errno.ENFILE: "the system has too many open files",
  errno.EIO: "the hardware does not answer; look into the kernel log (dmesg)",
}

def refusal(what: str, error: OSError, advice: Table[int, str] | None = None) -> Refused:
  """The error of a failed call: what was tried, the reason, and what to do. The one place where an errno becomes words.

  Raises an error that has none as it is: the handler of a signal did that, during the call.
  """
  if error.errno is None: raise error
  number = error.errno
  hint = (advice or {}).get(number) or ADVICE.get(number, "look into the kernel log (dmesg)")
  return Refused(f"{what}: {os.strerror(number).lower()} ({errno.errorcode.get(number, number)}); {hint}", number)

class Unreturned(list["Returns"]):
  """What the kernel refused to take back."""
  def offer_again(self) -> None:
    """Try once more to give it back."""
    for returns in list(self):
      with contextlib.suppress(Refused): returns.close()

class Returns:
  """How a thing is given back: steps, done from the last one to the first. What is refused stays, and all before it,
  for another try.

  unreturned: has this as long as something was refused.
  """
  def __init__(self, unreturned: Unreturned):
    self.unreturned = unreturned
    self.steps: list[Callable[[], None]] = []

  def add(self, step: Callable[[], None]) -> None: self.steps.append(step)

  def close(self) -> None:
    """Do the steps that are left. Raises Refused."""
    try:
      while self.steps:
        self.steps[-1]()
        self.steps.pop()
    except Refused:
      if self not in self.unreturned: self.unreturned.append(self)
      raise
    if self in self.unreturned: self.unreturned.remove(self)

class Node:
  """An opened device file of a driver. Calls raise Refused.

  advice: what an errno means, by the call: "open", "mmap", or the name of an ioctl's structure.
  """
  def __init__(self, box: Box, path: str, advice: Table[str, Table[int, str]] | None = None, flags: int = os.O_RDWR):
    self.path, self.advice = path, advice or {}
    try: self.file = box.open(path, flags)
    except PermissionError as error:
      group = box.group(path)
      join = {errno.EACCES: f"join the group {group}, which owns it (sudo usermod -aG {group} $USER), and log in again"}
      raise refusal(f"opening {path}", error, {**join, **self.advice.get("open", {})}) from error
    except OSError as error: raise refusal(f"opening {path}", error, self.advice.get("open")) from error

  def fileno(self) -> int: return self.file.fileno()

  def ioctl(self, argument: Any, what: str = "") -> None:
    """The call whose structure this is: its class has the number, as REQUEST. what: it is for, in errors; the name of
    the structure if not given."""
    kind = type(argument)
    try: self._uninterrupted(kind.REQUEST, argument)
    except OSError as error:
      raise refusal(f"{self.path}: {what or kind.__name__}", error, self.advice.get(kind.__name__)) from error

  def _uninterrupted(self, request: int, argument: Any) -> None:
    while True:
      try:
        self.file.ioctl(request, argument)
        return
      except InterruptedError: continue  # the signal's handler has run; the call had no effect

  def mmap(self, length: int, offset: int, address: int = 0, prot: int = READ_WRITE) -> Mapping:
    """Share `length` bytes of the file with the processor; address: in addresses that the caller has reserved, or 0
    for any."""
    try: return self.file.mmap(length, offset, address, prot, MAP_SHARED | (MAP_FIXED if address else 0))
    except OSError as error:
      raise refusal(f"{self.path}: mapping {length:#x} bytes", error, self.advice.get("mmap")) from error

  def close(self) -> None: self.file.close()

# **** order of memory accesses ****

def fence() -> None:
  """Stores before it are visible to a device before stores after it, also those to write-combined memory.

  Taking a lock is a locked instruction on x86-64, which orders all of them; on AArch64 it is an acquire and a release,
  which order ordinary memory. It is a new lock each time, that nobody else can hold: finalizers, handlers of signals
  and copies of the process come by here, too.
  """
  lock = threading.Lock()
  lock.acquire()
  lock.release()
