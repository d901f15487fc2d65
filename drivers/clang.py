"""The CLANG device: kernels as C source, compiled by an installed compiler into shared objects, run by the CPU's worker threads.

Optional. It serves processors that this repository has no assembler for, and as an oracle in tests.
"""
from __future__ import annotations
import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

from tinyhw.config import CC
from tinyhw.drivers.cpu import processor
from tinyhw.drivers.cpu.launch import HostDevice, Program
from tinyhw.drivers.cpu.loop import CompiledLoop, MachineLoop, loop_source
from tinyhw.drivers.cpu.processor import Processor
from tinyhw.drivers.cpu.workers import Loop
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.code import Code

COMPILERS = ("clang", "gcc", "cc")
FLAGS = ("-x", "c", "-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fPIC", "-shared", "-w")
SHOWN_LINES = 12  # of what a compiler says

def find_compiler() -> tuple[str, ...]:
  """The command of the C compiler: CC, or the first that is on PATH. Raises DeviceError that says what to install."""
  if CC.value:
    command = shlex.split(CC.value)
    if shutil.which(command[0]) is None: raise DeviceError(f"CC={CC.value}: {command[0]} is not on PATH; name an installed compiler, or unset CC")
    return tuple(command)
  for name in COMPILERS:
    found = shutil.which(name)
    if found: return (found,)
  raise DeviceError(f"none of {', '.join(COMPILERS)} is on PATH; install a C compiler (Debian: apt install clang; macOS: xcode-select --install), or "
                    "name one in CC")

@functools.lru_cache(None)
def compile_source(command: tuple[str, ...], name: str, source: bytes) -> ctypes.CDLL:
  """The source as a loaded shared object, for the life of the process. Raises CompileError with what the compiler said."""
  with tempfile.TemporaryDirectory(prefix="tinyhw-") as folder:
    path = os.path.join(folder, "kernel.so")
    for flags in (FLAGS, tuple(f for f in FLAGS if f != "-march=native")):  # some compilers do not know the machine they run on
      try: done = subprocess.run([*command, *flags, "-o", path, "-"], input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
      except OSError as error: raise DriverError(f"starting {command[0]}: {error.strerror}; name a working compiler in CC") from error
      if done.returncode == 0: break
    else:
      said = done.stdout.decode(errors="replace").splitlines()[:SHOWN_LINES]
      raise CompileError(f"{' '.join(command)} failed on kernel {name} (exit status {done.returncode}):\n" + "\n".join(said))
    try: return ctypes.CDLL(path)
    except OSError as error: raise DriverError(f"loading {path}: {error}; if the folder is mounted noexec, set TMPDIR to one that is not") from error

def compile_loop(command: tuple[str, ...]) -> CompiledLoop:
  """The worker loop in C."""
  return CompiledLoop(address_of(compile_source(command, "ring", loop_source().encode()), "ring"))

def address_of(library: ctypes.CDLL, name: str) -> int:
  """Where a function is. Raises CompileError if there is none of that name."""
  try: return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
  except AttributeError: raise CompileError(f"the C source has no function {name}; a kernel's function is named as its Code") from None

class ClangDevice(HostDevice):
  """Compiles each source once in a process, also if the device is opened again. processor: what it runs on, where that is known."""
  def __init__(self, name: str, command: tuple[str, ...], loop: Loop, threads: int | None = None, processor: Processor | None = None):
    self.command, self.processor = command, processor
    super().__init__(name, "c", loop, threads)

  def place(self, code: Code) -> Program:
    """Compile and load. Raises DeviceError for Code that is no C source, CompileError for source that the compiler refuses."""
    if code.arch != "c": raise DeviceError(f"{self.name} takes C source, and {code.name} is code for {code.arch}; compile it for arch c")
    return Program(code, address_of(compile_source(self.command, code.name, code.text), code.name))

  def facts(self) -> dict[str, Any]:
    facts = {"arch": self.arch, "compiler": " ".join(self.command), "threads": self.ring.threads}
    return facts if self.processor is None else {**facts, "cache_bytes": self.processor.cache_bytes, "local_bytes": self.processor.local_bytes}

def open(ordinal: int, runtime: Callable[[str], Code]) -> ClangDevice:
  """Open the device. Raises DeviceError where there is no C compiler."""
  command = find_compiler()
  loop: Loop
  try: loop, found = MachineLoop(runtime), processor(runtime)
  except DeviceError: loop, found = compile_loop(command), None  # no assembler for this processor
  return ClangDevice(f"CLANG:{ordinal}" if ordinal else "CLANG", command, loop, processor=found)
