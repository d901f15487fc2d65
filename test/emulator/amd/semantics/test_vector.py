"""Vector semantics against struct, ctypes and plain integers, on special and random values, with all lanes active and
with some."""
from __future__ import annotations
import math
import random
import struct
from collections.abc import Callable

import pytest

from tinyhw.arithmetic import fused_float32
from tinyhw.emulator.amd.semantics.vector import VECTOR
from amd.lanes import FLOAT32, FLOAT64, INTEGERS, execute, values

MASK = 0xffffffff

def f(bits: int) -> float: return float(struct.unpack("<f", struct.pack("<I", bits & MASK))[0])
def d(bits: int) -> float: return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
def i(bits: int) -> int: return bits - (1 << 32) if bits >> 31 else bits
def i24(bits: int) -> int: return ((bits & 0xffffff) ^ 0x800000) - 0x800000
def single(x: float) -> int:
  try: return int(struct.unpack("<I", struct.pack("<f", x))[0])
  except OverflowError: return 0xff800000 if x < 0 else 0x7f800000
def double(x: float) -> int: return int(struct.unpack("<Q", struct.pack("<d", x))[0])
def saturate(x: float, low: int, high: int) -> int:
  return 0 if x != x else low if x <= low else high if x >= high else math.trunc(x)

# name: (result from the bits of its operands, special values of the operands, bits of them, bits of the result)
WORDS: dict[str, Callable[..., int]] = {
  "v_mov_b32": lambda a: a, "v_not_b32": lambda a: a ^ MASK, "v_and_b32": lambda a, b: a & b, "v_or_b32": lambda a,
  b: a | b,
  "v_xor_b32": lambda a, b: a ^ b, "v_xnor_b32": lambda a, b: a ^ b ^ MASK, "v_add_nc_u32": lambda a, b: a + b & MASK,
  "v_sub_nc_u32": lambda a, b: a - b & MASK, "v_subrev_nc_u32": lambda a, b: b - a & MASK, "v_mul_lo_u32": lambda a,
  b: a * b & MASK,
  "v_mul_hi_u32": lambda a, b: a * b >> 32, "v_mul_hi_i32": lambda a, b: i(a) * i(b) >> 32 & MASK,
  "v_mul_u32_u24": lambda a, b: (a & 0xffffff) * (b & 0xffffff) & MASK, "v_mul_i32_i24": lambda a,
  b: i24(a) * i24(b) & MASK,
  "v_mul_hi_i32_i24": lambda a, b: i24(a) * i24(b) >> 32 & MASK, "v_mad_u32_u24": lambda a, b,
  c: (a & 0xffffff) * (b & 0xffffff) + c & MASK,
  "v_mad_i32_i24": lambda a, b, c: i24(a) * i24(b) + c & MASK, "v_lshlrev_b32": lambda a, b: b << (a & 31) & MASK,
  "v_lshrrev_b32": lambda a, b: b >> (a & 31), "v_ashrrev_i32": lambda a, b: i(b) >> (a & 31) & MASK,
  "v_min_i32": lambda a, b: min(i(a), i(b)) & MASK, "v_max_i32": lambda a, b: max(i(a), i(b)) & MASK, "v_min_u32": min,
  "v_max_u32": max,
  "v_bfe_u32": lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1, "v_bfi_b32": lambda a, b, c: a & b | ~a & c & MASK,
  "v_bfe_i32": lambda a, b, c: (0 if c & 31 == 0 else ((i(a) >> (b & 31)) + (1 << (c & 31) - 1) & (1 << (c & 31)) - 1)
                                - (1 << (c & 31) - 1)) & MASK,
  "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31) & MASK, "v_alignbyte_b32": lambda a, b,
  c: (a << 32 | b) >> 8 * (c & 3) & MASK,
  "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c & MASK, "v_add_lshl_u32": lambda a, b,
  c: (a + b) << (c & 31) & MASK,
  "v_lshl_or_b32": lambda a, b, c: (a << (b & 31) & MASK) | c, "v_and_or_b32": lambda a, b, c: a & b | c,
  "v_or3_b32": lambda a, b, c: a | b | c,
  "v_xor3_b32": lambda a, b, c: a ^ b ^ c, "v_xad_u32": lambda a, b, c: (a ^ b) + c & MASK, "v_add3_u32": lambda a, b,
  c: a + b + c & MASK,
  "v_min3_u32": min, "v_max3_i32": lambda a, b, c: max(i(a), i(b), i(c)) & MASK, "v_med3_i32": lambda a, b,
  c: sorted((i(a), i(b), i(c)))[1] & MASK,
  "v_bcnt_u32_b32": lambda a, b: bin(a).count("1") + b & MASK, "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
  "v_clz_i32_u32": lambda a: 32 - a.bit_length() if a else MASK,
  "v_ctz_i32_b32": lambda a: (a & -a).bit_length() - 1 & MASK,
  "v_sad_u32": lambda a, b, c: abs(a - b) + c & MASK,
  "v_sad_u16": lambda a, b, c: abs((a & 65535) - (b & 65535)) + abs((a >> 16) - (b >> 16)) + c & MASK,
  "v_perm_b32": lambda a, b, c: int.from_bytes(bytes(permuted(a, b, c >> 8 * n & 255) for n in range(4)), "little"),
  "v_cvt_pk_u16_u32": lambda a, b: min(a, 65535) | min(b, 65535) << 16, "v_bfm_b32": lambda a,
  b: ((1 << (a & 31)) - 1) << (b & 31) & MASK,
  "v_cvt_f32_i32": lambda a: single_of_int(i(a)), "v_cvt_f32_u32": lambda a: single_of_int(a),
  "v_cvt_f32_ubyte2": lambda a: single(a >> 16 & 255),
}

