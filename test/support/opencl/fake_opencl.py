"""A stand-in for libOpenCL: one platform, memory of this process, kernels that are noted; calls can be made to fail."""
from __future__ import annotations
import collections
import ctypes
import struct
from collections.abc import Callable
from typing import Any

from tinyhw.autogen import opencl as cl

PLATFORM, FIRST_DEVICE = 1, 10
DEVICE: dict[int, bytes] = {}   # answers of clGetDeviceInfo

def number(value: int) -> bytes: return struct.pack("<Q", value)

def facts(name: str = "Example", kind: int = cl.DEVICE_TYPE_GPU, **changes: int) -> dict[int, bytes]:
  """The answers of a device that has all that kernels need. changes: by the names of autogen/opencl.py."""
  made = {cl.DEVICE_NAME: name.encode() + b"\0", cl.DEVICE_VERSION: b"OpenCL 1.2 fake\0", cl.DRIVER_VERSION: b"7\0",
          cl.DEVICE_EXTENSIONS: b"cl_khr_fp64 cl_khr_icd\0", cl.DEVICE_TYPE: number(kind)}
  numbers = {"DEVICE_MAX_COMPUTE_UNITS": 4, "DEVICE_MAX_WORK_GROUP_SIZE": 1024, "DEVICE_LOCAL_MEM_SIZE": 32 << 10,
             "DEVICE_GLOBAL_MEM_CACHE_SIZE": 1 << 20, "DEVICE_GLOBAL_MEM_SIZE": 1 << 30,
             "DEVICE_MAX_MEM_ALLOC_SIZE": 1 << 28, "DEVICE_ADDRESS_BITS": 64, "DEVICE_AVAILABLE": 1,
             "DEVICE_ENDIAN_LITTLE": 1, "DEVICE_COMPILER_AVAILABLE": 1, "DEVICE_DOUBLE_FP_CONFIG": 63,
             "DEVICE_SINGLE_FP_CONFIG": 0xFF, **changes}
  return made | {getattr(cl, name): number(value) for name, value in numbers.items()}

class Entry:
  """A function as ctypes has it: argument types are set and checked, numbers become what C would get."""
  def __init__(self, fake: FakeOpenCl, name: str): self.fake, self.name = fake, name

  def __call__(self, *arguments: Any) -> int:
    types = getattr(self, "argtypes", None)
    if types is not None:
      if len(arguments) != len(types): raise TypeError(f"{self.name} takes {len(types)} arguments")
      for kind, value in zip(types, arguments): kind.from_param(value)
    fake = self.fake
    fake.calls[self.name] += 1
    from_call, status = fake.failing.get(self.name, (0, 0))
    if status and fake.calls[self.name] >= from_call:
      if "Create" in self.name: arguments[-1]._obj.value = status
      return 0 if "Create" in self.name else status
    return int(getattr(fake, self.name)(*arguments) or 0)

