"""Floats in AMD's modes."""
from __future__ import annotations
import math
import random

from tinyhw.arithmetic import fused_float32, round_float16, round_float32
from tinyhw.emulator.amd.semantics.floats import (
  clamp_float, doubtful, flush_f16, flush_f32, flush_f64, scaled, scaled_f32)

def test_flushing_keeps_the_sign_and_all_normal_numbers() -> None:
  for flush, normal in ((flush_f32, 2.0 ** -126), (flush_f16, 2.0 ** -14), (flush_f64, 2.0 ** -1022)):
    assert flush(normal) == normal and flush(-normal) == -normal
    assert flush(-normal / 2) == 0 and math.copysign(1.0, flush(-normal / 2)) < 0
    assert flush(math.inf) == math.inf and math.isnan(flush(math.nan))

def test_scaling_rounds_once_and_has_no_exceptions() -> None:
  assert scaled_f32(1.5, 200) == math.inf and scaled_f32(-1.5, 10**9) == -math.inf and scaled_f32(1.0, -10**9) == 0.0
  assert scaled_f32(1.0 + 2.0 ** -23, -149) == 2.0 ** -149
  assert scaled(round_float16)(1.0, 20) == math.inf and scaled(float)(1.0, 5000) == math.inf

def test_clamping_makes_nan_zero() -> None:
  assert [clamp_float(x) for x in (-1.0, 0.5, 7.0, math.nan)] == [0.0, 0.5, 1.0, 0.0]

def test_where_a_second_rounding_may_do_harm() -> None:
  """Elsewhere the two-step result is the fused one. Ties that rounding made are doubtful, and so are denormals."""
  source, safe = random.Random(1), 0
  for _ in range(3000):
    a, b, c = (round_float32(source.choice((1, 2.0 ** -30, 2.0 ** 60, 2.0 ** -70)) * source.uniform(-2, 2))
               for _ in range(3))
    if not doubtful([a * b + c]):
      safe += 1
      assert round_float32(a * b + c) == fused_float32(a, b, c)
  assert safe > 2000
  assert doubtful([0.0, 1.5, math.inf, math.nan, -0.0]) == []
  assert doubtful([1.0, 1.0 + 2.0 ** -24, 2.0 ** -130]) == [1, 2]
