"""A stand-in for libcuda: memory of this process, kernels that are noted; calls can be made to fail."""
from __future__ import annotations
import collections
import ctypes
import struct
from collections.abc import Callable
from typing import Any

from tinyhw.drivers.nvidia.library import NOT_READY, WAITING

ROOM = 1024   # launches and events that the library holds; for more it waits

class Function:
  """A function as ctypes has it: argument types are set, and numbers become what C would get."""
  def __init__(self, fake: FakeCuda, name: str): self.fake, self.name = fake, name

  def __call__(self, *arguments: Any) -> int:
    fake = self.fake
    if len(arguments) != len(self.argtypes):
      raise TypeError(f"{self.name} takes {len(self.argtypes)} arguments")  # type: ignore[attr-defined]
    fake.calls[self.name] += 1
    if fake.behind: assert self.name not in WAITING and fake.behind < ROOM, f"{self.name} would wait for ever"
    if self.name in fake.failing and fake.calls[self.name] >= fake.failing[self.name][0]:
      return fake.failing[self.name][1]
    done = getattr(fake, self.name)(*arguments)
    return int(done or 0)

class FakeCuda:
  """kernels: (name, grid, lanes, arguments) of each launch; shared: its dynamic shared memory. run: called for each
  launch.

  A kernel with the name of `endless` never ends, and a call that waits for it fails. order: what C sees of
  CUDA_DEVICE_ORDER at cuInit.
  """
  def __init__(self, count: int = 1, compute: tuple[int, int] = (9, 0)):
    self.count, self.compute = count, compute
    self.calls: collections.Counter[str] = collections.Counter()
    self.failing: dict[str, tuple[int, int]] = {}
    self.memory: dict[int, Any] = {}
    self.modules: dict[int, bytes] = {}
    self.kernels: list[tuple[str, int, int, list[int]]] = []
    self.shared: list[int] = []
    self.run: Callable[[bytes, int, list[int]], None] | None = None
    self.events, self.clock, self.next, self.registered = dict[int, float](), 0.0, 100, set[int]()
    self.endless, self.behind, self.late = "", 0, set[int]()   # launches and events from the endless kernel on; events
                                                               # behind it
    self.order: bytes | None = None
    self.allowed = dict[int, int]()   # dynamic shared memory of functions that have asked for more

  def handle(self) -> int:
    self.next += 1
    return self.next

def put(place: Any, value: Any) -> None: place._obj.value = value

KIB = 1 << 10
UNASKED = 48 * KIB                                            # shared memory of a block whose function has not asked
                                                              # for more
OPT_IN = {(8, 0): 163 * KIB, (8, 9): 99 * KIB, (9, 0): 227 * KIB}  # the most: MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
RESERVED = {8: 0, 9: KIB}                                     # in a section's size, but none of the block's
MAX_DYNAMIC_SHARED = 8

def static_bytes(image: bytes, compute: tuple[int, int]) -> int:
  """Shared memory that a kernel's file declares."""
  start, count, names = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 60)
  headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + 64 * k) for k in range(count)]
  found = [max(0, h[5] - RESERVED[compute[0]]) for h in headers
           if image.startswith(b".nv.shared.", headers[names][4] + h[0])]
  return sum(found)

