"""Objective-C's objects of a virtual Mac: reference counts, autorelease pools, and messages by the headers' types.

An object is a `Thing` with a handle: a number that no other object ever gets. A message finds its types in the table of
the headers (autogen/metal.py), and its meaning in a method of Python: `setBuffer:offset:atIndex:` is
`setBuffer_offset_atIndex_`. A result is owned by the caller where the headers say so; any other new object goes to the
innermost pool of the thread. Mistakes that end a process or leak on a Mac are errors.
"""
from __future__ import annotations
import ctypes
import functools
import threading
from typing import Any

from tinyhw.autogen.metal import MESSAGES
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.schedule import ActorScheduler
from tinyhw.named_tuple import NamedTuple

FIRST_HANDLE, HANDLE_STEP = 0x6000_0000_0000, 0x40

class ObjectMistake(StrictError):
  """A message or a pool that ends the process on a Mac, or leaks there."""

class MessageSignature(NamedTuple):
  """The types of a message, as the headers declare them. is_class: it goes to the class itself."""
  result: str
  arguments: tuple[str, ...]
  owned: bool
  is_class: bool

def signatures(name: str) -> dict[str, MessageSignature]:
  """Return the messages of a class or protocol by selector."""
  found: dict[str, MessageSignature] = {}
  for line in MESSAGES[name].split("\n"):
    selector, *types = line.split() or [""]
    if not selector: continue
    owned = types[-1] == "owned"
    result, *arguments = types[:-1] if owned else types
    found[selector.lstrip("+")] = MessageSignature(result, tuple(arguments), owned, selector.startswith("+"))
  return found

@functools.lru_cache(None)
def kinds_of(method: Any) -> tuple[tuple[int, str, bool], ...]:
  """Return the objects among a method's arguments: position, the name of the class, and whether it may be nil."""
  found: list[tuple[int, str, bool]] = []
  for position, (name, note) in enumerate(method.__annotations__.items()):
    kind, _, rest = str(note).partition(" | ")
    if name != "return" and kind.endswith("Thing"): found.append((position, kind, rest == "None"))
  return tuple(found)

TABLE = {name: signatures(name) for name in MESSAGES}

class Thing:
  """An object. protocols: names of the headers' classes, the nearest first. count: its references."""
  protocols: tuple[str, ...] = ()

  def __init__(self, world: ObjectWorld):
    self.world, self.count, self.handle = world, 1, world.new_handle()
    self.held: list[Thing] = []    # objects that it retains until it ends
    world.objects[self.handle] = self

  @property
  def title(self) -> str: return self.protocols[0]

  def hold(self, *things: Thing) -> None:
    """Retain objects until this one ends."""
    for thing in things: thing.count += 1
    self.held += things

  def signature(self, selector: str) -> MessageSignature:
    for name in (*self.protocols, "NSObject"):
      if selector in TABLE[name] and not TABLE[name][selector].is_class: return TABLE[name][selector]
    raise ObjectMistake(f"-[{self.title} {selector}]: unrecognized selector; on a Mac the process ends")

  def method(self, selector: str) -> Any:
    found = getattr(self, selector.replace(":", "_"), None)
    if found is None: raise ObjectMistake(f"-[{self.title} {selector}] is not part of the virtual Metal")
    return found

  def drop(self) -> None:
    """Give one reference back. With the last one the object ends."""
    if self.count <= 0: raise ObjectMistake(f"{self.title} {self.handle:#x} is released more often than retained")
    self.count -= 1
    if self.count: return
    del self.world.objects[self.handle]
    self.world.dead[self.handle] = self.title
    self.ended()
    for thing in self.held: thing.drop()

  def ended(self) -> None:
    """Called when the last reference is gone."""

  # **** messages of NSObject ****

  def init(self) -> Thing: return self
  def release(self) -> None: self.drop()
  def respondsToSelector_(self, selector: str) -> bool: return hasattr(self, selector.replace(":", "_"))

  def retain(self) -> Thing:
    self.count += 1
    return self

class ClassThing(Thing):
  """A class. It lives as long as the program."""
  def __init__(self, world: ObjectWorld, name: str, kind: type[Thing]):
    super().__init__(world)
    self.name, self.kind, self.protocols = name, kind, (name,)

  def signature(self, selector: str) -> MessageSignature:
    for name in (self.name, "NSObject"):
      if selector in TABLE[name] and TABLE[name][selector].is_class: return TABLE[name][selector]
    raise ObjectMistake(f"+[{self.name} {selector}]: unrecognized selector; on a Mac the process ends")

  def alloc(self) -> Thing: return self.kind(self.world)
  def stringWithUTF8String_(self, text: str) -> Thing: return TextThing(self.world, text)

