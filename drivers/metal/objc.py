"""Objective-C by ctypes: the messages of this driver with their types, ownership, autorelease pools, texts.

Each signature has a prototype of its own: ctypes would pass an argument without a type as a C int, and variadic
arguments go elsewhere on Apple's processors. An exception of Objective-C ends the process. So the driver checks before
it sends.

Ownership is by the selector. A result of `alloc`, `new`, `copy` or `mutableCopy` belongs to the caller, who releases
it. Any other object belongs to the innermost autorelease pool of the thread: `retain` keeps it. Python's threads have
no pool, so every entry of the driver makes one.
"""
from __future__ import annotations
import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from tinyhw.drivers.gpu.signals import SIGNALS
from tinyhw.drivers.metal.library import MetalLibrary
from tinyhw.errors import DriverError

class MetalSize(ctypes.Structure):
  """MTLSize. It is passed by value."""
  _fields_ = (("width", ctypes.c_uint64), ("height", ctypes.c_uint64), ("depth", ctypes.c_uint64))

_pointer = ctypes.c_void_p
TYPES: dict[str, Any] = {
  "v": None, "@": _pointer, ":": _pointer, "*": ctypes.c_char_p, "Q": ctypes.c_uint64, "q": ctypes.c_int64,
  "B": ctypes.c_bool, "d": ctypes.c_double, "^v": _pointer, "^@": _pointer, "@?": _pointer, "{MTLSize=QQQ}": MetalSize}
# Result and arguments of each message, in Objective-C's own letters: @ object, : selector, * text, Q and q 64-bit
# integers, B BOOL, d double, ^v memory, ^@ where an error goes, @? a block of code.
SELECTORS = {selector: types.split() for selector, types in {
  "alloc": "@", "init": "@", "retain": "@", "release": "v", "respondsToSelector:": "B :",
  "stringWithUTF8String:": "@ *", "UTF8String": "*", "localizedDescription": "@", "code": "q",
  "count": "Q", "objectAtIndex:": "@ Q",
  "name": "@", "supportsFamily:": "B q", "hasUnifiedMemory": "B", "maxBufferLength": "Q",
  "maxThreadgroupMemoryLength": "Q", "recommendedMaxWorkingSetSize": "Q", "currentAllocatedSize": "Q",
  "newCommandQueue": "@", "newFence": "@", "newBufferWithLength:options:": "@ Q Q",
  "newBufferWithBytesNoCopy:length:options:deallocator:": "@ ^v Q Q @?", "contents": "^v",
  "setFastMathEnabled:": "v B", "setMathMode:": "v q", "setMathFloatingPointFunctions:": "v q",
  "setLanguageVersion:": "v Q",
  "newLibraryWithSource:options:error:": "@ @ @ ^@", "newFunctionWithName:": "@ @",
  "newComputePipelineStateWithFunction:error:": "@ @ ^@", "maxTotalThreadsPerThreadgroup": "Q",
  "threadExecutionWidth": "Q",
  "commandBuffer": "@", "computeCommandEncoderWithDispatchType:": "@ Q", "waitForFence:": "v @", "updateFence:": "v @",
  "setComputePipelineState:": "v @", "setBuffer:offset:atIndex:": "v @ Q Q", "setBytes:length:atIndex:": "v ^v Q Q",
  "setThreadgroupMemoryLength:atIndex:": "v Q Q", "memoryBarrierWithScope:": "v Q",
  "dispatchThreadgroups:threadsPerThreadgroup:": "v {MTLSize=QQQ} {MTLSize=QQQ}", "endEncoding": "v", "commit": "v",
  "useResource:usage:": "v @ Q", "gpuAddress": "Q", "status": "Q", "error": "@", "GPUStartTime": "d", "GPUEndTime": "d",
}.items()}

class ObjectiveC:
  """The runtime. library: the result of load_library."""
  def __init__(self, library: MetalLibrary):
    self.library = library
    self.names: dict[str, int] = {}
    self.prototypes: dict[tuple[str, ...], Callable[..., Any]] = {}
    self.register = library.function("sel_registerName", _pointer, ctypes.c_char_p)
    self.get_class = library.function("objc_getClass", _pointer, ctypes.c_char_p)
    self.push = library.function("objc_autoreleasePoolPush", _pointer)
    self.pop = library.function("objc_autoreleasePoolPop", None, _pointer)

  def prototype(self, types: list[str]) -> Callable[..., Any]:
    """Return the prototype of a signature: the result's type, then those of the arguments."""
    key = tuple(types)
    found = self.prototypes.get(key)
    if found is None:
      result, *arguments = (TYPES[word] for word in types)
      found = self.prototypes[key] = self.library.message(result, [_pointer, _pointer, *arguments])
    return found

  def message(self, selector: str) -> tuple[Callable[..., Any], int]:
    """Return the prototype and the name of a message, for many sends."""
    name = self.names.get(selector)
    if name is None: name = self.names[selector] = self.register(selector.encode())
    return self.prototype(SELECTORS[selector]), name

  def send(self, receiver: int, selector: str, *arguments: Any) -> Any:
    """Send a message. Objects are integers, and None is nil."""
    function, name = self.message(selector)
    return function(receiver, name, *arguments)

  def make(self, class_name: str) -> int:
    """Return a new object, which the caller releases. Raises DriverError for an unknown class."""
    found = self.get_class(class_name.encode())
    if not found: raise DriverError(f"this macOS has no class {class_name}; update it")
    return int(self.send(self.send(found, "alloc"), "init"))

  def keep(self, thing: int) -> int:
    """Retain an object of the pool. Return it."""
    return int(self.send(thing, "retain"))

  def release(self, thing: int | None) -> None:
    if thing: self.send(thing, "release")

  def responds(self, thing: int, selector: str) -> bool:
    """Has the object this method? Newer ones are not in every macOS."""
    return bool(self.send(thing, "respondsToSelector:", self.message(selector)[1]))

  def string(self, text: str) -> int:
    """Return an NSString of the pool."""
    return int(self.send(self.get_class(b"NSString"), "stringWithUTF8String:", text.encode()))

  def text(self, string: int | None) -> str:
    """Return the text of an NSString; nil has none."""
    return self.send(string, "UTF8String").decode("utf-8", "replace") if string else ""

  def description(self, error: int | None) -> str:
    """Return the words of an NSError."""
    return self.text(self.send(error, "localizedDescription")) if error else "no reason is given"

  @contextlib.contextmanager
  def pool(self) -> Iterator[None]:
    """Objects that are autoreleased inside of this block end with it. Handlers of signals wait for its end: an encoder
    that an interrupt drops before its end would end the process."""
    with SIGNALS.wait():
      token = self.push()
      try: yield
      finally: self.pop(token)
