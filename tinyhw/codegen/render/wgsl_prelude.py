"""WGSL functions that kernels use, by name. A source contains those that it calls.

A 64-bit integer is a `vec2<u32>`, its low word first. `zero` is always 0. No compiler knows that, so a number that was
XORed with it is unknown to it: `exact` keeps compilers from changing float arithmetic, since WGSL allows them to assume
that NaNs and infinities do not exist, and to reassociate. A driver may compile a kernel again for the arguments of a
launch: lavapipe does so where a condition depends on arguments at constant places alone. So `zero` is an argument whose
place is an argument.

WGSL's own fma may round twice. `fused` rounds a * b + c once. It computes with integers: the operand of the larger
exponent has its first bit at 62. The other one is shifted to it, and its lowest bit is set if bits are lost (sticky).
"""
from __future__ import annotations
import re

_TEXT = """
fn exact(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zero); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn sign_word(x: i32) -> u32 { return bitcast<u32>(x >> 31u); }
fn negative64(a: vec2<u32>) -> bool { return bitcast<i32>(a.y) < 0; }
fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let a0 = a.x & 0xffffu; let a1 = a.x >> 16u; let b0 = b.x & 0xffffu; let b1 = b.x >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let cross = a0 * b1 + (middle & 0xffffu);
  let high = a1 * b1 + (middle >> 16u) + (cross >> 16u);
  return vec2<u32>((cross << 16u) | (low & 0xffffu), high + a.x * b.y + a.y * b.x);
}
fn equal64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }
fn less_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return select(a.y < b.y, a.x < b.x, a.y == b.y); }
fn less_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(bitcast<i32>(a.y) < bitcast<i32>(b.y), a.x < b.x, a.y == b.y);
}
fn shl64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let s = by & 31u;
  let near = vec2<u32>(a.x << s, (a.y << s) | select(a.x >> (32u - max(s, 1u)), 0u, s == 0u));
  return select(near, vec2<u32>(0u, a.x << s), by >= 32u);
}
fn shifted_right(a: vec2<u32>, by: u32, top: u32, fill: u32) -> vec2<u32> {
  let s = by & 31u;
  let near = vec2<u32>((a.x >> s) | select(a.y << (32u - max(s, 1u)), 0u, s == 0u), top);
  return select(near, vec2<u32>(top, fill), by >= 32u);
}
fn shr_u64(a: vec2<u32>, by: u32) -> vec2<u32> { return shifted_right(a, by, a.y >> (by & 31u), 0u); }
fn shr_i64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let high = bitcast<i32>(a.y);
  return shifted_right(a, by, bitcast<u32>(high >> (by & 31u)), bitcast<u32>(high >> 31u));
}
fn divided64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u) {
    let d = max(b.x, 1u);
    return vec4<u32>(a.x / d, 0u, a.x % d, 0u);
  }
  var quotient = vec2<u32>(0u, 0u);
  var rest = vec2<u32>(0u, 0u);
  for (var k = 63i; k >= 0i; k--) {
    let carried = rest.y >> 31u;
    rest = vec2<u32>((rest.x << 1u) | (shr_u64(a, u32(k)).x & 1u), (rest.y << 1u) | (rest.x >> 31u));
    if (carried == 1u || !less_u64(rest, b)) {
      rest = sub64(rest, b);
      quotient |= shl64(vec2<u32>(1u, 0u), u32(k));
    }
  }
  return vec4<u32>(quotient, rest);
}
fn idiv64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divided64(a, b).xy; }
fn mod64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return divided64(a, b).zw; }

fn u64_to_f32(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return f32(a.x); }
  let zeros = countLeadingZeros(a.y);
  let top = shl64(a, zeros);
  let sticky = top.y | select(0u, 1u, top.x != 0u);
  return f32(sticky) * bitcast<f32>((127u + 32u - zeros) << 23u);
}
fn i64_to_f32(a: vec2<u32>) -> f32 {
  if (negative64(a)) { return -u64_to_f32(sub64(vec2<u32>(0u, 0u), a)); }
  return u64_to_f32(a);
}
fn f32_to_i32(x: f32) -> i32 {
  return select(-2147483647i - 1i, i32(x), x >= -2147483648.0f && x < 2147483648.0f);
}
fn magnitude64(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let exponent = (bits >> 23u) & 255u;
  let fraction = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (exponent < 127u || exponent > 190u) { return vec2<u32>(0u, 0u); }
  if (exponent < 150u) { return shr_u64(fraction, 150u - exponent); }
  return shl64(fraction, exponent - 150u);
}
fn f32_to_i64(x: f32) -> vec2<u32> {
  if (!(x >= -9223372036854775808.0f && x < 9223372036854775808.0f)) { return vec2<u32>(0u, 0x80000000u); }
  if (x < 0.0f) { return sub64(vec2<u32>(0u, 0u), magnitude64(x)); }
  return magnitude64(x);
}
fn f32_to_u64(x: f32) -> vec2<u32> {
  if (x >= 0.0f && x < 18446744073709551616.0f) { return magnitude64(x); }
  return f32_to_i64(x);
}

fn zeros64(a: vec2<u32>) -> u32 { return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u); }
fn shr_sticky(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by >= 64u) { return vec2<u32>(1u, 0u); }
  let kept = shr_u64(a, by);
  return vec2<u32>(kept.x | select(1u, 0u, equal64(shl64(kept, by), a)), kept.y);
}
fn rounded(a: vec2<u32>, exponent: i32, sign: u32) -> u32 {
  let zeros = zeros64(a);
  let biased = exponent + 190i - i32(zeros);
  if (biased >= 255i) { return sign | 0x7f800000u; }
  let top = shr_sticky(shl64(a, zeros), u32(max(1i - biased, 0i)));
  let rest = ((top.y & 0xffu) << 1u) | select(0u, 1u, top.x != 0u);
  let even = top.y >> 8u;
  let fraction = even + select(0u, 1u, rest > 256u || (rest == 256u && (even & 1u) == 1u));
  return sign | ((u32(max(biased - 1i, 0i)) << 23u) + fraction);
}
fn fraction24(x: u32) -> vec2<u32> {
  return vec2<u32>((x & 0x7fffffu) | select(0u, 0x800000u, (x & 0x7f800000u) != 0u), 0u);
}
fn exponent24(x: u32) -> i32 { return max(i32((x >> 23u) & 255u), 1i) - 150i; }
fn fused_bits(x: u32, y: u32, z: u32) -> u32 {
  let infinity = 0x7f800000u;
  let a = x & 0x7fffffffu; let b = y & 0x7fffffffu; let c = z & 0x7fffffffu;
  let sign = (x ^ y) & 0x80000000u;
  let sign_c = z & 0x80000000u;
  if (max(max(a, b), c) >= infinity) {
    let is_infinite = max(a, b) == infinity;
    let is_opposite = c == infinity && sign != sign_c;
    let is_nan = max(max(a, b), c) > infinity || (is_infinite && (min(a, b) == 0u || is_opposite));
    return select(select(z, sign | infinity, is_infinite), 0x7fc00000u, is_nan);
  }
  if (a == 0u || b == 0u) { return select(z, sign & sign_c, c == 0u); }
  let product = mul64(fraction24(x), fraction24(y));
  let up = zeros64(product) - 1u;
  let high = shl64(product, up);
  let at = exponent24(x) + exponent24(y) - i32(up);
  if (c == 0u) { return rounded(high, at, sign); }
  let up_c = zeros64(fraction24(z)) - 1u;
  let high_c = shl64(fraction24(z), up_c);
  let at_c = exponent24(z) - i32(up_c);
  let is_less = at < at_c || (at == at_c && less_u64(high, high_c));
  let larger = select(high, high_c, is_less);
  let smaller = shr_sticky(select(high_c, high, is_less), u32(abs(at - at_c)));
  if (sign == sign_c) { return rounded(add64(larger, smaller), max(at, at_c), sign); }
  let difference = sub64(larger, smaller);
  if (equal64(difference, vec2<u32>(0u, 0u))) { return 0u; }
  return rounded(difference, max(at, at_c), select(sign, sign_c, is_less));
}
fn fused(a: f32, b: f32, c: f32) -> f32 {
  return bitcast<f32>(fused_bits(bitcast<u32>(a), bitcast<u32>(b), bitcast<u32>(c)));
}
"""
# in the order in which they call each other: later ones call earlier ones
HELPERS: dict[str, str] = {text[3:text.index("(")]: text.strip()
                           for text in re.split(r"^(?=fn )", _TEXT, flags=re.M)[1:]}
CALLS: dict[str, frozenset[str]] = {name: frozenset(re.findall(r"(\w+)\(", text)) & HELPERS.keys() - {name}
                                    for name, text in HELPERS.items()}

def needed(names: set[str]) -> list[str]:
  """Return the functions of these names and those that they call, in order."""
  found: set[str] = set()
  waiting = list(names)
  while waiting:
    name = waiting.pop()
    if name not in found: waiting += CALLS[name]
    found.add(name)
  return [text for name, text in HELPERS.items() if name in found]
