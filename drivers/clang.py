"""The CLANG device: kernels as C source, compiled by an installed compiler into shared objects, run by the CPU's worker
threads.

Optional. It serves processors without an assembler in this repository, and is an oracle in tests. Kernels that are
loaded together are compiled together: most of the compile time of one kernel is the start of the compiler and of the
linker.
"""
from __future__ import annotations
import contextlib
import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyhw.config import CC
from tinyhw.drivers.cpu import machine_loop, processor, visible_code
from tinyhw.drivers.cpu.launch import HostDevice, HostProgram
from tinyhw.drivers.cpu.loop import CompiledLoop, loop_source
from tinyhw.drivers.cpu.processor import Processor
from tinyhw.drivers.cpu.workers import WorkerLoop, available_threads
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

COMPILERS = ("clang", "gcc", "cc")
# Vectors are in the source already. gcc 12 vectorizes a choice between two of them wrongly for AVX-512: it takes one
# lane of the chosen one.
FLAGS = ("-x", "c", "-O2", "-fno-tree-vectorize", "-march=native", "-ffp-contract=off", "-fno-math-errno",
         "-fno-strict-aliasing", "-fPIC", "-shared", "-w")
SHOWN_LINES = 12  # of the compiler's messages
RUN_BYTES = 1 << 15  # source of this length takes longer to compile than another compiler takes to start

def find_compiler() -> tuple[str, ...]:
  """Return the command of the C compiler: CC, or the first on PATH. Raises DeviceError, with advice."""
  if CC.value:
    command = shlex.split(CC.value)
    if shutil.which(command[0]) is None:
      raise DeviceError(f"CC={CC.value}: {command[0]} is not on PATH; name an installed compiler, or unset CC")
    return tuple(command)
  for name in COMPILERS:
    found = shutil.which(name)
    if found: return (found,)
  raise DeviceError(f"none of {', '.join(COMPILERS)} is on PATH; install a C compiler (Debian: apt install clang; "
                    f"macOS: xcode-select --install), or "
                    "name one in CC")

class CSource(NamedTuple):
  """C source with a function. Sources of codegen/render/c.py may be concatenated to one text."""
  name: str
  text: bytes

# of compiled functions, by compiler; they stay loaded until the process ends
_addresses: dict[tuple[tuple[str, ...], CSource], int] = {}

def addresses(command: tuple[str, ...], sources: Sequence[CSource]) -> list[int]:
  """Return the addresses of the functions of sources. Compile the missing ones with a few parallel runs of the
  compiler.

  Starting a compiler takes as long as compiling ten kernels. Raises CompileError, which has the name of the kernel and
  the compiler's messages.
  """
  missing = [source for source in dict.fromkeys(sources) if (command, source) not in _addresses]
  groups = shared_out(missing)
  for group, built in zip(groups, build(command, [joined(group) for group in groups])):
    if isinstance(built, ctypes.CDLL):
      for source, name in zip(group, names_in(group)):
        _addresses[command, source] = address_of(built, name, source.name)
    elif len(group) > 1:
      # one by one, to find the kernel at fault and to load the others
      for source in group: addresses(command, [source])
    else: raise CompileError(f"{' '.join(command)} failed on kernel {group[0].name} {built}")
  return [_addresses[command, source] for source in sources]