def permuted(a: int, b: int, selector: int) -> int:
  both = b.to_bytes(4, "little") + a.to_bytes(4, "little")
  if selector < 8: return both[selector]
  return 255 if selector > 12 or selector < 12 and both[2 * (selector - 8) + 1] >> 7 else 0

def single_of_int(x: int) -> int:
  """Round half to even by hand."""
  size = abs(x)
  extra = max(size.bit_length() - 24, 0)
  kept, rest = size >> extra, size & (1 << extra) - 1
  if extra and (rest > 1 << extra - 1 or rest == 1 << extra - 1 and kept & 1): kept += 1
  return single(math.copysign(kept << extra, x))

def same32(got: int, want: int) -> bool: return got == want or f(got) != f(got) and f(want) != f(want)

FLOATS: dict[str, Callable[..., float]] = {
  "v_add_f32": lambda a, b: a + b, "v_sub_f32": lambda a, b: a - b, "v_subrev_f32": lambda a, b: b - a,
  "v_mul_f32": lambda a, b: a * b,
  "v_fma_f32": fused_float32, "v_trunc_f32": lambda a: math.copysign(math.trunc(a), a) if math.isfinite(a) else a,
  "v_rndne_f32": lambda a: math.copysign(round(a), a) if math.isfinite(a) else a,
  "v_max_f32": lambda a, b: b if a != a else a if b != b else max(a, b, key=lambda x: (x, math.copysign(1, x))),
  "v_min_f32": lambda a, b: b if a != a else a if b != b else min(a, b, key=lambda x: (x, math.copysign(1, x))),
  "v_floor_f32": lambda a: (float(math.floor(a)) if a else a) if math.isfinite(a) else a,
}

def arity(function: Callable[..., object]) -> int:
  return function.__code__.co_argcount if hasattr(function, "__code__") else 2

def operands(source: random.Random, count: int, special: tuple[int, ...], bits: int) -> dict[str, list[int]]:
  return {f"S{n}": values(source, special, bits) for n in range(count)}

@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
  function, source = WORDS[name], random.Random(name)
  count = 3 if name in ("v_min3_u32",) else arity(function)
  for mask in (MASK, MASK, 0x80000001, 0x0ff0a5a5):
    given = operands(source, count, INTEGERS, 32)
    wave = execute(VECTOR[name], given, mask, old=0x77777777)
    for lane in range(32):
      want = function(*(given[s][lane] for s in given)) if mask >> lane & 1 else 0x77777777
      assert wave.u[0][lane] == want, (name, lane, [hex(given[s][lane]) for s in given])

@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
  function, source = FLOATS[name], random.Random(name)
  count = arity(function)
  for mask in (MASK, MASK, MASK, 0x40000200):
    given = operands(source, count, FLOAT32, 32)
    wave = execute(VECTOR[name], given, mask)
    for lane in range(32):
      if mask >> lane & 1:
        want = single(function(*(f(given[s][lane]) for s in given)))
        assert same32(wave.u[0][lane], want), (name, [hex(given[s][lane]) for s in given], hex(wave.u[0][lane]),
                                               hex(want))

