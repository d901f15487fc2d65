"""Work of kernels as counts, so that a test of how it grows depends neither on the machine nor on what else it does.

Work is what Programs execute: padding, elements of overlapping tiles that are computed twice, copies to shared memory
and recomputation count, too.
"""
from __future__ import annotations
from collections.abc import Sequence
import functools

from tinyhw.codegen.kernel.estimate import estimate
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.engine.run.compile import capabilities_of, kernel_name
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint
from tinyhw.uop.program import Program

class Work(NamedTuple):
  """operations: on elements, lane by lane. instructions: steps of Programs, of which each works on all lanes of a
  vector; an element of a gather by itself. bytes: moved between kernels and memory, if caches are perfect."""
  kernels: float
  bytes: float
  operations: float
  instructions: float

  @property
  def cost(self) -> float:
    """All of it as instructions, by about the time that each takes."""
    return self.instructions + LAUNCH * self.kernels + BYTE * self.bytes

# Weights, not measurements. On a Zen 5 with two workers a convolution's 560,000 instructions take 18 us, a captured
# launch 0.1 us alone and 0.9 us with 4,096 elements, one that Python finds 20 us; 2 MB that are read and written in
# caches take 35 us, arithmetic included.
LAUNCH = 6000
BYTE = 0.05

COMPUTE = GroupOp.ALU | {Ops.CAST}
STEPS = COMPUTE | {Ops.LOAD, Ops.STORE, Ops.ASSIGN_ACC, Ops.VECTORIZE, Ops.GEP}

def work_of(tensors: Sequence[Tensor], arch: str) -> Work:
  """Of all kernels that realizing these tensors would run, compiled for an architecture."""
  kernels = [k for k in schedule(canonicalize([t.uop for t in tensors])).kernels if k.sink.op is Ops.SINK]
  found = [kernel_work(k.sink, arch) for k in kernels]
  return Work(len(kernels), *map(sum, zip(*[w[1:] for w in found])))

@functools.lru_cache(4096)
def kernel_work(sink: UOp, arch: str) -> Work:
  """Of a kernel as the schedule made it."""
  capabilities = capabilities_of(arch, "")
  program = lower(optimize(sink, capabilities), capabilities, kernel_name(sink))
  return Work(1, most(estimate(sink)[1]), *executed(program))

def executed(program: Program) -> tuple[int, int]:
  """(operations, instructions) of a Program, with loops as often as they run and conditions as if they held."""
  times = [1]
  operations = instructions = 0
  for u in program.uops:
    if u.op is Ops.RANGE:
      times.append(times[-1] * most(u.src[0].arg if u.src[0].op is Ops.CONST else u.src[0]))
      instructions += 2 * times[-1]
    elif u.op is Ops.END: times.pop()
    if u.op not in STEPS or u.op is Ops.GEP and u.dtype.count > 1: continue
    instructions += times[-1] * steps_of(u)
    if u.op in COMPUTE and (u.dtype.count > 1 or u.dtype.scalar().name.startswith("float")):
      operations += times[-1] * u.dtype.count
  return operations, instructions

def steps_of(u: UOp) -> int:
  """Of an operation: as many as it has lanes where those are got together one by one."""
  if u.op is Ops.VECTORIZE: return len(u.src)
  if u.op in (Ops.LOAD, Ops.STORE): return max(1, u.src[0].src[1].dtype.count)
  return 1

def most(n: sint) -> int:
  """A count, of symbolic ones the largest."""
  return n if isinstance(n, int) else int(n.vmax)
