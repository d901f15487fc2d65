"""optimize.py and heuristic.py: a kernel computes the same with any loops, chosen by the model or at random."""
from dataclasses import replace
import random

import pytest
from generators import tensor_programs

from test.codegen.kernels import ALL_TARGETS, AVX2, agree, axis, check
from test.codegen.random_kernels import Generator
from tinyhw.codegen.optimize import optimize, with_opts
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.methods.base import constant_value
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

TARGETS = {"avx2": AVX2, "many threads": replace(AVX2, threads=32), "poor": ALL_TARGETS["poor"]}

def kernels_of(*tensors: Tensor) -> list[UOp]:
  """Return the kernels that compute tensors, as the schedule makes them. Constants need none."""
  made = schedule(canonicalize([t.uop for t in tensors if constant_value(t.uop) is None]))
  return [k.sink for k in made.kernels if k.sink.op is Ops.SINK]

def programs(seeds: range) -> list[UOp]:
  """Return kernels of random tensor programs."""
  found: dict[UOp, None] = {}
  for seed in seeds:
    program = tensor_programs.make(seed, functions=False, inexact=False)
    values = [Tensor(a, device="PYTHON") for a in program.inputs]
    for step in program.steps: values.append(step.tensor(*[values[k] for k in step.operands]))
    found.update(dict.fromkeys(kernels_of(*[values[k] for k in program.results])))
  return [k for k in found if not any(u.op is Ops.DEFINE_VAR for u in k.toposort())]

@pytest.mark.parametrize("target", TARGETS)
def test_choices_change_no_result(target: str) -> None:
  for kernel in programs(range(900, 912)): agree(kernel, optimize(kernel, TARGETS[target]))

def test_optimised_kernels_can_be_lowered() -> None:
  for kernel in programs(range(920, 926)): check(optimize(kernel, AVX2), AVX2, tolerance=1e-12)

def test_kernels_with_tiles_and_stages_may_be_tiled_again() -> None:
  for generator in map(Generator, range(48)):
    kernel = generator.kernel()
    kinds = {u.arg[1] for u in kernel.toposort() if u.op is Ops.RANGE}
    if generator.variables or AxisType.VECTOR in kinds: continue
    check(optimize(kernel, AVX2), AVX2, tolerance=1e-12)
    agree(kernel, optimize(kernel, AVX2))

def test_any_opts_change_no_result() -> None:
  """The amounts divide no size, on loops of any kind."""
  rng = random.Random(5)
  for kernel in programs(range(930, 942)):
    loops = [u for u in kernel.toposort() if u.op is Ops.RANGE and size_of(u) > 1]
    if not loops: continue
    chosen: dict[int, Opt] = {}
    for op, amounts in ((OptOps.VECTOR, (4, 8)), (OptOps.UPCAST, (2, 3, 5)), (OptOps.UPCAST, (2, 7))):
      r = rng.choice(loops)
      fitting = [n for n in amounts if n <= size_of(r)]
      if fitting and r.arg[0] not in chosen: chosen[r.arg[0]] = Opt(op, r.arg[0], rng.choice(fitting))
    agree(kernel, with_opts(kernel, tuple(chosen.values())))

def test_state_that_several_stores_update_is_updated_once() -> None:
  """Momentum and parameter of an optimizer, of a size that no tile divides."""
  p, m, g = (UOp.param(k, dtypes.float32, 3 * 17) for k in range(3))
  a, b = axis(3, 0), axis(17, 1)
  i = a * 17 + b
  new = m.index(i).load() * 0.5 + g.index(i).load()
  kernel = UOp.sink(m.index(i).store(new, a, b), p.index(i).store(p.index(i).load() - new, a, b))
  agree(kernel, optimize(kernel, AVX2))
  for opts in ((Opt(OptOps.VECTOR, 1, 8), Opt(OptOps.UPCAST, 0, 2)),
               (Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 1, 5), Opt(OptOps.GRID, 0))):
    agree(kernel, with_opts(kernel, opts))
    check(with_opts(kernel, opts), AVX2)

def test_plain_kernels() -> None:
  kernel = kernels_of(Tensor.empty(8, 8, device="PYTHON") + Tensor.empty(8, 8, device="PYTHON"))[0]
  with Context(NOOPT=1): plain = optimize(kernel, AVX2)
  assert [u.arg[1] for u in plain.toposort() if u.op is Ops.RANGE] == [AxisType.GLOBAL, AxisType.LOOP]

def test_elementwise_kernels_have_one_loop_of_vectors() -> None:
  kernel = kernels_of(Tensor.empty(16, 64, device="PYTHON") + Tensor.empty(16, 64, device="PYTHON"))[0]
  found = optimize(kernel, AVX2)
  kinds = [u.arg[1] for u in found.toposort() if u.op is Ops.RANGE]
  assert kinds.count(AxisType.VECTOR) == 1 and AxisType.GLOBAL in kinds and AxisType.LOOP not in kinds
  assert {o.op for o in found.arg.opts} == {OptOps.VECTOR, OptOps.UPCAST, OptOps.GRID}

def test_a_matmul_has_a_tile_of_accumulators() -> None:
  kernel = kernels_of(Tensor.empty(64, 64, device="PYTHON") @ Tensor.empty(64, 64, device="PYTHON"))[0]
  opts = optimize(kernel, AVX2).arg.opts
  lanes = next(o.amount for o in opts if o.op is OptOps.VECTOR)
  copies = 1
  for o in opts: copies *= o.amount if o.op is OptOps.UPCAST else 1
  assert lanes == 8 and 8 <= copies <= 14
