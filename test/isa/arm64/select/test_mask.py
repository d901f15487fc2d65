"""Vectors of bool: their lanes, logic, memory, and variables."""
from __future__ import annotations

import pytest
from arm64.machine import needs_qemu, run
from generators.program_builder import Builder, broadcast, vectorize

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

ARCH = "arm64:neon"
pytestmark = needs_qemu
TYPES = (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.float32, dtypes.int64, dtypes.float64)

def data(dtype: DType, count: int) -> bytes:
  return b"".join(to_bytes((3 * k * k + k) % 7 - 3 * (dtype in dtypes.sints or dtype in dtypes.floats),
                           dtype) for k in range(count))

@pytest.mark.parametrize("other", TYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.name)
def test_a_mask_of_one_type_chooses_values_of_another(dtype: DType, other: DType) -> None:
  lanes = 16 // max(dtype.itemsize, other.itemsize)
  b = Builder("choose")
  out, x, y = b.param(0, other, 4 * lanes), b.param(1, dtype, 4 * lanes), b.param(2, other, 4 * lanes)
  with b.loop(4, AxisType.GLOBAL) as g:
    v, w = b.load(x, g * lanes, lanes), b.load(y, g * lanes, lanes)
    mask = b.add(UOp(Ops.CMPLT, dtypes.bool.vec(lanes), (v, UOp.const(dtype.vec(lanes), 2))))
    b.store(out, g * lanes, b.add(mask.where(w, w + w)))
  run(b.program(), ARCH, [bytes(4 * lanes * other.itemsize), data(dtype, 4 * lanes), data(other, 4 * lanes)])

@pytest.mark.parametrize("lanes", (2, 4, 8, 16))
def test_logic_memory_and_lanes(lanes: int) -> None:
  b = Builder("logic")
  boolean = dtypes.bool.vec(lanes)
  out, one, x = b.param(0, dtypes.bool, 8 * lanes), b.param(1, dtypes.bool, 2), b.param(2, dtypes.bool, 2 * lanes)
  with b.loop(1, AxisType.GLOBAL):
    p, q = (b.load(x, b.const(dtypes.int32, k * lanes), lanes) for k in range(2))
    found = [UOp(op, boolean, (p, q)) for op in (Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE)]
    found += [p.where(q, UOp(Ops.NEG, boolean, (q,))), UOp(Ops.WHERE, boolean, (broadcast(UOp(Ops.GEP, dtypes.bool,
                                                                                              (p,), 1), lanes), p, q))]
    for k, value in enumerate(found): b.store(out, b.const(dtypes.int32, k * lanes), b.add(value))
    b.store(one, b.const(dtypes.int32, 0), b.add(UOp(Ops.GEP, dtypes.bool, (found[2],), lanes - 1)))
    b.store(one, b.const(dtypes.int32, 1), b.add(UOp(Ops.GEP, dtypes.bool, (vectorize(*[UOp(Ops.GEP, dtypes.bool, (q,),
                                                                                            k)
                                                                                       for k in range(lanes)]),), 1)))
  run(b.program(), ARCH, [bytes(8 * lanes), bytes(2), bytes((5 * k * k + 1) % 3 % 2 for k in range(2 * lanes))])