def shared_out(sources: Sequence[CSource]) -> list[list[CSource]]:
  """Split the sources into groups of about the same length, one for each run of the compiler.

  The count of groups is bounded by the count of processors, and each group has enough work for a run.
  """
  length = sum(len(source.text) for source in sources)
  groups: list[list[CSource]] = [[] for _ in range(min(len(sources), available_threads(), 1 + length // RUN_BYTES))]
  lengths = [0] * len(groups)
  for source in sorted(sources, key=lambda source: len(source.text), reverse=True):
    least = lengths.index(min(lengths))
    groups[least].append(source)
    lengths[least] += len(source.text)
  return groups

def names_in(group: Sequence[CSource]) -> list[str]:
  """Return the names of the sources' functions in their common text. Kernels of one schedule may have the same name."""
  return [group[0].name] if len(group) == 1 else [f"{source.name}_{k}" for k, source in enumerate(group)]

def joined(group: Sequence[CSource]) -> bytes:
  """Join sources to one text, in which their functions have the names of `names_in`."""
  if len(group) == 1: return group[0].text
  return b"".join(b"#define %b %b\n%b\n#undef %b\n" % (source.name.encode(), name.encode(), source.text,
                                                       source.name.encode())
                  for source, name in zip(group, names_in(group)))

@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
  """Open a temporary folder.

  An interrupt during its removal stays an interrupt. shutil would turn it into an OSError, because it closes a file
  twice.
  """
  folder = tempfile.mkdtemp(prefix="tinyhw-")
  try: yield folder
  finally:
    try: shutil.rmtree(folder)
    except OSError as error:
      if isinstance(error.__context__, KeyboardInterrupt): raise error.__context__ from None

def build(command: tuple[str, ...], texts: Sequence[bytes]) -> list[ctypes.CDLL | str]:
  """Compile each text to a shared object. An element is the exit status and the messages of the compiler if it failed.

  Compilers run in parallel, one for each text.
  """
  with scratch_folder() as folder:
    found = run_compilers(command, FLAGS, texts, folder)
    if any(isinstance(built, str) for built in found):  # some compilers do not know the machine they run on
      again = run_compilers(command, tuple(flag for flag in FLAGS if flag != "-march=native"), texts, folder)
      found = [second if isinstance(first, str) else first for first, second in zip(found, again)]
  return found

def run_compilers(command: tuple[str, ...], flags: tuple[str, ...], texts: Sequence[bytes],
                  folder: str) -> list[ctypes.CDLL | str]:
  """Do the work of `build` with these flags.

  Raises DriverError if the compiler does not start, or if nothing can be loaded from the folder.
  """
  # the loader identifies a library by its path, so no path is used twice
  paths = [os.path.join(folder, f"{len(flags)}.{k}.so") for k in range(len(texts))]
  runs: list[subprocess.Popen[bytes]] = []
  try:
    for path, text in zip(paths, texts):
      with tempfile.TemporaryFile(dir=folder) as file:
        file.write(text)
        file.seek(0)
        runs.append(subprocess.Popen([*command, *flags, "-o", path, "-"], stdin=file, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT))
    said = [run.communicate()[0].decode(errors="replace").splitlines()[:SHOWN_LINES] for run in runs]
  except OSError as error:
    raise DriverError(f"starting {command[0]}: {error.strerror}; name a working compiler in CC") from error
  finally:
    for run in runs:  # after an interrupt they still run
      if run.poll() is None: run.kill()
      run.__exit__(None, None, None)
  return [load_library(path) if run.returncode == 0 else "\n".join([f"(exit status {run.returncode}):", *lines])
          for path, run, lines in zip(paths, runs, said)]

def load_library(path: str) -> ctypes.CDLL:
  try: return ctypes.CDLL(path)
  except OSError as error:
    raise DriverError(
      f"loading {path}: {error}; if the folder is mounted noexec, set TMPDIR to one that is not") from error

def compile_loop(command: tuple[str, ...]) -> CompiledLoop:
  """Compile the worker loop in C."""
  return CompiledLoop(addresses(command, [CSource("ring", loop_source().encode())])[0])

def address_of(library: ctypes.CDLL, name: str, shown: str) -> int:
  """Return the address of a function. Raises CompileError if there is none; `shown` is its name in the source."""
  try: return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
  except AttributeError:
    raise CompileError(f"the C source has no function {shown}; a kernel's function is named as its Code") from None

class ClangDevice(HostDevice):
  """Compile each source once in a process, also if the device is opened again. processor: the CPU, if it is known."""
  def __init__(self, name: str, command: tuple[str, ...], loop: WorkerLoop, threads: int | None = None,
               processor: Processor | None = None):
    self.command, self.processor = command, processor
    super().__init__(name, "c", loop, threads)

  def place(self, code: Code) -> HostProgram:
    """Compile and load.

    Raises DeviceError for Code that is no C source, CompileError for source that the compiler refuses.
    """
    if code.arch != "c":
      raise DeviceError(f"{self.name} takes C source, and {code.name} is code for {code.arch}; compile it for arch c")
    return HostProgram(code, addresses(self.command, [CSource(code.name, code.text)])[0])

  def load_all(self, codes: Sequence[Code]) -> list[HostProgram]:
    """Load several kernels with few runs of the compiler. A later `load` reports refused Code."""
    addresses(self.command, [CSource(code.name, code.text) for code in codes if code.arch == "c"])
    return super().load_all(codes)

  def facts(self) -> dict[str, Any]:
    facts = {"arch": self.arch, "compiler": " ".join(self.command), "threads": self.ring.threads}
    return facts if self.processor is None else {**facts, "cache_bytes": self.processor.cache_bytes,
                                                 "local_bytes": self.processor.local_bytes}

def open(ordinal: int, runtime: Callable[[str], Code]) -> ClangDevice:
  """Open the device. Raises DeviceError if there is no C compiler."""
  command = find_compiler()
  loop: WorkerLoop
  try: loop, found = machine_loop(runtime, visible_code(runtime)), processor(runtime)
  except DeviceError: loop, found = compile_loop(command), None  # no assembler for this processor
  return ClangDevice(f"CLANG:{ordinal}" if ordinal else "CLANG", command, loop, processor=found)
