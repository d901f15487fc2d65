"""Python from meanings: both ways through a vector instruction agree, wrapping happens where it must, shapes share functions."""
from __future__ import annotations
import random

import pytest
from amd_lanes import FLOAT16, FLOAT32, INTEGERS, execute, values

from tinyhw.emulator.notation import TYPES, parse
from tinyhw.emulator.amd.python_lanes import Form, Shape, Target, compiled, constant_argument, constant_value
from tinyhw.emulator.amd.semantics_packed import HALF
from tinyhw.emulator.amd.semantics_vector import VECTOR

MASK = 0xffffffff

@pytest.mark.parametrize("name", sorted({**VECTOR, **HALF}))
def test_all_lanes_at_once_and_one_by_one_agree(name: str) -> None:
  meaning, source = {**VECTOR, **HALF}[name], random.Random(name)
  special = FLOAT32 + INTEGERS + tuple(x << 16 | x for x in FLOAT16)
  given = {f"S{n}": values(source, special, 64) for n in range(3)} | {"K": values(source, special, 32)}
  full = execute(meaning, given, vcc=0x0f0f3355, old=3)
  for mask in (0x55555555, 0xaaaaaaaa):
    part = execute(meaning, given, mask, vcc=0x0f0f3355, old=3)
    for row in (0, 1):
      for lane in range(32):
        if mask >> lane & 1: assert same(part.u[row][lane], full.u[row][lane]), (name, lane)
        else: assert part.u[row][lane] == 3
    assert part.s[104] == full.s[104] & mask

def same(a: int, b: int) -> bool: return a == b or a & 0x7fffffff > 0x7f800000 and b & 0x7fffffff > 0x7f800000

def result(meaning: str, **operands: int) -> int:
  return int(execute(meaning, {name: [value] * 32 for name, value in operands.items()}).u[0][0])

def test_integers_wrap_where_somebody_looks() -> None:
  assert result("D.u32 = (S0.u32 + S1.u32) >> 1", S0=MASK, S1=1) == 0
  assert result("D.u32 = (u64(S0.u32) + u64(S1.u32)) >> 1", S0=MASK, S1=1) == 1 << 31
  assert result("D.u32 = S0.u32 + S1.u32 + S2.u32 - 5", S0=MASK, S1=MASK, S2=8) == 1
  assert result("D.i32 = (S0.i32 * S1.i32) >> 4", S0=0x80000000, S1=2) == 0
  assert result("D.u32 = 1 if ~S0.u32 > 5 else 0", S0=MASK) == 0
  assert result("t = S0.u32 + 1; D.u32 = 1 if t == 0 else 2", S0=MASK) == 1
  assert result("D.i32 = i32(i8(S0.u32))", S0=0x180) == -128 & MASK

def test_floats_are_rounded_after_each_operation() -> None:
  """2**24 + 1 is no float32; adding 1 twice stays there."""
  assert result("D.f32 = S0.f32 + 1.0 + 1.0", S0=0x4b800000) == 0x4b800000
  assert result("D.f32 = S0.f32 + 2.0", S0=0x4b800000) == 0x4b800001
  assert result("D.f16 = S0.f16 + S1.f16", S0=0x7bff, S1=0x7bff) & 0xffff == 0x7c00

def test_constants() -> None:
  assert constant_value(0x3c00, TYPES["f16"]) == 1.0 and constant_value(0xffffffff, TYPES["i32"]) == -1
  assert constant_value(0x3ff0000000000000, TYPES["f64"]) == 1.0 and constant_value(0x3f80, TYPES["bf16"]) == 1.0
  assert constant_argument("S0_f16_16_16", 0x3c000000) == 1.0 and constant_argument("S0_u32", 7) == 7

def test_instructions_that_differ_in_registers_share_a_function() -> None:
  shape = Shape("D.u32 = S0.u32 + S1.u32", (((("S0", Form("v")), ("S1", Form("s"))), (("D", Target("v")),)),), 32)
  assert compiled(shape) is compiled(Shape(*shape)) and compiled(shape).parameters == ("S0", "S1", "D") or set(compiled(shape).parameters) == {
    "S0", "S1", "D"}
  assert "S1_u32" in compiled(shape).text and parse(shape.meaning)
