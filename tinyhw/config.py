"""Every environment variable that tinyhw reads, and `Context`, which overrides them for a while.

A variable is read from the environment once, at import. `DEBUG >= 2`, `if JIT:` and `BEAM.value` read it. `DEBUG.value
= 2` sets it. Only the thread (or asyncio task) that entered a `Context` sees its values, so threads cannot restore each
other's values.
"""
from __future__ import annotations
import contextvars
import functools
import itertools
import os
import sys
import threading

from tinyhw.errors import ArgumentError, ConfigError
from tinyhw.threads import kept_in_forks

TYPE_CHECKING = False  # typing is loaded only for type checkers: it would double this module's import time
if TYPE_CHECKING:
  from collections.abc import Callable
  from types import TracebackType
  from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload
  Value = TypeVar("Value", bound=int | str)
  T = TypeVar("T", int, float, str, bool)
  P = ParamSpec("P")
  R = TypeVar("R")
  A = TypeVar("A")
  class Getenv(Protocol):
    """The type of `getenv`."""
    @overload
    def __call__(self, key: str) -> int: ...
    @overload
    def __call__(self, key: str, default: T) -> T: ...
    def cache_clear(self) -> None: ...
else:
  Value, Generic = None, {None: object}

def _convert(key: str, text: str, kind: type) -> Any:
  """Convert the text of an environment variable to str, float, int or bool ("0" is False). Raises ConfigError."""
  try: return text if kind is str else kind(float(text) if kind is float else int(text))
  except ValueError: raise ConfigError(f"{key}={text!r} is not a number; set it to one, or unset it") from None

@functools.lru_cache(maxsize=None, typed=True)
def _getenv(key: str, default: Any = 0) -> Any:
  """Return an environment variable as the type of its default. Unset and empty variables give the default.

  Results are kept; `getenv.cache_clear()` drops them.
  """
  text = os.environ.get(key, "")
  return default if text == "" else _convert(key, text, type(default))

getenv: Getenv = _getenv

SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

def parse_size(text: str) -> int | None:
  """Return the bytes of "500M", "1.5G", "1048576"; None for "none". Raises ArgumentError."""
  if text.lower() == "none": return None
  plain = text.upper().removesuffix("B").removesuffix("I")
  unit = plain[-1:] if plain[-1:] in SIZE_UNITS else ""
  digits, point, part = plain.removesuffix(unit).partition(".")
  number = digits + part
  if not (digits and number.isascii() and number.isdecimal()) or len(number) > 18 or (point and not (part and unit)):
    raise ArgumentError(f"{text!r} is no size; write 500M, 2G, a number of bytes, or none for no limit")
  size: int = int(number) * SIZE_UNITS[unit] // 10 ** len(part)
  return size

