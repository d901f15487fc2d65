"""Guards on the live-ins of a function: recorded while TinyJit captures it, compared before each replay.

A live-in is a value that the function reads besides its arguments. While the function runs, a profile hook
(`sys.setprofile`) sees the Python functions that it calls, except this framework's own and the standard library's.
Layers and optimizers of tinyhw.nn are followed. The code of each function has the names that it uses: globals, free
variables, attributes.

The search starts at its globals and free variables, the object that it is a method of, and arguments that are objects.
From each object it follows the attributes that the code names, and so on, and items of lists, tuples and dicts.
Attributes are found as Python finds them: in the object, a slot or a class. A property is a function that is called.
Names in `getattr(x, "name")` count if they are literals.

Each live-in is recorded twice. Its value on entry to the function tells whether the function changed it, which refuses
the capture. Its value after the capture is compared before replays. A comparison is of identity first: 0.05 us a
live-in if nothing has changed.
"""
from __future__ import annotations
import contextlib
import functools
import gc
import os
import sys
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import CodeType, FrameType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from tinyhw.capture.code_names import Names, names_of
from tinyhw.capture.structure import is_data, token
from tinyhw.device import DRIVERS
from tinyhw.engine.memory.writes import memory_of
from tinyhw.errors import JitError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

_PLAIN = (int, float, complex, str, bytes, type(None))
_DEEPEST = 8                  # depth of attributes of attributes that are followed
_MOST_PLACES = 1 << 17
_LARGEST_COPY = 1 << 20       # bytes of an array that are kept for comparison
_MAPPINGS = (dict, MappingProxyType)
_CONTAINERS: Any = (list, tuple, set, deque, *_MAPPINGS, type({}.keys()), type({}.values()), type({}.items()))
# The standard library's wrappers of containers, and the attribute that holds the container.
_WRAPPERS = {ChainMap: "maps", UserDict: "data", UserList: "data"}
# The environment's inner dict, which compares faster.
_VARIABLES: Any = getattr(os.environ, "_data", os.environ)
_MAKERS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})
_MISSING: Any = type("nothing", (), {"__repr__": lambda self: "nothing"})()

def _weak(value: Any) -> Any:
  try: return weakref.ref(value)
  except TypeError: return None

_OWN = os.path.dirname(os.path.dirname(_weak.__code__.co_filename)) + os.sep  # as in code, maybe relative
_FOLLOWED = tuple(os.path.join(_OWN, name) for name in ("nn", "llm"))
_LIBRARY = os.path.dirname(functools.wraps.__code__.co_filename) + os.sep
_PACKAGES = ("site-packages", "dist-packages")

@functools.lru_cache(maxsize=None)
def is_followed(filename: str) -> bool:
  """Is this file code of the user, or of a layer?"""
  if filename.startswith(_OWN): return filename.startswith(_FOLLOWED)
  return not filename.startswith("<frozen") and (not filename.startswith(_LIBRARY)
                                                 or any(p in filename for p in _PACKAGES))

@functools.lru_cache(maxsize=None)
def is_followed_module(name: Any) -> bool:
  """Is a module of this name the user's, or one of layers? Drivers from outside of the tree, and modules next to them,
  are not.

  The name also decides for functions that were compiled from text, as those of dataclasses are. Functions of named
  tuples read nothing that could change.
  """
  package = str(name).rpartition(".")[0]
  if package and any(driver.rpartition(".")[0] == package for driver in DRIVERS.values()): return False
  if not isinstance(name, str): return True
  if name.startswith("namedtuple_") and name not in sys.modules: return False
  return name.partition(".")[0] != "tinyhw" or name.startswith(("tinyhw.nn", "tinyhw.llm"))

class Guard(NamedTuple):
  """A guard on one value: `read(container, key)` returns the present value."""
  read: Callable[[Any, Any], Any]
  container: Any
  key: Any
  value: Any
  name: str

def _attribute(container: Any, key: str) -> Any: return getattr(container, key, _MISSING)
def _item(container: Any, key: Any) -> Any: return container.get(key, _MISSING)
def _context(container: Any, key: Any) -> Any:
  try: return container.get()
  except LookupError: return _MISSING     # neither set nor with a default
def _cell(container: Any, key: Any) -> Any:
  try: return container.cell_contents
  except ValueError: return _MISSING      # not set, or deleted
