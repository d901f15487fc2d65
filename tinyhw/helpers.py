"""Small functions that the whole project and its users share: lists, integers, text, memory views, timing, counters.

Settings live in config.py, files in files/storage.py, progress bars in files/progress.py; their names are here too, as
users expect them. ctypes, cProfile, tempfile, ... are imported inside the functions that need them: `import tinyhw`
does not pay for them.
"""
from __future__ import annotations
import functools
import gc
import operator
import os
import sys
import time
from collections import defaultdict
from itertools import count as count

from tinyhw import trace
from tinyhw.config import (BEAM as BEAM, CACHE as CACHE, CHECK as CHECK, DEBUG as DEBUG, DEV as DEV, DUMP as DUMP,
                           JIT as JIT, NOOPT as NOOPT,
                           PROFILE as PROFILE, SEED as SEED, SPEC as SPEC, THREADS as THREADS, TRACEMETA as TRACEMETA,
                           TRAINING as TRAINING,
                           VIZ as VIZ, Context as Context, ContextVar as ContextVar, Wrapper, getenv as getenv)
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.files.progress import tqdm as tqdm, trange as trange
from tinyhw.files.regular import write_atomically as write_atomically
from tinyhw.files.storage import (cache_dir as cache_dir, diskcache as diskcache, diskcache_clear as diskcache_clear,
                                  diskcache_get as diskcache_get, diskcache_put as diskcache_put, fetch as fetch)

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  import ctypes  # hidden: see the head of this file
  from collections.abc import Callable, Iterable, Mapping, Sequence
  from types import TracebackType
  from typing import Any, TypeVar
  T = TypeVar("T")
  U = TypeVar("U")

# **** lists ****

def prod(x: Iterable[Any]) -> Any:
  """The product; 1 of nothing. Of anything that multiplies.

  >>> helpers.prod([2, 3, 4])
  24
  """
  return functools.reduce(operator.mul, x, 1)

def argfix(*x: Any) -> tuple[Any, ...]:
  """f(1, 2) and f((1, 2)) alike: the tuple (1, 2).

  >>> helpers.argfix((2, 3)), helpers.argfix(2, 3)
  ((2, 3), (2, 3))
  """
  if not x or not isinstance(x[0], (tuple, list)): return x
  if len(x) != 1:
    raise ArgumentError(f"{x} mixes a sequence and other arguments; pass one sequence, or the items one by one")
  return tuple(x[0])

def all_same(items: Sequence[Any]) -> bool:
  """Whether all are equal; True of nothing.

  >>> helpers.all_same([1, 1, 1])
  True
  """
  return all(item == items[0] for item in items)

def dedup(x: Iterable[T]) -> list[T]:
  """Without repetitions, in order of first appearance.

  >>> helpers.dedup([3, 1, 3])
  [3, 1]
  """
  return list(dict.fromkeys(x))

def flatten(l: Iterable[Iterable[T]]) -> list[T]:
  """One level of nesting less.

  >>> helpers.flatten([[1, 2], [3]])
  [1, 2, 3]
  """
  return [item for part in l for item in part]

def fully_flatten(l: Any) -> list[Any]:
  """The leaves of nested lists and tuples (or arrays), depth first. A str is a leaf.

  >>> helpers.fully_flatten([1, [2, [3]]])
  [1, 2, 3]
  """
  if hasattr(l, "shape") and l.shape == (): return [l[()]]
  if isinstance(l, (str, bytes)) or not (hasattr(l, "__len__") and hasattr(l, "__getitem__")): return [l]
  return flatten(fully_flatten(item) for item in l)

def get_shape(x: Any) -> tuple[int, ...]:
  """The shape of nested lists and tuples; () of a number. Raises ShapeError when parts differ in shape.

  >>> helpers.get_shape([[1, 2], [3, 4]])
  (2, 2)
  """
  if isinstance(x, (str, bytes)) or not (hasattr(x, "__len__") and hasattr(x, "__getitem__")): return ()
  if hasattr(x, "shape"): return tuple(x.shape)
  shapes = [get_shape(item) for item in x]
  if not all_same(shapes):
    odd = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
    raise ShapeError(f"inhomogeneous shape: item 0 has shape {shapes[0]} and item {odd} has shape {shapes[odd]}; make "
                     f"the nested lists equally long")
  return (len(shapes),) + (shapes[0] if shapes else ())

