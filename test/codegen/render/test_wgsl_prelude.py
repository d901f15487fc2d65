"""WGSL's functions: which of them a source gets, and on an adapter their results for numbers of all sizes."""
import math
import random
import struct
from fractions import Fraction

import pytest
from webgpu import adapter

from tinyhw.arithmetic import cast, round_to
from tinyhw.codegen.render.wgsl_prelude import CALLS, HELPERS, needed
from tinyhw.dtype import dtypes
from tinyhw.machine.ir.code import Code

MASK = (1 << 64) - 1
EDGES = [0, 1, 2, 3, 31, 32, 33, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, (1 << 32) + 1, 1 << 40,
         1 << 62, 1 << 63, MASK, MASK - 1, (1 << 63) - 1, 0xffffffff00000000, 0x123456789abcdef0, 0x1000001,
         (1 << 53) + 1]

def signed(x: int) -> int: return x - (1 << 64) if x >> 63 else x

def test_later_functions_call_earlier_ones() -> None:
  order = list(HELPERS)
  for name, called in CALLS.items(): assert all(order.index(other) < order.index(name) for other in called), name
  assert [text.split("(")[0] for text in needed({"idiv64"})] == [
    "fn sub64", "fn less_u64", "fn shl64", "fn shifted_right", "fn shr_u64", "fn divided64", "fn idiv64"]

def on_device(expression: str, pairs: list[tuple[int, int]]) -> list[int]:
  """Return a 64-bit expression of a and b, or `vec2<u32>(…, 0u)`, for pairs of 64-bit numbers."""
  head = "\n".join(HELPERS.values())
  source = f"""@group(0) @binding(0) var<storage, read_write> out: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> data: array<vec4<u32>>;
@group(1) @binding(0) var<uniform> numbers: array<vec4<u32>, 2>;
var<private> zero: u32;
{head}
@compute @workgroup_size(1) fn k_f(@builtin(workgroup_id) place: vec3<u32>) {{
  let a = data[place.x].xy; let b = data[place.x].zw;
  out[place.x] = {expression};
}}"""
  numbers = struct.pack(f"<{2 * len(pairs)}Q", *[n for pair in pairs for n in pair])
  memory = {0: bytearray(8 * len(pairs)), 1: bytearray(numbers)}
  adapter.run(Code("f", "wgsl", source.encode(), ("buffer", "buffer"), lanes=1), memory, (), len(pairs))
  return list(struct.unpack(f"<{len(pairs)}Q", memory[0]))

def draws() -> list[tuple[int, int]]:
  draw = random.Random(5)
  return [(a, b) for a in EDGES for b in EDGES] + [
    (draw.getrandbits(draw.randrange(1, 65)), draw.getrandbits(draw.randrange(1, 65))) for _ in range(200)]

@pytest.mark.parametrize("expression, wanted", [
  ("add64(a, b)", lambda a, b: a + b), ("sub64(a, b)", lambda a, b: a - b), ("mul64(a, b)", lambda a, b: a * b),
  ("idiv64(a, b)", lambda a, b: a // b), ("mod64(a, b)", lambda a, b: a % b),
  ("vec2<u32>(select(0u, 1u, less_u64(a, b)), 0u)", lambda a, b: int(a < b)),
  ("vec2<u32>(select(0u, 1u, less_i64(a, b)), 0u)", lambda a, b: int(signed(a) < signed(b))),
  ("vec2<u32>(select(0u, 1u, equal64(a, b)), 0u)", lambda a, b: int(a == b)),
  ("shl64(a, b.x & 63u)", lambda a, b: a << (b & 63)), ("shr_u64(a, b.x & 63u)", lambda a, b: a >> (b & 63)),
  ("shr_i64(a, b.x & 63u)", lambda a, b: signed(a) >> (b & 63)),
], ids=lambda x: x if isinstance(x, str) else "")
def test_64_bit_integers_on_a_device(expression: str, wanted) -> None:  # type: ignore[no-untyped-def]
  pairs = [(a, b) for a, b in draws() if b or "idiv" not in expression and "mod" not in expression]
  assert on_device(expression, pairs) == [wanted(a, b) & MASK for a, b in pairs]

@pytest.mark.parametrize("name, dtype", [("u64_to_f32", dtypes.uint64), ("i64_to_f32", dtypes.int64)])
def test_conversions_to_floats_on_a_device(name: str, dtype) -> None:  # type: ignore[no-untyped-def]
  found = on_device(f"vec2<u32>(bitcast<u32>({name}(a)), 0u)", draws())
  wanted = [round_to(dtypes.float32)(cast(dtype, dtypes.float32)(a if dtype is dtypes.uint64 else signed(a)))
            for a, _ in draws()]
  assert [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in found] == wanted

@pytest.mark.parametrize("name, dtype", [("f32_to_i64", dtypes.int64), ("f32_to_u64", dtypes.uint64)])
def test_conversions_from_floats_on_a_device(name: str, dtype) -> None:  # type: ignore[no-untyped-def]
  draw = random.Random(6)
  floats = [draw.getrandbits(32) for _ in range(400)] + [0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0x5f000000,
                                                         0xdf000000, 0x5f800000, 0x5effffff, 0xdeffffff, 0x5f7fffff]
  floats += [(127 + k) << 23 | draw.getrandbits(23) for k in range(66)]
  found = on_device(f"{name}(bitcast<f32>(a.x))", [(bits, 0) for bits in floats])
  values = [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in floats]
  assert found == [cast(dtypes.float32, dtype)(x) & MASK for x in values]

def number(bits: int) -> float: return float(struct.unpack("<f", struct.pack("<I", bits))[0])

def bits_of(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])

