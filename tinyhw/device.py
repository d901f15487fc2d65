"""The registry of devices (`Device`) and their memory (`Buffer`).

A driver is a module with `open(ordinal, runtime) -> Compiled`. It is imported when its device is first asked for. The
classes that drivers implement are in device_interface.py. This file knows no hardware and no compiler.
"""
from __future__ import annotations
import importlib
import importlib.util
import itertools
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, overload

from tinyhw import threads, trace
from tinyhw.config import DEBUG, DEV, EMULATE, PLUGINS
from tinyhw.device_interface import (
  Allocator as Allocator, Compiled as Compiled, Compiler as Compiler, Kept as Kept, LRUAllocator as LRUAllocator,
  Launch as Launch, Recording as Recording, Returned as Returned, VECTOR_BYTES as VECTOR_BYTES,
  are_all_of_the_host as are_all_of_the_host, show_bytes as show_bytes)
from tinyhw.dtype import DType
from tinyhw.errors import ArgumentError, ConfigError, DeviceError, DriverError, OutOfMemory
from tinyhw.helpers import GlobalCounters
from tinyhw.named_tuple import NamedTuple

# Name -> driver module. A missing module is a refusal with a reason, not an error.
DRIVERS = {
  "NV": "tinyhw.drivers.nvidia",
  "NV:CUDA": "tinyhw.drivers.nvidia.cuda",  # the same GPUs through the vendor's library
  "AMD": "tinyhw.drivers.amd",
  "METAL": "tinyhw.drivers.metal",
  "OPENCL": "tinyhw.drivers.opencl",        # through libOpenCL, optional
  "WEBGPU": "tinyhw.drivers.webgpu",        # through wgpu-native, optional
  "CPU": "tinyhw.drivers.cpu",
  "CLANG": "tinyhw.drivers.clang",
  "PYTHON": "tinyhw.drivers.python",
  "NULL": "tinyhw.drivers.null",  # runs nothing: to measure compilation
}
# DISK:/path is the device of a file. It stores bytes and is not a device that computes.
DISK, DISK_DRIVER = "DISK", "tinyhw.drivers.disk"
DeviceLike = str | tuple[str, ...]  # the name of a device, or the names of several devices that share a tensor
ALIASES = {"CUDA": "NV", "GPU": "NV", "HIP": "AMD"}
# The default device is the first of these that opens. The others are missing because they have not met hardware yet.
PREFERENCE = ("CPU", "CLANG", "PYTHON")
# prefixes of names of virtual GPUs -> the device that drives them
EMULATED = {"gfx": "AMD", "sm_": "NV", "apple": "METAL"}
FALLBACKS = ("CLANG", "PYTHON")                                # a default that deserves a line on standard error

ARM64 = ("aarch64", "arm64")   # names of AArch64: of Linux, of macOS
# Processor, as the system names it -> its kind. tinyhw/isa/<kind>/runtime.py has code(name), the machine code that
# drivers need; drivers/cpu/<kind>.py knows the processor.
PROCESSORS = {**dict.fromkeys(("x86_64", "AMD64"), "x86"), **dict.fromkeys(ARM64, "arm64"),
              "riscv64": "riscv64"}

def processor() -> str:
  """Return the processor's architecture as the system names it."""
  return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "unknown")

def runtime(name: str) -> Any:
  """Return the machine code `name` for this processor, as Code.

  Raises DeviceError where the repository has no assembler for it.
  """
  kind = PROCESSORS.get(processor())
  if kind is None:
    raise DeviceError(f"tinyhw has no assembler for {processor()} yet; use DEV=CLANG with a C compiler, or DEV=PYTHON")
  return importlib.import_module(f"tinyhw.isa.{kind}.runtime").code(name)

def on_disk(device: DeviceLike | None) -> bool:
  """Is this the (canonical) name of a file's device?"""
  return isinstance(device, str) and device.startswith("DISK:")

def computing(device: DeviceLike) -> DeviceLike:
  """Return the device, or the default device in place of a file: there, values derived from a tensor are made."""
  return Device.DEFAULT if on_disk(device) else device

# **** memory ****

class BufferOptions(NamedTuple):
  """Options of a Buffer.

  external_ptr: the address of foreign memory, which is used in place. owner: an object that keeps that memory alive.
  writable: a file (DISK) may be written and created.
  """
  external_ptr: int | None = None
  owner: Any = None
  writable: bool = False