def _referred(container: Any, key: Any) -> Any:
  holder = container()
  return _MISSING if holder is None else getattr(holder, key, _MISSING)

def _nothing() -> None: pass

class Root(NamedTuple):
  """One called function: its code, the function if it was found, and its arguments that are objects. local: free
  variables that are variables of this call.

  Functions and objects are held weakly: they may exist for this call only, and free variables may be Tensors of it.
  """
  code: CodeType
  globals: dict[str, Any]
  function: Callable[[], Any]    # returns a FunctionType or None
  objects: tuple[tuple[str, Callable[[], Any]], ...]
  local: set[tuple[CodeType, str]]

class Guards:
  """Guards: live-ins and their values. lasting: holds the values as long as the guards exist; otherwise objects and
  Tensors are held weakly."""
  def __init__(self, lasting: bool = True):
    self.lasting = lasting
    self.guards: list[Guard] = []
    # A list or dict, its items (keys, then values), and its name.
    self.contents: list[tuple[Any, tuple[Any, ...], str]] = []
    self.growing: list[tuple[Any, int, str]] = []
    self.data: list[tuple[Any, bytes, str]] = []
    self.lazy: list[tuple[Callable[[], Tensor | None], UOp, str]] = []     # Tensors without storage, and their nodes
    self.tensors: list[Tensor] = []               # all other Tensors; held only if the guards last
    self._seen: set[Any] = set()
    self._kept: list[Any] = []      # keeps ids valid
    self._passing = False           # are these objects that functions pass on? They may be of this call only

  # ***** recording *****

  def add(self, root: Root) -> None:
    """Record the live-ins of a called function."""
    names = names_of(root.code)
    for name in names.globals & root.globals.keys():
      self._guard(_item, root.globals, name, root.globals[name], name, names)
    for name in names.modules:
      if (module := sys.modules.get(name)) is not None: self.inside(module, name, names)
    if (function := root.function()) is not None: self._function(function, names, root.local)
    self._passing = not self.lasting
    for name, reference in root.objects:
      if (value := reference()) is not None: self.inside(value, name, names)
    self._passing = False

  def _function(self, function: FunctionType, names: Names, local: set[tuple[CodeType, str]]) -> None:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
      if (function.__code__, name) not in local: self._guard(_cell, cell, None, _cell(cell, None), name, names)
    arguments = function.__code__.co_varnames
    first = function.__code__.co_argcount - len(function.__defaults__ or ())
    for k, value in enumerate(function.__defaults__ or ()):
      self.inside(value, f"the default of {arguments[first + k]}", names)
    for name, value in (function.__kwdefaults__ or {}).items(): self.inside(value, f"the default of {name}", names)

  def _guard(self, read: Callable[[Any, Any], Any], container: Any, key: Any, value: Any, name: str, names: Names,
             depth: int = 0) -> None:
    if (isinstance(value, (ModuleType, type)) or isinstance(value, FunctionType)
        and not is_followed(value.__code__.co_filename)):
      return self.inside(value, name, names, depth)
    if len(self.guards) >= _MOST_PLACES:
      raise JitError(f"the function reads more than {_MOST_PLACES} places besides its arguments; pass them")
    if (id(container), key) not in self._seen:
      self._seen.add((id(container), key))
      self._kept.append(container)
      if not self.lasting and isinstance(value, Tensor): value = weakref.ref(value)
      if not self.lasting and read is _attribute and (weak := _weak(container)) is not None:
        read, container = _referred, weak
      self.guards.append(Guard(read, container, key, value, name))
      if isinstance(value, weakref.ref): value = value()
    if (key if isinstance(key, str) else name) in names.grown and isinstance(value, (list, dict, set)):
      if (id(value), "growing") in self._seen: return
      self._seen.add((id(value), "growing"))
      self.growing.append((value, len(value), name))
    else: self.inside(value, name, names, depth)

  def inside(self, value: Any, name: str, names: Names, depth: int = 0) -> None:
    """Record the contents of a value: items of a container, else attributes that the code names."""
    if isinstance(value, _PLAIN) or depth > _DEEPEST: return
    if isinstance(value, Tensor): return self._tensor(value, name)
    key = id(value), names
    if key in self._seen: return
    self._seen.add(key)
    if isinstance(value, _CONTAINERS):
      if not self._passing: self._kept.append(value)
      items = list(value.items()) if isinstance(value, _MAPPINGS) else list(enumerate(value))
      if not isinstance(value, tuple) and (id(value), "items") not in self._seen:
        self._seen.add((id(value), "items"))
        self.contents.append((self._held(value), tuple(map(self._weakly, _items(value))), name))
      for k, item in items:
        if not isinstance(item, _PLAIN): self.inside(item, f"{name}[{k!r}]", names, depth + 1)
    elif isinstance(value, functools.partial):
      self.inside(value.args, f"{name}.args", names, depth)
      self.inside(value.keywords, f"{name}.keywords", names, depth)
    elif isinstance(value, ContextVar):
      self._guard(_context, value, None, _context(value, None), f"{name}.get()", names, depth + 1)
    elif value is os.environ or value is os and names.environment or value is os.getenv:
      self._environment(names.environment)
    elif is_data(value): self._data(value, name)
    elif isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
      if self._passing: return      # an object that still exists after the call is refused then
      raise JitError(f"{name} is an iterator ({type(value).__name__}), and replays would not take its next item; take "
                     f"it outside of the function, "
                     "and pass it as an argument")
    elif not isinstance(value, FunctionType): self._object(value, name, names, depth)

  def _environment(self, keys: frozenset[str | None]) -> None:
    """Record variables of the environment: literal names, else all variables. The function may set them."""
    if not self.lasting or (id(os.environ), keys) in self._seen: return
    self._seen.add((id(os.environ), keys))
    written = [key for key in keys if key is not None]
    if not written or None in keys: self.contents.append((_VARIABLES, _items(_VARIABLES), "os.environ"))
    else:
      self.guards.extend(Guard(_item, os.environ, key, os.environ.get(key, _MISSING), f"os.environ[{key!r}]")
                         for key in written)

  def _tensor(self, value: Tensor, name: str) -> None:
    if memory_of(value.uop)[0] is None: self.lazy.append((weakref.ref(value), value.uop, name))
    elif self.lasting: self.tensors.append(value)

  def _data(self, value: Any, name: str) -> None:
    if (id(value), "data") in self._seen: return
    self._seen.add((id(value), "data"))
    try: size = memoryview(value).nbytes
    except TypeError: size = _LARGEST_COPY + 1
    if size > _LARGEST_COPY:
      if self._passing: return
      raise JitError(f"{name} is of {type(value)}, and too large, or of a kind, that TinyJit cannot tell whether its "
                     f"contents change; make a Tensor "
                     "of it outside of the function")
    self.data.append((self._held(value), bytes(value), name))

  def _object(self, value: Any, name: str, names: Names, depth: int) -> None:
    """Record the attributes that the code names: the object's own, those in slots, and those of classes that are no
    functions."""
    module = value.__name__ if isinstance(value, ModuleType) else (value if isinstance(value, type)
                                                                   else type(value)).__module__
    if str(module).partition(".")[0] in ("builtins", "numpy", "torch"): return
    if isinstance(value, (ModuleType, type)) and not _is_users(str(module)): return
    if self.lasting: self._kept.append(value)
    for wrapper, key in _WRAPPERS.items():
      if isinstance(value, wrapper):
        self._guard(_attribute, value, key, getattr(value, key), f"{name}.{key}", names, depth + 1)
    own = {} if isinstance(value, type) else getattr(value, "__dict__", {})
    if own and ("__dict__" in names.attributes or "vars" in names.globals):
      self.inside(own, f"{name}.__dict__", names, depth + 1)
    wanted = {*(names.attributes & own.keys())}
    if not hasattr(type(value), "__getattr__"): wanted |= names.asked
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    for kind in classes:
      if kind is object: continue
      wanted.update(key for key in names.attributes & kind.__dict__.keys() if key not in own
                    and not _computes(kind.__dict__[key]))
      wanted.difference_update(key for key in names.asked & kind.__dict__.keys() if _computes(kind.__dict__[key]))
    for key in sorted(wanted):
      self._guard(_attribute, value, key, getattr(value, key, _MISSING), f"{name}.{key}", names, depth + 1)

  def _held(self, value: Any) -> Any:
    """Return a passed-on value weakly if possible; other values as they are."""
    return (_weak(value) or value) if self._passing else value

  def _weakly(self, value: Any) -> Any:
    return weakref.ref(value) if not self.lasting and isinstance(value, Tensor) else value

  # ***** comparing *****

  def check(self) -> None:
    """Raise JitError for the first live-in that has another value now."""
    for guard in self.guards:
      now = guard.read(guard.container, guard.key)
      if now is not guard.value and not _same(now, guard.value): _refuse(guard.name, guard.value, now)
    for container, items, name in self.contents:
      now = _items(container)
      if len(now) != len(items): _refuse_size(name, container, items, now)
      for a, b in zip(now, items):
        if a is not b and not _same(a, b): _refuse(f"{name}[{_key_of(container, now, a)!r}]", b, a)
    for data, copied, name in self.data:
      if bytes(data) != copied:
        raise JitError(f"the contents of {name} have changed since the function was captured; {_HOW}")
    for reference, node, name in self.lazy:
      tensor = reference()
      if tensor is not None and tensor.uop is not node:
        raise JitError(f"{name}, a Tensor of shape {node.shape}, had no storage when the function was captured, and "
                       f"has been realized, written or "
                       "replaced since, or what it is computed from was; realize() it before the function is "
                       "captured, or call reset()")

  def changes(self) -> Iterator[tuple[str, Any, Any]]:
    """Yield the changes that the function itself made: the name, the value before, the value now."""
    for guard in self.guards:
      if guard.read is _referred and guard.container() is None: continue     # an object of this call only
      now, before = guard.read(guard.container, guard.key), _strong(guard.value)
      if now is not before and not _same(now, before): yield guard.name, before, now
    for held, items, name in self.contents:
      if (container := _strong(held)) is None: continue     # of this call only
      now, before = _items(container), [_strong(item) for item in items]
      if len(now) != len(before): yield name, before, now
      else:
        yield from ((f"{name}[{_key_of(container, now, a)!r}]", b, a) for a, b in zip(now, before) if a is not b
                    and not _same(a, b))
    for container, size, name in self.growing:
      new = list(container.values() if isinstance(container, dict) else container)
      if len(new) != size and any(isinstance(x, Tensor) for x in new[size:]): yield name, container, new[-1]
    for held, copied, name in self.data:
      if (data := _strong(held)) is not None and bytes(data) != copied: yield name, data, data