class FakeOpenCl:
  """kernels: (name, groups, lanes, arguments) of each launch. objects: live handles and their kinds.

  failing: the call from which on a function gives a status. endless: the name of a kernel that never ends. faults: one
  whose event has a status below 0. errors: messages of the compiler, which then refuses every source.
  """
  def __init__(self, *devices: dict[int, bytes]):
    self.devices = {FIRST_DEVICE + k: answers for k, answers in enumerate(devices or (facts(),))}
    self.calls: collections.Counter[str] = collections.Counter()
    self.failing: dict[str, tuple[int, int]] = {}
    self.objects: dict[int, str] = {}
    self.memory: dict[int, Any] = {}
    self.arguments: dict[int, dict[int, int]] = {}
    self.names: dict[int, str] = {}
    self.status: dict[int, int] = {}
    self.kernels: list[tuple[str, int, int, list[int]]] = []
    self.endless, self.faults, self.errors, self.most_lanes, self.next = "", "", "", 1024, 100
    self.ended = True

  def __getattr__(self, name: str) -> Callable[..., Any]:
    if name.startswith("clRelease"): return self.release
    raise AttributeError(name)

  def made(self, kind: str, status: Any) -> int:
    self.next += 1
    self.objects[self.next] = kind
    status._obj.value = 0
    return self.next

  def release(self, handle: Any) -> None:
    handle = getattr(handle, "value", handle)
    assert handle in self.objects, "released twice, or never made"
    del self.objects[handle]

  def answer(self, data: bytes, size: int, place: Any, length: Any) -> int:
    if length is not None: length._obj.value = len(data)
    if place is not None: ctypes.memmove(ctypes.addressof(getattr(place, "_obj", place)), data, min(size, len(data)))
    return 0

  # ***** calls *****

  def clGetPlatformIDs(self, size: int, places: Any, count: Any) -> int:
    if places is None: count._obj.value = 1
    else: places[0] = PLATFORM
    return 0

  def clGetPlatformInfo(self, handle: int, asked: int, *places: Any) -> int: return self.answer(b"Fakes\0", *places)

  def clGetDeviceIDs(self, platform: int, kind: int, size: int, places: Any, count: Any) -> int:
    if places is None: count._obj.value = len(self.devices)
    else:
      for k, handle in enumerate(self.devices): places[k] = handle
    return 0

  def clGetDeviceInfo(self, handle: int, asked: int, *places: Any) -> int:
    found = self.devices[handle].get(asked)
    return -30 if found is None else self.answer(found, *places)

  def clCreateContext(self, *arguments: Any) -> int: return self.made("context", arguments[-1])
  def clCreateCommandQueue(self, *arguments: Any) -> int: return self.made("queue", arguments[-1])

  def clCreateBuffer(self, context: int, flags: int, size: int, host: Any, status: Any) -> int:
    handle = self.made("memory", status)
    self.memory[handle] = (ctypes.c_char * size).from_address(host) if host else (ctypes.c_char * size)()
    return handle

  def clCreateProgramWithSource(self, context: int, count: int, text: Any, lengths: Any, status: Any) -> int:
    return self.made("program", status)

  def clBuildProgram(self, *arguments: Any) -> int: return -11 if self.errors else 0

  def clGetProgramBuildInfo(self, program: int, device: int, asked: int, *places: Any) -> int:
    return self.answer(self.errors.encode() + b"\0", *places)

  def clCreateKernel(self, program: int, name: bytes, status: Any) -> int:
    handle = self.made("kernel", status)
    self.names[handle], self.arguments[handle] = name.decode(), {}
    return handle

  def clGetKernelWorkGroupInfo(self, kernel: int, device: int, asked: int, *places: Any) -> int:
    return self.answer(number(self.most_lanes), *places)

  def clSetKernelArg(self, kernel: int, index: int, size: int, value: Any) -> None:
    assert size == 8
    self.arguments[kernel][index] = value._obj.value

  def clEnqueueNDRangeKernel(self, queue: Any, handle: Any, dimensions: Any, offset: Any, total: Any, lanes: Any,
                             waits: Any, events: Any, event: Any) -> None:
    given = (queue, handle, dimensions, offset, total, lanes, waits, events, event)
    assert not any(isinstance(x, int) for x in given[1:]), "without types, C gets an int of 32 bits"
    kernel = handle.value
    found = self.arguments[kernel]
    assert dimensions.value == 1 and not waits.value
    assert sorted(found) == list(range(len(found))) and total._obj.value % lanes._obj.value == 0
    name = self.names[kernel]
    self.kernels.append((name, total._obj.value // lanes._obj.value, lanes._obj.value, list(found.values())))
    if name == self.endless: self.ended = False
    if event is not None: self.mark(event, -5 if name == self.faults else 0 if self.ended else 1)

  def mark(self, event: Any, status: int) -> None:
    event._obj.value = self.made("event", ctypes.byref(ctypes.c_int()))
    self.status[event._obj.value] = status

  def clEnqueueMarkerWithWaitList(self, queue: int, waits: int, events: Any, event: Any) -> None:
    self.mark(event, 0 if self.ended else 1)

  def copied(self, dest: Any, source: Any, size: int) -> None:
    assert self.ended, "the call would wait for ever"
    ctypes.memmove(dest, source, size)

  def clEnqueueReadBuffer(self, queue: int, memory: int, waits: int, offset: int, size: int, host: Any,
                          *rest: Any) -> None:
    assert waits
    self.copied(host._obj, ctypes.addressof(self.memory[memory]) + offset, size)

  def clEnqueueWriteBuffer(self, queue: int, memory: int, waits: int, offset: int, size: int, host: Any,
                           *rest: Any) -> None:
    assert waits
    self.copied(ctypes.addressof(self.memory[memory]) + offset, host._obj, size)

  def clFlush(self, queue: int) -> None: pass

  def clGetEventInfo(self, event: int, asked: int, size: int, place: Any, length: Any) -> int:
    return self.answer(struct.pack("<i", self.status[event]), size, place, length)

  def clGetEventProfilingInfo(self, event: Any, asked: int, *places: Any) -> int:
    return self.answer(number(1000 * (asked - cl.PROFILING_COMMAND_QUEUED)), *places)

class Loaded:
  """The fake as ctypes shows a library. without: functions that it does not have."""
  def __init__(self, fake: FakeOpenCl, without: tuple[str, ...] = ()): self.fake, self.without = fake, without
  def __getattr__(self, name: str) -> Entry:
    if name in self.without: raise AttributeError(name)
    return Entry(self.fake, name)
  def __getitem__(self, name: str) -> Entry: return getattr(self, name)  # type: ignore[no-any-return]