class ContextVar(Generic[Value]):
  """A variable with a key, a default whose type (int or str) it keeps, and one line of documentation. A number is from
  `least` to `most`.

  empty: an empty text in the environment is a value like others; otherwise it means the default. parse: raises
  ArgumentError for a text that the variable does not take; not called for empty texts.
  """
  _cache: dict[str, ContextVar[Any]] = {}
  _outer_state = 0     # a number that is new when the value of a variable outside of Contexts is

  def __init__(self, key: str, default_value: Value, doc: str = "", least: int | None = None, most: int | None = None,
               empty: bool = False, parse: Callable[[str], object] | None = None) -> None:
    if key in ContextVar._cache: raise ConfigError(f"variable {key} is declared already; use that one, or another name")
    self.key, self.default, self.__doc__ = key, default_value, doc
    self._kind: type[Any] = int if isinstance(default_value, int) else str
    self._limits, self._parse = (least, most), parse
    self._base: Value = self._within("" if empty and os.environ.get(key) == "" else _getenv(key, default_value))
    self._override: contextvars.ContextVar[Value] = contextvars.ContextVar(key)
    self.was_set = False    # by the program, for the process or in a Context
    ContextVar._cache[key] = self

  @property
  def outside(self) -> Value:
    """Its value outside of all Contexts: for decisions that are made once in a process."""
    return self._base

  @property
  def value(self) -> Value: return self._override.get(self._base)

  @value.setter
  def value(self, value: Value) -> None:
    """Set it: inside of a Context that names it until that ends, else for the process."""
    value = self._checked(value)
    self.was_set = True
    if self._override.get(None) is None: self._base, ContextVar._outer_state = value, next(_states)
    else:
      self._override.set(value)
      _state.set(next(_states))

  def _checked(self, value: Any) -> Any:
    if self._kind is str:
      value = getattr(value, "setting", value)     # a dtype says its name
      if not isinstance(value, str): raise ConfigError(f"{self.key} is text, not {value!r}; pass a str")
      return self._within(value)
    if isinstance(value, ContextVar): value = value.value
    if isinstance(value, str): return self._within(_convert(self.key, value, int))
    try: value = self._kind(value)
    except (TypeError, ValueError): raise ConfigError(f"{self.key} is a number, not {value!r}; pass an int") from None
    return self._within(value)

  def _within(self, value: Any) -> Any:
    """Return a value if the variable takes it. Raises ConfigError."""
    least, most = self._limits
    if least is not None and value < least or most is not None and value > most:
      raise ConfigError(f"{self.key}={value}: " + (f"the least that it takes is {least}" if most is None
                                                   else f"it is from {least} to {most}"))
    if self._parse is None or not value: return value
    try: self._parse(value)
    except ArgumentError as error: raise ConfigError(f"{self.key}: {error.message}") from None
    return value

  def tolist(self, obj: object = None) -> list[Any]:
    """Return the comma-separated parts of a str variable, looked up as attributes of obj if given."""
    parts = [part for part in str(self.value).split(",") if part]
    return parts if obj is None else [getattr(obj, part) for part in parts]

  # It pickles by name: each variable exists once, and a process has its own values.
  def __reduce__(self) -> Any: return _declared, (self.key,)
  def __copy__(self) -> ContextVar[Value]: return self
  def __deepcopy__(self, memo: Any) -> ContextVar[Value]: return self

  def __bool__(self) -> bool: return bool(self.value)
  def __int__(self) -> int: return int(self.value)
  def __index__(self) -> int: return int(self.value)
  def __str__(self) -> str: return str(self.value)
  def __repr__(self) -> str: return f"ContextVar({self.key}={self.value!r})"
  def __eq__(self, x: object) -> bool: return self is x or self.value == x
  def __hash__(self) -> int: return hash(self.key)
  def __lt__(self, x: Any) -> bool: return bool(self.value < x)
  def __le__(self, x: Any) -> bool: return bool(self.value <= x)
  def __gt__(self, x: Any) -> bool: return bool(self.value > x)
  def __ge__(self, x: Any) -> bool: return bool(self.value >= x)

_states = itertools.count(1)
# a number that is new when a Context has begun or ended here, or a variable was set inside of one
_state: contextvars.ContextVar[int] = contextvars.ContextVar("state", default=0)

def of_variables(compute: Callable[[], A]) -> Callable[[], A]:
  """Decorate a function of variables alone. It is computed again only after a variable was set, or a Context has begun
  or ended, for this thread or task.
  """
  kept: tuple[Any, Any] = (None, None)
  @functools.wraps(compute)
  def found() -> A:
    nonlocal kept
    state = _state.get(), ContextVar._outer_state
    last, result = kept
    if last != state:
      result = compute()
      kept = state, result
    return result  # type: ignore[no-any-return]  # of `compute`
  return found

class _Noted(ContextVar):  # type: ignore[type-arg]  # Generic is for type checkers only
  """The class of a variable while some thread observes its own use of it."""
  @property
  def value(self) -> Any:
    FirstUse.note(self, "read")
    return self._override.get(self._base)

  @value.setter
  def value(self, value: Any) -> None:
    FirstUse.note(self, "set")
    ContextVar.value.fset(self, value)  # type: ignore[attr-defined]  # a property

def _declared(key: str) -> ContextVar[Any]:
  """Return the variable of this name, for pickle. Raises ConfigError for an undeclared name."""
  found = ContextVar._cache.get(key)
  if found is None:
    raise ConfigError(f"no variable is named {key}; import the module that declares it before it is unpickled")
  return found

