"""Compile and load kernels: optimise an expression, lower it, select or render, load. Each result is kept.

Each open device keeps its runners by expression. Expressions are interned, so finding one is a dict look-up. The disk
cache keeps `Code` by the digest of the expression, the target and the compiler's own files (version.py). An entry that
is damaged, or has another key, is a miss.
"""
from __future__ import annotations
import importlib
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw import trace
from tinyhw.config import (
  ALLOW_FP8_SUMS, ALLOW_TF32, BEAM, CACHE, CHECK, DEBUG, DUMP, NOOPT, NV_BASES, SPEC, VIZ, of_variables)
from tinyhw.data_class import replace
from tinyhw.device import Device, on_disk
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory.disk import refusal
from tinyhw.errors import DeviceError
from tinyhw.files.storage import diskcache_get, diskcache_put
from tinyhw.helpers import keep_objects, uncollected
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp, sint
if TYPE_CHECKING: from tinyhw.machine.ir.target import Capabilities

MOST_KERNELS = 4096      # loaded kernels that a device keeps: 60 MB at 14 KB each
SMALL_OPERATIONS, SMALL_BYTES = 1 << 17, 1 << 16
FEWEST_IN_PROCESSES = 6  # kernels of a schedule; fewer are compiled one after the other
ALLOWED = (ALLOW_TF32, ALLOW_FP8_SUMS) # variables that allow units of `Capabilities.less_exact`
# Fields of Capabilities that a device knows of its machine, if it can.
MEASURED = ("threads", "cache_bytes", "local_bytes", "vector_rate", "second_level_rate")

class Runner(NamedTuple):
  """A loaded kernel. grid, operations and bytes_moved may be expressions of the variables.

  slots: the kernel's buffers that it takes, in argument order. written: positions among them that it stores to.
  variables: in argument order, after the buffers: names, and expressions that the host computes (host_numbers.py).
  """
  program: Any
  name: str
  slots: tuple[int, ...]
  written: tuple[int, ...]
  variables: tuple[str | UOp, ...]
  grid: sint
  operations: sint
  bytes_moved: sint
  device: str

  @property
  def small(self) -> bool:
    """Does it take a few microseconds at most? Then sharing it among workers does not pay."""
    if isinstance(self.operations, UOp) or isinstance(self.bytes_moved, UOp): return False
    return self.operations < SMALL_OPERATIONS and self.bytes_moved < SMALL_BYTES

class CachedKernel(NamedTuple):
  """An entry of the disk cache for a kernel."""
  code: Code
  slots: tuple[int, ...]
  written: tuple[int, ...]
  variables: tuple[str | UOp, ...]
  grid: sint
  operations: sint
  bytes_moved: sint

_loaded_for: set[str] = set()  # architectures that kernels were compiled for

def kernel_name(sink: UOp) -> str:
  """Return the kernel's own name, or one made of its contents.

  That is r or E (with or without a reduction), the number of its stores beyond one, and the sizes of its loops.
  """
  if isinstance(sink.arg, KernelInfo) and sink.arg.name: return sink.arg.name
  loops = sorted((u for u in sink.toposort() if u.op is Ops.RANGE), key=lambda r: r.arg)
  sizes = [str(r.src[0].arg) if r.src[0].op is Ops.CONST else "n" for r in loops]
  kind = "r" if any(r.arg[1] in (AxisType.REDUCE, AxisType.UNROLL) for r in loops) else "E"
  return "_".join([kind + ("" if len(sink.src) == 1 else str(len(sink.src)))] + sizes)

def value_of(x: sint, variables: dict[str, int]) -> int:
  """Return a size or count for given values of the variables."""
  if isinstance(x, int): return x
  replaced = x.substitute({v: v.const_like(variables[v.arg[0]]) for v in x.variables()}).simplify()
  return int(replaced.arg)

def values_of(wanted: Iterable[str | UOp], variables: dict[str, int]) -> list[int]:
  """Return the numbers that a Runner takes after its buffers. Raises KeyError for a Variable without a value."""
  return [variables[x] if isinstance(x, str) else value_of(x, variables) for x in wanted]

def backend(arch: str) -> Any:
  """Return the module that compiles Programs to Code for an architecture. Raises DeviceError.

  It has `capabilities(arch)` and `compile(program, arch) -> Code`.
  """
  from tinyhw.engine.run.backends import BACKENDS  # hidden: importing tinyhw loads no ISA, nor their list
  kind = arch.partition(":")[0]
  if kind not in BACKENDS:
    raise DeviceError(f"nothing compiles for the architecture {arch!r}; there are {', '.join(BACKENDS)} (the NULL "
                      f"device's is set by NULL_ARCH)")
  return importlib.import_module(BACKENDS[kind])

def disk_key(sink: UOp, arch: str, device: str) -> str | None:
  """Return the key of a disk cache entry: the kernel's digest, and all else that affects its Code. None if nothing is
  kept."""
  if not CACHE: return None
  from tinyhw.engine.run.version import compiler_version  # hidden: only the disk cache needs a version
  version = compiler_version(backend(arch))
  return f"{sink.key.hex()} {arch} {version} {measured(device)} {mode()}" if version else None

