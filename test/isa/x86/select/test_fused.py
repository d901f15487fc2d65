"""Fused multiply-adds, and operands in memory: the chosen form, and equal results of all forms."""
from __future__ import annotations
from collections.abc import Callable

from generators.program_builder import Builder, broadcast
import pytest
from test.isa.x86.select.test_choice import ARCHS, memory, selected
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

N = 64
F32 = dtypes.float32
Body = Callable[[Builder, UOp, UOp, UOp], UOp]

def fma(a: UOp, b: UOp, c: UOp) -> UOp: return a.alu(Ops.MULACC, b, c)
def const(x: UOp, value: float) -> UOp: return UOp.const(x.dtype, value)
def own(x: UOp) -> UOp: return x * 2   # a value in a register without other users

FORMS: dict[str, tuple[Body, str]] = {   # forms of three loaded values that have other users
  "all are wanted still": (lambda b, x, y, z: fma(x, y, z), "231"),
  "addend is free": (lambda b, x, y, z: fma(x, y, own(z)), "231"),
  "product is free": (lambda b, x, y, z: fma(own(x), y, z), "213"),
  "other product is free": (lambda b, x, y, z: fma(x, own(y), z), "213"),
  "polynomial": (lambda b, x, y, z: fma(x, fma(x, own(y), const(x, 3)), const(x, 5)), "213"),
  "square": (lambda b, x, y, z: fma(x, x, z), "231"),
}