def _methods() -> dict[str, Callable[..., Any]]:
  def alloc(fake: FakeCuda, place: Any, size: int) -> int:
    if size > 1 << 32: return 2
    block = (ctypes.c_char * size)()
    fake.memory[ctypes.addressof(block)] = block
    put(place, ctypes.addressof(block))
    return 0
  def copy(fake: FakeCuda, dest: Any, source: Any, size: int) -> None: ctypes.memmove(dest, source, size)
  def function(fake: FakeCuda, place: Any, module: int, name: bytes) -> int:
    assert name in fake.modules[module]
    put(place, fake.handle())
    fake.functions = {**getattr(fake, "functions", {}), place._obj.value: (module, name.decode())}
    return 0
  def load(fake: FakeCuda, place: Any, image: Any) -> int:
    raw = ctypes.string_at(image, 64)
    headers, count = struct.unpack_from("<Q", raw, 40)[0], struct.unpack_from("<H", raw, 60)[0]
    segments, parts = struct.unpack_from("<Q", raw, 32)[0], struct.unpack_from("<H", raw, 56)[0]
    if raw[:4] != b"\x7fELF": return 200
    number = fake.handle()
    fake.modules[number] = ctypes.string_at(image, max(headers + 64 * count, segments + 56 * parts))
    put(place, number)
    return 0
  def launch(fake: FakeCuda, handle: int, x: int, y: int, z: int, lanes: int, ly: int, lz: int, shared: int,
             stream: Any, places: Any,
             extra: Any) -> int:
    module, name = fake.functions[handle]
    if static_bytes(fake.modules[module], fake.compute) + shared > max(UNASKED, fake.allowed.get(handle, 0)): return 1
    fake.shared.append(shared)
    found = [ctypes.c_int64.from_address(place).value for place in places if place]
    fake.kernels.append((name, x, lanes, found))
    if fake.run is not None: fake.run(fake.modules[module], x, found)
    fake.clock += 1.0
    if fake.behind or name == fake.endless: fake.behind += 1
    return 0
  def record(fake: FakeCuda, event: int, stream: Any) -> None:
    assert event in fake.events
    fake.events[event] = fake.clock
    fake.late.discard(event)
    if not fake.behind: return
    fake.late.add(event)
    fake.behind += 1
  def create(fake: FakeCuda, place: Any, flags: int) -> None:
    put(place, fake.handle())
    fake.events[place._obj.value] = 0.0
  def begin(fake: FakeCuda, flags: int) -> None:
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    fake.order = getenv(b"CUDA_DEVICE_ORDER")
  def set_attribute(fake: FakeCuda, handle: int, which: int, value: int) -> int:
    """The driver API's rule: this and the function's static memory may not exceed what a block may opt in to."""
    if which != MAX_DYNAMIC_SHARED: return 1
    static = static_bytes(fake.modules[fake.functions[handle][0]], fake.compute)
    if static > UNASKED or static + value > OPT_IN[fake.compute]: return 1
    fake.allowed[handle] = static + value
    return 0
  return {
    "cuInit": begin, "cuDriverGetVersion": lambda fake, place: put(place, 12080), "cuDeviceGetCount": lambda f,
    p: put(p, f.count),
    "cuDeviceGet": lambda fake, place, ordinal: put(place, ordinal), "cuDeviceTotalMem_v2": lambda fake, place,
    device: put(place, 1 << 30),
    "cuDeviceGetName": lambda fake, place, size, device: setattr(place, "value", b"Stand-in"),
    "cuDeviceGetAttribute": lambda fake, place, which,
    device: put(place, {75: fake.compute[0], 76: fake.compute[1], 16: 7, 38: 1 << 20}[which]),
    "cuDevicePrimaryCtxRetain": lambda fake, place, device: put(place, 0xC0 + device),
    "cuCtxSetCurrent": lambda fake, context: 0, "cuMemAlloc_v2": alloc,
    "cuMemFree_v2": lambda fake, address: 0 if fake.memory.pop(address, None) else 1, "cuMemcpyHtoD_v2": copy,
    "cuMemcpyDtoH_v2": copy,
    "cuMemcpyPeer": lambda fake, dest, to, source, of, size: ctypes.memmove(dest, source, size) and 0,
    "cuMemHostRegister_v2": lambda fake, address, size, flags: fake.registered.add(address),
    "cuMemHostUnregister": lambda fake, address: fake.registered.remove(address),
    "cuMemHostGetDevicePointer_v2": lambda fake, place, address, flags: put(place, address), "cuModuleLoadData": load,
    "cuModuleUnload": lambda fake, module: 0 if fake.modules.pop(module, None) else 1, "cuModuleGetFunction": function,
    "cuFuncSetAttribute": set_attribute, "cuLaunchKernel": launch,
    "cuEventCreate": create, "cuEventDestroy_v2": lambda fake, event: 0 if fake.events.pop(event, None) is not None
    else 1,
    "cuEventRecord": record, "cuEventQuery": lambda fake, event: NOT_READY if event in fake.late else 0,
    "cuEventElapsedTime": lambda fake, place, a, b: put(place, fake.events[b] - fake.events[a]),
    "cuGetErrorName": lambda fake, status, place: put(place, f"CUDA_ERROR_{status}".encode()),
    "cuGetErrorString": lambda fake, status, place: put(place, f"error number {status}".encode()),
  }

METHODS = _methods()

class Loaded:
  """In place of an object of ctypes.CDLL."""
  def __init__(self, fake: FakeCuda, without: str = ""):
    for name in METHODS:
      if name != without: setattr(self, name, Function(fake, name))

for _name, _method in METHODS.items(): setattr(FakeCuda, _name, _method)