class FirstUse:
  """`with FirstUse(variable) as use:` observes this thread. `use.first` is its first use of the variable inside:
  "read", "set", or None."""
  _lock = kept_in_forks(threading.RLock())
  _looking: tuple[FirstUse, ...] = ()

  def __init__(self, variable: ContextVar[Any]) -> None:
    self.variable, self.thread = variable, threading.get_ident()
    self.first: str | None = None

  @staticmethod
  def note(variable: ContextVar[Any], how: str) -> None:
    """Record that this thread reads the variable, or sets it."""
    for use in FirstUse._looking:
      if use.variable is variable and use.thread == threading.get_ident(): use.first = use.first or how

  def __enter__(self) -> FirstUse:
    with FirstUse._lock:
      # A thread observes one variable at a time, so an entry here is left from an interrupt.
      FirstUse._looking = *[use for use in FirstUse._looking if use.thread != self.thread], self
      self.variable.__class__ = _Noted
    return self

  def __exit__(self, *_: object) -> None:
    with FirstUse._lock:
      FirstUse._looking = tuple([use for use in FirstUse._looking if use is not self])
      if not any(use.variable is self.variable for use in FirstUse._looking): self.variable.__class__ = ContextVar

class Wrapper:
  """A context manager that can also decorate a function.

  Each call of the function enters `fresh()`, so calls may nest and run in threads.
  """
  def fresh(self) -> Wrapper: return self
  def __enter__(self) -> Any: return self
  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    pass

  def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
      with self.fresh(): return function(*args, **kwargs)
    return wrapped

# The changes that each Context on this thread's stack has to undo, innermost first: (reset, rest). A linked list:
# copies of a context share its tail.
_undo: contextvars.ContextVar[Any] = contextvars.ContextVar("undo", default=None)

class Context(Wrapper):
  """`with Context(DEBUG=2, BEAM=4):`, or a decorator: the variables have these values inside, and the old ones
  afterwards."""
  def __init__(self, **kwargs: Any) -> None:
    unknown = [key for key in kwargs if key not in ContextVar._cache]
    if unknown and not PEERS.isdisjoint(unknown):
      say_ignored([key for key in unknown if key in PEERS])
      kwargs = {key: value for key, value in kwargs.items() if key not in PEERS}
      unknown = [key for key in unknown if key not in PEERS]
    if unknown:
      raise ConfigError(f"no variable is named {', '.join(unknown)}; the known ones are "
                        f"{', '.join(sorted(ContextVar._cache))}")
    self.kwargs = {key: ContextVar._cache[key]._checked(value) for key, value in kwargs.items()}

  def __enter__(self) -> None:
    for key in self.kwargs: ContextVar._cache[key].was_set = True
    tokens = [(ContextVar._cache[key]._override, ContextVar._cache[key]._override.set(value))
              for key, value in self.kwargs.items()]
    _undo.set((tokens, _undo.get()))
    _state.set(next(_states))

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    found = _undo.get()
    if found is None: return  # entered in another asyncio task: no override in this one
    tokens, rest = found
    _undo.set(rest)
    for override, token in tokens: override.reset(token)
    _state.set(next(_states))

# tinygrad's variables that choose how it compiles. They are accepted, and mean nothing here.
PEERS = frozenset("""WINO FUSE_OPTIM FUSE_ARANGE FUSE_CONV_BW FUSE_ATTENTION IMAGE FLOAT16 CUDA_PATH RANGEIFY PCONTIG
  LRU GRAPH USE_TC TC TC_SELECT TC_OPT NOLOCALS AMX CPU_LLVM PTX SPLIT_REDUCEOP RING ALL2ALL JITBEAM JIT_BATCH_SIZE
  TRANSCENDENTAL DEVECTORIZE""".split())
_said: set[str] = set()

def say_ignored(keys: list[str]) -> None:
  """Say once, at DEBUG>=1, that these variables mean nothing here."""
  new = [key for key in keys if key not in _said]
  _said.update(new)
  if new and DEBUG >= 1: sys.stderr.write(f"{', '.join(new)}: a choice of tinygrad's compiler; it means nothing here\n")

def documentation() -> list[tuple[str, int | str, int | str, str]]:
  """Return (key, value, default, meaning) of every declared variable, in order of declaration."""
  return [(v.key, v.value, v.default, v.__doc__ or "") for v in ContextVar._cache.values()]

# **** the variables ****

