"""Expressions as UOps: refusals, and the bounds of shift counts. test_native.py tests values."""
from __future__ import annotations

import pytest

from tinyhw.dtype import dtypes
from tinyhw.emulator.native.expressions import Expressions, Untranslatable
from tinyhw.emulator.notation import ExpressionNode, ValueType, parse
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Reading(Expressions):
  """Operands are parameters of scalars."""
  def __init__(self) -> None: self.width, self.locals = 1, {}

  def read(self, name: str, kind: ValueType) -> UOp:
    return UOp(Ops.INDEX, dtypes.uint32, (UOp.param(0, dtypes.uint32, 4), UOp.const(dtypes.int32, 0))).load().bitcast(
      {"u32": dtypes.uint32, "i32": dtypes.int32, "f32": dtypes.float32}[kind.name])

def node(text: str) -> ExpressionNode: return parse(text)[-1].value

@pytest.mark.parametrize("text", ["D.u32 = u32(u128(S0.u32) >> 3)", "D.f32 = rcp(S0.f32)",
                                  "D.f16 = fma(f16(S0.f32), f16(S0.f32), f16(S0.f32))",
                                  "D.u32 = 1 << S0.u32", "D.u64 = u64(S0.f32)", "D.bf16 = bf16(S0.f32)"])
def test_what_stays_python(text: str) -> None:
  with pytest.raises(Untranslatable): Reading().value(node(text))

@pytest.mark.parametrize("text,most", [("D.u32 = 5", 5), ("D.u32 = S0.u32[4:0]", 31), ("D.u32 = S0.u32[1:0] << 3", 24),
                                       ("D.u32 = S0.u32 + 1", None)])
def test_bounds_of_numbers(text: str, most: int | None) -> None: assert Reading().most(node(text)) == most

def test_narrow_integers_wrap() -> None:
  value = Reading().value(node("D.i16 = i16(S0.u32) + 1"))
  assert value.op is Ops.SHR and value.src[0].op is Ops.SHL and value.dtype is dtypes.int32