def fused_exactly(x: int, y: int, z: int) -> int:
  """The bits of a * b + c, of exact fractions, rounded once to the nearest float32, ties to even; NaN is 0x7fc00000."""
  a, b, c = map(number, (x, y, z))
  if not all(map(math.isfinite, (a, b, c))):
    found = math.copysign(math.inf, a) * math.copysign(1, b) if math.inf in (abs(a), abs(b)) else 0.0
    if math.nan in (a, b, c) or any(map(math.isnan, (a, b, c))) or found and 0 in (a, b): return 0x7fc00000
    return bits_of(found + c) if not math.isnan(found + c) else 0x7fc00000
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  if exact == 0:   # the sum of zeros of both signs, and of opposite numbers, is 0.0
    return 0x80000000 if not a * b and not c and (x ^ y) & z & 0x80000000 else 0
  sign, exact = (0x80000000 if exact < 0 else 0), abs(exact)
  exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
  if Fraction(2) ** exponent > exact: exponent -= 1
  unit = Fraction(2) ** max(exponent - 23, -149)
  rounded = round(exact / unit) * unit   # Python rounds halves of Fractions to even
  return sign | (0x7f800000 if rounded >= Fraction(2) ** 128 else bits_of(float(rounded)))

SPECIAL = [sign | bits for sign in (0, 1 << 31) for bits in (
  0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0xffffff, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x33800000, 0x34000000,
  0x4b800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000)]

def triples() -> list[tuple[int, int, int]]:
  """Operands of sums: special ones, any bits, exponents that meet, products that cancel, subnormal results, ties."""
  draw = random.Random(8)
  def near(exponent: int) -> int:
    few = draw.random() < 0.3    # few bits set: ties
    fraction = draw.getrandbits(2) << 21 | draw.getrandbits(1) if few else draw.getrandbits(23)
    return draw.getrandbits(1) << 31 | min(max(exponent, 0), 254) << 23 | fraction
  found = [(x, y, z) for x in SPECIAL for y in SPECIAL for z in SPECIAL[::2]]
  found += [(draw.getrandbits(32), draw.getrandbits(32), draw.getrandbits(32)) for _ in range(4000)]
  for _ in range(16000):
    e, f = draw.randrange(255), draw.randrange(255)
    if draw.random() < 0.5: f = min(max(draw.randrange(-5, 40) + 127 - e, 0), 254)   # results that are subnormal
    x, y = near(e), near(f)
    z = near(e + f - 127 + draw.randrange(-50, 51))
    if draw.random() < 0.4:      # close to the product with the other sign
      product = number(x) * number(y)
      if abs(product) < 3.4e38: z = bits_of(-product) ^ draw.choice((0, 0, 1, 3))
    found.append((x, y, z))
  for _ in range(1000):          # products half way between two numbers, and a far smaller term: only its sign counts
    e = draw.randrange(80, 240)
    x = draw.getrandbits(1) << 31 | e << 23 | draw.getrandbits(21) | 1
    found.append((x, 0x3fc00000, near(draw.randrange(0, e - 60)) | 1))
  return found

def test_products_and_sums_are_rounded_once_on_a_device() -> None:
  operands = triples()
  found = on_device("vec2<u32>(bitcast<u32>(fused(bitcast<f32>(a.x), bitcast<f32>(a.y), bitcast<f32>(b.x))), 0u)",
                    [(x | y << 32, z) for x, y, z in operands])
  def canonical(bits: int) -> int: return 0x7fc00000 if bits & 0x7fffffff > 0x7f800000 else bits
  wrong = [tuple(map(hex, (*given, got, fused_exactly(*given)))) for given, got in zip(operands, found)
           if canonical(got) != fused_exactly(*given)]
  assert not wrong, f"{len(wrong)} of {len(operands)}, {wrong[:8]}"
