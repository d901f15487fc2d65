"""C functions that kernels use, by name. A source contains those that it calls.

arithmetic.py defines their results.
"""
from __future__ import annotations

from tinyhw.dtype import ALIASES_BY_TYPE, FLOAT_FORMATS, DType, dtypes
from tinyhw.named_tuple import NamedTuple

class IntegerWords(NamedTuple):
  """What a language calls integers. suffix: of float literals; without one they are cast, as doubles."""
  inline: str
  int32: str
  int64: str
  uint64: str
  lowest32: str
  lowest64: str
  suffix: str = ""

IN_C = IntegerWords("static inline", "int32_t", "int64_t", "uint64_t", "INT32_MIN", "INT64_MIN")

def _division(name: str, signed: bool, bits: int) -> dict[str, str]:
  """Return division to minus infinity and its remainder; both are 0 where the divisor is 0."""
  kind = f"{'' if signed else 'u'}int{bits}_t"
  head = f"static inline {kind} {{}}_{name}({kind} a, {kind} b) {{{{"
  if not signed:
    return {f"idiv_{name}": head.format("idiv") + " return b ? a / b : 0; }",
            f"mod_{name}": head.format("mod") + " return b ? a % b : 0; }"}
  wide = "uint64_t" if bits == 64 else "uint32_t"
  divide = (f" if (b == 0) return 0; if (b == -1) return ({kind})(0 - ({wide})a);"
            f" {kind} q = a / b, r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); }}")
  remainder = (f" if (b == 0 || b == -1) return 0; {kind} r = a % b; return r + (r != 0 && (r < 0) != (b < 0) ? b : "
               f"0); }}")
  return {f"idiv_{name}": head.format("idiv") + divide, f"mod_{name}": head.format("mod") + remainder}

def to_integer(source: str, kind: str, words: IntegerWords) -> dict[str, str]:
  """Return truncation to integers; NaN and numbers outside of the type give the smallest number.

  source, kind: a float's name here, and its type in the language.
  """
  head = f"{words.inline} {{}} {source}_to_{{}}({kind} x) {{{{"
  lowest32 = "x > -2147483649.0" if kind == "double" else "x >= -2147483648.0f"
  suffix = "" if kind == "double" else words.suffix
  def number(text: str) -> str: return f"{text}{suffix}" if suffix else f"({kind}){text}"
  return {
    f"{source}_to_int32": head.format(words.int32, "int32") + f" return {lowest32} && x < {number('2147483648.0')} ? "
    f"({words.int32})x : {words.lowest32}; }}",
    f"{source}_to_int64": head.format(words.int64, "int64") + f" return x >= {number('-9223372036854775808.0')} && x < "
    f"{number('9223372036854775808.0')} ? ({words.int64})x : {words.lowest64}; }}",
    f"{source}_to_uint64": head.format(words.uint64, "uint64") +
      f" return x >= 0 && x < {number('18446744073709551616.0')} ? ({words.uint64})x : "
      f"({words.uint64}){source}_to_int64(x); }}",
  }

def _narrow(dtype: DType) -> dict[str, str]:
  """Return conversions between float and the bits of a narrower type: exact to float, to nearest even from float."""
  name, form = ALIASES_BY_TYPE[dtype], FLOAT_FORMATS[dtype]
  kind, sign, m = f"uint{form.bits}_t", 1 << (form.bits - 1), form.mantissa_bits
  overflow = form.largest_code + 1 if form.has_inf else sign - 1
  nan = overflow + (1 << (m - 1)) if form.has_inf else overflow
  smallest = 1 - form.bias  # exponent of the smallest normal number, and of all subnormals
  if form.fnuz: special, overflow_code, zero = f"0x{sign:x}", f"0x{sign:x}", "0"
  else: special, overflow_code, zero = f"sign | 0x{nan:x}", f"sign | 0x{overflow:x}", "sign"
  infinity = f"a == 0x{overflow:x} ? (c & 0x{sign:x} ? -__builtin_inff() : __builtin_inff()) : " if form.has_inf else ""
  is_special = f"c == 0x{sign:x}" if form.fnuz else f"a > 0x{form.largest_code:x}"
  decode_special = f"if ({is_special}) return {infinity}__builtin_nanf(\"\");"
  decode = f"""static inline float decode_{name}({kind} c) {{
  uint32_t a = c & 0x{sign - 1:x}, e = a >> {m}, f = a & 0x{(1 << m) - 1:x};
  {decode_special}
  double x = e ? (double)(f + 0x{1 << m:x}) * power_of_two((int32_t)e - {form.bias + m}) : \
(double)f * power_of_two({smallest - m});
  return (float)(c & 0x{sign:x} ? -x : x);
}}"""
  encode = f"""static inline {kind} encode_{name}(float x) {{
  uint32_t bits = ((union {{float from; uint32_t to;}}){{x}}).to, a = bits & 0x7fffffff, \
sign = bits >> 31 << {form.bits - 1};
  if (a > 0x7f800000) return {special};
  if (a == 0x7f800000) return {overflow_code};
  int32_t e = (int32_t)(a >> 23) - 127;
  if (e < {smallest}) e = {smallest};
  double quantum = (double)((union {{uint32_t from; float to;}}){{a}}).to * power_of_two({m} - e);
  uint32_t steps = (uint32_t)quantum;
  double rest = quantum - steps;
  steps += rest > 0.5 || (rest == 0.5 && (steps & 1));
  uint32_t code = steps + ((uint32_t)(e + {form.bias - 1}) << {m});
  if (code > 0x{form.largest_code:x}) return {overflow_code};
  return code ? sign | code : {zero};
}}"""
  return {f"decode_{name}": decode, f"encode_{name}": encode}

_THREEFRY = """static inline uint64_t threefry(uint64_t counter, uint64_t key) {
  static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t keys[3] = {(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)key ^ (uint32_t)(key >> 32) ^ 0x1bd11bda};
  uint32_t x0 = (uint32_t)counter + keys[0], x1 = (uint32_t)(counter >> 32) + keys[1];
  for (int group = 0; group < 5; group++) {
    for (int i = 0; i < 4; i++) {
      int r = rotations[group & 1][i];
      x0 += x1;
      x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return (uint64_t)x1 << 32 | x0;
}"""

# in the order in which they may call each other: later ones call earlier ones
HELPERS: dict[str, str] = {
  "power_of_two": "static inline double power_of_two(int32_t e) { return ((union {uint64_t from; double "
  "to;}){(uint64_t)(e + 1023) << 52}).to; }",
  "threefry": _THREEFRY,
  "round_to_odd": """static inline float round_to_odd(double x) {
  union {float value; uint32_t bits;} code = {(float)x};
  double back = code.value;
  if (back != x) code.bits = (code.bits - ((back < 0 ? -back : back) > (x < 0 ? -x : x))) | 1;
  return code.value;
}""",  # as codegen/math/casts.py has it
}
for _dtype in dtypes.ints:
  HELPERS.update(_division(ALIASES_BY_TYPE[_dtype], not dtypes.is_unsigned(_dtype), _dtype.bitsize))
HELPERS.update({**to_integer("float32", "float", IN_C), **to_integer("float64", "double", IN_C)})
for _dtype in dtypes.narrow_floats: HELPERS.update(_narrow(_dtype))
