"""Values of the notation in Python. Wrapping and rounding happen only where their absence would be visible."""
from __future__ import annotations
import pytest
from amd.lanes import execute

from tinyhw.emulator.python.expressions import Expressions, PythonExpression
from tinyhw.emulator.notation import ExpressionNode, NotationError, parse

MASK = 0xffffffff

def result(semantics: str, **operands: int) -> int:
  return int(execute(semantics, {name: [value] * 32 for name, value in operands.items()}).u[0][0])

def test_integers_wrap_where_somebody_looks() -> None:
  assert result("D.u32 = (S0.u32 + S1.u32) >> 1", S0=MASK, S1=1) == 0
  assert result("D.u32 = (u64(S0.u32) + u64(S1.u32)) >> 1", S0=MASK, S1=1) == 1 << 31
  assert result("D.u32 = S0.u32 + S1.u32 + S2.u32 - 5", S0=MASK, S1=MASK, S2=8) == 1
  assert result("D.i32 = (S0.i32 * S1.i32) >> 4", S0=0x80000000, S1=2) == 0
  assert result("D.u32 = 1 if ~S0.u32 > 5 else 0", S0=MASK) == 0
  assert result("t = S0.u32 + 1; D.u32 = 1 if t == 0 else 2", S0=MASK) == 1
  assert result("D.i32 = i32(i8(S0.u32))", S0=0x180) == -128 & MASK

def test_floats_are_rounded_after_each_operation() -> None:
  """2**24 + 1 is no float32. Adding 1 twice stays at 2**24."""
  assert result("D.f32 = S0.f32 + 1.0 + 1.0", S0=0x4b800000) == 0x4b800000
  assert result("D.f32 = S0.f32 + 2.0", S0=0x4b800000) == 0x4b800001
  assert result("D.f16 = S0.f16 + S1.f16", S0=0x7bff, S1=0x7bff) & 0xffff == 0x7c00

class Named(Expressions):
  """Operands are their names, with all values of their types."""
  def __init__(self) -> None: self.locals = {}
  def read(self, node: ExpressionNode) -> PythonExpression:
    return PythonExpression(str(node.value).lower(), node.type.low, node.type.high)

def text(semantics: str) -> str: return Named().exact(parse(semantics)[0].value)

@pytest.mark.parametrize("expression, wanted", [
  ("S0.u32 + S1.u32", "((s0 + s1) & 0xffffffff)"),
  ("(S0.u32 & 255) + (S1.u32 & 255)", "((s0 & 255) + (s1 & 255))"),           # cannot leave the type
  ("S0.u32[7:0] * S1.u32[7:0]", "((s0 & 0xff) * (s1 & 0xff))"),
  # bits of a difference are right without wrapping it
  ("(S0.u32 - S1.u32)[15:0]", "((s0 - s1) & 0xffff)"),
  ("~S0.u32 & S1.u32", "((~s0) & s1)"),
  # a right shift would bring in higher bits
  ("(S0.u32 + S1.u32) >> 3", "(((s0 + s1) & 0xffffffff) >> 3)"),
])
def test_masks_stand_only_where_they_are_needed(expression: str, wanted: str) -> None:
  assert text(f"D.u32 = {expression}") == wanted

def test_signed_numbers_wrap_with_their_sign() -> None:
  assert text("D.i32 = S0.i32 + S1.i32") == "(((s0 + s1) + 0x80000000 & 0xffffffff) - 0x80000000)"

@pytest.mark.parametrize("expression, words",
                         [("u32(1) << S0.u32", "count to shift by"), ("S0.f32[7:0]", "bits of a float")])
def test_what_cannot_be_meant_is_refused(expression: str, words: str) -> None:
  with pytest.raises(NotationError, match=words): text(f"D.u32 = {expression}")