def get_single_element(x: Iterable[T]) -> T:
  """The only item. Raises ArgumentError when there are none or more.

  >>> helpers.get_single_element([7])
  7
  """
  items = list(x)
  if len(items) != 1: raise ArgumentError(f"expected one item, got {len(items)}")
  return items[0]

def partition(itr: Iterable[T], fxn: Callable[[T], bool]) -> tuple[list[T], list[T]]:
  """(those for which fxn holds, the others), each in order.

  >>> helpers.partition([1, 2, 3], lambda x: x > 1)
  ([2, 3], [1])
  """
  parts: tuple[list[T], list[T]] = ([], [])
  for item in itr: parts[0 if fxn(item) else 1].append(item)
  return parts

def merge_dicts(ds: Iterable[Mapping[T, U]]) -> dict[T, U]:
  """All in one. Raises ArgumentError when a key has two values.

  >>> helpers.merge_dicts([{"a": 1}, {"b": 2}])
  {'a': 1, 'b': 2}
  """
  merged: dict[T, U] = {}
  for d in ds:
    for key, value in d.items():
      if merged.setdefault(key, value) != value:
        raise ArgumentError(f"cannot merge: {key!r} is {merged[key]!r} and {value!r}")
  return merged

# **** numbers ****

def ceildiv(num: Any, amt: Any) -> Any:
  """num / amt, rounded up. Symbolic integers too.

  >>> helpers.ceildiv(7, 2)
  4
  """
  return -(num // -amt) if isinstance(num, int) and isinstance(amt, int) else (num + (amt - 1)) // amt

def round_up(num: Any, amt: Any) -> Any:
  """The smallest multiple of amt that is not below num.

  >>> helpers.round_up(7, 4)
  8
  """
  return ceildiv(num, amt) * amt

def cdiv(x: int, y: int) -> int:
  """Division that truncates, as in C; 0 when y is 0.

  >>> helpers.cdiv(-7, 2)
  -3
  """
  if y == 0: return 0
  return abs(x) // abs(y) if (x < 0) == (y < 0) else -(abs(x) // abs(y))

def cmod(x: int, y: int) -> int:
  """The remainder of `cdiv`: it has the sign of x.

  >>> helpers.cmod(-7, 2)
  -1
  """
  return x - cdiv(x, y) * y

def polyN(x: T, p: Iterable[float]) -> T:
  """The polynomial with these coefficients, highest first, by Horner's rule. x: a number or anything with + and *.

  >>> helpers.polyN(2, [1, 0, 3])
  7.0
  """
  value: Any = 0.0
  for coefficient in p: value = value * x + coefficient
  result: T = value
  return result

def getbits(value: int, start: int, end: int) -> int:
  """Bits start to end, both included, of value.

  >>> helpers.getbits(0b110100, 2, 4)
  5
  """
  return (value >> start) & ((1 << (end - start + 1)) - 1)

# **** text ****

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

def colored(st: str, color: str | None, background: bool = False) -> str:
  """st in a color, for a terminal; an upper-case name is the bright one; None changes nothing."""
  if color is None: return st
  if color.lower() not in _COLORS: raise ArgumentError(f"no color is named {color!r}; use one of {', '.join(_COLORS)}")
  code = 30 + _COLORS.index(color.lower()) + (60 if color.isupper() else 0) + (10 if background else 0)
  return f"\033[{code}m{st}\033[0m"

def wants_color() -> bool:
  """Return whether standard output takes colors: it is a terminal, and NO_COLOR is unset or empty.

  Source: https://no-color.org.
  """
  return sys.stdout.isatty() and not os.environ.get("NO_COLOR")

def _skip_escape(s: str, i: int) -> int:
  """The index after the escape sequence (ESC [ ... letter) at i; i where there is none."""
  if not s.startswith("\033[", i): return i
  i += 2
  while i < len(s) and not s[i].isalpha(): i += 1
  return i + 1

def ansistrip(s: str) -> str:
  """s without colors and other escape sequences.

  >>> helpers.ansistrip(helpers.colored("x", "red"))
  'x'
  """
  if "\033[" not in s: return s
  first, *parts = s.split("\033[")
  return first + "".join(part[next((i for i, c in enumerate(part) if c.isalpha()), len(part)) + 1:] for part in parts)

def word_wrap(x: str, wrap: int = 80) -> str:
  """Lines broken after `wrap` visible characters; escape sequences have no width.

  >>> helpers.word_wrap("abcdef", 3).split()
  ['abc', 'def']
  """
  lines = []
  for line in x.split("\n"):
    start = i = width = 0
    while i < len(line):
      after = _skip_escape(line, i)
      if after != i: i = after
      elif width == wrap:
        lines.append(line[start:i])
        start, width = i, 0
      else: i, width = i + 1, width + 1
    lines.append(line[start:])
  return "\n".join(lines)

def strip_parens(fst: str) -> str:
  """Without the outer parentheses, if they belong together: (a+b) but not (a)+(b).

  >>> helpers.strip_parens("(a+b)")
  'a+b'
  """
  if not (fst.startswith("(") and fst.endswith(")")): return fst
  depth = 0
  for c in fst[1:-1]:
    depth += (c == "(") - (c == ")")
    if depth < 0: return fst
  return fst[1:-1]

@functools.cache
def to_function_name(s: str) -> str:
  """s as an identifier: colors are dropped, other characters become their hexadecimal code.

  >>> helpers.to_function_name("r_64_64")
  'r_64_64'
  """
  return "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"{ord(c):02X}" for c in ansistrip(s))

def time_to_str(t: float, w: int = 8) -> str:
  """Seconds, right-aligned to w: `    1.50s `, `   12.00ms` or `   30.00us`.

  >>> helpers.time_to_str(0.00123).strip()
  '1230.00us'
  """
  for scale, unit in ((1.0, "s "), (1e3, "ms")):
    if t * scale > 10: return f"{t * scale:{w}.2f}{unit}"
  return f"{t * 1e6:{w}.2f}us"

def temp(x: str, append_user: bool = False) -> str:
  """The path of a file named x in the temporary folder. append_user: with the user's name, where users share the
  folder."""
  import getpass  # hidden: see the head of this file
  import tempfile  # hidden: see the head of this file
  return os.path.join(tempfile.gettempdir(), f"{x}.{getpass.getuser()}" if append_user else x).replace(os.sep, "/")

# **** memory views ****

def to_mv(ptr: int, sz: int) -> memoryview:
  """sz bytes of memory at an address, without a copy. The caller keeps the memory alive."""
  import ctypes  # hidden: see the head of this file
  return memoryview((ctypes.c_uint8 * sz).from_address(ptr)).cast("B")

def from_mv(mv: memoryview, to_type: type[Any] | None = None) -> ctypes.Array[Any]:
  """The memory of a writable view as a ctypes array of to_type (default: c_char), without a copy."""
  import ctypes  # hidden: see the head of this file
  kind = to_type or ctypes.c_char
  return (kind * (mv.nbytes // ctypes.sizeof(kind))).from_buffer(mv)

def mv_address(mv: memoryview) -> int:
  """The address of a writable view's first byte."""
  import ctypes  # hidden: see the head of this file
  return ctypes.addressof((ctypes.c_char * mv.nbytes).from_buffer(mv))

# **** time and counters ****

class Counters:
  """The class of `GlobalCounters`: counts of the work since reset(): kernels, and at DEBUG >= 2 operations, bytes moved
  and seconds. mem_used: the bytes that are held now.

  There is one object. Counts in the class itself would cost 0.1 us more each time: the interpreter keeps look-ups of
  attributes until their class changes.
  """
  def __init__(self) -> None:
    self.mem_used = 0
    self.mem_used_per_device: defaultdict[str, int] = defaultdict(int)
    self.reset()

  def __call__(self) -> Counters:
    """Return the counts. tinygrad has a class here, whose objects share its counts."""
    return self

  def reset(self) -> None:
    """Zero the counts of work; mem_used stays."""
    self.global_ops = self.global_mem = self.kernel_count = 0
    self.time_sum_s = 0.0

GlobalCounters = Counters()

class disable_gc(Wrapper):
  """No cyclic garbage collection inside, or in the decorated function. Collection stays off where it was off."""
  def fresh(self) -> disable_gc: return disable_gc()

  def __enter__(self) -> None:
    self.was_enabled = gc.isenabled()
    gc.disable()

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    if self.was_enabled: gc.enable()

def uncollected(work: Callable[..., T], *args: Any, **named: Any) -> T:
  """work(...) without cyclic garbage collection.

  Unlike in a `with` block, no interrupt can come between the end and `gc.enable`.
  """
  collects = gc.isenabled()
  try:
    gc.disable()
    return work(*args, **named)
  finally:
    if collects: gc.enable()

def keep_objects() -> None:
  """Treat all objects of now as old: collections of young objects no longer walk them, but those of all objects do.
  Does nothing if the program froze objects.

  For a process that has just loaded a compiler: to walk its tables takes 6 ms, and frees nothing.
  """
  if gc.get_freeze_count() < 1000:  # CPython 3.12 itself has frozen some hundreds
    gc.freeze()
    gc.unfreeze()

class Timing(Wrapper):
  """Print prefix and the milliseconds it took. on_exit: from the nanoseconds (also in `et`) to more text."""
  def __init__(self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True) -> None:
    self.prefix, self.on_exit, self.enabled, self.et = prefix, on_exit, enabled, 0

  def fresh(self) -> Timing: return Timing(self.prefix, self.on_exit, self.enabled)

  def __enter__(self) -> Timing:
    self.st = time.perf_counter_ns()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.et = time.perf_counter_ns() - self.st
    if self.enabled: print(f"{self.prefix}{self.et * 1e-6:6.2f} ms" + (self.on_exit(self.et) if self.on_exit else ""))

class Profiling(Wrapper):
  """Profile with cProfile and print the top `frac` of functions by `sort`; fn: write the statistics there too; times
  are in ms/ts."""
  def __init__(self, enabled: bool = True, sort: str = "cumtime", frac: float = 0.2, fn: str | None = None,
               ts: float = 1) -> None:
    self.enabled, self.sort, self.frac, self.fn, self.ts = enabled, sort, frac, fn, ts

  def fresh(self) -> Profiling: return Profiling(self.enabled, self.sort, self.frac, self.fn, self.ts)

  def __enter__(self) -> Profiling:
    import cProfile  # hidden: see the head of this file
    self.profile = cProfile.Profile(time.perf_counter_ns, 1e-6 * self.ts)  # pstats prints timer ticks times this unit
    if self.enabled: self.profile.enable()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.profile.disable()
    if not self.enabled: return
    import pstats  # hidden: see the head of this file
    if self.fn: self.profile.dump_stats(self.fn)
    pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort).print_stats(self.frac)

def profile_marker(name: str, color: str = "gray") -> None:
  """Mark this moment in the trace of PROFILE=1, and in the timeline of VIZ=1.

  >>> profile_marker("epoch 1")
  """
  if not (PROFILE or VIZ): return
  trace.start_recorder()
  trace.event(name, "markers", color=color)

class profile_range(Wrapper):
  """A range of time in the trace of PROFILE=1, and in the timeline of VIZ=1: `with` or a decorator.

  >>> with profile_range("load data"): pass
  """
  def __init__(self, name: str, color: str = "gray") -> None: self.name, self.color = name, color

  def fresh(self) -> profile_range: return profile_range(self.name, self.color)

  def __enter__(self) -> profile_range:
    if PROFILE or VIZ: trace.start_recorder()  # before the clock is read: it takes a while, once
    self.start_ns = time.perf_counter_ns()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    if PROFILE or VIZ:
      trace.event(self.name, trace.host_lane(), self.start_ns, time.perf_counter_ns(), color=self.color)
