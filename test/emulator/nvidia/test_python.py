"""Functions made from semantics: their text for one value, for several, for masks, for uniform instructions; signs of
approximate functions' operands; results that nobody reads."""
from __future__ import annotations
import math
from collections.abc import Callable

import pytest
from nvidia.warps import after, words
from tinyhw.emulator.nvidia.python import compiled
from tinyhw.emulator.nvidia.warp.numbers import words_of
from tinyhw.emulator.python.floats import float32_of

def test_one_value_is_a_comprehension() -> None:
  assert compiled("D.f32 = A.f32 + B.f32", False).text == """def make(s0, s1, d0):
  def run(warp, mask):
    r0 = [(x0 + x1) for x0, x1 in zip(s0(warp), s1(warp))]
    d0(warp, r0, mask)
  return run
"""

def test_several_values_and_masks_are_a_loop() -> None:
  made = compiled("t = u64(A.u32) + u64(B.u32); PU.bool = t >= 4294967296; D.u32 = t", False)
  assert made.sources == (("A", "u32"), ("B", "u32")) and made.targets == (("PU", "bool"), ("D", "u32"))
  assert "if (t >= 4294967296): r0 |= 1 << lane" in made.text and "r1.append(t)" in made.text

def test_uniform_semantics_have_one_value() -> None:
  assert compiled("D.u32 = A.u32 + 1", True).text == """def make(s0, d0):
  def run(warp, mask):
    x0 = s0(warp)
    r0 = (x0 + 1)
    d0(warp, r0, mask)
  return run
"""

def test_instructions_that_differ_in_operands_alone_share_a_function() -> None:
  assert compiled("D.u32 = A.u32 * B.u32", False) is compiled("D.u32 = A.u32 * B.u32", False)

def test_signs_of_approximate_functions() -> None:
  numbers = [0x40800000] * 32
  warp = after(["MUFU.RCP R1, -R0", "MUFU.RCP R2, |R1|", "MUFU.RCP R3, -|R0|"], registers={0: numbers})
  assert [float32_of(warp.registers[k][0]) for k in (1, 2, 3)] == [-0.25, 4.0, -0.25]

@pytest.mark.parametrize("name, function", [
  ("RCP", lambda x: 1 / x), ("RSQ", lambda x: 1 / math.sqrt(x)), ("SQRT", math.sqrt), ("EX2", lambda x: 2.0 ** x),
  ("LG2", math.log2)])
def test_approximate_functions_by_name(name: str, function: Callable[[float], float]) -> None:
  numbers = [0.3 + k for k in range(32)]
  found = after([f"MUFU.{name} R1, R0"], registers={0: words_of(numbers)}).registers[1]
  for x, bits in zip(numbers, found): assert math.isclose(float32_of(bits), function(x), rel_tol=1e-5)

def test_results_are_discarded() -> None:
  warp = after(["ULDC.64 URZ, c[0x0][0x18]", "IADD3 RZ, P1, R0, R1, RZ"], constants=bytes(64),
               registers={0: words(1), 1: words(2)})
  assert warp.registers[255] == [0] * 32
  assert warp.predicates[1] == sum(1 << k for k, (a, b) in enumerate(zip(words(1), words(2))) if a + b >> 32)