class TextThing(Thing):
  """An NSString. The bytes live as long as it does."""
  protocols = ("NSString",)
  def __init__(self, world: ObjectWorld, text: str = ""):
    super().__init__(world)
    self.text = text
    self.memory = ctypes.create_string_buffer(text.encode())

  def UTF8String(self) -> int: return ctypes.addressof(self.memory)
  def length(self) -> int: return len(self.text.encode("utf-16-le")) // 2
  def ended(self) -> None: ctypes.memset(self.memory, 0x5A, len(self.memory) - 1)

class ListThing(Thing):
  """An NSArray."""
  protocols = ("NSArray",)
  def __init__(self, world: ObjectWorld, things: list[Thing]):
    super().__init__(world)
    self.hold(*things)

  def count_(self) -> int: return len(self.held)

  def method(self, selector: str) -> Any: return self.count_ if selector == "count" else super().method(selector)

  def objectAtIndex_(self, index: int) -> Thing:
    if index >= len(self.held):
      raise ObjectMistake(f"objectAtIndex:{index} of {len(self.held)} objects; on a Mac the process ends")
    return self.held[index]

class ErrorThing(Thing):
  """An NSError."""
  protocols = ("NSError",)
  def __init__(self, world: ObjectWorld, number: int, words: str):
    super().__init__(world)
    self.number, self.words = number, words

  def code(self) -> int: return self.number
  def localizedDescription(self) -> Thing: return TextThing(self.world, self.words)

class ObjectWorld:
  """All objects of a virtual Mac, and the autorelease pools of its threads. One thread at a time is in it (`lock`).

  scheduler: of the GPUs; seed: of all choices; macos: the version of the system.
  """
  def __init__(self, scheduler: ActorScheduler, macos: int):
    self.scheduler, self.seed, self.lock, self.macos = scheduler, scheduler.random, scheduler.lock, macos
    self.objects: dict[int, Thing] = {}
    self.dead: dict[int, str] = {}
    self.pools: dict[int, list[tuple[int, list[Thing]]]] = {}   # by thread: tokens, and what ends with them
    self.classes: dict[str, ClassThing] = {}
    self.steps = self.seed.sample(range(8), 8)    # of products of matrices; the hardware's order is not documented
    self.next = FIRST_HANDLE
    self.messages = 0

  def new_handle(self) -> int:
    self.next += HANDLE_STEP
    return self.next

  def add_class(self, name: str, kind: type[Thing]) -> None: self.classes[name] = ClassThing(self, name, kind)

  def census(self) -> dict[str, int]:
    """Count the objects by class, without classes."""
    found: dict[str, int] = {}
    for thing in self.objects.values():
      if not isinstance(thing, ClassThing): found[thing.title] = found.get(thing.title, 0) + 1
    return found

  def find(self, handle: int, where: str) -> Thing | None:
    """Return an object; nil is None. Raises ObjectMistake for anything else."""
    if handle == 0: return None
    found = self.objects.get(handle)
    if found is not None: return found
    if handle in self.dead: raise ObjectMistake(f"{where}: {self.dead[handle]} {handle:#x} was released before")
    raise ObjectMistake(f"{where}: {handle:#x} is no object")

  # **** pools ****

  def push(self) -> int:
    self.pools.setdefault(threading.get_ident(), []).append((self.new_handle(), []))
    return self.next

  def pop(self, token: int) -> None:
    pools = self.pools.get(threading.get_ident(), [])
    if not pools or pools[-1][0] != token:
      raise ObjectMistake("objc_autoreleasePoolPop: pools of a thread end in reverse order, each once")
    for thing in pools.pop()[1]: thing.drop()

  def autorelease(self, thing: Thing) -> None:
    """Give one reference to the innermost pool of this thread."""
    pools = self.pools.get(threading.get_ident())
    if not pools: raise ObjectMistake(f"{thing.title} is autoreleased on a thread without a pool: it leaks")
    pools[-1][1].append(thing)

  # **** messages ****

  def send(self, receiver: int, selector: str, arguments: list[Any]) -> Any:
    """Send a message with decoded arguments. Return a number, a handle, or None."""
    self.messages += 1
    thing = self.find(receiver, f"message {selector}")
    if thing is None: raise ObjectMistake(f"message {selector} to nil, which does nothing and returns 0")
    signature = thing.signature(selector)
    known = self.next
    method = thing.method(selector)
    for position, kind, may_be_nil in kinds_of(method.__func__):
      given = arguments[position]
      if given is None and may_be_nil or kind in [c.__name__ for c in type(given).__mro__]: continue
      raise ObjectMistake(f"{selector} argument {position + 1} is {'nil' if given is None else given.title}, not "
                          f"{kind.removesuffix('Thing')}; on a Mac the process may end")
    found = method(*arguments)
    if not isinstance(found, Thing): return found
    if found.handle > known and not signature.owned: self.autorelease(found)
    return found.handle
