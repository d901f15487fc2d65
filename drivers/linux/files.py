"""The operating system as a driver sees it: device files, their ioctls and mappings, and the text files of sysfs.

`machine()` is the single entry point of a driver. It returns this computer (`Computer`), or with EMULATE=gfx1100 (...)
a virtual one with the same protocol. So the same driver runs on both. The protocol raises OSError with the kernel's
errno, as the system calls do. A driver holds a `Node`, which turns that into a DriverError with advice. Nothing here
knows a vendor.

The child of a fork owns nothing of its parent's devices. It gets no copy of mappings and reserved addresses
(MADV_DONTFORK), since a store to a doorbell would start the parent's work, and memory would stay as long as the child.
Its copies of descriptors are closed (`leave_nodes`).
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
import weakref
from collections.abc import Callable
from collections.abc import Mapping as Table
from typing import Any, Protocol

from tinyhw.config import EMULATE
from tinyhw.errors import DeviceError, DriverError
from tinyhw.threads import once

if sys.platform == "linux":
  import fcntl
  import grp
  import pwd

READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE if sys.platform != "win32" else 3
# Linux on x86-64 and AArch64: uapi/asm-generic/mman-common.h, mman.h
PROT_NONE, MAP_FIXED, MAP_NORESERVE = 0, 0x10, 0x4000
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS = 0x01, 0x02, 0x20
# with PROT_NONE: addresses that no other mapping gets
RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
PAGE = 4096

# **** the protocol of this computer and of a virtual one ****

class Mapping(Protocol):
  """Memory that the processor sees, at a host address. All accesses of a driver go through these methods, so a virtual
  device sees them: a store to a doorbell rings it.

  Offsets and sizes are in bytes. Words are aligned to their size. `close` ends the mapping. If it was made at a given
  address (MAP_FIXED), the addresses stay reserved for their owner.
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
  def leave(self) -> None:
    """Count as closed, and do nothing else: in the child of a fork, which has no copy of it."""

class File(Protocol):
  """An opened device file. Refusals are OSErrors with the kernel's errno."""
  def fileno(self) -> int:
    """Return the descriptor's number, as ioctls pass it. A virtual file has a number that no real file has."""
  def ioctl(self, request: int, argument: Any) -> None:
    """Call the driver in the kernel. argument: a ctypes Structure, which receives the results."""
  def mmap(self, length: int, offset: int, address: int, prot: int, flags: int) -> Mapping:
    """Map a part of the file.

    address: 0, or with MAP_FIXED in flags an address that the caller has reserved.
    """
  def poll(self, timeout_ms: int) -> bool:
    """Wait until the file has something to read. Return False after the timeout."""
  def close(self) -> None:
    """Close the descriptor. A second call does nothing. In the child of a fork it closes the child's copy."""

class HostFiles(Protocol):
  """A computer's files.

  Paths are absolute. virtual: its devices advance when a program polls them, independent of time.
  """
  @property
  def virtual(self) -> bool: ...
  def open(self, path: str, flags: int) -> File:
    """Open a device file. flags: of os.open."""
  def read_text(self, path: str) -> str:
    """Return the contents of a text file of sysfs or procfs."""
  def listdir(self, path: str) -> list[str]:
    """Return the names in a folder, in any order."""
  def exists(self, path: str) -> bool: ...
  def barred(self, path: str) -> bool:
    """Return whether a container's rules (the cgroup's) keep this process from an existing device file, whatever its
    mode says."""
  def group(self, path: str) -> str:
    """Return the name of the group of a file, or its number if it has no name."""
  def member(self, group: str) -> tuple[bool, bool]:
    """Return whether this process is in a group, and whether the system's list of groups has its user in it."""
  def outline(self, address: int, size: int, whole: int) -> None:
    """Tell a virtual computer the extent of a buffer: the first `size` of `whole` bytes at a GPU's address. The others
    are unowned."""
  def told(self) -> str:
    """Return a virtual computer's description of the last page fault, with instruction and lane; once.

    A real computer returns nothing: the kernel's log is not read.
    """

def machine() -> HostFiles:
  """Return the computer whose devices are driven: the virtual one of EMULATE, else this one. All device files and sysfs
  are accessed through it.

  Raises DeviceError if this computer's page size is not that of drivers.
  """
  name = EMULATE.value
  if not name:
    if sys.platform == "linux" and mmap.PAGESIZE != PAGE and not COMPUTER.virtual:
      raise DeviceError(f"this system's pages have {mmap.PAGESIZE} bytes, and GPUs are driven with pages of {PAGE}; "
                        f"start a kernel that has those, "
                        "or use a device that goes through its vendor's library")
    return COMPUTER
  found: HostFiles = importlib.import_module("tinyhw.emulator").box(name)
  return found

# **** this computer ****

@once
def _libc() -> Any:
  libc = ctypes.CDLL(None, use_errno=True)
  libc.mmap.restype = ctypes.c_void_p
  libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
  libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
  libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
  return libc

def _keep_from_forks(address: int, length: int) -> None:
  """Give no copy of a mapping to children of forks. Without the call (other systems than Linux) they have one."""
  if hasattr(mmap, "MADV_DONTFORK"): _libc().madvise(address, length, mmap.MADV_DONTFORK)

