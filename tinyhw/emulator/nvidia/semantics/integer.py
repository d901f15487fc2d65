"""Semantics of integer, logic, selection and predicate instructions, in the notation. Uniform instructions have the
same.

Source: PTX ISA, whose instructions compile to them. Truth tables have source a in bits 0xf0, b in 0xcc, c in 0xaa.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.semantics.terms import SIGNS, both, chosen, compared, either, is_nothing, term, truth
from tinyhw.emulator.nvidia.warp.numbers import WORD
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.isa.sass.asm.special import names
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg

# ***** sums and products *****

def sum_of_three(o: Operands) -> str:
  """IADD3. For carries, minus x is ~x + 1, where 0 has a carry. With X, part of a longer sum, it is ~x."""
  longer = bool(o.named("PP"))
  o.word("s32")
  if is_nothing(o, "PU") and is_nothing(o, "PV") and not longer:
    return f"D.u32 = {term(o, 'A')} + {term(o, 'B')} + {term(o, 'C')}"
  terms, ones = [], 0
  for name in "ABC":
    negative = o.flag(f"{o.named(name)}_neg")
    if is_nothing(o, name) and not negative: continue
    terms.append(f"u64({term(o, name, sign='~')})")
    ones += negative and not longer
  if ones: terms.append(f"u64({ones})")
  for carry in [truth(o, name) for name in ("PP", "PQ")] if longer else ():
    if carry != "False": terms.append(f"u64({chosen(carry, '1', '0')})")
  carries = [f"{target}.bool = t >= {count << 32}" for target, count in (("PU", 1), ("PV", 2))
             if not is_nothing(o, target)]
  return "; ".join([f"t = {' + '.join(terms) or 'u64(0)'}", *carries, "D.u32 = t"])

def product(o: Operands) -> str:
  """IMAD: the low half, for signed and unsigned operands."""
  o.word("u32")
  c = term(o, "C")
  return "D.u32 = A.u32 * B.u32" if is_nothing(o, "C") else f"D.u32 = A.u32 * B.u32 + {c}"

def wide_product(o: Operands) -> str:
  kind, negative = "u" if o.word("u32") else "i", o.flag("c_neg")
  products = f"u64({kind}64(A.{kind}32) * {kind}64(B.{kind}32))"
  if is_nothing(o, "PU"): return f"D.u64 = {products} {'-' if negative else '+'} C.u64"
  if negative: return f"t = u128({products}) + u128(~C.u64) + 1; PU.bool = t[64]; D.u64 = u64(t)"
  return f"t = {products} + C.u64; PU.bool = t < C.u64; D.u64 = t"

def byte_products(o: Operands) -> str:
  """IDP.4A: the sum of four products of bytes, whose signs the names of the types tell."""
  count, *kinds = o.word("idp").split(".")
  if count != "4A": raise UnknownInstruction(f"IDP.{o.word('idp')} is not supported yet")
  def byte(name: str, kind: str, k: int) -> str:
    if kind == "U8": return f"{name}.u32[{8 * k + 7}:{8 * k}]"
    return f"u32(({name}.i32 << {24 - 8 * k}) >> 24)"
  terms = [f"{byte('A', kinds[0], k)} * {byte('B', kinds[1], k)}" for k in range(4)]
  return f"D.u32 = {' + '.join([*terms, *([] if is_nothing(o, 'C') else [term(o, 'C')])])}"

def scaled_sum(o: Operands) -> str:
  """ULEA: a shifted, plus b."""
  if not is_nothing(o, "PU"): raise UnknownInstruction("ULEA with a carry is not supported yet")
  return f"D.u32 = ({term(o, 'A')} << {o.number('n')}) + B.u32"

# ***** logic *****

# functions of two operands, by a truth table: bit 2 * a + b is the result
PAIRS = ("u32(0)", "~({a} | {b})", "~{a} & {b}", "~{a}", "{a} & ~{b}", "~{b}", "{a} ^ {b}", "~({a} & {b})",
         "{a} & {b}", "~({a} ^ {b})", "{b}", "~{a} | {b}", "{a}", "{a} | ~{b}", "{a} | {b}", f"u32({WORD})")
NO_BITS, ALL_BITS = PAIRS[0], PAIRS[-1]

def logic(lut: int, a: str, b: str, c: str) -> str:
  """Return a truth table of three operands: bit 4 * a + 2 * b + c is the result. It is one function of a and b where c
  is 1, and another where c is 0.
  """
  tables = [sum((lut >> 2 * k + bit & 1) << k for k in range(4)) for bit in (0, 1)]
  no, yes = (PAIRS[table].format(a=a, b=b) for table in tables)
  if no == yes: return no
  parts = [f"({text}) & {other}" if text != ALL_BITS else other for text, other in ((yes, c), (no, f"~{c}"))
           if text != NO_BITS]
  return " | ".join(f"({part})" for part in parts)

def logic_of_words(o: Operands) -> str:
  """LOP3."""
  results, found = [f"t = {logic(o.number('lut'), 'A.u32', 'B.u32', 'C.u32')}"], either("(t != 0)", truth(o, "PP"))
  if not is_nothing(o, "PU"): results.append(f"PU.bool = {found}")
  return "; ".join([*results, "D.u32 = t"])

def logic_of_predicates(o: Operands) -> str:
  """PLOP3, on masks. Inactive lanes keep their bits."""
  masks = {name: {"True": ALL_BITS, "False": NO_BITS}.get(truth(o, name), f"{name}.u32") for name in ("PP", "PQ", "PR")}
  a, b, c = (f"(~{mask})" if o.flag(f"{name.lower()}_not") and mask == f"{name}.u32" else mask
             for name, mask in masks.items())
  found = {target: logic(o.number(lut), a, b, c) for target, lut in (("PU", "lut"), ("PV", "lut2"))
           if not is_nothing(o, target)}
  return "; ".join([*(f"t{target} = ({text}) & LANES.u32" for target, text in found.items()),
                    *(f"{target}.u32 = ({target}.u32 & ~LANES.u32) | t{target}" for target in found)])

# ***** shifts and bytes *****

def shift(o: Operands) -> str:
  """SHF: a shift of the 64 bits C:A. Amounts are clamped to the width of the type, unless they wrap."""
  left, kind, high, wraps = o.word("dir") == "L", o.word("shf"), o.word("hi") == "HI", o.word("wrap") == "W"
  width, signed, count = int(kind[1:]), kind[0] == "S", o.values[o.named("B")]
  if not is_constant(o, "B"): return shift_by_register(left, width, signed, high, wraps)
  n = 0 if isinstance(count, Reg) else count & WORD
  return f"D.u32 = {constant_shift(n & width - 1 if wraps else min(n, width), left, signed, high)}"

def is_constant(o: Operands, name: str) -> bool:
  """Return whether an operand is an immediate or zero."""
  value = o.values[o.named(name)]
  return not o.has(f"{o.named(name)}_bank") and (not isinstance(value, Reg) or value.index == regs.ZERO)

def constant_shift(n: int, left: bool, signed: bool, high: bool) -> str:
  """Return a shift by a constant."""
  top = "u32(C.i32 >> 31)" if signed else "0"
  if left and not high: return f"A.u32 << {n}" if n < 32 else "0"
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
    if signed: return "D.i32 = C.i32 >> (B.u32 if B.u32 < 31 else 31)[5:0]"
    return "D.u32 = C.u32 >> (B.u32 if B.u32 < 32 else 32)[5:0]"
  kind = "i64" if signed and not left else "u64"
  count = f"B.u32{bits}" if wraps else f"(B.u32 if B.u32 < {width} else {width})[6:0]"
  if left and not high: return f"D.u32 = A.u32 << {count}"
  return (f"t = {kind}(u64(C.u32) << 32 | u64(A.u32)) {'<<' if left else '>>'} {count}; "
          f"D.u32 = u64(t){' >> 32' if high else ''}")

def permuted_bytes(o: Operands) -> str:
  """PRMT: four digits select bytes of C:A. A digit of 8 and more copies the byte's sign."""
  if o.word("prmt"): raise UnknownInstruction(f"PRMT.{o.word('prmt')} is not supported yet")
  if is_constant(o, "B"):
    selector = o.values["b"]
    return f"D.u32 = {constant_bytes(0 if isinstance(selector, Reg) else selector)}"
  text, parts = ["t = u64(C.u32) << 32 | u64(A.u32)"], []
  for k in range(4):
    text.append(f"t{k} = u32((t >> (B.u32[{4 * k + 2}:{4 * k}] << 3))[7:0])")
    parts.append(f"((((0 - t{k}[7]) & 255) if B.u32[{4 * k + 3}] == 1 else t{k}) << {8 * k})")
  return "; ".join([*text, f"D.u32 = {' | '.join(parts)}"])

