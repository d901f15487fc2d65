"""A reader of pickles of plain data. It imports no class, and calls only the functions in a table of the caller.

Source: the opcodes' descriptions in CPython's documentation of pickletools. A pickle is limited in these ways:

- Globals: a name stands for its entry in the caller's table. Any other name is refused.
- Numbers have at most LONGEST_NUMBER bytes. Text and bytes are at most as long as the rest of the file.
- Keys are hashable plain data of bounded size, so that a dict cannot be made to take quadratic time.
- Memory: each opcode has a cost, which it takes from the budget of the file before it makes anything.
- The result is at most DEEPEST deep, and does not contain itself. Unfolded (a shared part counts once per reference),
  it is not much larger than the pickle. So a walk through it ends. Hostile pickles double a tuple a hundred times.
"""
from __future__ import annotations
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
import itertools
import struct
from typing import Any, NoReturn

from tinyhw.errors import FileFormatError
from tinyhw.files.budget import SLOT
from tinyhw.nn.tensor_io import InputFile

LONGEST_NUMBER = 1024      # bytes
DEEPEST = 100
LARGEST_KEY = 64           # parts of a tuple that is a key
LARGEST_HASHED = 1 << 60   # larger ints can be chosen to have equal hashes
_FREE_PARTS = 1 << 16      # parts to which any result may unfold
_PARTS_PER_BYTE = 16
_WINDOW = 1 << 16
_LONGEST_LINE = 1 << 20

# Costs in bytes, at most. A value that is not empty also has an entry in the walk over the result.
_NUMBER = 32      # a number
_HEAD = 64        # a string, bytes, a long number, an empty list or dict, a short tuple
_SET = 256        # an empty set
_FILLED = 192     # the walk, and the minimum for a container with items
_KEY = 160        # an item of a dict or set, while it grows
_ITEM = 16        # an item of a list or tuple
_CALL = 512       # the result of a call without arguments
_CALL_ITEM = 288  # more for each item in the arguments of a call

class Reader:
  """A sequential reader of a part of an InputFile, through a window."""
  def __init__(self, source: InputFile, begin: int = 0, end: int | None = None):
    self.source, self.position, self.end = source, begin, source.size if end is None else end
    self._window, self._start = b"", begin

  def take(self, count: int) -> bytes:
    """Return the next bytes. Raises FileFormatError if fewer are left."""
    if count > self.end - self.position:
      raise self.source.bad(f"its pickle wants {count} bytes at byte {self.position}, and it ends at {self.end}")
    at = self.position - self._start
    if at + count > len(self._window):
      self._start, at = self.position, 0
      self._window = self.source.read(self.position, max(count, min(_WINDOW, self.end - self.position)), "the pickle")
    self.position += count
    return self._window[at:at + count]

  def line(self, longest: int = LONGEST_NUMBER) -> str:
    """Return the bytes up to a newline, as Latin-1. The newline is consumed."""
    parts = bytearray()
    while (c := self.take(1)) != b"\n":
      parts += c
      if len(parts) > longest: raise self.source.bad("a line in its pickle is too long")
    return parts.decode("latin-1")

class Internal:
  """A value that only calls in the pickle may take. It may not be part of a result."""
  __slots__ = ()

class AllowedFunction(Internal):
  """A function in the caller's table. A pickle may call it with plain arguments."""
  __slots__ = ("name", "function")
  def __init__(self, name: str, function: Callable[..., Any]): self.name, self.function = name, function
  def __repr__(self) -> str: return self.name

class OpaqueName(Internal):
  """A name without a meaning of its own: a class that other calls take as an argument."""
  __slots__ = ("name",)
  def __init__(self, name: str): self.name = name
  def __repr__(self) -> str: return self.name

_MARK = OpaqueName("(")

