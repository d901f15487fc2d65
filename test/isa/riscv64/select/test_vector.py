"""Vectors and masks of RISC-V at 128 and 256 bits, executed by QEMU."""
from __future__ import annotations

import pytest
from cpu import kernels
from generators.program_builder import Builder, broadcast, vectorize
from riscv64.machine import needs_qemu, run
from x86 import kernels as x86_kernels
from x86 import operations

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.select import select
from tinyhw.isa.riscv64.select.rules import VECTOR_BYTES
from tinyhw.isa.riscv64.select.vector import state_of
from tinyhw.isa.riscv64.target import assemble, compile, target
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

LEVELS = tuple(VECTOR_BYTES)
KNOWN = capabilities("riscv64:v256")
TYPES = (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.float32, dtypes.int64, dtypes.float64)
WIDE = (dtypes.uint32, *dtypes.int64s)   # vectors of these neither come from floats nor become floats

def on_riscv(program: Program, arch: str, memory: list[bytes]) -> None: run(program, arch, memory)

def counts(size: int, arch: str) -> list[int]:
  return [n for n in (2, 4, 8, 16, 32) if n * size <= VECTOR_BYTES[arch]]

@needs_qemu
@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("op,dtype", operations.by_name(KNOWN.vector_operations),
                         ids=lambda x: getattr(x, "name", str(x)))
def test_operations(op: Ops, dtype: DType, arch: str) -> None:
  """Every operation of every type, with the corners of the type, at every number of lanes."""
  for lanes in counts(dtype.itemsize, arch): operations.run(op, dtype, lanes, arch, on_riscv)

@needs_qemu
@pytest.mark.slow
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("source", (*dtypes.ints, dtypes.bool, *FLOATS), ids=lambda d: d.name)
def test_casts(source: DType, arch: str) -> None:
  for other in (*dtypes.ints, dtypes.bool, *FLOATS):
    if source is other or any(a in FLOATS and b in WIDE for a, b in ((source, other), (other, source))): continue
    for lanes in counts(max(source.itemsize, other.itemsize), arch):
      operations.convert(Ops.CAST, source, other, lanes, arch, on_riscv)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64), ids=lambda d: d.name)
def test_lanes(dtype: DType, arch: str) -> None:
  for lanes in counts(dtype.itemsize, arch):
    case = kernels.lanes(dtype, lanes)
    run(case.program, arch, case.memory)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.name)
def test_masks(dtype: DType, arch: str) -> None:
  for other in TYPES:
    case = kernels.choice(dtype, other, VECTOR_BYTES[arch])
    run(case.program, arch, case.memory)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
def test_logic_memory_and_elements_of_masks(arch: str) -> None:
  for lanes in counts(1, arch):
    case = kernels.logic(lanes)
    run(case.program, arch, case.memory)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", (*dtypes.ints, *FLOATS), ids=lambda d: d.name)
def test_vectors_of_constants(dtype: DType, arch: str) -> None:
  """All alike, at a distance from each other, and different ones."""
  count = VECTOR_BYTES[arch] // dtype.itemsize
  b = Builder("constants")
  out = b.param(0, dtype, 4 * count)
  with b.loop(1, AxisType.GLOBAL):
    for k, number in enumerate((3, 100)):
      b.store(out, b.const(dtypes.int32, k * count), b.const(dtype.vec(count), number))
    for k, numbers in enumerate(([3 * n + 1 for n in range(count)], [n * n % 100 for n in range(count)]), 2):
      made = [UOp.const(dtype, float(n) if dtype in FLOATS else n) for n in numbers]
      b.store(out, b.const(dtypes.int32, k * count), b.add(vectorize(*made)))
  run(b.program(), arch, [bytes(4 * count * dtype.itemsize)])

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
def test_a_scalar_factor_is_an_operand(arch: str) -> None:
  """No broadcast: vfmacc.vf takes the float register."""
  lanes = VECTOR_BYTES[arch] // 4
  f32 = dtypes.float32
  b = Builder("fma")
  out, x, y = b.param(0, f32, 4 * lanes), b.param(1, f32, 4 * lanes), b.param(2, f32, 4)
  with b.loop(4, AxisType.GLOBAL) as g:
    factor, at = broadcast(b.load(y, g), lanes), g * lanes
    b.store(out, at, b.add(UOp(Ops.MULACC, f32.vec(lanes), (factor, b.load(x, at, lanes), b.load(out, at, lanes)))))
  function: Function = target(arch).select(b.program(), target(arch))   # type: ignore[misc]  # it has one
  names = [inst.row.name for block in function.blocks for inst in block.insts]
  assert "vfmacc.vf" in names and "vfmv.v.f" not in names
  data = [b"".join(to_bytes(k / 4, f32) for k in range(n)) for n in (4 * lanes, 4 * lanes, 4)]
  run(b.program(), arch, data)

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
def test_more_vectors_and_masks_than_registers(arch: str) -> None:
  """Many vectors and masks live at once: whole registers go to the frame and back, beyond 2 KiB, too."""
  many, lanes, i32 = 120, VECTOR_BYTES[arch] // 4, dtypes.int32
  b = Builder("pressure")
  out, x = b.param(0, i32, many * lanes), b.param(1, i32, many * lanes)
  with b.loop(1, AxisType.GLOBAL):
    values = [b.load(x, b.const(i32, k * lanes), lanes) for k in range(many)]
    masks = [b.add(UOp(Ops.CMPLT, dtypes.bool.vec(lanes), (v, values[0]))) for v in values]
    for k in range(many):
      at, last = b.const(i32, k * lanes), many - 1 - k
      b.store(out, at, b.add(masks[last].where(b.add(values[last] + values[k]), values[k])))
  function = assemble(b.program(), arch)[0]
  assert function.spills > 40 and function.stack_bytes > 2048
  data = b"".join(to_bytes((7 * k * k + 5 * k) % 101 - 50, i32) for k in range(many * lanes))
  run(b.program(), arch, [bytes(4 * many * lanes), data])