# Not a count in the class: a change of a class makes the interpreter look up all attributes of its objects anew.
_buffer_numbers = itertools.count(1)

class Buffer:
  """`size` elements of `dtype` on a device, allocated when first needed. A view shares the memory of its `base`,
  `offset` bytes from its start.

  opaque: memory from the device's allocator; the Buffer becomes its owner. initial_value: bytes to start with. Deleting
  the last reference frees it.
  """
  __slots__ = ("device", "size", "dtype", "options", "offset", "uop_refcount", "trace_num", "_base", "_buf",
               "_allocator", "_views", "viewers",
               "__weakref__")
  profile_events: ClassVar[list[trace.Event]] = []  # with PROFILE=1 or VIZ=1: allocations and frees of all Buffers

  def __init__(self, device: str, size: int, dtype: DType, opaque: Any = None, options: BufferOptions | None = None,
               initial_value: bytes | None = None, uop_refcount: int = 0, base: Buffer | None = None, offset: int = 0,
               preallocate: bool = False):
    if size < 0: raise ArgumentError(f"a Buffer has at least 0 elements, not {size}")
    self.device, self.size, self.dtype, self.options, self.offset = device, size, dtype, options, offset
    self.uop_refcount, self.trace_num = uop_refcount, next(_buffer_numbers)
    self._base, self._buf = base, None
    self._allocator: Allocator | None = None
    self._views: list[weakref.ref[Buffer]] = []  # allocated views of this one
    self.viewers: list[Any] | None = None        # set by the engine: the tensors that look at this memory
    if base is not None and base._base is not None:
      raise ArgumentError("the base of a view is a Buffer that is no view itself; pass base.base")
    if opaque is not None: self.allocate(opaque)
    if initial_value is not None: self.allocate().copyin(memoryview(initial_value))
    elif preallocate: self.ensure_allocated()

  @property
  def base(self) -> Buffer: return self if self._base is None else self._base

  @property
  def nbytes(self) -> int: return self.size * self.dtype.itemsize

  @property
  def allocator(self) -> Allocator: return self._allocator or Device[self.device].allocator

  def ref(self, cnt: int) -> Buffer:
    """Add to the count of graph nodes that hold this buffer."""
    self.base.uop_refcount += cnt
    return self

  def is_allocated(self) -> bool: return self._buf is not None
  def is_initialized(self) -> bool: return self.size == 0 or self.base.is_allocated() or self.allocator.lasting

  def ensure_allocated(self) -> Buffer: return self if self._buf is not None else self.allocate()

  def allocate(self, opaque: Any = None, external_ptr: int | None = None) -> Buffer:
    """Take memory now: new memory, `opaque`, or memory at the address external_ptr, which must outlive the Buffer.

    Raises DeviceError if the Buffer has memory already.
    """
    if self._buf is not None:
      raise DeviceError(f"{self!r} is allocated already; deallocate it first, or use ensure_allocated")
    if opaque is None and external_ptr is None and self._base is None and self.options is None:   # the usual case
      allocator = self._allocator = Device[self.device].allocator
      self._buf = allocator.alloc(nbytes := self.size * self.dtype.itemsize)
      if not allocator.lasting: _count_memory(self, nbytes)
      return self
    if external_ptr is None and self.options is not None: external_ptr = self.options.external_ptr
    # Assigned before _buf, which says that there is memory: an interrupt may come in between.
    allocator = self._allocator = Device[self.device].allocator
    if self._base is not None:
      self._buf = allocator.offset(self._base.ensure_allocated()._buf, self.nbytes, self.offset)
      self._base._views.append(weakref.ref(self))
    elif external_ptr is not None:
      if self.options is None or self.options.external_ptr != external_ptr: self.options = BufferOptions(external_ptr)
      if not allocator.is_aligned(external_ptr, self.nbytes):
        raise DeviceError(f"{self.device} cannot use memory at {external_ptr:#x}: kernels want a multiple of "
                          f"{allocator.alignment} bytes; copy the data with Tensor(...) instead")
      self._buf = allocator.external(external_ptr, self.nbytes)
    else:
      self._buf = allocator.alloc(self.nbytes, self.options) if opaque is None else opaque
      if not allocator.lasting: _count_memory(self, self.nbytes)
    return self

  def deallocate(self) -> None:
    """Give the memory back. Views of it lose it too. Raises DeviceError if there is none."""
    if self._buf is None: raise DeviceError(f"{self!r} is not allocated, or is deallocated twice")
    allocator, opaque = self._leave()
    if allocator is not None: allocator.free(opaque, self.nbytes, self.options)

  def _leave(self) -> tuple[Allocator | None, Any]:
    """Forget the memory. Return its allocator and the memory, to give back; no allocator where the Buffer owns
    nothing."""
    opaque, allocator = self._buf, self._allocator
    self._buf = None
    self._allocator = None
    if self._views:
      for view in self._views:
        found = view()
        if found is not None: found._buf = found._allocator = None
      self._views.clear()
    if self._base is not None or self.options is not None and self.options.external_ptr is not None: return None, opaque
    assert allocator is not None
    if not allocator.lasting: _count_memory(self, -self.nbytes)
    return allocator, opaque

  def __del__(self) -> None:
    if _count_memory is None: return   # the interpreter ends and has cleared this module; memory ends with the process
    if getattr(self, "_buf", None) is None or self._base is not None: return
    allocator, opaque = self._leave()
    if allocator is not None: allocator.drop(opaque)

  def get_buf(self, device: str | None = None) -> Any:
    """Return the opaque memory, as Launch wants it. Allocates if needed.

    Raises DeviceError for another device that cannot see the memory.
    """
    if self._buf is None: self.allocate()
    if device is None or Device.canonicalize(device) == self.device: return self._buf
    return Device[device].allocator.map(self)

  def view(self, size: int, dtype: DType, offset: int) -> Buffer:
    """`size` elements of `dtype` from byte `offset` on. Shares memory; keeps the base alive."""
    end = offset + size * dtype.itemsize
    if offset < 0 or end > self.nbytes:
      raise ArgumentError(f"a view of bytes {offset} to {end} does not fit into {self!r} of {self.nbytes} bytes")
    return Buffer(self.device, size, dtype, base=self.base, offset=self.offset + offset)

  def copyin(self, mv: memoryview) -> Buffer:
    """Overwrite with the bytes of mv, which must be contiguous and as long as this."""
    source = memoryview(mv)
    if source.nbytes != self.nbytes:
      raise ArgumentError(f"copyin of {source.nbytes} bytes into {self!r} of {self.nbytes} bytes; sizes must be equal")
    if not source.c_contiguous:
      raise ArgumentError("copyin wants contiguous memory; make a copy first, e.g. with bytes(mv)")
    self.ensure_allocated()
    if self.nbytes:
      Device[self.device].synchronize()
      start_ns = time.perf_counter_ns()
      self.allocator.copyin(self._buf, source.cast("B"))
      if trace.recorder is not None: trace.recorder.moved(self, "copyin", start_ns)
    return self

  def copyout(self, mv: memoryview) -> memoryview:
    """Copy all bytes into mv (contiguous, writable, as long as this). Returns mv."""
    if mv.nbytes != self.nbytes:
      raise ArgumentError(f"copyout of {self!r} of {self.nbytes} bytes into {mv.nbytes} bytes; sizes must be equal")
    if mv.readonly or not mv.c_contiguous:
      raise ArgumentError("copyout wants contiguous, writable memory; pass memoryview(bytearray(buffer.nbytes))")
    if not self.is_initialized():
      raise DeviceError(f"{self!r} has no memory to read yet; allocate it and copy data in, or run what computes it")
    self.ensure_allocated()
    if self.nbytes:
      Device[self.device].synchronize()
      start_ns = time.perf_counter_ns()
      self.allocator.copyout(mv.cast("B"), self._buf)
      if trace.recorder is not None: trace.recorder.moved(self, "copyout", start_ns)
    return mv

  def copy_from(self, src: Buffer) -> Buffer:
    """Overwrite with the bytes of another Buffer, on any device.

    A transfer between devices does not go through host memory where the allocator supports it.
    """
    there = self.ensure_allocated().allocator.as_memoryview(self._buf)
    if self.allocator.supports_transfer and src.nbytes == self.nbytes and src.is_allocated():
      Device[self.device].synchronize()
      if self.allocator.transfer(self._buf, src._buf, self.nbytes): return self
    if there is None or src.nbytes != self.nbytes or not src.allocator.lasting:
      return self.copyin(src.as_memoryview(allow_zero_copy=True))
    Device[self.device].synchronize()
    src.copyout(there[:self.nbytes])
    return self

  def as_memoryview(self, allow_zero_copy: bool = False, force_zero_copy: bool = False,
                    no_sync: bool = False) -> memoryview:
    """The contents as bytes: a copy, unless zero copy is allowed and the host can see the memory.

    A zero-copy view holds this Buffer. Its memory is reused only after the view, and everything made of the view, is
    gone. `deallocate` takes the contents nevertheless. Raises DeviceError if force_zero_copy cannot be met.
    """
    if not self.is_initialized():
      raise DeviceError(f"{self!r} has no memory to read yet; allocate it and copy data in, or run what computes it")
    self.ensure_allocated()
    if allow_zero_copy or force_zero_copy:
      found = self.allocator.as_memoryview(self._buf)
      if found is not None:
        if not no_sync: Device[self.device].synchronize()
        return _held_by(found[:self.nbytes], self)
      if force_zero_copy:
        raise DeviceError(f"{self.device} memory is not visible to the host; call as_memoryview() for a copy")
    try: copy = memoryview(bytearray(self.nbytes))
    except MemoryError:
      raise OutOfMemory(
        f"there is no memory for a copy of {show_bytes(self.nbytes)} of {self!r}; read a part of it") from None
    return self.copyout(copy)

  def numpy(self) -> Any:
    """A copy as a flat NumPy array. Raises DeviceError without NumPy, ArgumentError for a dtype that NumPy has not."""
    if self.dtype.fmt is None: raise ArgumentError(f"NumPy has no {self.dtype}; cast to float32 first")
    try: numpy = importlib.import_module("numpy")
    except ImportError:
      raise DeviceError("numpy() needs NumPy, which is not installed; use tolist() or data() instead") from None
    return numpy.frombuffer(self.as_memoryview(), dtype=numpy.dtype(self.dtype.fmt))

  def __reduce_ex__(self, protocol: Any) -> Any:
    """Pickles with its contents, as a Tensor does. A view becomes a buffer of its own."""
    with threads.lock:
      contents = outside(self.as_memoryview(allow_zero_copy=protocol >= 5), protocol) if self.is_initialized() else None
    return Buffer, (computing(self.device), self.size, self.dtype, None, None, contents)

  def __repr__(self) -> str:
    view = "" if self._base is None else f" offset={self.offset}"
    return f"<Buffer {self.device} {self.size} {self.dtype}{view}{'' if self.is_allocated() else ' (not allocated)'}>"