def constant_bytes(selector: int) -> str:
  """Return the bytes that a constant selects. Adjacent ones are moved together."""
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
  return " | ".join(parts)

def extended(o: Operands) -> str:
  """SGXT: the lowest b bits, extended with zeros or with the sign."""
  unsigned, count = o.word("sgxt") == "U32", o.values["b"]
  if not is_constant(o, "B"):
    if unsigned: return "D.u32 = A.u32 & u32((u64(1) << (B.u32 if B.u32 < 32 else 32)[5:0]) - 1)"
    return "t = (32 - (B.u32 if B.u32 < 32 else 32))[5:0]; D.i32 = 0 if t == 32 else (A.i32 << t[4:0]) >> t[4:0]"
  n = 0 if isinstance(count, Reg) else min(count & WORD, 32)
  if n in (0, 32): return "D.u32 = A.u32" if n else "D.u32 = 0"
  return f"D.u32 = A.u32[{n - 1}:0]" if unsigned else f"D.i32 = (A.i32 << {32 - n}) >> {32 - n}"

# ***** selections and comparisons *****

def choice(o: Operands) -> str: return f"D.u32 = {chosen(truth(o, 'PP'), term(o, 'A'), term(o, 'B'))}"

def min_or_max(o: Operands) -> str:
  kind = "u32" if o.word("u32") else "i32"
  return f"D.{kind} = {chosen(truth(o, 'PP'), f'least(A.{kind}, B.{kind})', f'most(A.{kind}, B.{kind})')}"

