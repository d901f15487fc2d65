"""Division in three steps: the sequence that compilers emit gives correctly rounded quotients, denormals and overflow
included."""
from __future__ import annotations
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from amd.lanes import FLOAT32, FLOAT64, values

from tinyhw.arithmetic import divide, round_float32
from tinyhw.emulator.amd.semantics.division import DIVISION
from tinyhw.emulator.python.floats import float32_of, float64_of
from tinyhw.emulator.amd.semantics.numerics import environment

NAMES: dict[str, Any] = environment(False)

def quotient(kind: str, a: float, b: float) -> float:
  """Return the quotient by the sequence that LLVM emits (legalizeFDIV32, legalizeFDIV64)."""
  fma, rounding = NAMES[f"fma_{kind}"], round_float32 if kind == "f32" else float
  steps = DIVISION[kind]
  denominator, numerator, flag = steps.scaled(b, b, a), steps.scaled(a, b, a), steps.flag(b, a)
  r = NAMES[f"rcp_{kind}"](denominator)
  for _ in range(1 + (kind == "f64")): r = fma(fma(-denominator, r, 1.0), r, r)
  q = rounding(numerator * r)
  if kind == "f32": q = fma(fma(-denominator, q, numerator), r, q)
  return steps.fixup(steps.fmas(fma(-denominator, q, numerator), r, q, flag), b, a)

@pytest.mark.parametrize("kind,special,bits,decode,rounding", [
  ("f32", FLOAT32, 32, float32_of, round_float32), ("f64", FLOAT64, 64, float64_of, float)])
def test_quotients(kind: str, special: tuple[int, ...], bits: int, decode: Callable[[int], float],
                   rounding: Callable[[float], float]) -> None:
  source = random.Random(kind)
  for a, b in zip(values(source, special, bits, 1500), values(source, special, bits, 1500)):
    got, want = quotient(kind, decode(a), decode(b)), rounding(divide(decode(a), decode(b)))
    assert (got != got and want != want or got == want
            and math.copysign(1.0, got) == math.copysign(1.0, want)), (hex(a), hex(b), got, want)

def test_what_is_scaled() -> None:
  steps = DIVISION["f32"]
  assert steps.scaled(3.0, 3.0, 1.0) == 3.0 and not steps.flag(3.0, 1.0)
  # a denormal denominator, and the quotient is large
  assert steps.scaled(2.0 ** -140, 2.0 ** -140, 1.0) == 2.0 ** -76
  assert steps.flag(2.0 ** -100, 2.0 ** 20)
  assert steps.scaled(2.0 ** 127, 2.0 ** 127, 2.0 ** 100) == 2.0 ** 63       # its reciprocal would be a denormal
  assert math.isnan(steps.scaled(1.0, 0.0, 1.0)) and not steps.flag(0.0, 1.0)
