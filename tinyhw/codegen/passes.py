"""Lower an optimised kernel to a Program: the list of passes, in order.

The engine calls `lower(kernel, capabilities, name)` after optimize.py. A pass takes a kernel (docs/design/uop.md) and
the capabilities of the target. It returns a kernel with the same results up to the order of floating point sums.
`linearize` turns the kernel into a list, the uops of a Program. On targets whose lanes are threads, further passes take
and return such lists. DUMP=<pass>:<kernel> prints a kernel after a pass.
"""
from __future__ import annotations
import sys
from collections.abc import Callable

from tinyhw import trace
from tinyhw.codegen.kernel.grid import flatten_grid, grid_size
from tinyhw.codegen.lower.accumulate import accumulate_reductions
from tinyhw.codegen.lower.expand import unroll, vectors_as_copies
from tinyhw.codegen.lower.indices import fits, lower_indices
from tinyhw.codegen.lower.legalize import legalize
from tinyhw.codegen.lower.linearize import linearize
from tinyhw.codegen.lower.vectorize import vectorize
from tinyhw.codegen.math.decompose import decompose
from tinyhw.codegen.transform.stage import stage_values
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.config import DUMP, SPEC
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError, ConfigError
from tinyhw.machine.ir.target import Capabilities, Target
from tinyhw.machine.passes import PASSES as MACHINE_PASSES, Before, reasons, steps
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import show

class Pass(NamedTuple):
  """A step from kernel to kernel: its name in DUMP, and its function."""
  name: str
  run: Callable[[UOp, Capabilities], UOp]
  is_kernel: bool = True  # its result keeps the rules of docs/design/uop.md, and SPEC checks them

class ListPass(NamedTuple):
  """A step from the uops of a Program to such uops. It also gets the written slots.

  has_lanes: whether it is for targets whose lanes are threads, or for the others.
  """
  name: str
  run: Callable[[list[UOp], frozenset[int], Capabilities], list[UOp]]
  has_lanes: bool

def tiles(sink: UOp, capabilities: Capabilities) -> UOp:
  """Run the pass of tiles.py."""
  if capabilities.lanes or not any(o.op is OptOps.MATRIX for o in opts_of(sink)): return sink
  from tinyhw.codegen.lower import tiles as module  # 0.4 ms to load, for CPUs with a matrix unit
  return module.tiles(sink, capabilities)

def coalesce(sink: UOp, capabilities: Capabilities) -> UOp:
  """Run the passes of coalesce.py and fragments.py."""
  if not capabilities.lanes: return sink
  from tinyhw.codegen.lower import coalesce as module, fragments  # 0.4 ms to load; elsewhere vectorize makes wide loads
  return fragments.widen_fragments(module.coalesce(sink, capabilities))