def test_a_fused_sum_is_rounded_once() -> None:
  """The double of a product and a sum is a tie between two float32 numbers."""
  # (1 + 2**-23)**2 + 2**-37: the last bits break the double's tie
  a, b, c = 0x3f800001, 0x3f800001, 0x33000000 - (12 << 23)
  given = {"S0": [a] * 32, "S1": [b] * 32, "S2": [c] * 31 + [c | 1 << 31]}
  wave = execute(VECTOR["v_fma_f32"], given)
  for lane in range(32): assert wave.u[0][lane] == single(fused_float32(f(a), f(b), f(given["S2"][lane])))
  # a tie, except for the smallest denormal
  ties = {"S0": [0x3f800800] * 32, "S1": [0x3f800800] * 32, "S2": [0x00000001] * 32}
  assert set(execute(VECTOR["v_fma_f32"], ties).u[0]) == {single(fused_float32(f(0x3f800800), f(0x3f800800), f(1)))}

@pytest.mark.parametrize("name,low,high,signed",
                         [("v_cvt_i32_f32", -2**31, 2**31 - 1, True), ("v_cvt_u32_f32", 0, 2**32 - 1, False)])
def test_to_integers(name: str, low: int, high: int, signed: bool) -> None:
  given = {"S0": list(FLOAT32) + [single(x) for x in (-0.9, 2.9, -2.9, 1e9, 3e9, 4294967040.0, -2147483648.0, 5e-1)]}
  wave = execute(VECTOR[name], given)
  for lane in range(32): assert wave.u[0][lane] == saturate(f(given["S0"][lane]), low, high) & MASK

@pytest.mark.parametrize("name,function", [("v_add_f64", lambda a, b: a + b), ("v_mul_f64", lambda a, b: a * b)])
def test_doubles(name: str, function: Callable[[float, float], float]) -> None:
  given = operands(random.Random(name), 2, FLOAT64, 64)
  wave = execute(VECTOR[name], given)
  for lane in range(32):
    got, want = wave.u[0][lane] | wave.u[1][lane] << 32, double(function(d(given["S0"][lane]), d(given["S1"][lane])))
    assert got == want or d(got) != d(got) and d(want) != d(want)

def test_double_and_single() -> None:
  given = {"S0": values(random.Random(1), FLOAT64, 64)}
  wave = execute(VECTOR["v_cvt_f32_f64"], given)
  for lane in range(32): assert same32(wave.u[0][lane], single(d(given["S0"][lane])))
  given = {"S0": values(random.Random(2), FLOAT32, 32)}
  wave = execute(VECTOR["v_cvt_f64_f32"], given)
  for lane in range(32):
    got = d(wave.u[0][lane] | wave.u[1][lane] << 32)
    assert got == f(given["S0"][lane]) or got != got and f(given["S0"][lane]) != f(given["S0"][lane])

COMPARE = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
           "ge": lambda a, b: a >= b}
FLOAT_COMPARE = {**COMPARE, "lg": lambda a, b: a < b or a > b, "o": lambda a, b: a == a and b == b, "u": lambda a,
                 b: a != a or b != b,
                 "nge": lambda a, b: not a >= b, "nlt": lambda a, b: not a < b, "neq": lambda a, b: not a == b,
                 "nlg": lambda a, b: not (a < b or a > b)}

@pytest.mark.parametrize("kind,decode,special,names", [
  ("f32", f, FLOAT32, FLOAT_COMPARE), ("f64", d, FLOAT64, FLOAT_COMPARE), ("i32", i, INTEGERS, COMPARE),
  ("u32", int, INTEGERS, COMPARE),
  ("u64", int, FLOAT64, COMPARE)])
def test_comparisons(kind: str, decode: Callable[[int], float], special: tuple[int, ...],
                     names: dict[str, Callable[..., bool]]) -> None:
  for name, function in names.items():
    given = operands(random.Random(name), 2, special, int(kind[1:]))
    given["S1"][:8] = given["S0"][:8]
    for mask in (MASK, 0xf0f01234):
      got = execute(VECTOR[f"v_cmp_{name}_{kind}"], given, mask).s[104]
      assert got == sum(1 << lane for lane in range(32) if mask >> lane & 1
                        and function(decode(given["S0"][lane]), decode(given["S1"][lane])))

