"""From an optimised kernel to a Program: the list of passes, in order.

`lower(kernel, capabilities, name)` is what the engine calls after optimize.py. A pass takes a kernel (docs/design.md 3.3) and the capabilities of
the target, and returns a kernel; the last step, linearize, makes the Program. All but the last leave a graph that evaluates to the same results
up to the order of floating point sums. DUMP=<pass>:<kernel> prints a kernel after a pass.
"""
from __future__ import annotations
import sys
from collections.abc import Callable

from tinyhw import trace
from tinyhw.codegen.kernel.grid import flatten_grid, grid_size
from tinyhw.codegen.lower.accumulate import accumulate_reductions
from tinyhw.codegen.lower.expand import unroll, vectors_as_copies
from tinyhw.codegen.lower.fragments import widen_fragments
from tinyhw.codegen.lower.indices import fits, lower_indices
from tinyhw.codegen.lower.legalize import legalize
from tinyhw.codegen.lower.linearize import linearize
from tinyhw.codegen.lower.pipeline import pipeline
from tinyhw.codegen.lower.runs import widen_runs
from tinyhw.codegen.lower.vectorize import vectorize
from tinyhw.codegen.math.decompose import decompose
from tinyhw.codegen.transform.stage import stage_values
from tinyhw.config import DUMP, SPEC
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError, ConfigError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.machine.passes import PASSES as MACHINE_PASSES
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import show

class Pass(NamedTuple):
  """A step of the pipeline: its name in DUMP, what it does, and why it stands where it stands."""
  name: str
  run: Callable[[UOp, Capabilities], UOp]
  because: str
  is_kernel: bool = True  # its result keeps the rules of docs/design.md 3.3, and SPEC checks them

PASSES = (
  Pass("grid", lambda sink, _: flatten_grid(sink),
       "first: the others see one GLOBAL range, no range of one iteration, and indices in normal form"),
  Pass("stage", lambda sink, _: stage_values(sink), "before unroll: the stores that fill a local array are unrolled like others"),
  Pass("unroll", lambda sink, capabilities: unroll(vectors_as_copies(sink) if capabilities.lanes else sink),
       "before vectorize: a copy's index is linear in the lane more often than the original's"),
  Pass("vectorize", vectorize, "before accumulate: the lanes of a reduction are folded once, after its loop"),
  Pass("runs", lambda sink, capabilities: widen_fragments(widen_runs(sink, capabilities)),
       "after unroll, which makes the copies that access neighbours; before indices, while an index is a plain sum"),
  Pass("accumulate", accumulate_reductions, "before decompose: what folds (MAX, MULACC) may be an operation that a target does not have", False),
  Pass("indices", lambda sink, capabilities: lower_indices(sink, capabilities.lanes > 0),
       "after all that multiplies indices; before decompose, which divides machine integers only", False),
  Pass("decompose", decompose, "before legalize: a vector operation in other vector operations is better than lane by lane", False),
  Pass("legalize", legalize, "last: it splits what the others made", False),
)

def lower(sink: UOp, capabilities: Capabilities, name: str) -> Program:
  """The Program of an optimised kernel. Raises CompileError for what the target cannot do; `name` is the kernel's."""
  if sink.op is not Ops.SINK: raise CompileError(f"{name}: a kernel is a SINK of stores, not {sink.op.name}")
  if DUMP: check_dump()
  if SPEC: from tinyhw.uop.verify import verify  # 0.6 ms that nobody else needs
  kernel, recorder = sink, trace.recorder
  for step in PASSES:
    kernel = step.run(kernel, capabilities)
    if step.name == "grid": flat = kernel
    if SPEC and step.is_kernel: verify(kernel, int(SPEC))
    if trace._origins: _share_origins(kernel)
    if DUMP: dump(step.name, name, kernel)
    if recorder is not None: recorder.passed(step.name, kernel, step.because)
  uops, order = linearize(kernel, capabilities.lanes > 0), list(sink.toposort())
  written = frozenset(u.src[0].src[0].arg[0] for u in order if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM)
  if capabilities.lanes:
    from tinyhw.codegen.lower.fetch import fetch  # only GPUs copy while they compute
    uops = pipeline(fetch(uops, written, capabilities), written)
  local_bytes = sum((u.arg[1] * u.dtype.itemsize + 63) // 64 * 64 for u in uops if u.op is Ops.DEFINE_LOCAL)
  opts = sink.arg.opts if isinstance(sink.arg, KernelInfo) and sink.arg.opts is not None else ()
  uops = arguments(order, uops) + [u for u in uops if u.op not in (Ops.PARAM, Ops.DEFINE_VAR)]
  program = Program(name, tuple(uops), grid_size(flat), written, local_bytes, tuple(opts))
  if DUMP: dump("linearize", name, program)
  if recorder is not None: recorder.passed("linearize", program, "the order in which it runs, with loops as brackets")
  return program

def _share_origins(kernel: UOp) -> None:
  """Operations on data that a pass made without saying from what come from the line of a node that uses them."""
  for u in reversed(kernel.toposort()):
    for s in u.src:
      if s.op in _OPERATIONS and s.dtype.scalar() is not dtypes.weakint: trace.same_line(s, u)

_OPERATIONS = GroupOp.Elementwise | {Ops.REDUCE, Ops.STORE, Ops.GROUP, Ops.ACC}

def arguments(order: list[UOp], uops: list[UOp]) -> list[UOp]:
  """PARAMs by slot and variables by name, those that are no longer used included: the caller passes them all the same."""
  used = {u.arg[0]: u for u in uops if u.op is Ops.DEFINE_VAR}
  params = sorted({u for u in order if u.op is Ops.PARAM}, key=lambda u: u.arg[0])
  variables = sorted({u for u in order if u.op is Ops.DEFINE_VAR}, key=lambda u: u.arg[0])
  return params + [used[v.arg[0]] if v.arg[0] in used else typed_variable(v) for v in variables]

def typed_variable(variable: UOp) -> UOp:
  """A variable with the type that it would have if it were used."""
  return UOp(Ops.DEFINE_VAR, dtypes.int32 if fits(variable.arg[1], variable.arg[2]) else dtypes.int64, (), variable.arg)

def check_dump() -> None:
  """Raise ConfigError if DUMP names no pass."""
  wanted = str(DUMP).partition(":")[0]
  known = [*(step.name for step in PASSES), "linearize", "select", *MACHINE_PASSES]
  if wanted not in known: raise ConfigError(f"DUMP={str(DUMP)!r}: no pass is called {wanted!r}; there are {', '.join(known)}")

def dump(step: str, name: str, kernel: UOp | Program) -> None:
  """Print a kernel if DUMP asks for this pass and kernel."""
  wanted, _, which = str(DUMP).partition(":")
  if wanted == step and which in ("", "*", name): sys.stdout.write(f"; {name} after {step}\n{show(kernel)}\n")
