"""From a kernel's expression to something a device can launch: optimise, lower, select or render, load. Each result is kept.

In memory a runner is found by device and expression (expressions are interned, so this is one dict look-up). On disk `Code` is found by the
digest of the expression, the target and the compiler's own files; a damaged or unreadable entry is a miss.
"""
from __future__ import annotations
import importlib
import os
from typing import Any, NamedTuple

from tinyhw.config import BEAM, CACHE, DEBUG, NOOPT, SPEC
from tinyhw.device import Device
from tinyhw.helpers import disable_gc
from tinyhw.machine.code import Code
from tinyhw.storage import diskcache_get, diskcache_put
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp, sint

SMALL_OPERATIONS, SMALL_BYTES = 1 << 17, 1 << 16

class Runner(NamedTuple):
  """A loaded kernel. slots: which of the kernel's buffers it takes, in argument order; written: positions among them that it stores to.

  variables: names, in argument order, after the buffers. grid, operations and bytes_moved may be expressions of the variables.
  """
  program: Any
  name: str
  slots: tuple[int, ...]
  written: tuple[int, ...]
  variables: tuple[str, ...]
  grid: sint
  operations: sint
  bytes_moved: sint
  device: str

  @property
  def small(self) -> bool:
    """Is this a few microseconds of work? Then it is not worth sharing among workers."""
    return isinstance(self.operations, int) and isinstance(self.bytes_moved, int) and self.operations < SMALL_OPERATIONS and self.bytes_moved < SMALL_BYTES

class Compiled(NamedTuple):
  """What the disk cache keeps of a kernel."""
  code: Code
  slots: tuple[int, ...]
  written: tuple[int, ...]
  variables: tuple[str, ...]
  grid: sint
  operations: sint
  bytes_moved: sint

_runners: dict[tuple[str, UOp, int], Runner] = {}
_version: str | None = None

def kernel_name(sink: UOp) -> str:
  """A name from what a kernel does: r or E (it reduces, or not), then the sizes of its loops; `s` marks the stores beyond the first."""
  loops = sorted((u for u in sink.toposort() if u.op is Ops.RANGE), key=lambda r: r.arg)
  sizes = [str(r.src[0].arg) if r.src[0].op is Ops.CONST else "n" for r in loops]
  kind = "r" if any(r.arg[1] in (AxisType.REDUCE, AxisType.UNROLL, AxisType.GROUP_REDUCE) for r in loops) else "E"
  return "_".join([kind + ("" if len(sink.src) == 1 else str(len(sink.src)))] + sizes)

def backend(arch: str) -> Any:
  """The module that turns Programs into Code for an architecture: `capabilities(arch)` and `compile(program, arch) -> Code`."""
  from tinyhw.engine.backends import BACKENDS
  return importlib.import_module(BACKENDS[arch.partition(":")[0]])

def compiler_version() -> str:
  """A digest of the compiler's files (names, sizes, times): code on disk is used only by the compiler that made it."""
  global _version
  if _version is None:
    import hashlib
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    digest = hashlib.blake2b(digest_size=12)
    for folder in ("uop", "codegen", os.path.join("codegen", "render"), "machine", "isa", os.path.join("isa", "x86")):
      for entry in sorted(os.scandir(os.path.join(root, folder)), key=lambda e: e.name):
        if entry.name.endswith(".py"): digest.update(f"{entry.name} {entry.stat().st_size} {entry.stat().st_mtime_ns}".encode())
    _version = digest.hexdigest()
  return _version

def compile_kernel(sink: UOp, arch: str) -> Compiled:
  """The kernel as Code for an architecture. The disk cache is asked first unless something is to be shown."""
  key = None
  if CACHE and DEBUG < 3 and not SPEC:
    key = f"{sink.key.hex()} {arch} {compiler_version()} {int(NOOPT)} {int(BEAM)}"
    found = diskcache_get("code", key)
    if isinstance(found, Compiled): return found
  with disable_gc(): made = _compile(sink, arch)
  if key is not None: diskcache_put("code", key, made)
  return made

def _compile(sink: UOp, arch: str) -> Compiled:
  from tinyhw.codegen.optimize import optimize
  from tinyhw.codegen.passes import lower
  from tinyhw.uop.verify import verify
  module = backend(arch)
  capabilities = module.capabilities(arch)
  if SPEC: verify(sink, int(SPEC))
  program = lower(optimize(sink, capabilities), capabilities, kernel_name(sink))
  if SPEC: verify(program, int(SPEC))
  if DEBUG >= 4:
    from tinyhw.engine.show import show_program
    show_program(program)
  code = module.compile(program, arch)
  slots = tuple(p.arg[0] for p in program.params)
  written = tuple(slots.index(slot) for slot in sorted(program.written))
  return Compiled(code, slots, written, tuple(v.arg[0] for v in program.variables), program.grid, program.operations, program.bytes_moved)

def runner(device: str, sink: UOp) -> Runner:
  """The loaded kernel for a device."""
  key = (device, sink, int(NOOPT) + 2 * int(BEAM))
  found = _runners.get(key)
  if found is None:
    opened = Device[device]
    made = compile_kernel(sink, opened.arch)
    found = _runners[key] = Runner(opened.load(made.code), made.code.name, *made[1:], device)
  return found