def map_memory(length: int, address: int = 0, prot: int = READ_WRITE, flags: int = MAP_PRIVATE | MAP_ANONYMOUS,
               descriptor: int = -1,
               offset: int = 0) -> HostMapping:
  """Call mmap of the C library, which unlike Python's takes an address. Raises OSError.

  The child of a fork gets no copy of a file's memory and of reserved addresses.
  """
  found = _libc().mmap(address or None, length, prot, flags, descriptor, offset)
  if found in (None, ctypes.c_void_p(-1).value):
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
  if descriptor >= 0 or prot == PROT_NONE: _keep_from_forks(int(found), length)
  return HostMapping(int(found), length, bool(flags & MAP_FIXED))

class HostMapping:
  """Memory of this process. fixed: it lies in reserved addresses, which stay reserved when it is closed."""
  __slots__ = ("address", "size", "fixed", "closed", "_bytes", "_words", "_quads", "__weakref__")

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
    if self.fixed:
      _libc().mmap(self.address, self.size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0)
      _keep_from_forks(self.address, self.size)
    else: _libc().munmap(self.address, self.size)

  def leave(self) -> None: self.closed = True

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
    # then the mode's refusal is EACCES
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
    except KeyError: user = ""           # a number without a name, as in containers
    return entry.gr_gid in (*os.getgroups(), os.getegid()), user in entry.gr_mem

COMPUTER: HostFiles = Computer()

# **** the objects of a driver ****

class Refused(DriverError):
  """A system call that failed. errno: the reason, as a number."""
  def __init__(self, message: str, number: int):
    super().__init__(message)
    self.errno = number

ADVICE = {  # the meaning of an errno for calls without advice of their own
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
  """Return the error of a failed call: the attempt, the reason, and advice. This is the single place where an errno
  becomes words.

  Raises an error without errno unchanged: a signal handler raised it during the call.
  """
  if error.errno is None: raise error
  number = error.errno
  hint = (advice or {}).get(number) or ADVICE.get(number, "look into the kernel log (dmesg)")
  return Refused(f"{what}: {os.strerror(number).lower()} ({errno.errorcode.get(number, number)}); {hint}", number)

class Unreturned(list["Returns"]):
  """Resources that the kernel refused to take back."""
  def offer_again(self) -> None:
    """Try to free them again."""
    for returns in list(self):
      with contextlib.suppress(Refused): returns.close()

class Returns:
  """The steps that free a resource, done from the last one to the first. A refused step and all before it stay for
  another try.

  unreturned: contains this object while a refused step is left.
  """
  def __init__(self, unreturned: Unreturned):
    self.unreturned = unreturned
    self.steps: list[Callable[[], None]] = []

  def add(self, step: Callable[[], None]) -> None: self.steps.append(step)

  def close(self) -> None:
    """Do the remaining steps. Raises Refused."""
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

  advice: advice for an errno, by the call: "open", "mmap", or the name of an ioctl's structure.
  """
  def __init__(self, box: HostFiles, path: str, advice: Table[str, Table[int, str]] | None = None,
               flags: int = os.O_RDWR):
    self.path, self.advice = path, advice or {}
    self.mappings: weakref.WeakSet[Mapping] = weakref.WeakSet()
    try: self.file = box.open(path, flags)
    except PermissionError as error:
      group = box.group(path)
      join = {errno.EACCES: f"join the group {group}, which owns it (sudo usermod -aG {group} $USER), and log in again"}
      raise refusal(f"opening {path}", error, {**join, **self.advice.get("open", {})}) from error
    except OSError as error: raise refusal(f"opening {path}", error, self.advice.get("open")) from error
    _nodes.add(self)

  def fileno(self) -> int: return self.file.fileno()

  def ioctl(self, argument: Any, what: str = "") -> None:
    """Do the call of this structure, whose class has the number as REQUEST.

    what: the purpose of the call, for errors; by default the name of the structure.
    """
    kind = type(argument)
    try: self._uninterrupted(kind.REQUEST, argument)
    except OSError as error:
      raise refusal(f"{self.path}: {what or kind.__name__}", error, self.advice.get(kind.__name__)) from error

  def _uninterrupted(self, request: int, argument: Any) -> None:
    while True:
      try:
        self.file.ioctl(request, argument)
        return
      except InterruptedError: continue  # the signal handler has run; the call had no effect

  def mmap(self, length: int, offset: int, address: int = 0, prot: int = READ_WRITE) -> Mapping:
    """Map `length` bytes of the file. address: in addresses that the caller has reserved, or 0 for any."""
    try: found = self.file.mmap(length, offset, address, prot, MAP_SHARED | (MAP_FIXED if address else 0))
    except OSError as error:
      raise refusal(f"{self.path}: mapping {length:#x} bytes", error, self.advice.get("mmap")) from error
    self.mappings.add(found)
    return found

  def close(self) -> None: self.file.close()

  def leave(self) -> None:
    """Close the copy of the descriptor that the child of a fork has. The kernel keeps the file for the parent."""
    for mapping in self.mappings: mapping.leave()
    self.file.close()

_nodes: weakref.WeakSet[Node] = weakref.WeakSet()

def leave_nodes() -> None:
  """Leave all nodes, in the child of a fork.

  Open copies would keep memory and queues of the GPU after the parent's end, as long as the child runs.
  """
  for node in list(_nodes): node.leave()
  _nodes.clear()

if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=leave_nodes)

# **** order of memory accesses ****

def fence() -> None:
  """Make earlier stores visible to a device before later ones, including stores to write-combined memory.

  Taking a lock is a locked instruction on x86-64, which orders all stores. On AArch64 it is an acquire and a release,
  which order ordinary memory. The lock is new each time, so that nobody else can hold it. Finalizers, signal handlers
  and copies of the process call this too.
  """
  lock = threading.Lock()
  lock.acquire()
  lock.release()