_HOW = ("pass it as an argument (numbers that change as a Tensor or a bound Variable), assign() to a Tensor to change "
        "it, or call reset() to capture "
        "again")

def _items(container: Any) -> tuple[Any, ...]:
  return (*container.keys(), *container.values()) if isinstance(container, _MAPPINGS) else tuple(container)

def _key_of(container: Any, items: tuple[Any, ...], item: Any) -> Any:
  """Return the key or index of an item in a container."""
  k = next(k for k, x in enumerate(items) if x is item)
  return items[k % len(container)] if isinstance(container, _MAPPINGS) else k

def _strong(value: Any) -> Any: return value() if isinstance(value, weakref.ref) else value

def _computes(found: Any) -> bool:
  """Is this attribute of a class a function, or does it call one (a property), rather than being a value or a slot?"""
  return hasattr(type(found), "__get__") and not isinstance(found, MemberDescriptorType)

def _is_users(module: str) -> bool:
  if module in sys.builtin_module_names: return False
  file = getattr(sys.modules.get(module), "__file__", None)
  return file is None or is_followed(file)

def _same(a: Any, b: Any) -> bool:
  """Compare values: equal numbers and texts of one type, and tuples of them, count as unchanged."""
  if a is b: return True
  if type(a) is not type(b): return False
  if isinstance(a, tuple): return len(a) == len(b) and all(map(_same, a, b))
  if type(a).__module__ == "numpy" and type(a).__hash__ is not None: return bool(a == b)
  return isinstance(a, _PLAIN) and token(a) == token(b)