def outside(raw: memoryview, protocol: int) -> Any:
  """Return bytes for a pickle.

  From protocol 5 on they are a buffer, which the pickler may store out of band (buffer_callback). They are copied at
  most once.
  """
  if protocol < 5: return bytes(raw)
  from pickle import PickleBuffer  # loaded here: a program that pickles has loaded it already
  return PickleBuffer(raw.toreadonly())

def _held_by(view: memoryview, owner: Buffer) -> memoryview:
  """Return the same bytes in a memoryview that keeps owner alive.

  Slices and casts of a memoryview refer to its exporter: here, a ctypes array.
  """
  from ctypes import c_ubyte  # loaded here: many programs never look at memory in place
  if not view.nbytes: return view
  array: Any = (c_ubyte * view.nbytes).from_buffer(view)
  array.owner = owner
  return memoryview(array).cast("B")

def _count_memory(buffer: Buffer, nbytes: int) -> None:
  GlobalCounters.mem_used += nbytes
  GlobalCounters.mem_used_per_device[buffer.device] += nbytes
  # modules are None when the interpreter ends
  if trace is not None and trace.recorder is not None: trace.recorder.memory(buffer, nbytes)

# **** which devices there are ****

class _Devices:
  """The registry. `Device["CPU"]` opens a device once. `Device.DEFAULT` is the assigned device, else DEV, else the best
  that opens."""
  def __init__(self) -> None:
    self._opened: dict[str, Compiled] = {}
    # devices of files; they live as long as their buffers
    self._files: weakref.WeakValueDictionary[str, Compiled] = weakref.WeakValueDictionary()
    self._default: str | None = None
    self._settings = "", ""     # DEV and EMULATE when the default device was chosen
    self._told: set[str] = set()
    self._lock = threads.kept_in_forks(threading.RLock())
    self.refused: dict[str, str] = {}  # name -> why it did not open

  def register(self, name: str, module: str) -> None:
    """Add a device: a name in capitals, and the module whose open(ordinal, runtime) opens it."""
    DRIVERS[name] = module

  @overload
  def canonicalize(self, device: str | None) -> str: ...
  @overload
  def canonicalize(self, device: DeviceLike | None) -> DeviceLike: ...
  def canonicalize(self, device: DeviceLike | None) -> DeviceLike:
    """Return the canonical name of a device. Raises DeviceError for unknown names.

    "cpu:0" and "CPU" become "CPU", "CUDA" becomes "NV", None becomes the default. A tuple or list names several
    devices, each once, that share a tensor. A tuple of one device becomes that device.
    """
    if device is None: return self.DEFAULT
    if type(device) is str and device in self._opened: return device
    if isinstance(device, (tuple, list)): return self._several(device)
    if not isinstance(device, str):
      raise DeviceError(f"a device is named by a string such as \"CPU\" or \"CPU:1\", not by {device!r}")
    if device[:len(DISK)].upper() == DISK and device[len(DISK):len(DISK) + 1] in ("", ":"):
      return _canonical_path(device)
    name, _, ordinal = device.upper().partition(":")
    name = ALIASES.get(name, name)
    interface, _, number = ordinal.partition(":")
    if f"{name}:{interface}" in DRIVERS: name, ordinal = f"{name}:{interface}", number
    if name not in DRIVERS:
      for module in filter(None, str(PLUGINS).split(",")):
        try: importlib.import_module(module.strip())  # plugins register their devices on import
        except ImportError as error:
          raise ConfigError(f"PLUGINS={str(PLUGINS)!r}: importing {module.strip()!r} failed: {error}; "
                            "name modules that PYTHONPATH reaches") from error
    if name not in DRIVERS:
      raise DeviceError(f"there is no device {device!r}; the known ones are {', '.join(DRIVERS)}, and DISK:/path")
    if ordinal and not ordinal.isdecimal():
      raise DeviceError(f"device {device!r}: what follows the colon is a number, as in {name}:1")
    return f"{name}:{int(ordinal)}" if ordinal and int(ordinal) else name

  def _several(self, devices: Sequence[str]) -> DeviceLike:
    names = tuple([self.canonicalize(d) for d in devices])
    if any(on_disk(d) for d in names):
      raise DeviceError(f"a file is no device to share a tensor: {names}; name devices that compute")
    if not names: raise DeviceError("a tensor lives on one device at least, and the tuple of devices is empty")
    if len(set(names)) != len(names): raise DeviceError(f"the devices of a tensor are {names}; name each once")
    return names if len(names) > 1 else names[0]

  def __getitem__(self, ix: str) -> Compiled:
    found = self._opened.get(ix)
    return found if found is not None else self._open(self.canonicalize(ix))

  def _open(self, name: str) -> Compiled:
    with self._lock:
      if name in self._opened: return self._opened[name]
      if on_disk(name): return self._open_file(name)
      kind, _, ordinal = (name, "", "") if name in DRIVERS else name.rpartition(":")
      try:
        if not _exists(DRIVERS[kind]): raise DeviceError("this version of tinyhw has no driver for it")
        self._opened[name] = importlib.import_module(DRIVERS[kind]).open(int(ordinal or 0), runtime)
      except (DeviceError, DriverError) as error:
        self.refused[name] = error.message
        raise DeviceError(f"device {name} does not open: {error.message}") from error
      self.refused.pop(name, None)
      if DEBUG >= 1: _say(f"opened device {name} ({self._opened[name].arch})")
      return self._opened[name]

  def _open_file(self, name: str) -> Compiled:
    found = self._files.get(name)
    if found is None:
      found = self._files[name] = importlib.import_module(DISK_DRIVER).open(name.partition(":")[2], runtime)
    return found

  def get_class(self, ix: str) -> type[Compiled]: return type(self[ix])

  @property
  def DEFAULT(self) -> str:
    if self._default is None:
      self._settings = DEV.value, EMULATE.outside
      self._default = self._choose()
    if DEV.was_set or EMULATE.was_set: self._tell(self._default)
    return self._default

  @DEFAULT.setter
  def DEFAULT(self, device: str | None) -> None:
    name = None if device is None else self.canonicalize(device)
    if on_disk(name):
      raise DeviceError(f"{device} keeps a file and computes nothing; the default is one of {', '.join(DRIVERS)}")
    self._settings = DEV.value, EMULATE.value
    self._default = name

  def _tell(self, default: str) -> None:
    """Tell once that a DEV or EMULATE set after the start, or in a Context, has not changed the default device.

    Raises as `_choose` does.
    """
    # DEV takes precedence over EMULATE.
    if (DEV.value, EMULATE.value) == self._settings or DEV.value and DEV.value == self._settings[0]: return
    wanted, variable = (self.canonicalize(DEV.value), DEV) if DEV.value else (_emulated(EMULATE.value), EMULATE)
    line = f"{variable.key}={variable.value} was set after the start, so what names no device is on {default}"
    if wanted in (None, default) or line in self._told: return
    self._told.add(line)
    _say(f"tinyhw: {line}; pass device=\"{wanted}\", or assign Device.DEFAULT = \"{wanted}\"")

  @property
  def default(self) -> Compiled: return self[self.DEFAULT]

  def _choose(self) -> str:
    if DEV.value:
      name = self.canonicalize(DEV.value)
      if on_disk(name):
        raise DeviceError(f"DEV={DEV.value} keeps a file and computes nothing; use one of {', '.join(DRIVERS)}")
      return name
    found = _emulated(EMULATE.outside)
    if found is not None: return found
    for name in PREFERENCE:
      try: self[name]
      except DeviceError as error:
        if DEBUG >= 1: _say(error.message)
        continue
      if name in FALLBACKS: _say(f"tinyhw: using {name}, because device CPU does not open: {self.refused.get('CPU')}")
      return name
    raise DeviceError("no device opens: " + "; ".join(f"{name}: {reason}" for name, reason in self.refused.items()))

  def get_available_devices(self) -> Iterator[str]:
    """Yield the names of the devices that open here. `refused` has the reasons of the others."""
    for name in DRIVERS:
      try: self[name]
      except DeviceError: continue
      yield name

  def close(self, ix: str) -> None:
    """Close a device; the next use opens it again."""
    with self._lock:
      found = self._opened.pop(self.canonicalize(ix), None)
      if found is not None: found.close()