def compared_integers(o: Operands) -> str:
  """ISETP. With EX the upper words of longer numbers: PR has the result for the lower ones, where they are equal."""
  kind, word = "u32" if o.word("u32") else "i32", o.word("icmp")
  found = {"F": "bool(0)", "T": "bool(1)"}.get(word) or f"(A.{kind} {SIGNS[word]} B.{kind})"
  if not o.has("pr"): return compared(o, found)
  lower = both(f"(A.{kind} == B.{kind})", truth(o, "PR"))
  return compared(o, either(both(f"(A.{kind} != B.{kind})", found), lower))

# ***** values in the state of a warp *****

SPECIAL = {"SR_TID.X": "D.u32 = FIRST.u32 + LANE", "SR_CTAID.X": "D.u32 = BLOCK.u32", "SR_LANEID": "D.u32 = LANE"}
UNIFORM_SPECIAL = {"SR_CTAID.X": "D.u32 = BLOCK.u32", "SR_CgaCtaId": "D.u32 = 0"}

def special(known: dict[str, str]) -> Callable[[Operands], str]:
  def semantics(o: Operands) -> str:
    name = names(o.form.generation).get(o.number("sr"), "")
    if name not in known: raise UnknownInstruction(f"special register {name or o.number('sr')} is not supported yet")
    return known[name]
  return semantics

NARROW = {"U8": "u8", "S8": "i8", "U16": "u16", "S16": "i16"}

def constant_load(o: Operands) -> str:
  """LDC and ULDC of an address without a register; "" with one (memory/transfer.py)."""
  word = o.word("csize")
  if o.has("a") and not is_nothing(o, "A"): return ""
  if word in ("", "64"): return "D.u64 = W.u64" if word else "D.u32 = W.u32"
  if o.has("ud"): raise UnknownInstruction("ULDC of narrow elements is not supported yet")
  kind = NARROW[word]
  return f"D.{kind[0]}32 = {kind[0]}32(W.{kind})"

SEMANTICS: dict[str, str | Callable[[Operands], str]] = {
  "MOV": "D.u32 = B.u32", "UMOV": "D.u32 = B.u32",
  "IADD3": sum_of_three, "IADD3.X": sum_of_three, "UIADD3": sum_of_three, "UIADD3.X": sum_of_three,
  "IMAD": product, "IDP": byte_products, "IMAD.WIDE": wide_product, "ULEA": scaled_sum,
  "LOP3.LUT": logic_of_words, "ULOP3.LUT": logic_of_words, "PLOP3.LUT": logic_of_predicates,
  "SHF": shift, "USHF": shift, "PRMT": permuted_bytes, "SGXT": extended,
  "SEL": choice, "IMNMX": min_or_max, "VIMNMX": min_or_max, "ISETP": compared_integers, "ISETP.EX": compared_integers,
  "S2R": special(SPECIAL), "S2UR": special(UNIFORM_SPECIAL), "LDC": constant_load, "ULDC": constant_load,
}
