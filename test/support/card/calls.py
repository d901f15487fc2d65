"""The calls of the vendor's library to the kernel's driver: objects with their parameters, controls,
unified memory, mappings. And what our own driver asks for, in the same words.

To see the library's calls, the first bytes of the C library's `ioctl` are overwritten by a jump to a function here. It
makes the call and records it. So this is for x86-64, in a process of its own. Structures are those of our driver, by
the version of the kernel's.
"""
from __future__ import annotations
import ctypes
import mmap
import os
import platform
from collections.abc import Callable
from typing import Any

from card.capture import marked
from card.frame import Absent, Notes
from card.system import device_of, driver_version, our_device

from tinyhw.autogen.nvidia import rm
from tinyhw.drivers.linux.files import Node

SYSTEM_CALL_IOCTL = 16        # x86-64
JUMP = b"\x49\xbb", b"\x41\xff\xe3"   # mov r11, imm64; jmp r11
UVM_NODE, RM_LETTER = "/dev/nvidia-uvm", ord("F")
SHOWN_BYTES, MOST_CALLS = 96, 1500
Handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, use_errno=True)

class Hook:
  """While it stands, `ioctl` of the C library is `function`, which gets the call itself, the file, the number and the
  address of the argument.

  The caller's errno is kept by ctypes from the moment that a call returns until the handler does: the interpreter makes
  calls of its own between.
  """
  def __init__(self, function: Callable[[Callable[[], int], int, int, int], int]):
    if platform.machine() != "x86_64": raise Absent("calls are followed on x86-64 only")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    def called(file: int, number: int, argument: int | None) -> int:
      failure = 0
      def call() -> int:
        nonlocal failure
        status = int(libc.syscall(SYSTEM_CALL_IOCTL, file, number, argument))
        failure = ctypes.get_errno() if status < 0 else 0
        return status
      try: return function(call, file, number, argument or 0)
      finally:
        if failure: ctypes.set_errno(failure)
    self.handler = Handler(called)
    self.place = ctypes.cast(libc.ioctl, ctypes.c_void_p).value or 0
    code = JUMP[0] + (ctypes.cast(self.handler, ctypes.c_void_p).value or 0).to_bytes(8, "little") + JUMP[1]
    self.before = ctypes.string_at(self.place, len(code))
    page = self.place // mmap.PAGESIZE * mmap.PAGESIZE
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    if libc.mprotect(page, 2 * mmap.PAGESIZE, rights): raise Absent("the C library's code may not be changed here")
    ctypes.memmove(self.place, code, len(code))

  def close(self) -> None: ctypes.memmove(self.place, self.before, len(self.before))

class Told:
  """Calls in words. version: of the kernel's driver."""
  def __init__(self, version: rm.Version):
    found = rm.structures(version)
    self.by_number = {kind.NUMBER: kind for kind in found.rows.values() if hasattr(kind, "REQUEST")
                      and kind.REQUEST >> 30 == 3}
    self.of_uvm = {kind.NUMBER: kind for kind in found.rows.values() if hasattr(kind, "REQUEST")
                   and kind.REQUEST == kind.NUMBER}
    self.others = {kind.NUMBER: kind for kind in found.rows.values() if kind.NUMBER and not hasattr(kind, "REQUEST")}
    self.lines = list[str]()

  def __call__(self, call: Callable[[], int], file: int, number: int, argument: int) -> int:
    status = call()   # what it answers is of interest, too
    if len(self.lines) < MOST_CALLS:
      try: words = self.words(os.readlink(f"/proc/self/fd/{file}"), number, argument)
      except (OSError, ValueError) as error: words = f"{number:#x}: {error}"
      if words: self.lines.append(words + (f" -> {status}" if status else ""))
    return status

  def words(self, path: str, number: int, argument: int) -> str:
    """A call of NVIDIA's files; nothing of others."""
    if not path.startswith("/dev/nvidia"): return ""
    if path.startswith(UVM_NODE): return self._fields(self.of_uvm.get(number), argument, f"uvm call {number}", 0)
    kind = self.by_number.get(number & 0xFF) if number >> 8 & 0xFF == RM_LETTER else None
    size = number >> 16 & 0x3FFF
    text = self._fields(kind, argument, f"call {number & 0xFF:#x}", size)
    if kind is None or kind.__name__ not in ("RmAlloc", "RmControl"): return f"{text} [{path}]"
    request = kind.from_address(argument)
    if kind.__name__ == "RmAlloc": inner, place, length = request.hClass, request.pAllocParms, request.paramsSize
    else: inner, place, length = request.cmd, request.params, request.paramsSize
    if not place: return text
    return f"{text}: {self._fields(self.others.get(inner), place, '', length)}"

  def _fields(self, kind: Any, argument: int, name: str, size: int) -> str:
    """A structure's fields that are not 0; the first bytes of one that is not known."""
    if not argument: return f"{name} without argument"
    if kind is None or size and size < ctypes.sizeof(kind):
      return f"{name} {ctypes.string_at(argument, min(size, SHOWN_BYTES)).hex()}".strip()
    found = kind.from_address(argument)
    return f"{kind.__name__} " + " ".join(f"{field}={_value(value)}" for field, *_ in kind._fields_
                                          if _some(value := getattr(found, field)))

def _some(value: Any) -> bool: return bool(value) if isinstance(value, int) else any(bytes(value))

def _value(value: Any) -> str:
  """A number in hexadecimal, of an array the bytes up to the last one that is not 0."""
  return f"{value:#x}" if isinstance(value, int) else bytes(value)[:SHOWN_BYTES].rstrip(b"\0").hex()

def own(notes: Notes) -> None:
  """The same of our own driver, to be laid beside the library's."""
  told, kept = Told(driver_version()), Node._uninterrupted
  def noted(node: Node, request: int, argument: Any) -> None:
    kept(node, request, argument)
    if words := told.words(node.path, request, ctypes.addressof(argument)): told.lines.append(words)
  Node._uninterrupted = noted  # type: ignore[method-assign]
  device = our_device()
  notes("calls to open", list(told.lines))
  opened = len(told.lines)
  marked(device, device.card.chip)
  notes("calls for a kernel", told.lines[opened:])

def library(notes: Notes) -> None:
  """All calls from the library's first one to the end of a kernel."""
  told = Told(driver_version())
  hook = Hook(told)
  try:
    device = device_of("NV:CUDA")
    notes("calls to open", list(told.lines))
    opened = len(told.lines)
    marked(device, device.chip)  # type: ignore[attr-defined]
    notes("calls for a kernel", told.lines[opened:])
  finally: hook.close()
