"""What a function reads besides its arguments, as far as its code tells: noted when TinyJit captures, compared before each replay.

Followed are the names of the function's own code (and of functions written inside of it): free variables, globals, attributes of those and of the
object that a method is bound to, and the items of lists, tuples and dicts found there. Not followed are the code of functions that it calls, what
they read, and attributes by computed names. A comparison is of identity first, so that one that finds no change costs 0.05 us a name.
"""
from __future__ import annotations
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from tinyhw.errors import JitError

_PLAIN = (int, float, complex, str, bytes, type(None))
_MOST_ITEMS = 64      # of a list or dict that is followed item by item

class Surroundings:
  """Places and what they held. function: what was captured, maybe wrapped or bound. objects: arguments that are no Tensors, by name."""
  def __init__(self, function: Any, objects: list[tuple[str, Any]]):
    self.cells: list[tuple[CellType, Any, str]] = []
    self.items: list[tuple[Any, Any, Any, str]] = []     # container, key, what it held, the place in words
    self.sizes: list[tuple[Any, int, str]] = []
    if not isinstance(function, (FunctionType, MethodType)): function = function.__call__     # an object that can be called
    function, bound = _unwrapped(function)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType): return
    self.globals, self.attributes = _names(code)
    if bound is not None: self._object(bound, code.co_varnames[0] if code.co_varnames else "self")
    for name, value in objects: self._object(value, f"argument {name}")
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
      try: value = cell.cell_contents
      except ValueError: continue     # not set yet
      self.cells.append((cell, value, name))
      self._inside(value, name)
    for name in sorted(self.globals):
      if name not in function.__globals__: continue
      self.items.append((function.__globals__, name, function.__globals__[name], name))
      self._inside(function.__globals__[name], name)

  def _inside(self, value: Any, name: str) -> None:
    """Note what is inside of a value: items of a container, else attributes."""
    if isinstance(value, (list, dict)) and len(value) <= _MOST_ITEMS:
      self.sizes.append((value, len(value), name))
      for key in value if isinstance(value, dict) else range(len(value)): self.items.append((value, key, value[key], f"{name}[{key!r}]"))
    else: self._object(value, name)

  def _object(self, value: Any, name: str) -> None:
    """Note the attributes that an object has itself and that the code names."""
    held = getattr(value, "__dict__", None)
    if type(held) is not dict: return    # a class has a proxy
    for key in sorted(self.attributes & held.keys()):
      self.items.append((held, key, held[key], f"{name}.{key}"))
      if isinstance(held[key], (list, dict)): self._inside(held[key], f"{name}.{key}")

  def held(self) -> Iterator[tuple[Any, Any, str]]:
    """Of each name and item: what it held, what it holds now (None: nothing), and the place in words."""
    for cell, value, name in self.cells: yield value, _contents(cell), name
    for container, key, value, name in self.items:
      try: now = container[key]
      except (KeyError, IndexError): now = None
      yield value, now, name

  def check(self) -> None:
    """Raise JitError for the first place that holds something else now."""
    for value, now, name in self.held():
      if now is not value: _compare(now, value, name)
    for container, size, name in self.sizes:
      if len(container) != size: _refuse(name, f"{size} items", f"{len(container)}")

def _contents(cell: CellType) -> Any:
  """What a free variable is; None where it was deleted."""
  try: return cell.cell_contents
  except ValueError: return None

def _compare(now: Any, before: Any, name: str) -> None:
  """Equal numbers and texts of one type are no change."""
  if not _equal(now, before): _refuse(name, _shown(before), _shown(now))

def _equal(a: Any, b: Any) -> bool:
  if a is b: return True
  if type(a) is not type(b): return False
  if isinstance(a, tuple): return len(a) == len(b) and all(map(_equal, a, b))
  return isinstance(a, _PLAIN) and a == b

def _shown(value: Any) -> str: return repr(value) if isinstance(value, _PLAIN) else f"a {type(value).__name__}"

def _refuse(name: str, before: str, now: str) -> None:
  how = f"was {before} when the function was captured, and is {now} now" if before != now else f"is another {now[2:]} than when it was captured"
  raise JitError(f"{name} {how}; a replay would use the old one: pass it as an argument (numbers that change as a Tensor or a bound Variable), "
                 "assign() to a Tensor to change it, or call reset() to capture again")

def _unwrapped(function: Any) -> tuple[Any, Any]:
  """The function that was written, without bindings and decorators that say what they wrap; and the object that it is bound to, or None."""
  bound = None
  while True:
    bound = getattr(function, "__self__", bound)
    inner = getattr(function, "__func__", None) or getattr(function, "__wrapped__", None)
    if inner is None: return function, bound
    function = inner

def _names(code: CodeType) -> tuple[set[str], set[str]]:
  """The globals and the attributes that code, and code inside of it, reads."""
  import dis  # only a capture needs it, and it takes longer to load than this file
  found: tuple[set[str], set[str]] = set(), set()
  todo = [code]
  while todo:
    code = todo.pop()
    for instruction in dis.get_instructions(code):
      if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"): found[0].add(instruction.argval)
      elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"): found[1].add(instruction.argval)
    todo += [c for c in code.co_consts if isinstance(c, CodeType)]
  return found