def program(body: Body, dtype: DType, lanes: int) -> Program:
  """out = body(x, y, z). x, y and z are stored too, so that each has another user."""
  b = Builder("fma")
  out, *data = [b.param(k, dtype, n) for k, n in enumerate((4 * N, N, N, N))]
  with b.loop(N // lanes, AxisType.GLOBAL) as g:
    values = [b.add(own(b.load(p, g * lanes, lanes))) for p in data]
    result = b.add(body(b, *values))
    for k, u in enumerate((result, *values)): b.store(out, g * lanes + k * N, u)
  return b.program()

def numbers(dtype: DType, counts: tuple[int, ...]) -> list[bytes]:
  """Zeros for the written buffers, then the corners of the type, in another order for each buffer."""
  corners = memory(dtype)[1]
  size = dtype.itemsize
  return [bytes(counts[0] * size), *[corners[k * 7 * size:] + corners[:k * 7 * size] for k in range(len(counts) - 1)]]

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, arch: str) -> None:
  body, form = FORMS[name]
  for dtype in (F32, dtypes.float64):
    for lanes in (1, 4, target(arch).capabilities.vector_bytes // dtype.itemsize):
      p = program(body, dtype, lanes)
      x86_kernels.run(p, arch, numbers(dtype, (4 * N, N, N, N)))
      found = selected(p, arch)
      used = {row[6:9] for row in found if row.startswith("vfmadd")}
      assert used == {form}, found

def in_memory(operand: int, dtype: DType, lanes: int) -> Program:
  """A multiply-add with one operand that is loaded for it alone; the others are in registers, and free."""
  b = Builder("memory")
  out, *data = [b.param(k, dtype, N) for k in range(4)]
  with b.loop(N // lanes, AxisType.GLOBAL) as g:
    values = [b.load(p, g * lanes, lanes) for p in data]
    b.store(out, g * lanes, b.add(fma(*[v if k == operand else own(v) for k, v in enumerate(values)])))
  return b.program()

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("operand, form", [(0, "231"), (1, "231"), (2, "213")])
def test_operands_in_memory(operand: int, form: str, arch: str) -> None:
  for dtype in (F32, dtypes.float64):
    for lanes in (1, target(arch).capabilities.vector_bytes // dtype.itemsize):
      p = in_memory(operand, dtype, lanes)
      x86_kernels.run(p, arch, numbers(dtype, (N, N, N, N)))
      t = target(arch)
      rows = [inst.row.isa.key for block in t.select(p, t).blocks for inst in block.insts
              if inst.row.name.startswith("vfmadd")]
      assert len(rows) == 1 and rows[0][6:9] == form and rows[0].endswith("_m")

def test_a_product_with_memory_and_a_constant_keeps_the_constant() -> None:
  b = Builder("product")
  out, x, y = [b.param(k, F32, N) for k in range(3)]
  with b.loop(N // 8, AxisType.GLOBAL) as g:
    value = b.add(own(b.load(x, g * 8, 8)))
    b.store(out, g * 8, b.add(fma(value, b.load(y, g * 8, 8), const(value, 3))))
  for arch in ARCHS:
    assert selected(b.program(), arch)["vfmadd132ps"] == 1
    x86_kernels.run(b.program(), arch, numbers(F32, (N, N, N)))

def test_what_is_computed_outside_of_a_loop_is_kept_for_its_next_turn() -> None:
  b = Builder("loop")
  out, x, y = b.param(0, F32, N), b.param(1, F32, N), b.param(2, F32, N + 8)
  with b.loop(N // 8, AxisType.GLOBAL) as g:
    factor = b.add(own(b.load(x, g * 8, 8)))
    total = b.accumulator(UOp.const(F32.vec(8), 0.0))
    with b.loop(3, AxisType.REDUCE) as r:
      b.assign(total, b.add(total + b.add(fma(factor, b.add(own(b.load(y, g * 8 + r, 8))), const(factor, 1)))))
    b.store(out, g * 8, total)
  for arch in ARCHS: x86_kernels.run(b.program(), arch, [*numbers(F32, (N, N)), bytes(4 * N + 32)])

SPREAD = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR)

def spread(op: Ops, dtype: DType, lanes: int, users: int = 1, first: bool = False) -> Program:
  """An operation of a vector and one element of memory, broadcast to all lanes."""
  b = Builder("spread")
  out, x, y = b.param(0, dtype, 2 * N), b.param(1, dtype, N), b.param(2, dtype, N)
  with b.loop(N // lanes, AxisType.GLOBAL) as g:
    value, same = b.add(own(b.load(x, g * lanes, lanes))), b.add(broadcast(b.load(y, g), lanes))
    operands = (same, value) if first else (value, same)
    result = b.add(fma(*operands, own(value)) if op is Ops.MULACC else operands[0].alu(op, operands[1]))
    b.store(out, g * lanes, result)
    if users > 1: b.store(out, g * lanes + N, same)
  return b.program()

def broadcasts(p: Program, arch: str) -> int:
  """The number of instructions that only broadcast an element, without constants."""
  t = target(arch)
  return sum("broadcast" in inst.row.name and regs.RIP not in inst.operands for block in t.select(p, t).blocks
             for inst in block.insts)

@pytest.mark.slow
@pytest.mark.parametrize("op", (*SPREAD, Ops.MULACC))
def test_one_element_of_memory_in_all_lanes(op: Ops) -> None:
  """One instruction with AVX-512, if the broadcast has no other user."""
  arch = ARCHS[1]
  for dtype in (F32, dtypes.float64, dtypes.int32, dtypes.uint64):
    known = target(arch).capabilities
    for lanes in (64 // dtype.itemsize, 16 // dtype.itemsize):
      if not known.supports(op, dtype.vec(lanes)): continue
      for first in (False, True):
        p = spread(op, dtype, lanes, first=first)
        x86_kernels.run(p, arch, numbers(dtype, (2 * N, N, N)))
        if not first or dtypes.is_float(dtype) and op in (Ops.ADD, Ops.MUL, Ops.MULACC):
          assert not broadcasts(p, arch), (op, dtype, first)

def test_a_broadcast_that_others_want_is_made_once() -> None:
  for arch in ARCHS:
    p = spread(Ops.MUL, F32, 8, users=2)
    assert broadcasts(p, arch) == 1
    x86_kernels.run(p, arch, numbers(F32, (2 * N, N, N)))
