"""Semantics of instructions that compute, in the notation of notation.py, for translated code. semantics/*.py has their
Python, which is independent: tests check that both compute the same.

Operands have the table's names, in capitals. `PP.bool` is this lane's bit of a predicate. Where the semantics depend on
modifiers or constants, a function makes them from the instruction. "" stays in Python.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.nvidia.execute.operands import Operands
from tinyhw.isa.sass.asm.special import names
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg

WORD = (1 << 32) - 1

def is_nothing(o: Operands, name: str) -> bool:
  """Return whether a result is discarded, or a register is zero."""
  value = o.values.get(name)
  return value is None or isinstance(value, Reg) and value.index == (regs.TRUE if value.cls.name in ("P", "UP") else regs.ZERO)

def truth(o: Operands, name: str) -> str:
  """Return a predicate operand: "True", "False", or the text that reads it."""
  inverted = o.flag(f"{name}_not")
  if is_nothing(o, name): return "False" if inverted else "True"
  return f"(not {name.upper()}.bool)" if inverted else f"{name.upper()}.bool"

def term(o: Operands, name: str, kind: str = "u32", sign: str = "-") -> str:
  """Return an integer source with its sign, which may mean that bits are inverted."""
  return f"({sign}{name.upper()}.{kind})" if o.flag(f"{name}_neg") else f"{name.upper()}.{kind}"

def either(a: str, b: str) -> str:
  """Return the disjunction of two booleans."""
  if "True" in (a, b): return "True"
  return b if a == "False" else a if b == "False" else f"({a} or {b})"

def both(a: str, b: str) -> str:
  """Return the conjunction of two booleans."""
  if "False" in (a, b): return "False"
  return b if a == "True" else a if b == "True" else f"({a} and {b})"

# ***** sums and products *****

def sum_of_three(o: Operands) -> str:
  """IADD3. For carries, minus x is ~x + 1."""
  extended = o.has("pp")
  if is_nothing(o, "pu") and is_nothing(o, "pv") and not extended: return f"D.u32 = {term(o, 'a')} + {term(o, 'b')} + {term(o, 'c')}"
  terms, ones = [], 0
  for name in "abc":
    if is_nothing(o, name) and not o.flag(f"{name}_neg"): continue
    terms.append(f"u64({term(o, name, sign='~')})")
    ones += not extended and o.flag(f"{name}_neg")
  if ones: terms.append(str(ones))
  for name in ("pp", "pq") if extended else ():
    carry = truth(o, name)
    if carry != "False": terms.append("1" if carry == "True" else f"u64(1 if {carry} else 0)")
  if not any(text.startswith("u64") for text in terms): return ""
  terms.sort(key=lambda text: not text.startswith("u64("))
  carries = [f"P{which}.bool = t >= {count << 32}" for which, count in (("U", 1), ("V", 2)) if not is_nothing(o, f"p{which.lower()}")]
  return "; ".join([f"t = {' + '.join(terms)}", *carries, "D.u32 = t"])

def product(o: Operands) -> str:
  """IMAD: the low half, for signed and unsigned operands."""
  o.word("u32")
  c = term(o, "c")
  return f"D.u32 = A.u32 * B.u32 + {c}" if not is_nothing(o, "c") else "D.u32 = A.u32 * B.u32"

def wide_product(o: Operands) -> str:
  kind, negative = "u" if o.word("u32") else "i", o.flag("c_neg")
  products = f"u64({kind}64(A.{kind}32) * {kind}64(B.{kind}32))"
  if is_nothing(o, "pu"): return f"D.u64 = {products} {'-' if negative else '+'} C.u64"
  return "" if negative else f"t = {products} + C.u64; PU.bool = t < C.u64; D.u64 = t"

# ***** logic and shifts *****

# functions of two operands, by a truth table: bit 2 * a + b is the result
PAIRS = ("u32(0)", "~({a} | {b})", "~{a} & {b}", "~{a}", "{a} & ~{b}", "~{b}", "{a} ^ {b}", "~({a} & {b})", "{a} & {b}", "~({a} ^ {b})", "{b}",
         "~{a} | {b}", "{a}", "{a} | ~{b}", "{a} | {b}", f"u32({WORD})")
NO_BITS, ALL_BITS = PAIRS[0], PAIRS[-1]

def logic(lut: int, a: str, b: str, c: str) -> str:
  """Return a truth table of three operands: bit 4 * a + 2 * b + c is the result. It is one function of a and b where c
  is 1, and another where c is 0.
  """
  tables = [sum((lut >> 2 * k + bit & 1) << k for k in range(4)) for bit in (0, 1)]
  no, yes = (PAIRS[table].format(a=a, b=b) for table in tables)
  if no == yes: return no
  parts = [f"({text}) & {other}" if text != ALL_BITS else other for text, other in ((yes, c), (no, f"~{c}")) if text != NO_BITS]
  return " | ".join(f"({part})" for part in parts)

def logic_of_words(o: Operands) -> str:
  results, found = [f"t = {logic(o.number('lut'), 'A.u32', 'B.u32', 'C.u32')}"], either("(t != 0)", truth(o, "pp"))
  if not is_nothing(o, "pu"):
    if found == "True": return ""
    results.append(f"PU.bool = {found}")
  return "; ".join([*results, "D.u32 = t"])

def logic_of_predicates(o: Operands) -> str:
  """PLOP3, on masks. Inactive lanes keep their bits."""
  masks = {name: {"True": ALL_BITS, "False": NO_BITS}.get(truth(o, name), f"{name.upper()}.u32") for name in ("pp", "pq", "pr")}
  a, b, c = (f"(~{mask})" if o.flag(f"{name}_not") and mask == f"{name.upper()}.u32" else mask for name, mask in masks.items())
  found = {target.upper(): logic(o.number(lut), a, b, c) for target, lut in (("pu", "lut"), ("pv", "lut2")) if not is_nothing(o, target)}
  return "; ".join([*(f"t{target} = ({text}) & LANES.u32" for target, text in found.items()),
                    *(f"{target}.u32 = ({target}.u32 & ~LANES.u32) | t{target}" for target in found)])

def shift(o: Operands) -> str:
  """SHF: a shift of the 64 bits C:A."""
  left, kind, high, wraps = o.word("dir") == "L", o.word("shf"), o.word("hi") == "HI", o.word("wrap") == "W"
  width, signed, count = int(kind[1:]), kind[0] == "S", o.values["b"]
  if isinstance(count, Reg) and count.index != regs.ZERO: return shift_by_register(left, width, signed, high, wraps)
  n = 0 if isinstance(count, Reg) else count & WORD
  return f"D.u32 = {shifted(n & width - 1 if wraps else min(n, width), left, signed, high)}"

def shifted(n: int, left: bool, signed: bool, high: bool) -> str:
  """Return a shift by a constant."""
  top = "u32(C.i32 >> 31)" if signed else "0"
  if left and not high: return f"A.u32 << {n}" if n < 32 else "0"
  if left: words = ["C.u32", "A.u32", "0"]
  else: words = [top, "C.u32", "A.u32"] if not high else [top, top, "C.u32"]
  rest = n % 32
  if left:
    upper, lower = ["C.u32", "A.u32", "u32(0)"][n // 32:n // 32 + 2] if n < 64 else ("u32(0)", "u32(0)")
    return f"({upper} << {rest}) | ({lower} >> {32 - rest})" if rest else upper
  words = ["A.u32", "C.u32", top, top, top][n // 32 + high:]
  lower, upper = words[0], words[1]
  if not rest: return lower
  if lower == top: return top
  if lower == "C.u32": return f"u32(C.i32 >> {rest})" if signed else f"C.u32 >> {rest}"
  return f"({lower} >> {rest}) | ({upper} << {32 - rest})"

def shift_by_register(left: bool, width: int, signed: bool, high: bool, wraps: bool) -> str:
  bits = "[4:0]" if width == 32 else "[5:0]"
  if not wraps and width == 32 and left and not high: return "D.u32 = (A.u32 << B.u32[4:0]) if B.u32 < 32 else 0"
  if not wraps and width == 32 and not left and high:
    word, most = ("i32", 31) if signed else ("u32", 32)
    return f"D.{word} = C.{word} >> (B.u32 if B.u32 < {most} else {most})[5:0]"
  kind = "i64" if signed and not left else "u64"
  count = f"B.u32{bits}" if wraps else f"(B.u32 if B.u32 < {width} else {width})[6:0]"
  if left and not high: return f"D.u32 = A.u32 << {count}"
  return f"t = {kind}(u64(C.u32) << 32 | u64(A.u32)) {'<<' if left else '>>'} {count}; D.u32 = u64(t){' >> 32' if high else ''}"

def permuted_bytes(o: Operands) -> str:
  """PRMT with a constant selector: adjacent bytes are moved together."""
  selector = o.values["b"]
  if o.word("prmt") or isinstance(selector, Reg): return ""
  parts, k = [], 0
  while k < 4:
    digit = selector >> 4 * k & 15
    word, byte, count = "AC"[digit >> 2 & 1], digit & 3, 1
    if digit & 8: text = f"((0 - {word}.u32[{8 * byte + 7}]) & 255)"
    else:
      while k + count < 4 and byte + count < 4 and selector >> 4 * (k + count) & 15 == digit + count: count += 1
      text = f"{word}.u32[{8 * (byte + count) - 1}:{8 * byte}]"
    parts.append(f"({text} << {8 * k})" if k else text)
    k += count
  return f"D.u32 = {' | '.join(parts)}"

def extended(o: Operands) -> str:
  """SGXT with a constant."""
  unsigned, count = o.word("sgxt") == "U32", o.values["b"]
  if isinstance(count, Reg): return ""
  n = min(count & WORD, 32)
  if n in (0, 32): return "D.u32 = A.u32" if n else "D.u32 = 0"
  return f"D.u32 = A.u32[{n - 1}:0]" if unsigned else f"D.i32 = (A.i32 << {32 - n}) >> {32 - n}"

# ***** selections and comparisons *****

def choice(o: Operands) -> str:
  chosen = truth(o, "pp")
  return f"D.u32 = {'A.u32' if chosen == 'True' else 'B.u32' if chosen == 'False' else f'A.u32 if {chosen} else B.u32'}"

def extreme(o: Operands) -> str:
  kind, least = "u32" if o.word("u32") else "i32", truth(o, "pp")
  low, high = (f"{name}(A.{kind}, B.{kind})" for name in ("least", "most"))
  return f"D.{kind} = {low if least == 'True' else high if least == 'False' else f'{low} if {least} else {high}'}"

def float_extreme(o: Operands) -> str:
  """FMNMX: with NAN a NaN is the result, without it the number."""
  names, least = ("minimum", "maximum") if o.word("nan") == "NAN" else ("min_num", "max_num"), truth(o, "pp")
  low, high = (f"{name}(A.f32, B.f32)" for name in names)
  return f"D.f32 = {low if least == 'True' else high if least == 'False' else f'{low} if {least} else {high}'}"

SIGNS = {"LT": "<", "EQ": "==", "LE": "<=", "GT": ">", "NE": "!=", "GE": ">="}

def compared(o: Operands, found: str) -> str:
  """Return the results of a comparison, combined with another predicate."""
  operation, other, results = o.word("bool"), truth(o, "pp"), []
  if operation == "XOR" and other != "False": return ""
  combine = both if operation == "AND" else either
  for target, text in (("pu", "t"), ("pv", "(not t)")):
    combined = combine(text, other)
    if is_nothing(o, target): continue
    if combined in ("True", "False"): return ""
    results.append(f"{target.upper()}.bool = {combined}")
  return "; ".join([f"t = {found}", *results])

def compared_integers(o: Operands) -> str:
  kind, sign = "u32" if o.word("u32") else "i32", SIGNS.get(o.word("icmp"))
  if sign is None: return ""
  found = f"(A.{kind} {sign} B.{kind})"
  if not o.has("pr"): return compared(o, found)
  return compared(o, either(both(f"(A.{kind} != B.{kind})", found), both(f"(A.{kind} == B.{kind})", truth(o, "pr"))))

def compared_floats(kind: str, modifier: str) -> Callable[[Operands], str]:
  """Return a comparison of floats. With a NaN it is true with U, else false."""
  def semantics(o: Operands) -> str:
    word = o.word(modifier)
    a, b = f"A.{kind}", f"B.{kind}"
    known = f"({a} == {a} and {b} == {b})"
    if word in ("NUM", "NAN"): return compared(o, known if word == "NUM" else f"(not {known})")
    sign = SIGNS.get(word.removesuffix("U"))
    if sign is None: return ""
    if word.endswith("U"): return compared(o, f"(not {known} or {a} {sign} {b})")
    return compared(o, f"({known} and {a} != {b})" if sign == "!=" else f"({a} {sign} {b})")
  return semantics

# ***** conversions *****

def float_to_integer(source: str, modifier: str) -> Callable[[Operands], str]:
  def semantics(o: Operands) -> str:
    kind = {"": "i32", "U32": "u32"}.get(o.word(modifier), "")
    o.word("ntz")
    if not kind or o.word("toward") != "TRUNC" or o.word("ffrom") or o.word("ffrom88"): return ""
    return f"D.{kind} = {kind}(B.{source})"
  return semantics

def integer_to_float(result: str) -> Callable[[Operands], str]:
  def semantics(o: Operands) -> str:
    kind = {"": "i32", "U32": "u32"}.get(o.word("ifrom"), "")
    return f"D.{result} = {result}(B.{kind})" if kind else ""
  return semantics

def widened(o: Operands) -> str: return "D.f64 = f64(B.f32)" if (o.word("f2f8") or o.word("f2f32")) == "F32" else ""

def narrowed(o: Operands) -> str:
  words = [o.word(name) for name in ("f2f", "f2f88") if o.has(name)]
  return "D.f32 = f32(B.f64)" if all(word == "F32" for word in words) else ""

def packed_halves(o: Operands) -> str:
  if (o.word("f2to") or o.word("f2bf")) == "BF16": return ""
  return "D.u32 = raw_f16(f16(A.f32)) << 16 | raw_f16(f16(B.f32))"

# ***** two numbers of 16 bits *****

PLACES = {"": ("[15:0]", "[31:16]"), "H0_H0": ("[15:0]", "[15:0]"), "H1_H1": ("[31:16]", "[31:16]")}

def halves(o: Operands, name: str) -> list[str]:
  """Return the low and the high number of a source, with its signs."""
  if o.has(f"{name}_low"): words = [f"{name.upper()}_LOW.u32[15:0]", f"{name.upper()}_HIGH.u32[15:0]"]
  else: words = [f"{name.upper()}.u32{bits}" for bits in PLACES[o.word(f"half_{name}")]]
  absolute, negative = (o.flag(f"{name}_{sign}") for sign in ("abs", "neg"))
  if absolute: words = [f"({word} & 0x7fff)" for word in words]
  if negative: words = [f"({word} ^ 0x8000)" for word in words]
  return [f"as_f16(u16({word}))" for word in words]

def packed(o: Operands, result: str) -> str:
  """Return the same result for both halves. bfloat16 is in Python only."""
  if o.word("bf16") or o.word("bf16c"): return ""
  low, high = (result.format(a=a, b=b) for a, b in zip(halves(o, "a"), halves(o, "b")))
  return f"D.u32 = {low} | {high} << 16"

def packed_arithmetic(sign: str) -> Callable[[Operands], str]: return lambda o: packed(o, f"raw_f16({{a}} {sign} {{b}})")

def packed_extreme(o: Operands) -> str:
  least, nan = truth(o, "pp"), o.word("nan") == "NAN"
  if least not in ("True", "False"): return ""
  return packed(o, f"raw_f16({('max_num', 'min_num', 'maximum', 'minimum')[2 * nan + (least == 'True')]}({{a}}, {{b}}))")

def packed_masks(o: Operands) -> str:
  sign, unordered = SIGNS.get(o.word("fcmp").removesuffix("U")), o.word("fcmp").endswith("U")
  if sign is None or o.word("bf") or (o.word("bool"), truth(o, "pp")) != ("AND", "True"): return ""
  known = "({a} == {a} and {b} == {b})"
  if unordered: return packed(o, f"(65535 if not {known} or {{a}} {sign} {{b}} else u32(0))")
  return packed(o, f"(65535 if {known} and {{a}} {sign} {{b}} else u32(0))")

# ***** values in the state of a warp *****

def special(o: Operands) -> str:
  return {"SR_TID.X": "D.u32 = FIRST.u32 + LANE", "SR_CTAID.X": "D.u32 = BLOCK.u32", "SR_LANEID": "D.u32 = LANE"}.get(
    names(o.form.generation).get(o.number("sr"), ""), "")

def constant_load(target: str) -> Callable[[Operands], str]:
  def semantics(o: Operands) -> str:
    kind = {"": "u32", "64": "u64"}.get(o.word("csize"), "")
    if not kind or o.number("bank") or o.has("a") and not is_nothing(o, "a"): return ""
    return f"{target}.{kind} = W.{kind}"
  return semantics

SEMANTICS: dict[str, str | Callable[[Operands], str]] = {
  "FADD": "D.f32 = A.f32 + B.f32", "FMUL": "D.f32 = A.f32 * B.f32", "FFMA": "D.f32 = fma(A.f32, B.f32, C.f32)", "FMNMX": float_extreme,
  "DADD": "D.f64 = A.f64 + C.f64", "DMUL": "D.f64 = A.f64 * B.f64", "DFMA": "D.f64 = fma(A.f64, B.f64, C.f64)",
  "MOV": "D.u32 = B.u32", "IADD3": sum_of_three, "IADD3.X": sum_of_three, "IMAD": product, "IMAD.WIDE": wide_product,
  "LOP3.LUT": logic_of_words, "PLOP3.LUT": logic_of_predicates, "SHF": shift, "PRMT": permuted_bytes, "SGXT": extended,
  "SEL": choice, "IMNMX": extreme, "VIMNMX": extreme, "ISETP": compared_integers, "ISETP.EX": compared_integers,
  "FSETP": compared_floats("f32", "fcmp"), "DSETP": compared_floats("f64", "dcmp"),
  "F2I": float_to_integer("f32", "f2i"), "F2I.F64": float_to_integer("f64", "f2i"),
  "I2F": integer_to_float("f32"), "I2F.F64": integer_to_float("f64"), "F2F.F64": widened,
  "F2F": narrowed, "F2FP": packed_halves, "HADD2.F32": "D.f32 = f32(A.f16) + f32(B.f16)",
  "HADD2": packed_arithmetic("+"), "HMUL2": packed_arithmetic("*"), "HMNMX2": packed_extreme, "HSET2": packed_masks,
  "S2R": special, "LDC": constant_load("D"), "ULDC": constant_load("UD"),
}