def _emulated(card: str) -> str | None:
  """Return the device that drives a virtual card; None without a card. Raises ConfigError."""
  if not card: return None
  found = next((name for begin, name in EMULATED.items() if card.startswith(begin)), None)
  if found is None:
    raise ConfigError(f"EMULATE={card!r} is no virtual card; its name begins with {' or '.join(EMULATED)}")
  return found

def _canonical_path(device: str) -> str:
  """Return the name of a file's device with an absolute path. Raises DeviceError if there is no path."""
  path = device[len(DISK) + 1:]
  if not path: raise DeviceError("the device of a file is named with its path: DISK:/path/to/file")
  return f"{DISK}:{os.path.abspath(path)}"

def _say(line: str) -> None: sys.stderr.write(line + "\n")

def _exists(module: str) -> bool:
  try: return importlib.util.find_spec(module) is not None
  except ModuleNotFoundError: return False

Device = _Devices()

def opened(device: str | tuple[str, ...] | None) -> Compiled:
  """Return the device of a node, or the first of several. A node without one runs on the default device."""
  name = device if isinstance(device, str) or device is None else device[0]
  return Device[name or Device.DEFAULT]

def enumerate_devices_str() -> Iterator[str]:
  """A line for each known device: whether it opens, and if not, why."""
  for name in DRIVERS:
    try: yield f"{'*' if Device.DEFAULT == name else ' '} {name:8s} {Device[name].arch}"
    except DeviceError: yield f"  {name:8s} refused: {Device.refused.get(name, 'unknown')}"

def print_devices() -> None:
  """Print the lines of enumerate_devices_str as they come."""
  for line in enumerate_devices_str():
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

if __name__ == "__main__":   # python3 -m tinyhw.device
  importlib.import_module("tinyhw.device").print_devices()    # the module that drivers know, not this copy