def measured(device: str) -> dict[str, Any]:
  """Return the properties that the device measured on this machine, on which code depends besides its architecture.

  Empty for the name of no device.
  """
  facts = Device[device].facts() if device else {}
  return {name: facts[name] for name in MEASURED if facts.get(name)}

def capabilities_of(arch: str, device: str) -> Capabilities:
  """Return the Capabilities that codegen uses for an architecture, on the machine of a device."""
  assumed: Capabilities = backend(arch).capabilities(arch)
  facts = measured(device)
  if assumed.card is not None and "threads" in facts:    # the card at hand has more or fewer units than the typical one
    units = max(round(assumed.card.units * facts["threads"] / assumed.threads), 1)
    facts["card"] = assumed.card._replace(units=units)
  return replace(assumed.allowing([variable.key for variable in ALLOWED if variable]), **facts)

def has_float64(capabilities: Capabilities) -> bool: return (Ops.MUL, dtypes.float64) in capabilities.operations

def attention_types(arch: str) -> frozenset[DType]:
  """Return the types of operands with which an attention is one kernel of an architecture's lanes."""
  capabilities = backend(arch).capabilities(arch)
  if not capabilities.lanes or not capabilities.matrix: return frozenset()
  from tinyhw.codegen.attention.plan import types_of  # 1 ms to load, for GPUs
  return types_of(capabilities)

@of_variables
def mode() -> tuple[int, ...]:
  """Return the variables on which code depends, and whether code was verified; 0 or False by default."""
  return NOOPT.value, BEAM.value, not NV_BASES.value, bool(CHECK.value), *[variable.value for variable in ALLOWED]

def are_steps_wanted() -> bool:
  """Has the compiler to run here, one kernel after the other, since its steps are shown, checked or recorded?"""
  return DEBUG >= 3 or bool(SPEC or VIZ or DUMP)

def compile_kernel(sink: UOp, arch: str, device: str = "") -> CachedKernel:
  """Compile a kernel to Code for an architecture. The disk cache is asked first unless listings are wanted.

  device: the machine for which it compiles, and whose costs DEBUG=7 shows. Without one, the architecture's backend
  assumes a machine.
  """
  key = None if are_steps_wanted() else disk_key(sink, arch, device)
  if key is not None:
    found = diskcache_get("code", key)
    if isinstance(found, CachedKernel): return found
  made = uncollected(_compile, sink, arch, device, capabilities_of(arch, device))
  if arch not in _loaded_for: keep_objects()  # the backend's modules and tables
  _loaded_for.add(arch)
  if key is not None: diskcache_put("code", key, made)
  return made

def compile_kernels(sinks: Sequence[UOp], arch: str, device: str = "") -> list[CachedKernel]:
  """Compile kernels as `compile_kernel` does, on all cores where that pays."""
  made = _in_processes(sinks, arch, device) if len(sinks) >= FEWEST_IN_PROCESSES else {}
  return [made[sink] if sink in made else compile_kernel(sink, arch, device) for sink in sinks]

def _in_processes(sinks: Sequence[UOp], arch: str, device: str) -> dict[UOp, CachedKernel]:
  """Compile the kernels that the disk cache lacks in several processes. Return those that it has, too."""
  if are_steps_wanted() or trace.recorder is not None: return {}
  from tinyhw.engine.run import parallel  # hidden: for schedules of many new kernels
  if parallel.processes_for(len(sinks)) == 1: return {}
  keys = {sink: disk_key(sink, arch, device) for sink in sinks}
  found = {sink: kernel for sink, key in keys.items() if key is not None
           and isinstance(kernel := diskcache_get("code", key), CachedKernel)}
  missing = sorted([sink for sink in sinks if sink not in found], key=lambda sink: -len(sink.toposort()))
  if missing and arch not in _loaded_for:   # children then have the compiler's modules
    first = missing.pop()
    found[first] = compile_kernel(first, arch, device)
  processes = parallel.processes_for(len(missing))
  if processes == 1: return found
  capabilities = capabilities_of(arch, device)
  made = parallel.results(lambda k: uncollected(_compile, missing[k], arch, device, capabilities), len(missing),
                          processes)
  for k, kernel in made.items():
    found[missing[k]], key = kernel, keys[missing[k]]
    if key is not None: diskcache_put("code", key, kernel)
  return found