def test_classes() -> None:
  kinds = {0: 0x7f800001, 1: 0x7fc00000, 2: 0xff800000, 3: 0xbf800000, 4: 0x80000001, 5: 0x80000000, 6: 0, 7: 1,
           8: 0x3f800000, 9: 0x7f800000}
  for bit in range(10):
    given = {"S0": [kinds[n % 10] for n in range(32)], "S1": [1 << bit] * 32}
    assert execute(VECTOR["v_cmp_class_f32"], given).s[104] == sum(1 << n for n in range(32) if n % 10 == bit)

def test_carries() -> None:
  given = operands(random.Random(3), 2, INTEGERS, 32)
  wave = execute(VECTOR["v_add_co_ci_u32"], given, vcc=0x5555aaaa)
  for lane in range(32):
    total = given["S0"][lane] + given["S1"][lane] + (0x5555aaaa >> lane & 1)
    assert (wave.u[0][lane], wave.s[104] >> lane & 1) == (total & MASK, total >> 32)
  wave = execute(VECTOR["v_sub_co_ci_u32"], given, vcc=0x5555aaaa)
  for lane in range(32):
    total = given["S0"][lane] - given["S1"][lane] - (0x5555aaaa >> lane & 1)
    assert (wave.u[0][lane], wave.s[104] >> lane & 1) == (total & MASK, int(total < 0))

def test_choice_and_lane_numbers() -> None:
  given = operands(random.Random(4), 2, INTEGERS, 32)
  for mask in (MASK, 0x00ffff00):
    wave = execute(VECTOR["v_cndmask_b32"], given, mask, vcc=0x12345678, old=9)
    for lane in range(32):
      want = given["S1" if 0x12345678 >> lane & 1 else "S0"][lane] if mask >> lane & 1 else 9
      assert wave.u[0][lane] == want
  wave = execute(VECTOR["v_mbcnt_lo_u32_b32"], {"S0": [MASK] * 32, "S1": [5] * 32})
  assert list(wave.u[0]) == [5 + lane for lane in range(32)]

@pytest.mark.parametrize("name", ["v_mad_u64_u32", "v_mad_i64_i32"])
def test_wide_products(name: str) -> None:
  source = random.Random(name)
  given = {"S0": values(source, INTEGERS, 32), "S1": values(source, INTEGERS, 32), "S2": values(source, FLOAT64, 64)}
  wave, decode = execute(VECTOR[name], given), i if "i64" in name else int
  for lane in range(32):
    want = decode(given["S0"][lane]) * decode(given["S1"][lane]) + given["S2"][lane] & (1 << 64) - 1
    assert wave.u[0][lane] | wave.u[1][lane] << 32 == want

def test_clamp_and_output_factor() -> None:
  given = {"S0": [single(x) for x in (0.25, -3.0, 7.0, math.nan)] * 8, "S1": [single(0.5)] * 32}
  assert [f(x) for x in execute(VECTOR["v_add_f32"], given, clamp=True).u[0][:4]] == [0.75, 0.0, 1.0, 0.0]
  assert [f(x) for x in execute(VECTOR["v_add_f32"], given, omod=2).u[0][:3]] == [3.0, -10.0, 30.0]
  assert [f(x) for x in execute(VECTOR["v_add_f32"], given, omod=-1).u[0][:3]] == [0.375, -1.25, 3.75]
  assert execute(VECTOR["v_add_nc_u32"], {"S0": [0xffffffff] * 32, "S1": [5] * 32}, clamp=True).u[0][0] == 0xffffffff
  assert execute(VECTOR["v_sub_nc_u32"], {"S0": [3] * 32, "S1": [5] * 32}, clamp=True).u[0][0] == 0

def test_denormals_are_flushed_where_the_mode_says() -> None:
  given = {"S0": [0x00400000, 0x80400000] * 16, "S1": [0x00400000, 0x3f800000] * 16}
  assert list(execute(VECTOR["v_add_f32"], given).u[0][:2]) == [0x00800000, 0x3f800000]
  assert list(execute(VECTOR["v_add_f32"], given, flush32=True).u[0][:2]) == [0, 0x3f800000]
  assert (list(execute(VECTOR["v_mul_f32"], {"S0": [0x00800000] * 32, "S1": [0x3f000000] * 32}, flush32=True).u[0][:1])
          == [0])
  assert list(execute(VECTOR["v_mov_b32"], given, flush32=True).u[0][:1]) == [0x00400000]