def _shown(value: Any) -> str:
  return repr(value) if isinstance(value, _PLAIN) or value is _MISSING else f"a {type(value).__name__}"

def _refuse(name: str, old: Any, new: Any) -> None:
  before, now = _shown(old), _shown(new)
  how = (f"was {before} when the function was captured, and is {now} now" if before != now
         else f"is another {now[2:]} than when it was captured")
  raise JitError(f"{name} {how}; a replay would use the old one: {_HOW}")

def _refuse_size(name: str, container: Any, items: tuple[Any, ...], now: tuple[Any, ...]) -> None:
  each = 2 if isinstance(container, _MAPPINGS) else 1
  gone = [key for key in items[:len(items) // each] if key not in container] if each == 2 else []
  if gone and len(now) < len(items):
    _refuse(f"{name}[{gone[0]!r}]", items[len(items) // 2 + items.index(gone[0])], _MISSING)
  raise JitError(f"{name} was {len(items) // each} items when the function was captured, and is {len(now) // each} "
                 f"now; a replay would use the old "
                 f"ones: {_HOW}")

# ***** called functions *****

def _is_shared(value: Any) -> bool:
  """Is it the generator from which `random.random()` and its like draw?"""
  random = sys.modules.get("random")
  return value is not None and random is not None and value is getattr(random, "_inst", None)

class CallTracer:
  """`with watcher:` notes, of this thread, the functions that are called, the values that they read, and whether they
  draw from `random`.

  Another profile function is called, too."""
  def __init__(self, function: Any, given: Iterable[Any] = ()):
    self.is_noting = False
    self.has_drawn = False      # draws from Python's random numbers; other threads may draw, too
    # Containers that are arguments: their contents are given, too.
    self._given = {id(value): value for value in given}
    self.before = Guards(lasting=False)
    self.roots: list[Root] = []
    # Recorded keys with their objects, so that ids are not reused.
    self._seen: dict[Any, tuple[Any, ...]] = {}
    self._importing: FrameType | None = None
    # Free variables of code that are variables of a call that was seen.
    self._local: set[tuple[CodeType, str]] = set()
    self._made: dict[int, Any] = {}       # objects that the function made, held weakly if possible
    self._objects: list[tuple[str, Any, Names]] = []
    written, objects = unwrapped(function)
    if not isinstance(written, FunctionType) or not is_followed(written.__code__.co_filename): return
    self._note(Root(written.__code__, written.__globals__, weakref.ref(written), (), self._local))
    self._objects = [(name, value, names_of(written.__code__)) for name, value in objects]
    for name, value, names in self._objects: self.before.inside(value, name, names)

  def __enter__(self) -> None:
    self._other = sys.getprofile()
    self.is_noting = True
    sys.setprofile(self._hook)

  def __exit__(self, *_: object) -> None: self.stop()

  def stop(self) -> None:
    """Stop recording."""
    # cProfile of Python 3.11 has no function.
    if self._other is not None and not callable(self._other): self._other.enable()
    else: sys.setprofile(self._other)
    self.is_noting = False

  @contextlib.contextmanager
  def paused(self) -> Iterator[None]:
    """`with` this, calls are not seen: those of the engine. A hook on each of them would take several times as long as
    their work. A profile function of the user sees them all the same."""
    found = sys.getprofile()
    pauses = self._other is None and found == self._hook
    if pauses: sys.setprofile(None)
    try: yield
    finally:
      if pauses and self.is_noting: sys.setprofile(found)

  def _hook(self, frame: FrameType, event: Any, argument: Any) -> None:
    if self._importing is not None:
      if event == "return" and frame is self._importing: self._importing = None
    elif event == "call":
      code = frame.f_code
      # Modules run once, when they are loaded.
      if code.co_filename.startswith("<frozen importlib"): self._importing = frame
      elif is_followed(code.co_filename) and is_followed_module(frame.f_globals.get("__name__")):
        self._called(frame, code)
      # gauss draws two numbers and keeps the second in Python.
      elif code.co_name == "gauss" and _is_shared(frame.f_locals.get("self")): self.has_drawn = True
    elif event == "c_call" and _is_shared(getattr(argument, "__self__", None)): self.has_drawn = True
    if self._other is not None and callable(self._other): self._other(frame, event, argument)

  def _called(self, frame: FrameType, code: CodeType) -> None:
    local = frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    given = [(name, local[name]) for name in code.co_varnames[:count] if name in local]
    if code.co_flags & 4:
      given += [(code.co_varnames[count], value) for value in local.get(code.co_varnames[count], ())]
    objects = [(name, value) for name, value in given
               if not isinstance(value, (*_PLAIN, Tensor, UOp, list, tuple, dict, FunctionType, ModuleType))
               and id(value) not in self._given]
    if code.co_name in _MAKERS and objects: self._made[id(objects[0][1])] = _weak(objects[0][1])
    objects = [(name, value) for name, value in objects if id(value) not in self._made
               or _strong(self._made[id(value)]) not in (value, None)]
    free = [local.get(name, _MISSING) for name in code.co_freevars]
    key = code, *[id(value) for _, value in objects], *map(id, free)
    known = self._seen.get(key)
    if known is not None and all(reference() is not None for reference in known): return
    held = [(name, weak) for name, value in objects if (weak := _weak(value)) is not None]
    self._seen[key] = tuple(weak for _, weak in held)
    found = _function_of(frame, free) if free and code.co_name not in _COMPREHENSIONS else None
    self._note(Root(code, frame.f_globals, _nothing if found is None else weakref.ref(found), tuple(held), self._local))

  def add_object(self, name: str, value: Any) -> None:
    """Follow an object that is an argument, too: the attributes that the function's own code names."""
    if self.roots and not isinstance(value, (list, tuple, dict, Tensor, UOp)):
      names = names_of(self.roots[0].code)
      self._objects.append((name, value, names))
      self.before.inside(value, name, names)

  def names(self, attribute: str) -> bool:
    """Does user code among the called functions name an attribute?"""
    return any(attribute in names_of(root.code).attributes and not root.code.co_filename.startswith(_OWN)
               for root in self.roots)

  def forget(self) -> None:
    """Drop the records with the values on entry."""
    self.before = Guards(lasting=False)
    self._seen.clear()

  def _note(self, root: Root) -> None:
    self.roots.append(root)
    inside = [c for c in root.code.co_consts if isinstance(c, CodeType)]
    while inside:
      code = inside.pop()
      self._local.update((code, name) for name in root.code.co_cellvars)
      inside += [c for c in code.co_consts if isinstance(c, CodeType)]
    self.before.add(root)

  def after(self) -> Guards:
    """Return guards with the present values, for comparison at replays."""
    found = Guards()
    for root in self.roots: found.add(root)
    for name, value, names in self._objects: found.inside(value, name, names)
    return found

# Their functions live for one call, and have the free variables of the surrounding code, which is followed (Python 3.10
# and 3.11).
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

def _function_of(frame: FrameType, free: list[Any]) -> FunctionType | None:
  """Return the function that a frame runs, with these values of its free variables. The frame does not name it.

  Its caller usually refers to it. Searching all objects of the process by code takes 9 ns for each of them.
  """
  code = frame.f_code
  def fits(x: Any) -> bool:
    if not isinstance(x, FunctionType) or x.__code__ is not code: return False
    return all(_cell(cell, None) is value for cell, value in zip(x.__closure__ or (), free))
  return next(filter(fits, _at_hand(frame.f_back)), None) or next(filter(fits, gc.get_referrers(code)), None)

def _at_hand(frame: FrameType | None) -> Iterator[Any]:
  """Yield the values of a frame's variables and their contents: items, attributes, the function of a method."""
  if frame is None: return
  globals_ = frame.f_globals
  for value in [*frame.f_locals.values(), *[globals_[name] for name in frame.f_code.co_names if name in globals_]]:
    yield value
    if isinstance(value, list): yield from list.__iter__(value)
    elif isinstance(value, tuple): yield from tuple.__iter__(value)
    elif isinstance(value, dict): yield from list(dict.values(value))
    elif isinstance(value, MethodType): yield value.__func__
    elif isinstance(value, functools.partial): yield value.func
    elif not isinstance(value, (type, ModuleType, *_PLAIN)):
      with contextlib.suppress(AttributeError): yield from list(object.__getattribute__(value, "__dict__").values())
      for slot in [x for x in vars(type(value)).values() if isinstance(x, MemberDescriptorType)]:
        with contextlib.suppress(AttributeError): yield slot.__get__(value)

def unwrapped(function: Any) -> tuple[Any, list[tuple[str, Any]]]:
  """Return the innermost function, without bindings and decorators that declare their function, and the bound objects
  by name."""
  objects: list[tuple[str, Any]] = []
  while True:
    if isinstance(function, functools.partial):
      objects += [("the partial's arguments", function.args), ("the partial's arguments", function.keywords)]
      function = function.func
      continue
    inner = getattr(function, "__func__", None) or getattr(function, "__wrapped__", None)
    if inner is None: break
    function = inner
  call = getattr(type(function), "__call__", None)
  return call if not isinstance(function, FunctionType) and isinstance(call, FunctionType) else function, objects
