"""libobjc and Metal as a driver loads them: C functions, and prototypes of objc_msgSend by real calls of ctypes.

A prototype calls back into Python with all registers and the stack that may hold arguments. The arguments of a message
are read from where the calling convention puts values of the headers' types. So a driver that declares other types
passes something else, as on a Mac. Only the kind of a result is the prototype's: a double and an integer come back in
different registers. Errors are kept during the call, and raised after it.
"""
from __future__ import annotations
import ctypes
import platform
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.emulator.metal.objects import ListThing, ObjectMistake, Thing, ObjectWorld

_pointer, _text = ctypes.c_void_p, ctypes.c_char_p
# result and arguments of the C functions, as their headers declare them
FUNCTIONS: dict[str, tuple[Any, ...]] = {
  "objc_getClass": (_pointer, _text), "sel_registerName": (_pointer, _text),
  "objc_autoreleasePoolPush": (_pointer,), "objc_autoreleasePoolPop": (None, _pointer),
  "MTLCopyAllDevices": (_pointer,), "MTLCreateSystemDefaultDevice": (_pointer,)}
INTEGERS = {"x86_64": 6, "AMD64": 6}.get(platform.machine(), 8)   # registers for integers; AArch64 has 8
COPIES_STRUCTURES = INTEGERS == 8     # a large structure is passed by the address of a copy, not on the stack
DOUBLES, WORDS = 8, 12                # registers for doubles; words of the stack
SIZE_WORDS, MASK = 3, (1 << 64) - 1
GARBAGE = 0x5A5A5A00                  # above the 8 bits of a BOOL

class CallRegisters:
  """The arguments of a call, as the processor has them. next: the next register for integers; at: the next word of the
  stack."""
  def __init__(self, values: Sequence[Any]):
    self.integers, self.doubles = values[:INTEGERS], values[INTEGERS:INTEGERS + DOUBLES]
    self.stack, self.next, self.at = values[INTEGERS + DOUBLES:], 2, 0

  def word(self) -> int:
    if self.next < INTEGERS:
      self.next += 1
      return int(self.integers[self.next - 1])
    self.at += 1
    return int(self.stack[self.at - 1])

  def size(self) -> tuple[int, ...]:
    """Return an MTLSize."""
    if COPIES_STRUCTURES: return tuple((ctypes.c_uint64 * SIZE_WORDS).from_address(self.word()))
    self.at += SIZE_WORDS
    return tuple(map(int, self.stack[self.at - SIZE_WORDS:self.at]))

class ErrorPlace:
  """Where a message puts an NSError."""
  def __init__(self, world: ObjectWorld, address: int): self.world, self.address = world, address

  def put(self, error: Thing) -> None:
    self.world.autorelease(error)
    if self.address: ctypes.c_uint64.from_address(self.address).value = error.handle

class VirtualLibrary:
  """The libraries. devices: makes the things that Metal's own functions return."""
  virtual = True

  def __init__(self, world: ObjectWorld, devices: Callable[[], list[Thing]]):
    self.world, self.devices = world, devices
    self.selectors: list[str] = []
    self.errors: dict[int, BaseException] = {}      # by thread
    registers = [ctypes.c_uint64] * INTEGERS + [ctypes.c_double] * DOUBLES + [ctypes.c_uint64] * WORDS
    self.integer = ctypes.CFUNCTYPE(ctypes.c_uint64, *registers)(lambda *values: self.called(values, False))
    self.double = ctypes.CFUNCTYPE(ctypes.c_double, *registers)(lambda *values: self.called(values, True))

  # **** the driver's side ****

  def function(self, name: str, result: Any, *types: Any) -> Callable[..., Any]:
    if FUNCTIONS.get(name) != (result, *types):
      raise ObjectMistake(f"{name} is declared with other types in its header")
    found: Callable[..., Any] = getattr(self, name)
    def call(*arguments: Any) -> Any:
      with self.world.scheduler.whole(): return found(*arguments)
    return call

  def message(self, result: Any, types: Sequence[Any]) -> Callable[..., Any]:
    stub: Any = self.double if result is ctypes.c_double else self.integer
    address = ctypes.cast(stub, _pointer).value
    assert address is not None, "a callback has an address"
    made: Any = ctypes.CFUNCTYPE(result, *types)(address)
    made.errcheck = self.checked
    def call(*arguments: Any) -> Any:   # a call of C ends before handlers of signals run
      with self.world.scheduler.whole(): return made(*arguments)
    return call

  def checked(self, result: Any, function: Any, arguments: Any) -> Any:
    error = self.errors.pop(threading.get_ident(), None)
    if error is not None: raise error
    return result

  # **** C functions ****

  def objc_getClass(self, name: bytes) -> int | None:
    found = self.world.classes.get(name.decode())
    return found.handle if found else None

  def sel_registerName(self, name: bytes) -> int:
    text = name.decode()
    if text not in self.selectors: self.selectors.append(text)
    return 16 * (self.selectors.index(text) + 1)

  def objc_autoreleasePoolPush(self) -> int: return self.world.push()
  def objc_autoreleasePoolPop(self, token: int) -> None: self.world.pop(token)

  def MTLCopyAllDevices(self) -> int:
    devices = self.devices()
    made = ListThing(self.world, devices)
    for device in devices: device.drop()
    return made.handle

  def MTLCreateSystemDefaultDevice(self) -> int | None:
    devices = self.devices()
    for device in devices[1:]: device.drop()
    return devices[0].handle if devices else None

  # **** objc_msgSend ****

  def called(self, values: Sequence[Any], is_double: bool) -> Any:
    """Receive a message. An error is kept, since it cannot cross the call."""
    try:
      with self.world.lock: return self.received(values, is_double)
    except BaseException as error:  # noqa: BLE001 - raised by `checked`
      self.errors[threading.get_ident()] = error
      return 0

  def received(self, values: Sequence[Any], is_double: bool) -> Any:
    receiver, selector = int(values[0]), self.selector(int(values[1]))
    thing = self.world.find(receiver, f"message {selector}")
    if thing is None: raise ObjectMistake(f"message {selector} to nil, which does nothing and returns 0")
    signature = thing.signature(selector)
    if is_double != (signature.result == "d"):
      raise ObjectMistake(f"{selector} returns {signature.result}, and the prototype takes its result from another "
                          f"register")
    registers = CallRegisters(values)
    arguments = [self.argument(kind, registers, selector) for kind in signature.arguments]
    found = self.world.send(receiver, selector, arguments)
    if signature.result == "d": return float(found)
    if signature.result == "B": return GARBAGE | bool(found)
    return int(found or 0) & MASK

  def selector(self, number: int) -> str:
    if number % 16 or not 0 < number // 16 <= len(self.selectors): raise ObjectMistake(f"{number:#x} is no selector")
    return self.selectors[number // 16 - 1]

  def argument(self, kind: str, registers: CallRegisters, selector: str) -> Any:
    """Return an argument of a type of the headers."""
    if kind == "{MTLSize=QQQ}": return registers.size()
    word = registers.word()
    if kind == "@": return self.world.find(word, f"an argument of {selector}")
    if kind == ":": return self.selector(word)
    if kind == "q": return word - (1 << 64) if word >> 63 else word
    if kind == "B":
      if word & 0xFF > 1: raise ObjectMistake(f"{selector}: a BOOL of {word & 0xFF}")
      return bool(word & 0xFF)
    if kind == "^@": return ErrorPlace(self.world, word)
    if kind == "*":
      if not word: raise ObjectMistake(f"{selector}: a text at address 0")
      return ctypes.string_at(word).decode()
    return word
