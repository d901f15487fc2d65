"""Semantics of float instructions and of conversions, in the notation.

Rounding is to nearest, and denormals are kept. Other modifiers are refused (operands.py).
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.semantics.terms import chosen, compared, float_comparison, is_nothing, truth
from tinyhw.emulator.nvidia.warp.operands import Operands

def comparison(kind: str, modifier: str) -> Callable[[Operands], str]:
  return lambda o: compared(o, float_comparison(o.word(modifier), f"A.{kind}", f"B.{kind}"))

def min_or_max(o: Operands) -> str:
  """FMNMX: the smaller number where PP is true, else the larger one. With NAN a NaN is the result, without it the
  number.
  """
  low, high = ("minimum", "maximum") if o.word("nan") == "NAN" else ("min_num", "max_num")
  return f"D.f32 = {chosen(truth(o, 'PP'), f'{low}(A.f32, B.f32)', f'{high}(A.f32, B.f32)')}"

# ***** conversions *****

# approximate functions, with their largest errors: approximate.py
UNITS = {"RCP": "D.f32 = rcp(B.f32)", "RSQ": "D.f32 = rsq(B.f32)", "SQRT": "D.f32 = sqrt(B.f32)",
         "EX2": "D.f32 = exp(B.f32)", "LG2": "D.f32 = log(B.f32)",
         "RCP64H": "D.u32 = rcp_upper(B.u32)", "RSQ64H": "D.u32 = rsq_upper(B.u32)"}

def special_function(o: Operands) -> str:
  """MUFU."""
  name = o.word("mufu") or o.word("mufu64")
  if name not in UNITS: raise UnknownInstruction(f"MUFU.{name} is not supported yet")
  return UNITS[name]

INTEGERS = {"": "i32", "U32": "u32", "S64": "i64", "U64": "u64", "S8": "i8", "U8": "u8", "S16": "i16", "U16": "u16"}

def float_to_integer(source: str, modifier: str) -> Callable[[Operands], str]:
  """F2I: truncated, saturated, NaN gives 0. source: its type, "" if a modifier gives it."""
  def semantics(o: Operands) -> str:
    kind, given = INTEGERS[o.word(modifier)], {"": "f32", "F64": "f64"}.get(o.word("ffrom") or o.word("ffrom88"))
    if not source and given is None: raise UnknownInstruction("F2I from this type is not supported yet")
    if o.word("toward") != "TRUNC": raise UnknownInstruction("F2I without TRUNC is not supported yet")
    o.word("ntz")
    result = kind if kind in ("i64", "u64") else f"{kind[0]}32"
    converted = f"{kind}(B.{source or given})"
    return f"D.{result} = {converted if kind == result else f'{result}({converted})'}"
  return semantics

def integer_to_float(modifier: str, result: str) -> Callable[[Operands], str]:
  """I2F, rounded once."""
  def semantics(o: Operands) -> str:
    kind = INTEGERS[o.word(modifier)]
    if kind[1:] not in ("32", "64"): raise UnknownInstruction("I2F of narrow integers is not supported yet")
    return f"D.{result} = {result}(B.{kind})"
  return semantics

def widened(o: Operands) -> str:
  if (o.word("f2f8") or o.word("f2f32")) != "F32":
    raise UnknownInstruction("F2F.F64 of other types than F32 is not supported yet")
  return "D.f64 = f64(B.f32)"

def narrowed(o: Operands) -> str:
  if any(o.has(name) and o.word(name) != "F32" for name in ("f2f", "f2f88")):
    raise UnknownInstruction("F2F to other types than F32 is not supported yet")
  return "D.f32 = f32(B.f64)"

def truncated(kind: str) -> Callable[[Operands], str]:
  def semantics(o: Operands) -> str:
    if o.word("toward") != "TRUNC": raise UnknownInstruction("FRND without TRUNC is not supported yet")
    return f"D.{kind} = trunc(B.{kind})"
  return semantics

def packed_halves(o: Operands) -> str:
  """F2FP: b in the low half, a in the high half."""
  kind = "bf16" if (o.word("f2to") or o.word("f2bf")) == "BF16" else "f16"
  return f"D.u32 = raw_{kind}({kind}(A.f32)) << 16 | raw_{kind}({kind}(B.f32))"

EIGHT_BITS = {"E4M3": "fp8", "E5M2": "bf8"}

def unpacked_bytes(o: Operands) -> str:
  """F2FP.UNPACK_B: two 8-bit floats as halves, which hold all of their values. A NaN is 0x7fff."""
  kind, bit = EIGHT_BITS[o.word("fp8")], 16 * (o.word("h1hi") == "H1")
  if o.word("f2relu") or o.word("f2to") != "F16":
    raise UnknownInstruction("F2FP.UNPACK_B is supported for F16 without RELU only")
  text = "; ".join(f"t{k} = {kind}_to_f32(B.u32[{bit + 8 * k + 7}:{bit + 8 * k}])" for k in range(2))
  low, high = (f"(0x7fff if isnan(t{k}) else raw_f16(f16(t{k})))" for k in range(2))
  return f"{text}; D.u32 = {low} | {high} << 16"

def packed_bytes(o: Operands) -> str:
  """F2FP.PACK_AB_MERGE_C: b in the lowest byte, a in the next one.

  Too large a number becomes the largest number. A NaN is 0x7f.
  """
  kind = EIGHT_BITS[o.word("fp8to")]
  if o.word("satfinite") != "SATFINITE" or not is_nothing(o, "C"):
    raise UnknownInstruction("F2FP.PACK_AB_MERGE_C without SATFINITE or with a third source is not supported yet")
  return f"D.u32 = f32_to_{kind}(B.f32) | f32_to_{kind}(A.f32) << 8"

SEMANTICS: dict[str, str | Callable[[Operands], str]] = {
  "FADD": "D.f32 = A.f32 + B.f32", "FMUL": "D.f32 = A.f32 * B.f32", "FFMA": "D.f32 = fma(A.f32, B.f32, C.f32)",
  "FMNMX": min_or_max,
  "DADD": "D.f64 = A.f64 + C.f64", "DMUL": "D.f64 = A.f64 * B.f64", "DFMA": "D.f64 = fma(A.f64, B.f64, C.f64)",
  "FSETP": comparison("f32", "fcmp"), "DSETP": comparison("f64", "dcmp"),
  "MUFU": special_function, "MUFU.64H": special_function, "FRND": truncated("f32"), "FRND.F64": truncated("f64"),
  "F2I": float_to_integer("f32", "f2i"), "F2I.F64": float_to_integer("f64", "f2i"),
  "F2I.S64": float_to_integer("", "f2i64"),
  "I2F": integer_to_float("ifrom", "f32"), "I2F.F64": integer_to_float("ifrom", "f64"),
  "I2F.S64": integer_to_float("ifrom64", "f32"), "I2F.F64.S64": integer_to_float("ifrom64", "f64"),
  "F2F.F64": widened, "F2F": narrowed,
  "F2FP": packed_halves, "F2FP.UNPACK": unpacked_bytes, "F2FP.PACK8": packed_bytes,
}