def _compile(sink: UOp, arch: str, device: str, capabilities: Capabilities) -> CachedKernel:
  from tinyhw.codegen.kernel.estimate import estimate  # hidden: codegen is loaded when something is compiled
  from tinyhw.codegen.optimize import optimize  # hidden: as above
  from tinyhw.codegen.passes import check_dump, lower  # hidden: as above
  if DEBUG >= 3 or VIZ: from tinyhw.engine.run import show  # hidden: only listings need it
  if SPEC: from tinyhw.uop.verify.verify import verify  # hidden: takes 0.6 ms and only SPEC uses it
  recorder = trace.recorder
  module = backend(arch)
  if SPEC: verify(sink, int(SPEC))
  if DUMP: check_dump(module.target(arch) if hasattr(module, "target") else None)
  name = kernel_name(sink)
  if recorder is not None: recorder.begin("kernel", name, sink, device)
  kernel, on_host = sink, dict[str, UOp]()
  if not has_float64(capabilities):
    from tinyhw.engine.run.host_numbers import computed_by_host  # hidden: for targets without float64
    kernel, on_host = computed_by_host(sink)
  optimized = optimize(kernel, capabilities)
  if recorder is not None:
    recorder.passed("optimize", optimized, "the opts are chosen for the kernel as the schedule made it, and applied")
  if DEBUG >= 3: show.show_kernel(optimized, name)
  program = lower(optimized, capabilities, name)
  # Bounds were checked between codegen's passes, before divisions became multiplications.
  if SPEC: verify(program, 1)
  if DEBUG >= 4: show.show_program(program)
  listed = show.compile_listed(program, arch, device) if (DEBUG >= 7 or VIZ) and device else None
  code, listing = listed or (module.compile(program, arch), "")
  if DEBUG >= 7 and not listing: listing = show.source_of(code)
  if DEBUG >= 7 and listing: show.out(listing)
  if recorder is not None: recorder.done(program, code, listing)
  slots = tuple(p.arg[0] for p in program.params)
  written = tuple(slots.index(slot) for slot in sorted(program.written))
  variables = tuple(on_host.get(v.arg[0], v.arg[0]) for v in program.variables)
  return CachedKernel(code, slots, written, variables, program.grid, *estimate(sink))

class BoundRunner(NamedTuple):
  """A runner for one launch of a kernel, and the constant values of the last variables, which it does not name."""
  runner: Runner
  fixed: tuple[int, ...] = ()

def parts(device: str, sinks: Sequence[UOp]) -> list[tuple[BoundRunner, ...]]:
  """Return the launches for each of a schedule's kernels, in order.

  They are the loaded kernel itself, or equivalent forms for any size (sizes.py). When there are too many, those that
  were loaded first are dropped: noting each use would cost time at each use. A dropped kernel is compiled again, or
  comes from the disk cache.
  """
  opened, now = Device[device], mode()
  found: list[Any] = [opened.kernels.get((sink, now)) for sink in sinks]
  if None not in found: return found
  if on_disk(device): raise refusal(device, "a kernel")
  missing = [sink for sink, kept in zip(sinks, found) if kept is None]
  # One by one if the time of each is wanted.
  for together in [missing] if trace.recorder is None else [[sink] for sink in missing]:
    for sink, made in _loaded(device, list(dict.fromkeys(together))).items(): opened.kernels[sink, now] = made
  found = [opened.kernels[sink, now] for sink in sinks]
  most = max(MOST_KERNELS, 2 * len(sinks))   # a large schedule stays whole
  old = list(itertools.islice(opened.kernels, max(len(opened.kernels) - most, 0)))
  for key in old: del opened.kernels[key]
  if old: opened.launches.clear()
  return found

def _loaded(device: str, sinks: list[UOp]) -> dict[UOp, tuple[BoundRunner, ...]]:
  """Compile kernels and load them together."""
  opened = Device[device]
  found = {sink: () if NOOPT or BEAM else _of_any_size(device, sink) for sink in sinks}
  plain = [sink for sink in sinks if not found[sink]]
  made = compile_kernels(plain, opened.arch, device)
  start_ns = time.perf_counter_ns()
  for sink, kernel, program in zip(plain, made, opened.load_all([kernel.code for kernel in made])):
    runner = Runner(program, kernel.code.name, *kernel[1:], device)
    found[sink] = (BoundRunner(runner),)
    if trace.recorder is not None: trace.recorder.loaded(runner, start_ns)
  return found

def _of_any_size(device: str, sink: UOp) -> tuple[BoundRunner, ...]:
  """Return launches of the forms for any size, each with as many work items as it can fill; none if the kernel has no
  such forms."""
  if not any(u.op is Ops.THREEFRY for u in sink.toposort()): return ()
  from tinyhw.engine.run.sizes import MOST, START, any_size  # hidden: sizes.py loads codegen
  general = any_size(sink)
  if general is None: return ()
  found: list[BoundRunner] = []
  done = 0
  for form in general.forms:
    if done == general.elements: break
    whole = parts(device, [form])[0][0].runner
    names = [name for name in whole.variables if isinstance(name, str)]
    if len(names) != len(whole.variables): return ()  # the host would compute with constants
    each = MOST // int(whole.grid)
    grid = (general.elements - done) // each
    if not grid or each * whole.grid != MOST: continue  # work items do unequal work
    values = {**general.values, START.expr: done}
    operations, bytes_moved = whole.operations * grid // whole.grid, whole.bytes_moved * grid // whole.grid
    numbers = tuple([name for name in names if name not in values])
    launched = whole._replace(variables=numbers, grid=grid, operations=operations, bytes_moved=bytes_moved)
    found.append(BoundRunner(launched, tuple([values[name] for name in names[len(numbers):]])))
    done += grid * each
  return tuple(found) if done == general.elements else ()