DEBUG = ContextVar("DEBUG", 0, "1 devices and why others were refused; 2 a line per kernel; 3 optimisations; 4 "
                   "the Program as pseudo-code; 5 the optimised kernel; 6 the Program "
                   "as text; 7 annotated machine code")
DEV = ContextVar("DEV", "", "the default device: AMD, NV, METAL, OPENCL, WEBGPU, CPU, CLANG or PYTHON; empty: the one "
                 "that EMULATE names, else the best of the last three that opens")
PLUGINS = ContextVar("PLUGINS", "", "modules with devices of their own, separated by commas; imported when a device "
                     "is named that is not known")

# what is computed
DEFAULT_FLOAT = ContextVar("DEFAULT_FLOAT", "float32", "dtype of Tensor(1.5), rand, zeros and ones")
DEFAULT_INT = ContextVar("DEFAULT_INT", "int32", "dtype of Tensor(1), arange and indices")
TRAINING = ContextVar("TRAINING", 0, "1: dropout drops and batchnorm learns its statistics, as Tensor.train() does")
SEED = ContextVar("SEED", -1, "seed of Tensor.rand and its relatives; -1: another one in each process")

ALLOW_TF32 = ContextVar("ALLOW_TF32", 0, "1: operands of float32 products may be rounded to 10 bits of mantissa, for "
                        "NVIDIA's matrix units "
                        "(docs/numerics.md, section 6)")
ALLOW_FP8_SUMS = ContextVar("ALLOW_FP8_SUMS", 0, "1: sums of products of fp8 may keep 13 bits of mantissa, those of "
                            "sm_89's and sm_90's matrix units "
                            "for fp8 (docs/numerics.md, section 6)")

# how it is compiled
JIT = ContextVar("JIT", 1, "0: TinyJit runs its function each time; 1: it captures and replays; 2: it replays kernel "
                 "by kernel")
BEAM = ContextVar("BEAM", 0, "n > 0: time candidates for each kernel, keep the best n in each round")
IGNORE_BEAM_CACHE = ContextVar("IGNORE_BEAM_CACHE", 0, "1: search again even if an earlier search stored its winner")
NOOPT = ContextVar("NOOPT", 0, "1: kernels as they come, without optimisations")
NV_BASES = ContextVar("NV_BASES", 1, "0: on NVIDIA's GPUs each lane has addresses of 64 bits, not 32-bit offsets from "
                      "a base, should a card fail the self-test's step `bases`")
PARALLEL = ContextVar("PARALLEL", -1, "processes that compile the kernels of a schedule together (on Linux); -1: one "
                      "per core that this process may use; 0 or 1: the program's own alone", least=-1)
THREADS = ContextVar("THREADS", 0, "worker threads of the CPU device; 0: one per core that this process may use")
ARCH = ContextVar("ARCH", "", "the architecture for which the CPU device compiles, e.g. x86_64:avx2 on a processor "
                  "with AVX-512; empty: the best one")
CC = ContextVar("CC", "", "C compiler of the CLANG device; empty: clang, gcc or cc, the first found")
EMULATE = ContextVar("EMULATE", "", "virtual GPUs in place of this computer's, for their drivers: gfx1100, gfx1200, "
                     "gfx1201, gfx942, gfx950, sm_80, sm_89, sm_90, apple7, apple8 or apple9; gfx1100x2: two of "
                     "them. The first is the default device of a program that is started with it, unless DEV names "
                     "another one")
EMULATE_SEED = ContextVar("EMULATE_SEED", 0, "the seed of all that is random in a virtual GPU: orders, garbage, delays",
                          least=0)
EMULATE_TRANSLATE = ContextVar("EMULATE_TRANSLATE", 1, "0: virtual GPUs execute all instructions in Python, none as "
                               "translated code of the host")
EMULATE_STRICT = ContextVar("EMULATE_STRICT", 1, "0: virtual GPUs do not look for errors that show only now and "
                            "then on real ones (stale caches, memory that "
                            "nothing has written), and are faster; 2: also for instructions whose results nothing "
                            "reads", least=0, most=2)
