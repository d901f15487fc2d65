"""The notation: types, literals, errors; all semantics in the tables parse."""
from __future__ import annotations

import pytest

from tinyhw.emulator.amd.execute.arithmetic import SEMANTICS
from tinyhw.emulator.notation import BOOL, TYPES, NotationError, parse

def test_every_meaning_parses() -> None:
  for name, semantics in SEMANTICS.items():
    assert parse(semantics), name

def test_types_of_expressions() -> None:
  product, = parse("D.u32 = S0.u32[23:0] * S1.u32[23:0] + 1")
  assert product.target == "D" and product.type is TYPES["u32"] and product.value.op == "+"
  assert product.value.args[1].value == 1 and product.value.args[1].type is TYPES["u32"]
  mask, = parse("CARRY = S0.f32 < 1")
  assert mask.value.type is BOOL and mask.value.args[1].value == 1.0
  local, written = parse("t = u64(S0.u32); D.u32 = t")
  assert local.type is TYPES["u64"] and written.value.op == "convert"
  element, = parse("D.i32 = i32(S0.i8(3))")
  assert element.value.args[0].value == "S0#3"
  assert parse("SCC = S0.u32")[0].value.op == "!="

@pytest.mark.parametrize("text,why", [
  ("D.u32 = S0.u32 + S1.f32", "S0.u32 is u32, S1.f32 is f32"), ("D.u32 = nothing", "nothing is not known"),
  ("D.u32 = f(S0.u32)", "no function f"),
  ("D.u32 = S0.u32[a:b]", "numbers"), ("1 + 2", "assignments"), ("D.i8 = 300", "outside of i8"),
  ("D.u32 = 1.5", "1.5 is no u32"),
  ("D.f32 = fma(S0.f32, S1.f32)", "takes 3"), ("D.u32 = least(S0.u32, S1.i32)", "different types"),
  ("t = 5", "no type here"),
  ("D.u32 = [S0.u32]", "not part of the notation")])
def test_what_does_not(text: str, why: str) -> None:
  with pytest.raises(NotationError, match=why): parse(text)
