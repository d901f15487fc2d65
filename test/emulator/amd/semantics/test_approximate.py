"""Approximate functions: exact where results are, elsewhere up to a unit off, and sometimes really off."""
from __future__ import annotations
import math
import random
import struct

from tinyhw.emulator.amd.semantics.approximate import TWO_OVER_PI, approximate, coarse, trig_preop
from tinyhw.emulator.amd.semantics.numerics import environment
from tinyhw.emulator.amd.semantics.vector import VECTOR
from amd.lanes import execute

def f(bits: int) -> float: return float(struct.unpack("<f", struct.pack("<I", bits))[0])
def single(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])

def test_approximations_are_within_one_unit_and_sometimes_off() -> None:
  source = random.Random(6)
  off = 0
  for name, exact in (("v_rcp_f32", lambda x: 1 / x), ("v_sqrt_f32", math.sqrt), ("v_exp_f32", lambda x: 2.0 ** x),
                      ("v_log_f32", math.log2)):
    given = [single(source.uniform(0.5, 30.0)) for _ in range(32)]
    for lane, got in enumerate(execute(VECTOR[name], {"S0": given}).u[0]):
      distance = abs(got - single(exact(f(given[lane]))))
      assert distance <= 1, (name, f(given[lane]))
      off += distance
  assert off > 10, "a program must not be able to rely on correct rounding"
  assert ([f(x) for x in execute(VECTOR["v_rcp_f32"], {"S0": [single(x) for x in (1.0, 2.0, 0.25, -4.0)] * 8}).u[0][:4]]
          == [1.0, 0.5, 4.0, -0.25])
  assert execute(VECTOR["v_rcp_f32"], {"S0": [0x00400000] * 32}).u[0][0] == 0x7f800000, "denormals are flushed"

def test_sines_take_turns() -> None:
  given = [single(x) for x in (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, -0.25, 300.0)] * 4
  assert [f(x) for x in execute(VECTOR["v_sin_f32"], {"S0": given}).u[0][:8]] == [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, -1.0,
                                                                                  0.0]
  assert [f(x) for x in execute(VECTOR["v_cos_f32"], {"S0": given}).u[0][:8]] == [1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0,
                                                                                  1.0]

def test_doubles_have_24_bits() -> None:
  third = coarse(lambda x: 1 / x)(3.0)
  assert third != 1 / 3 and abs(third - 1 / 3) < 2.0 ** -25
  assert coarse(lambda x: 1 / x)(4.0) == 0.25
  assert approximate(math.sqrt)(9.0) == 3.0

def test_half_precision_is_rounded_to_nearest() -> None:
  assert environment(False)["rcp_f16"](3.0) == struct.unpack("<e", struct.pack("<e", 1 / 3))[0]

def test_two_over_pi_in_parts() -> None:
  assert TWO_OVER_PI.bit_length() == 1201 and TWO_OVER_PI / 2 ** 1201 == 2 / math.pi
  x = 1e300
  parts = [trig_preop(x, n) for n in range(3)]
  assert all(abs(low) < abs(high) * 2.0 ** -40 for high, low in zip(parts, parts[1:]))
