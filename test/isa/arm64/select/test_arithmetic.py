"""Comparisons, choices, and operands that instructions include."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from generators.program_builder import Builder, broadcast

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCH = "arm64:neon"
F32 = dtypes.float32

def names(program: Program) -> list[str]:
  function = target(ARCH).select(program, target(ARCH))   # type: ignore[misc]  # it has one
  return [inst.row.name for block in function.blocks for inst in block.insts]

def floats(*values: float) -> bytes: return b"".join(to_bytes(v, F32) for v in values)

@needs_qemu
def test_a_product_reads_an_element_of_a_register() -> None:
  """A broadcast factor is no instruction: fmla takes lane 0 of the scalar."""
  b = Builder("fmla")
  out, x, y = b.param(0, F32, 16), b.param(1, F32, 16), b.param(2, F32, 4)
  with b.loop(4, AxisType.GLOBAL) as g:
    factor = broadcast(b.load(y, g), 4)
    b.store(out, g * 4, b.add(UOp(Ops.MULACC, F32.vec(4), (factor, b.load(x, g * 4, 4), b.load(out, g * 4, 4)))))
  program = b.program()
  assert "dup" not in names(program) and names(program).count("fmla") == 1
  run(program, ARCH, [floats(*range(16)), floats(*(k / 4 for k in range(16))), floats(1.5, -2, 3, 0)])

@needs_qemu
@pytest.mark.parametrize("dtype", (F32, dtypes.int32), ids=lambda d: d.name)
def test_a_product_of_two_broadcasts_copies_one(dtype: DType) -> None:
  """Only one factor of fmul is an element. Integers are no elements."""
  b = Builder("two")
  out, x, y = b.param(0, dtype, 16), b.param(1, dtype, 4), b.param(2, dtype, 4)
  with b.loop(4, AxisType.GLOBAL) as g:
    first, second = broadcast(b.load(x, g), 4), broadcast(b.load(y, g), 4)
    b.store(out, g * 4, b.add(UOp(Ops.MUL, dtype.vec(4), (first, second))))
  program = b.program()
  assert names(program).count("dup") == (1 if dtype is F32 else 2)
  data = [b"".join(to_bytes(v, dtype) for v in values) for values in ((1, -2, 3, 5), (7, 9, -4, 0))]
  run(program, ARCH, [bytes(64), *data])

@needs_qemu
@pytest.mark.parametrize("op", (Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE), ids=lambda op: op.name)
def test_a_comparison_with_one_user_is_flags(op: Ops) -> None:
  b = Builder("flags")
  out, x = b.param(0, dtypes.int32, 8), b.param(1, dtypes.int32, 8)
  with b.loop(8, AxisType.GLOBAL) as g:
    value = b.load(x, g)
    condition = b.add(UOp(op, dtypes.bool, (value, UOp.const(dtypes.int32, -3))))
    b.store(out, g, b.add(condition.where(value, UOp.const(dtypes.int32, 7))))
  program = b.program()
  assert "cset" not in names(program) and {"cmn", "csel"} <= set(names(program))
  run(program, ARCH, [bytes(32), b"".join(to_bytes(v, dtypes.int32) for v in (-5, -3, 0, 3, 1 << 30, -1 << 31, -4,
                                                                              -2))])

def test_what_is_missing_is_refused() -> None:
  b = Builder("missing")
  out = b.param(0, F32, 4)
  with b.loop(4, AxisType.GLOBAL) as g: b.store(out, g, b.add(UOp(Ops.SIN, F32, (b.load(out, g),))))
  with pytest.raises(CompileError, match="arm64 has no SIN of dtypes.float"): names(b.program())