CUDA_VISIBLE_DEVICES = ContextVar("CUDA_VISIBLE_DEVICES", "all", "the GPUs that NV uses (NV:CUDA, too, by its "
                                  "library), separated by commas: numbers "
                                  "of nvidia-smi, or how UUIDs begin; the first word that is neither (-1) ends it. "
                                  "Set and empty: none; virtual ones "
                                  "are always all there", empty=True)
OPENCL_DEVICES = ContextVar("OPENCL_DEVICES", "", "the devices of OPENCL, separated by commas: parts of the names of "
                            "devices or platforms, as doctor --device OPENCL prints them; empty: all")
OPENCL_LANES = ContextVar("OPENCL_LANES", 0, "1: kernels for processors of OPENCL have lanes of workgroups, as "
                          "those for GPUs; 0: they have vectors")
WEBGPU_LIBRARY = ContextVar("WEBGPU_LIBRARY", "", "the file of wgpu-native's library, for WEBGPU; empty: that of the "
                            "Python package wgpu, or the system's")
WEBGPU_DEVICES = ContextVar("WEBGPU_DEVICES", "", "the devices of WEBGPU, separated by commas: parts of the names of "
                            "adapters, as doctor --device WEBGPU prints them; empty: all")
HCQDEV_WAIT_TIMEOUT_MS = ContextVar("HCQDEV_WAIT_TIMEOUT_MS", 30000, "milliseconds that a GPU may take for one "
                                    "submission; then it is given up, and "
                                    "the known reasons are told. Virtual ones (EMULATE) have 20 times as long",
                                    least=1)
NULL_ARCH = ContextVar("NULL_ARCH", "python", "the architecture that the NULL device compiles for, without running "
                       "anything")

# how it is checked and seen
SPEC = ContextVar("SPEC", 0, "1: verify each node of kernels, after passes too, and of Programs; 2: also shapes, "
                  "closed ranges, and that every index is in bounds")
CHECK = ContextVar("CHECK", 0, "1: re-run allocated machine code symbolically and compare")
DUMP = ContextVar("DUMP", "", "pass:kernel: print that kernel after that pass, e.g. allocate:r_64_64")
TRACEMETA = ContextVar("TRACEMETA", 1, "0: do not remember which source line made an operation")
VIZ = ContextVar("VIZ", 0, "1: record graphs, schedules, every pass of the compiler and the timeline of launches, and "
                 "show them on a local page when "
                 "the program ends (docs/guide/viz.md); above 1: at that port")
VIZ_FILE = ContextVar("VIZ_FILE", "", "where VIZ=1 writes its recording; it is not shown then. Empty: a file in "
                      "CACHEDIR/viz")
PROFILE = ContextVar("PROFILE", 0, "1: write a trace of launches, copies, memory, the compiler's phases and markers, "
                     "for Perfetto (docs/guide/viz.md)")
PROFILE_FILE = ContextVar("PROFILE_FILE", "", "where PROFILE=1 writes its trace; empty: a file in CACHEDIR/profile")

# where files are
CACHELEVEL = ContextVar("CACHELEVEL", 2, "the older name of CACHE, read when tinyhw is imported: 0 is CACHE=0, other "
                        "numbers change nothing")
CACHE = ContextVar("CACHE", 1 if CACHELEVEL else 0, "0: neither read nor write compiled kernels and search results on "
                   "disk")
CACHEDIR = ContextVar("CACHEDIR", "", "folder of kernels, search results and downloads; empty: tinyhw in the user's "
                      "cache folder")
CACHE_LIMIT = ContextVar("CACHE_LIMIT", "", "the most that kernels, search results and results of @diskcache take "
                         "there together, and that "
                         "recordings take: 500M, 2G, none; empty: the limit that `python3 -m tinyhw cache limit` "
                         "has set, else 1G (docs/guide/caches.md)",
                         parse=parse_size)
DISABLE_HTTP_CACHE = ContextVar("DISABLE_HTTP_CACHE", 0, "1: download again even if the file is in CACHEDIR")
DATASETS = ContextVar("DATASETS", "", "a folder that has the files of mnist() and cifar(), instead of a download")
READ_LIMIT = ContextVar("READ_LIMIT", 0, "bytes of memory that reading one file may make; 0: 64 MB, and 20 for each "
                        "byte of the file (SECURITY.md)",
                        least=0)

say_ignored([key for key in sorted(PEERS) if os.environ.get(key)])