def test_conversions_that_are_refused() -> None:
  b = Builder("cast")
  out, x = b.param(0, dtypes.float32, 2), b.param(1, dtypes.int64, 2)
  with b.loop(1, AxisType.GLOBAL):
    zero = b.const(dtypes.int32, 0)
    b.store(out, zero, b.add(UOp(Ops.CAST, dtypes.float32.vec(2), (b.load(x, zero, 2),))))
  with pytest.raises(CompileError, match="riscv64 does not convert"): compile(b.program(), "riscv64:v128")

def test_states() -> None:
  assert state_of(dtypes.float32.vec(4)) == "32x4m1" and state_of(dtypes.int16.vec(8), 2) == "16x8mf2"
  assert state_of(dtypes.bool.vec(16)) == "8x16m1"

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", (*dtypes.ints, dtypes.float32, dtypes.float64), ids=lambda d: d.name)
def test_memory_under_a_mask(dtype: DType, arch: str) -> None:
  """Nothing after the end of a buffer changes."""
  for lanes in counts(dtype.itemsize, arch):
    size = (lanes + lanes // 2) * dtype.itemsize
    run(x86_kernels.masked_memory(lanes, dtype), arch, [bytes(size), bytes(k % 60 for k in range(size))])

def gathered(lanes: int, dtype: DType, kind: DType, gated: bool) -> Program:
  """Elements at indices from memory; those whose gate is false are 3, and their indices are far outside."""
  b = Builder(f"gathered_{lanes}_{dtype.name}")
  out, x = b.param(0, dtype, 2 * lanes), b.param(1, dtype, 100)
  places = b.param(2, kind, 2 * lanes)
  with b.loop(2, AxisType.GLOBAL) as g:
    at = b.load(places, g * lanes, lanes)
    index = UOp(Ops.INDEX, dtype, (x, at))
    gate = [b.add(at.alu(Ops.CMPLT, UOp.const(at.dtype, 100))), UOp.const(dtype.vec(lanes), 3)] if gated else []
    b.store(out, g * lanes, b.add(UOp(Ops.LOAD, dtype.vec(lanes), (index, *gate))))
  return b.program()

@needs_qemu
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("most", (1 << 32, 0), ids=("offsets", "element by element"))
@pytest.mark.parametrize("gated", (False, True), ids=("all", "gated"))
@pytest.mark.parametrize("dtype", (dtypes.int32, dtypes.float32, dtypes.int64, dtypes.float64), ids=lambda d: d.name)
def test_gathers(dtype: DType, gated: bool, most: int, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Elements of 4 bytes are read by offsets of 32 bits where these reach all of the buffer."""
  monkeypatch.setattr(select, "MOST_OFFSETS", most)
  for kind in (dtypes.int32, dtypes.int64):
    for lanes in counts(max(dtype.itemsize, kind.itemsize), arch):
      chosen = [(37 * k) % 100 if not gated or k % 3 else 1_000_000_000 + k for k in range(2 * lanes)]
      data = b"".join(to_bytes(k, dtype) for k in range(100))
      program = gathered(lanes, dtype, kind, gated)
      run(program, arch, [bytes(2 * lanes * dtype.itemsize), data, b"".join(to_bytes(i, kind) for i in chosen)])