class Unpickler:
  """An interpreter of one pickle.

  - names: the values of globals, by "module name": an AllowedFunction, an OpaqueName, or a value.
  - persistent: returns the value of a persistent id.
  - state: takes an object and the argument of BUILD, and returns the object.
  - internal: the result may hold Internals.
  """
  def __init__(self, reader: Reader, names: Mapping[str, Any], persistent: Callable[[Any], Any] | None = None,
               state: Callable[[Any, Any], Any] | None = None, internal: bool = False):
    self.reader, self.names, self.persistent, self.state, self.internal = reader, names, persistent, state, internal
    self.stack: list[Any] = []
    self.memo: dict[int, Any] = {}   # entries that are not numbered in order
    self.memoized: list[Any] = []    # entries that are
    self.take = reader.source.budget.take

  def bad(self, why: str) -> FileFormatError: return self.reader.source.bad(why)

  def load(self) -> Any:
    """Return the object. Raises FileFormatError."""
    start, take = self.reader.position, self.reader.take
    while True:
      opcode = take(1)[0]
      if opcode == 46:  # STOP
        break
      row = _OPCODES.get(opcode)
      if row is None:
        raise self.bad(f"byte {self.reader.position - 1} of its pickle is no opcode that plain data has: {opcode:#x}")
      self.take(row[0])
      row[1](self)
    result = self.pop()
    self._check(result, _FREE_PARTS + _PARTS_PER_BYTE * (self.reader.position - start))
    return result

  # ***** the stack *****

  def pop(self) -> Any:
    if not self.stack or self.stack[-1] is _MARK: raise self.bad("its pickle takes more from the stack than there is")
    return self.stack.pop()

  def top(self, kinds: type | tuple[type, ...], what: str) -> Any:
    found = self.stack[-1] if self.stack else None
    if not isinstance(found, kinds): raise self.bad(f"its pickle {what} to something else: {type(found).__name__}")
    return found

  def marked(self) -> list[Any]:
    """Remove the last mark and the values above it. Return these values."""
    for at in range(len(self.stack) - 1, -1, -1):
      if self.stack[at] is _MARK:
        found = self.stack[at + 1:]
        del self.stack[at:]
        return found
    raise self.bad("its pickle has no mark where it wants one")

  def number(self, count: int) -> int: return int.from_bytes(self.reader.take(count), "little")

  def data(self, count: int) -> bytes:
    """Return bytes that are part of the result."""
    found = self.reader.take(count)
    self.take(count)
    return found

  def text(self, count: int) -> str:
    try: return self.measured(self.reader.take(count).decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError: raise self.bad("a string in its pickle is no UTF-8") from None

  def measured(self, text: str) -> str:
    """Take the cost of a text that is part of the result. Characters have up to 4 bytes."""
    self.take(len(text) if text.isascii() else 4 * len(text))
    return text

  def memoize(self, number: int) -> None:
    """Store the top of the stack in the memo under a number."""
    value = self.pop()
    if number == len(self.memoized) and number not in self.memo: self.memoized.append(value)
    elif number < len(self.memoized): self.memoized[number] = value
    else:
      self.take(_KEY)
      self.memo[number] = value
    self.stack.append(value)

  def remembered(self, number: int) -> Any:
    if number < len(self.memoized): return self.memoized[number]
    if number not in self.memo: raise self.bad(f"its pickle refers to entry {number} of its memo, which is not there")
    return self.memo[number]

  # ***** containers *****

  def key(self, x: Any) -> Any:
    """Return x, if it may be a key: plain, and small."""
    stack, count = [x], 0
    while stack:
      part = stack.pop()
      count += 1
      if type(part) is tuple: stack += part[:LARGEST_KEY]
      plain = (part is None or type(part) in (str, bytes, bool, float, tuple) or type(part) is int
               and abs(part) < LARGEST_HASHED)
      if not plain: raise self.bad(f"a key in its pickle is no plain data: {type(part).__name__}")
      if count > LARGEST_KEY or len(part if type(part) is tuple else ()) > LARGEST_KEY:
        raise self.bad("a key in its pickle is too large")
    return x

  def fill(self, target: Any, count: int, each: int) -> None:
    """Take the cost of `count` more items in a container."""
    self.take(each * count + (0 if target else _FILLED))

  def put(self, target: Any, pairs: list[Any]) -> None:
    if len(pairs) % 2: raise self.bad("its pickle sets a key without a value")
    self.fill(target, len(pairs) // 2, _KEY)
    for key, value in zip(pairs[::2], pairs[1::2]): target[self.key(key)] = value

  def call(self, function: Any, arguments: Any) -> Any:
    """Return the result of a call. Raises FileFormatError for a function that may not be called, and for wrong
    arguments."""
    if not isinstance(function, AllowedFunction) or type(arguments) is not tuple:
      # the text of hostile tuples would take for ever
      what = function if isinstance(function, (AllowedFunction, OpaqueName)) else f"something of {type(function)}"
      raise self.bad(f"its pickle calls {what}, which is not allowed")
    for x in arguments:
      if isinstance(x, (*_CONTAINERS, str, bytes, bytearray)):
        self.take(len(x) * (_CALL_ITEM if isinstance(x, _CONTAINERS) else 4))
    try: return function.function(*arguments)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError, struct.error) as error:
      if isinstance(error, FileFormatError): raise
      raise self.bad(f"its pickle calls {function} with arguments that it does not take ({error})") from None

  def _check(self, result: Any, most: int) -> None:
    """Raise unless the result unfolds to few parts, is not too deep, and does not contain itself.

    Each container is visited once.
    """
    if isinstance(result, Internal): self._check_part(result)
    sizes: dict[int, int] = {}    # of containers, by id: parts * 256 + depth
    path: list[Any] = []          # the containers from the result to here
    inside: set[int] = set()      # their ids
    stack = [result] if isinstance(result, _CONTAINERS) else []
    while stack:
      x = stack[-1]
      if path and path[-1] is x:
        path.pop()
        inside.discard(id(x))
        stack.pop()
        size = 1 + sum(sizes[id(part)] >> 8 if id(part) in sizes else _leaf_size(part) for part in _parts(x))
        depth = 1 + max((sizes[id(part)] & 255 if id(part) in sizes else _leaf_size(part) > 1 for part in _parts(x)),
                        default=0)
        if size > most: raise self.bad("what its pickle makes unfolds to far more than the file has")
        sizes[id(x)] = size << 8 | depth
      elif id(x) in sizes or not x: stack.pop()
      elif _is_leaf(x) and len(path) < DEEPEST:
        for part in x: self._check_part(part)
        stack.pop()
      else:
        path.append(x)
        inside.add(id(x))
        if len(path) > DEEPEST: raise self.bad(f"what its pickle makes is nested more than {DEEPEST} deep")
        for part in _parts(x):
          self._check_part(part)
          if not isinstance(part, _CONTAINERS): continue
          if id(part) in inside: raise self.bad("what its pickle makes contains itself")
          stack.append(part)

  def _check_part(self, x: Any) -> None:
    if isinstance(x, Internal) and not self.internal:
      raise self.bad(f"its pickle holds {x!r:.80}, which is neither a tensor nor plain data")

_CONTAINERS = (dict, list, tuple, set, frozenset)

def _is_leaf(x: Any) -> bool:
  """Is it a short tuple without containers?

  There may be very many, so they are counted each time instead of remembered.
  """
  return type(x) is tuple and 0 < len(x) <= 3 and not any(isinstance(part, _CONTAINERS) for part in x)

def _leaf_size(x: Any) -> int: return 1 + len(x) if _is_leaf(x) else 1

def _parts(x: Any) -> Iterable[Any]: return itertools.chain(x.keys(), x.values()) if isinstance(x, dict) else x

# ***** opcodes *****

def _push(value: Any) -> Callable[[Unpickler], None]: return lambda u: u.stack.append(value)
def _made(kind: type) -> Callable[[Unpickler], None]: return lambda u: u.stack.append(kind())
def _unsigned(count: int) -> Callable[[Unpickler], None]: return lambda u: u.stack.append(u.number(count))
def _bytes(count: int, kind: type = bytes) -> Callable[[Unpickler], None]:
  return lambda u: u.stack.append(kind(u.data(u.number(count))))
def _unicode(count: int) -> Callable[[Unpickler], None]: return lambda u: u.stack.append(u.text(u.number(count)))
def _taken(count: int) -> Callable[[Unpickler], None]:
  def run(u: Unpickler) -> None:
    made = tuple([u.pop() for _ in range(count)][::-1])
    if not _is_leaf(made): u.take(_FILLED)
    u.stack.append(made)
  return run

def _string(count: int) -> Callable[[Unpickler], None]:
  """Push a Python 2 str: text if it is ASCII, else bytes."""
  def run(u: Unpickler) -> None:
    data = u.data(u.number(count))
    u.stack.append(data.decode() if data.isascii() else data)
  return run

def _long(count: int) -> Callable[[Unpickler], None]:
  def run(u: Unpickler) -> None:
    length = u.number(count)
    if length > LONGEST_NUMBER: raise u.bad(f"a number in its pickle has {length} bytes")
    u.stack.append(int.from_bytes(u.data(length), "little", signed=True))
  return run

def _int(u: Unpickler) -> None: u.stack.append(int.from_bytes(u.reader.take(4), "little", signed=True))

def _decimal(u: Unpickler) -> None:
  """INT and LONG: digits in a line. "00" and "01" are the bools of protocol 0."""
  text = u.reader.line()
  if text in ("00", "01"): return u.stack.append(text == "01")
  digits = text.removesuffix("L")
  if len(digits) > 300 or not digits.removeprefix("-").isdecimal():
    raise u.bad(f"{digits[:40]!r} in its pickle is no number")
  u.stack.append(int(digits))

def _float_text(u: Unpickler) -> None:
  text = u.reader.line()
  try: u.stack.append(float(text))
  except ValueError: raise u.bad(f"{text[:40]!r} in its pickle is no number") from None

def _unicode_text(u: Unpickler) -> None:
  text = u.reader.line(_LONGEST_LINE)
  try: u.stack.append(u.measured(text.encode("latin-1").decode("raw-unicode-escape")))
  except UnicodeDecodeError: raise u.bad("a string in its pickle is damaged") from None

def _string_text(u: Unpickler) -> None:
  text = u.reader.line()
  if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"" or "\\" in text:
    raise u.bad(f"the string {text[:40]!r} in its pickle is damaged")
  u.stack.append(u.measured(text[1:-1]))

def _proto(u: Unpickler) -> None:
  version = u.number(1)
  if version > 5: raise u.bad(f"its pickle has protocol {version}; at most 5 are known")

def _frame(u: Unpickler) -> None: u.reader.take(8)

def _global(u: Unpickler) -> None: _named(u, u.reader.line(), u.reader.line())

def _stack_global(u: Unpickler) -> None:
  name, module = u.pop(), u.pop()
  _named(u, module, name)

def _named(u: Unpickler, module: Any, name: Any) -> None:
  found = u.names.get(f"{module} {name}") if type(module) is str and type(name) is str else None
  if found is None: refuse(u, f"{module}.{name}"[:200])
  u.stack.append(found)

def refuse(u: Unpickler, name: str) -> NoReturn:
  """Raise the error for a global that a pickle may not use."""
  raise u.bad(f"its pickle wants {name}, and only tensors and plain data are read. If it is a pickled model, or holds "
              f"other objects of classes, "
              "load it where it was made and save its state_dict(); if you did not expect this name, the file may be "
              "hostile")

def _reduce(u: Unpickler) -> None:
  arguments, function = u.pop(), u.pop()
  u.stack.append(u.call(function, arguments))

def _newobj(u: Unpickler) -> None: _reduce(u)

def _persistent(u: Unpickler) -> None: _persistent_of(u, u.pop())
def _persistent_text(u: Unpickler) -> None: _persistent_of(u, u.reader.line())

def _persistent_of(u: Unpickler, found: Any) -> None:
  if u.persistent is None: raise u.bad("its pickle refers to something outside of it")
  u.stack.append(u.call(AllowedFunction("persistent_load", u.persistent), (found,)))

def _build(u: Unpickler) -> None:
  state = u.pop()
  if u.state is None: raise u.bad("its pickle gives an object a state, which plain data has not")
  u.stack.append(u.call(AllowedFunction("__setstate__", u.state), (u.pop(), state)))

def _get(count: int) -> Callable[[Unpickler], None]:
  return lambda u: u.stack.append(u.remembered(u.number(count) if count else _memo_number(u)))
def _put(count: int) -> Callable[[Unpickler], None]:
  return lambda u: u.memoize(u.number(count) if count else _memo_number(u))

def _memo_number(u: Unpickler) -> int:
  text = u.reader.line()
  if not text.isdecimal() or len(text) > 10: raise u.bad("its memo's entries have no numbers")
  return int(text)

def _memoize(u: Unpickler) -> None: u.memoize(len(u.memoized) + len(u.memo))

def _append(u: Unpickler) -> None:
  value = u.pop()
  target = u.top(list, "appends")
  u.fill(target, 1, _ITEM)
  target.append(value)

def _appends(u: Unpickler) -> None:
  values = u.marked()
  target = u.top(list, "appends")
  u.fill(target, len(values), _ITEM)
  target.extend(values)

def _setitem(u: Unpickler) -> None:
  value, key = u.pop(), u.pop()
  u.put(u.top(dict, "sets a key"), [key, value])

def _setitems(u: Unpickler) -> None:
  pairs = u.marked()
  u.put(u.top(dict, "sets keys"), pairs)

def _additems(u: Unpickler) -> None:
  values = u.marked()
  target = u.top(set, "adds")
  u.fill(target, len(values), _KEY)
  target.update(map(u.key, values))

def _frozenset(u: Unpickler) -> None:
  values = u.marked()
  u.fill((), len(values), _KEY)
  u.stack.append(frozenset(map(u.key, values)))

def _gathered(kind: Callable[[list[Any]], Any]) -> Callable[[Unpickler], None]:
  """LIST and TUPLE: make a container of the values above the mark."""
  def run(u: Unpickler) -> None:
    values = u.marked()
    u.fill((), len(values), _ITEM)
    u.stack.append(kind(values))
  return run

def _dict(u: Unpickler) -> None:
  pairs = u.marked()
  made: dict[Any, Any] = {}
  u.put(made, pairs)
  u.stack.append(made)

def _pop(u: Unpickler) -> None:
  if not u.stack: raise u.bad("its pickle takes more from the stack than there is")
  u.stack.pop()

def _dup(u: Unpickler) -> None:
  value = u.pop()
  u.stack += [value, value]

# cost: {opcode: function}. In addition to its cost, each takes a slot on the stack.
_COSTS: tuple[tuple[int, dict[str, Callable[[Unpickler], None]]], ...] = (
  (0, {
    "(": _push(_MARK), "N": _push(None), "\x88": _push(True), "\x89": _push(False), ")": _push(()), "a": _append,
    "e": _appends, "s": _setitem,
    "u": _setitems, "\x90": _additems, "0": _pop, "1": lambda u: (u.marked(), None)[1], "2": _dup, "g": _get(0),
    "h": _get(1), "j": _get(4),
    "p": _put(0), "q": _put(1), "r": _put(4), "\x94": _memoize, "c": _global, "\x93": _stack_global, "\x80": _proto,
    "\x95": _frame,
    "K": _unsigned(1)}),
  (_NUMBER, {"M": _unsigned(2), "J": _int, "G": lambda u: u.stack.append(struct.unpack(">d", u.reader.take(8))[0])}),
  (_HEAD, {
    "]": _made(list), "}": _made(dict), "\x85": _taken(1), "\x86": _taken(2), "\x87": _taken(3), "\x8a": _long(1),
    "\x8b": _long(4),
    "I": _decimal, "L": _decimal, "F": _float_text, "X": _unicode(4), "\x8c": _unicode(1), "\x8d": _unicode(8),
    "V": _unicode_text,
    "T": _string(4), "U": _string(1), "S": _string_text, "B": _bytes(4), "C": _bytes(1), "\x8e": _bytes(8),
    "\x96": _bytes(8, bytearray),
    "l": _gathered(list), "t": _gathered(tuple), "d": _dict}),
  (_SET, {"\x8f": _made(set), "\x91": _frozenset}),
  (_CALL, {"R": _reduce, "\x81": _newobj, "b": _build, "P": _persistent_text, "Q": _persistent}),
)
_OPCODES = {ord(code): (SLOT + cost, run) for cost, rows in _COSTS for code, run in rows.items()}

# ***** functions that plain data calls *****

def _ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
  made: OrderedDict[Any, Any] = OrderedDict()
  for key, value in pairs:
    if type(key) not in (str, int) or type(key) is int and abs(key) >= LARGEST_HASHED:
      raise ValueError(f"a key of type {type(key).__name__}")
    made[key] = value
  return made

def _latin(text: str, encoding: str) -> bytes:
  """Return bytes as protocols below 3 write them."""
  if type(text) is not str or encoding != "latin1": raise ValueError("only latin1 is known")
  return text.encode("latin-1")

def _bytearray(data: Any = b"", encoding: str = "latin1") -> bytearray:
  return bytearray(data if type(data) is bytes else _latin(data, encoding))

def _set(items: Any = ()) -> set[Any]:
  if type(items) not in (list, tuple) or not all(type(x) is str or type(x) is int and abs(x) < LARGEST_HASHED
                                                 for x in items):
    raise ValueError("a set of other things than strings and numbers")
  return set(items)

PLAIN: dict[str, Any] = {
  # protocols below 3 write b"" like this
  **dict.fromkeys(("builtins bytes", "__builtin__ bytes"), AllowedFunction("bytes", lambda: b"")),
  "collections OrderedDict": AllowedFunction("OrderedDict", _ordered_dict),
  "_codecs encode": AllowedFunction("_codecs.encode", _latin),
  **dict.fromkeys(("builtins set", "__builtin__ set"), AllowedFunction("set", _set)),
  "builtins complex": AllowedFunction("complex", lambda real, imaginary: complex(float(real), float(imaginary))),
  "builtins bytearray": AllowedFunction("bytearray", _bytearray),
}