def reuse(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """Run the pass of reuse.py."""
  if len([u for u in uops if u.op is Ops.DEFINE_LOCAL]) < 2: return uops
  from tinyhw.codegen.lower import reuse as module  # 0.3 ms to load, for kernels with several arrays
  return module.reuse_arrays(uops)

def non_temporal(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """Run the pass of non_temporal.py."""
  room = max(capabilities.cache_bytes, default=0)
  if not capabilities.non_temporal or all(u.arg[1] * u.dtype.itemsize <= room for u in uops if u.op is Ops.PARAM):
    return uops
  from tinyhw.codegen.lower import non_temporal as module  # 0.2 ms to load, for buffers that no cache holds
  return module.note_non_temporal(uops, capabilities)

def prefetch(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """Run the pass of prefetch.py."""
  from tinyhw.codegen.lower import prefetch as module  # only GPUs copy while they compute
  return module.prefetch(uops, written, capabilities)

def pipeline(uops: list[UOp], written: frozenset[int], capabilities: Capabilities) -> list[UOp]:
  """Run the pass of pipeline.py."""
  from tinyhw.codegen.lower import pipeline as module  # as prefetch
  return module.pipeline(uops, written)

PASSES = (
  Pass("grid", lambda sink, _: flatten_grid(sink)),
  Pass("stage", lambda sink, _: stage_values(sink)),
  Pass("tiles", tiles),
  Pass("unroll", lambda sink, capabilities: unroll(vectors_as_copies(sink) if capabilities.lanes else sink)),
  Pass("vectorize", vectorize),
  Pass("coalesce", coalesce),
  Pass("accumulate", accumulate_reductions, False),
  Pass("indices", lambda sink, capabilities: lower_indices(sink, capabilities.lanes > 0), False),
  Pass("decompose", decompose, False),
  Pass("legalize", legalize, False),
)
LIST_PASSES = (
  ListPass("reuse", reuse, False),
  ListPass("non_temporal", non_temporal, False),
  ListPass("prefetch", prefetch, True),
  ListPass("pipeline", pipeline, True),
)
NAMES = (*[p.name for p in PASSES], "linearize", *[p.name for p in LIST_PASSES])

ORDER = (
  Before("grid", "stage", "all other passes see one GLOBAL range, no range of one iteration, and indices in normal "
         "form"),
  Before("stage", "tiles", "a tile's rows have a distance once shared arrays have places"),
  Before("tiles", "unroll", "rows and steps of a tile are still ranges"),
  Before("stage", "unroll", "the stores that fill a shared array are unrolled like others"),
  Before("unroll", "vectorize", "a copy's index is linear in the lane more often than the original's"),
  Before("unroll", "coalesce", "unroll makes the copies with adjacent accesses"),
  Before("vectorize", "accumulate", "the lanes of a reduction are folded once, after its loop"),
  Before("coalesce", "indices", "an index is a plain sum until then"),
  Before("accumulate", "decompose", "what folds (MAX, MULACC) may be an operation that a target does not have"),
  Before("vectorize", "indices", "nothing may multiply indices after they have types"),
  Before("indices", "decompose", "decompose divides machine integers only"),
  Before("decompose", "legalize", "a vector operation in other vector operations is better than lane by lane"),
  Before("legalize", "linearize", "legalize splits what all others made"),
  Before("linearize", "reuse", "the order of loops tells when an array is read for the last time"),
  Before("linearize", "non_temporal", "the stores of a block are next to each other in the list"),
  Before("reuse", "prefetch", "a target has one of them: workers with their scratch memory, or lanes that share it"),
  Before("linearize", "prefetch", "loops are brackets in a list, whose bodies move"),
  Before("prefetch", "pipeline", "asynchronous copies need no registers; pipeline takes the loops that prefetch "
         "leaves"),
)
REASONS = reasons(NAMES, ORDER)

def lower(sink: UOp, capabilities: Capabilities, name: str) -> Program:
  """Return the Program of an optimised kernel. `name` is the kernel's.

  Raises CompileError for operations that the target does not have.
  """
  if sink.op is not Ops.SINK: raise CompileError(f"{name}: a kernel is a SINK of stores, not {sink.op.name}")
  if SPEC: from tinyhw.uop.verify.verify import verify  # 0.6 ms to load, needed for SPEC only
  kernel = sink
  for step in PASSES:
    kernel = step.run(kernel, capabilities)
    if step.name == "grid": flat = kernel
    if SPEC and step.is_kernel: verify(kernel, int(SPEC))
    if trace._origins: _share_origins(kernel)
    _passed(step.name, name, kernel)
  uops, order = linearize(kernel, capabilities.lanes > 0), list(sink.toposort())
  written = frozenset(u.src[0].src[0].arg[0] for u in order if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM)
  late = [p for p in LIST_PASSES if p.has_lanes is bool(capabilities.lanes)]
  is_shown = bool(DUMP) or trace.recorder is not None
  if is_shown and late: _passed("linearize", name, program_of(name, uops, order, flat, written))
  for late_step in late:
    uops = late_step.run(uops, written, capabilities)
    if is_shown and late_step is not late[-1]:
      _passed(late_step.name, name, program_of(name, uops, order, flat, written))
  program = program_of(name, uops, order, flat, written)
  _passed(late[-1].name if late else "linearize", name, program)
  return program

def _passed(step: str, name: str, kernel: UOp | Program) -> None:
  """Print the result of a step for DUMP, and record it for VIZ."""
  if DUMP: dump(step, name, kernel)
  if trace.recorder is not None: trace.recorder.passed(step, kernel, REASONS[step])

def program_of(name: str, uops: list[UOp], order: list[UOp], flat: UOp, written: frozenset[int]) -> Program:
  """Return the Program of uops in their order.

  order: all nodes of the kernel, for its arguments. flat: the kernel after `grid`.
  """
  sink = order[-1]
  local_bytes = sum((u.arg[1] * u.dtype.itemsize + 63) // 64 * 64 for u in uops if u.op is Ops.DEFINE_LOCAL)
  uops = arguments(order, uops) + [u for u in uops if u.op not in (Ops.PARAM, Ops.DEFINE_VAR)]
  return Program(name, tuple(uops), grid_size(flat), written, local_bytes, opts_of(sink))

def opts_of(sink: UOp) -> tuple[Opt, ...]:
  """Return the opts of an optimised kernel."""
  return tuple(sink.arg.opts or ()) if isinstance(sink.arg, KernelInfo) else ()

def _share_origins(kernel: UOp) -> None:
  """Give operations on data without an origin the source line of a node that uses them."""
  for u in reversed(kernel.toposort()):
    for s in u.src:
      if s.op in _OPERATIONS and s.dtype.scalar() is not dtypes.weakint: trace.same_line(s, u)

_OPERATIONS = GroupOp.Elementwise | {Ops.REDUCE, Ops.STORE, Ops.GROUP, Ops.ACC}

def arguments(order: list[UOp], uops: list[UOp]) -> list[UOp]:
  """Return PARAMs by slot and variables by name. Unused ones are included, since the caller passes them all the same.
  """
  used = {u.arg[0]: u for u in uops if u.op is Ops.DEFINE_VAR}
  params = sorted({u for u in order if u.op is Ops.PARAM}, key=lambda u: u.arg[0])
  variables = sorted({u for u in order if u.op is Ops.DEFINE_VAR}, key=lambda u: u.arg[0])
  return params + [used[v.arg[0]] if v.arg[0] in used else typed_variable(v) for v in variables]

def typed_variable(variable: UOp) -> UOp:
  """Return a variable with the type that it would have if it were used."""
  return UOp(Ops.DEFINE_VAR, dtypes.int32 if fits(variable.arg[1], variable.arg[2]) else dtypes.int64, (), variable.arg)

def check_dump(target: Target | None) -> None:
  """Raise ConfigError if DUMP names no pass. target: the compiler's target; None where the Program becomes source text.
  """
  wanted = str(DUMP).partition(":")[0]
  known = [*NAMES, "select", *([name for name, _, _ in steps(target)] if target is not None else MACHINE_PASSES)]
  if wanted not in known:
    raise ConfigError(f"DUMP={str(DUMP)!r}: no pass is called {wanted!r}; there are {', '.join(known)}")

def dump(step: str, name: str, kernel: UOp | Program) -> None:
  """Print a kernel if DUMP asks for this pass and kernel."""
  wanted, _, which = str(DUMP).partition(":")
  if wanted == step and which in ("", "*", name): sys.stdout.write(f"; {name} after {step}\n{show(kernel)}\n")
