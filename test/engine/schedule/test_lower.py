"""Kernels compute what their graph does: the interpreter runs random graphs, and the kernels made of them after every
pass of the engine.

Data are small whole numbers, so that the order of additions does not matter.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from generators import tensor_programs

from tinyhw.arithmetic import elements
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import buffer_of
from tinyhw.engine.schedule.fuse import Fusion
from tinyhw.engine.schedule.group import group_kernels
from tinyhw.engine.schedule.lower import Kernel, Lowering, guarded, load, loop_order, storage_of
from tinyhw.engine.schedule.schedule import Canonical, canonicalize, make_schedule, order_kernels, strip
from tinyhw.engine.schedule.split import split_reductions
from tinyhw.methods.base import constant_value
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

F32 = dtypes.float32

def canonical_graph(seed: int) -> Canonical:
  """The canonical graph of a random tensor program. Constants are no work, and never get here."""
  program = tensor_programs.make(seed, functions=False, inexact=False)
  values = [Tensor(a, device="PYTHON") for a in program.inputs]
  for step in program.steps: values.append(step.tensor(*[values[k] for k in step.operands]))
  return canonicalize([values[k].uop for k in program.results if constant_value(values[k].uop) is None])

class Memory:
  """Storage by BUFFER: inputs as the graph has them, others as they are first met, or where a plan says."""
  def __init__(self, canonical: Canonical):
    self.inputs = [bytearray(buffer_of(node).as_memoryview() if node.arg[2] else b"") for node in canonical.inputs]
    self.others: dict[UOp, memoryview] = {}

  def of(self, buffer: UOp) -> memoryview:
    kind, number = buffer.arg[0]
    if kind == "in": return memoryview(self.inputs[number])
    if buffer not in self.others: self.others[buffer] = memoryview(bytearray(buffer.arg[2] * buffer.dtype.itemsize))
    return self.others[buffer]

def run(kernels: Sequence[Kernel], memory: Memory, variables: dict[str, int]) -> None:
  for k in kernels:
    places = [memory.of(b) for b in k.buffers]
    if k.sink.op is Ops.COPY: places[0][:] = places[1]
    elif len(places[0]): evaluate(k.sink, dict(enumerate(places)), variables)

def lowered(roots: list[UOp]) -> tuple[Lowering, list[UOp]]:
  stripped = [strip(r) for r in dict.fromkeys(strip(r) for r in roots) if r.op is not Ops.BUFFER]
  return Lowering(Fusion(stripped)), stripped

def check(canonical: Canonical, kernels: Sequence[Kernel], storage: dict[UOp, UOp], memory: Memory) -> None:
  """The kernels leave the roots' values, and in the inputs what the graph's ASSIGNs write."""
  written = [bytearray(data) for data in Memory(canonical).inputs]
  buffers = {u: written[u.arg[0][1]] for r in canonical.roots for u in r.toposort() if u.op is Ops.BUFFER}
  expected = evaluate(UOp.sink(*canonical.roots), buffers, canonical.variables)
  run(kernels, memory, canonical.variables)
  for root, want in zip(canonical.roots, expected):
    node = strip(root)
    if node.op in (Ops.BUFFER, Ops.ASSIGN): continue
    found = elements(memory.of(storage_of(storage[node])), node.dtype)
    assert [found[k] for k in range(len(want.values))] == pytest.approx(want.values, rel=1e-6, nan_ok=True)
  assert memory.inputs == written

@pytest.mark.parametrize("seed", range(60))
@pytest.mark.slow
def test_every_pass_keeps_the_meaning(seed: int) -> None:
  canonical = canonical_graph(seed)
  split = split_reductions([strip(r) for r in canonical.roots])
  wanted = evaluate(UOp.sink(*map(strip, canonical.roots)), _inputs(canonical), canonical.variables)
  found = evaluate(UOp.sink(*split), _inputs(canonical), canonical.variables)
  for a, b in zip(wanted, found): assert b.values == pytest.approx(a.values, rel=1e-6, nan_ok=True)
  passes: list[Callable[[list[Kernel]], list[Kernel]]] = [order_kernels,
                                                          lambda kernels: group_kernels(order_kernels(kernels))]
  for change in passes:
    lowering, _ = lowered(list(canonical.roots))
    check(canonical, change(lowering.kernels()), lowering.storage, Memory(canonical))
  made, memory = make_schedule([strip(r) for r in canonical.roots]), Memory(canonical)
  arenas = {device: memoryview(bytearray(size)) for device, size in made.plan.arena_bytes.items()}
  for b, offset in made.plan.offsets.items():
    memory.others[b] = arenas[b.arg[1]][offset:offset + b.arg[2] * b.dtype.itemsize]
  check(canonical, made.kernels, made.storage, memory)

def _inputs(canonical: Canonical) -> dict[UOp, bytearray]:
  memory = Memory(canonical)
  return {u: memory.inputs[u.arg[0][1]] for r in canonical.roots for u in r.toposort() if u.op is Ops.BUFFER}

@pytest.mark.parametrize("seed", range(20))
def test_kernels_keep_the_rules_of_a_kernel(seed: int) -> None:
  lowering, _ = lowered(list(canonical_graph(seed).roots))
  for k in lowering.kernels():
    if k.sink.op is Ops.COPY: continue
    verify(k.sink, 2)
    params = {u.arg[0]: u for u in k.sink.toposort() if u.op is Ops.PARAM}
    assert all(params[slot].arg[1] == k.buffers[slot].arg[2] and params[slot].dtype is k.buffers[slot].dtype
               for slot in params)
    assert len(k.buffers) == len(k.versions) and k.sink.src[0].src[0].src[0].arg[0] == 0, ("what is stored to comes "
                                                                                           "first")

def kernel_of(*tensors: Tensor) -> Kernel:
  kernels = lowered(list(canonicalize([t.uop for t in tensors]).roots))[0].kernels()
  assert len(kernels) == 1
  return kernels[0]

def test_equal_work_is_one_kernel() -> None:
  a, b, c, d = (Tensor.empty(5, 7, device="PYTHON") for _ in range(4))
  assert (kernel_of(a * 2 + b).sink is kernel_of(c * 2 + d).sink
          and kernel_of(a * 2 + b).sink is not kernel_of(a * 2 + a).sink)
  assert len(kernel_of(a * 2 + a).buffers) == 2, "a buffer that is read twice has one slot"

def test_values_take_their_simplest_form() -> None:
  """relu is one maximum, a minimum needs no negation, and a gradient no factor of 1."""
  x, y = (Tensor.empty(5, 7, device="PYTHON") for _ in range(2))
  def operations(t: Tensor) -> list[Ops]:
    stores = [u for u in kernel_of(t).sink.toposort() if u.op is Ops.STORE]
    return [u.op for store in stores for u in store.src[1].toposort() if u.dtype is dtypes.float32
            and u.op in GroupOp.ALU]
  assert operations(x.relu()) == [Ops.MAX]
  assert Ops.NEG not in operations(x.minimum(y)) and operations(x.clamp(-1, 1)).count(Ops.WHERE) == 2
  assert operations((x * y).sum().gradient(x)[0] + 0.5) == [Ops.ADD]

def test_reads_outside_are_gated_and_give_nothing() -> None:
  kernel = kernel_of(Tensor.empty(4, device="PYTHON").pad(((2, 3),)) + 1)
  loads = [u for u in kernel.sink.toposort() if u.op is Ops.LOAD]
  assert len(loads) == 1 and len(loads[0].src) == 3 and loads[0].src[2] is UOp.const(F32, 0.0)
  data = {0: [9.0] * 9, 1: [1.0, 2.0, 3.0, 4.0]}
  evaluate(kernel.sink, data)
  assert data[0] == [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0, 1.0]

def test_loops_of_reductions_stand_outermost() -> None:
  out, a, b = UOp.param(0, F32, 12), UOp.param(1, F32, 12), UOp.param(2, F32, 15)
  i, j, r = (UOp.range(n, k, kind)
             for k, (n, kind) in enumerate(((4, AxisType.LOOP), (3, AxisType.LOOP), (5, AxisType.REDUCE))))
  total = b.index(j * 5 + r).load().reduce(Ops.ADD, r)
  assert loop_order(UOp.sink(out.index(i * 3 + j).store(a.index(i * 3 + j).load() * total, i, j))) == [j, i, r]

def test_guards() -> None:
  a, r = UOp.param(0, F32, 8), UOp.range(8, 0, AxisType.LOOP)
  valid, other = r < 5, r < 3
  gated = load(a, r, valid)
  assert guarded(gated, valid) is gated and guarded(gated, None) is gated
  assert guarded(load(a, r, valid & other), other).op is Ops.LOAD, "its own gate says so already"
  assert guarded(gated, other).op is Ops.WHERE and guarded(load(a, r, None), valid).op is Ops.WHERE

def test_the_storage_of_a_version() -> None:
  buffer: Any = UOp(Ops.BUFFER, F32, (), (("in", 0), "PYTHON", 4))
  once = UOp(Ops.AFTER, F32, (buffer,), 0)
  assert storage_of(buffer) is buffer and storage_of(UOp(Ops.AFTER, F32, (once,), 1)) is buffer

def test_a_chain_of_gathers_costs_no_more_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
  """The parts of an index are combined once, not again for each index that contains it."""
  def visited(n: int) -> int:
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(n): x = x[Tensor([1, 0])]
    count = 0
    plain = UOp.toposort
    def counted(u: UOp, *args: Any) -> dict[UOp, None]:
      nonlocal count
      found = plain(u, *args)
      count += len(found)
      return found
    with monkeypatch.context() as patch:
      patch.setattr(UOp, "toposort", counted)
      make_schedule(canonicalize([x.uop]).roots)
    return count
  assert visited(40) < 2.5 * visited(20)
